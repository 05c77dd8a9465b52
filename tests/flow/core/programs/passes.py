"""Forward passes and what is done with their results."""

PASSES = {
    "the numbers of a result": """
        def train(loader):
            for x, y in loader:
                goal = model(x).data  # expect: TML203  # instead: goal = torch.no_grad()(model)(x)
                loss = F.mse_loss(model(x), goal + y)
                loss.backward()
        """,
    "the numbers of a result in a function": """
        def numbers(value):
            return value.data

        def train(loader):
            for x, y in loader:
                goal = numbers(model(x))  # expect: TML203  # instead: goal = numbers(torch.no_grad()(model)(x))
                loss = F.mse_loss(model(x), goal + y)
                loss.backward()
        """,
    "an attribute that is called data": """
        class Box:
            def __init__(self):
                self.data = []

            def add(self, value):
                self.data.append(value)  # expect: TML102

        def train(loader):
            box = Box()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                box.add(loss)  # instead: box.add(loss.data)
            print(len(box.data))
        """,
    "a packed sequence": """
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

        reader = nn.GRU(4, 4)

        def train(loader):
            for x, lengths in loader:
                states, last = reader(pack_padded_sequence(x, lengths))
                loss = states.data.sum()
                loss.backward()
                states, last = reader(pack_padded_sequence(x, lengths))  # expect: TML203
                # instead: states, last = torch.no_grad()(reader)(pack_padded_sequence(x, lengths))
                print(states.data.detach() + last.data)
        """,
    "a network that is evaluated as a whole": """
        class Agent(nn.Module):
            def __init__(self):
                super().__init__()
                self.actor = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

            def act(self, x):
                return self.actor(x)  # instead: return torch.no_grad()(self.actor)(x)

        def play(env, path):
            agent = Agent()
            agent.load_state_dict(torch.load(path, map_location="cpu"))
            agent.eval()
            x = env.reset()
            while x is not None:
                x = env.step(agent.act(x).argmax().item())  # expect: TML201
        """,
    "parts of a network that is frozen": """
        class Slices(nn.Module):
            def __init__(self, frozen):
                super().__init__()
                self.first = nn.Linear(4, 4)
                if frozen:
                    for p in self.parameters():
                        p.requires_grad = False

            def features(self, x):
                return self.first(x)

        def measure(loader):
            net = Slices(False)  # instead: net = Slices(True)
            for x, y in loader:
                print(net.features(x).item())  # expect: TML201
        """,
    "a copy that is frozen": """
        import copy

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(4, 4)])

            def forward(self, x):
                return self.layers[0](x)

        def train(loader):
            net = Net()
            teacher = copy.deepcopy(net).requires_grad_(False)
            losses = []
            for x, y in loader:
                loss = F.mse_loss(net(x), teacher(x))
                loss.backward()
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
            print(len(losses))
        """,
    "a prediction by one pass": """
        class Describer:
            def __init__(self, net: nn.Module):
                self.net = net

            def describe(self, x):
                self.net.eval()
                return self.net(x)

            def all(self, loader, store):
                self.net.eval()
                for x, y in loader:
                    store.add(self.net(x))  # expect: TML201  # instead: store.add(torch.no_grad()(self.net)(x))
        """,
    "a function that is detached beside training": """
        def train(made, critic, loader, optimizer):
            for x, y in loader:
                fake = made(x).detach()  # expect: TML203  # instead: fake = made(x)
                loss = critic(fake).mean() - critic(y).mean()
                loss.backward()
                optimizer.step()
        """,
    "a teacher's numbers beside training": """
        def train(net, teacher, loader, optimizer):
            for x, y in loader:
                goal = teacher(x).data  # expect: TML203  # instead: goal = torch.no_grad()(teacher)(x).data
                F.mse_loss(net(x), goal).backward()
                optimizer.step()
        """,
    "what is computed of a target, and detached beside training": """
        def train(net, target, loader, optimizer):
            for x, y in loader:
                best = target(x).max(1)[0].unsqueeze(1).detach()  # expect: TML203
                # instead: best = target.count(x).max(1)[0].unsqueeze(1).detach()
                F.mse_loss(net(x), y + best).backward()
                optimizer.step()
        """,
    "a watch over a network": """
        def train(watch, net, loader, optimizer):
            for x, y in loader:
                with watch(net) as kept:
                    net(x).mean().backward()
                optimizer.step()
                print(kept.stored.data)
        """,
    "a measure that is detached beside training": """
        def train(measure, net, loader, optimizer):
            for x, y in loader:
                out = net(x)
                error = measure(out, y).detach()
                F.mse_loss(out, y).backward()
                optimizer.step()
                print(error)
        """,
    "a wrapper that is asked by name": """
        def play(env, wrapper):
            wrapper.eval()
            show = wrapper.renderer
            while True:
                print(show("human"))
        """,
    "a backward pass of several machines": """
        import torch.distributed.autograd as distributed

        def train(loader):
            for x, y in loader:
                with distributed.context() as context:
                    loss = F.mse_loss(model(x), y)
                    distributed.backward(context, [loss])
                print(loss.detach())
        """,
    "what an agent keeps for its loss": """
        from torch.distributions import Categorical

        class Agent:
            def __init__(self, names):
                self.kept = {}
                for name in names:
                    self.kept[name] = []

            def act(self, name, state):
                chances = Categorical(model(state))
                action = chances.sample()
                self.kept[name].append(chances.log_prob(action))
                return action.item()
        """,
    "a store with attributes of any name": """
        class Store:
            def __init__(self, names):
                for name in names:
                    setattr(self, name, [])

            def feed(self, data):
                for name, value in data.items():
                    getattr(self, name).append(value)

        def train(env):
            store = Store(["value", "reward"])
            state = env.reset()
            for _ in range(5):
                value = model(state)
                state = env.step(value.argmax().item())
                store.feed({"value": value})
            goal = model(state).detach()  # expect: TML203  # instead: goal = torch.no_grad()(model)(state)
            loss = (torch.stack(store.value) - goal).sum()
            loss.backward()
        """,
    "a setter as a context": """
        def load(path):
            with torch.set_grad_enabled(False):
                model.load_state_dict(torch.load(path, map_location="cpu"))

        def train(path, loader):
            load(path)
            for x, y in loader:
                print(model(x).argmax().item())  # expect: TML201
                # instead: print(torch.no_grad()(model)(x).argmax().item())
        """,
    "a network that is frozen by a method of its own": """
        from models import build

        def extract(images):
            net = build()
            net.eval()
            net.freeze_norms()  # instead: net.freeze_trunk()
            for image in images:
                print(net(image.cuda()).argmax().item())  # expect: TML201
        """,
    "a network that is loaded as a whole": """
        def extract(path, images):
            net = torch.load(path, map_location="cpu")
            net.eval()
            for image in images:
                print(net(image).argmax().item())  # expect: TML201
                # instead: print(torch.no_grad()(net)(image).argmax().item())
        """,
    "a helper that trains as well": """
        def scores(net, x):
            return net(x).log_softmax(1)

        def train(policy, reference, loader, optimizer):
            for x, y in loader:
                anchor = scores(reference, x).detach()  # expect: TML203
                # instead: anchor = torch.no_grad()(scores)(reference, x).detach()
                loss = (scores(policy, x) - anchor).pow(2).mean()
                loss.backward()
                optimizer.step()
        """,
    "columns that are filled and kept": """
        class Relaxed:
            def __init__(self, size):
                self.columns = torch.zeros(size, 4)

            def relax(self, x, at):
                out = model(x)
                if out.sum() > 0:
                    self.columns[:, at] = out  # expect: TML102
        """,
    "a tensor that is made of an array": """
        class Scorer:
            def __init__(self, scale):
                self.scale = scale
                self.scale.eval()

            def scores(self, loader):
                total = 0.0
                for x, y in loader:
                    total += torch.from_numpy(self.scale(x.numpy())).mean().item()
                return total
        """,
    "a line that training and inference share": """
        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.out, self.stop = nn.Linear(4, 4), nn.Linear(4, 1)

            def decode(self, x):
                out = self.out(x)
                return out, self.stop(out.detach())

            def forward(self, x):
                return self.decode(x)

            def inference(self, x):
                out, stop = self.decode(x)
                return out, torch.sigmoid(stop.data)
        """,
    "a prediction of a network": """
        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.out = nn.Linear(4, 4)

            def decode(self, x):
                return self.out(x)

            def forward(self, x):
                return self.decode(x)

            def predict(self, x):
                return self.decode(x).argmax(1)  # expect: TML201
                # instead: return torch.no_grad()(self.decode)(x).argmax(1)
        """,
    "what a hub gives beside a network": """
        net, tools = torch.hub.load("voices/detector", "detector")
        find, read = tools

        def speech(path):
            for wave in read(path):
                print(find(wave.cuda(), 16000).item())
                print(net(wave.cuda()).item())  # expect: TML201  # instead: print(torch.no_grad()(net)(wave).item())
        """,
    "statistics that passes renew": """
        def renew(network, loader):
            for part in network.modules():
                if isinstance(part, nn.BatchNorm2d):
                    part.reset_running_stats()
            network.train()
            for x, _ in loader:
                network(x)  # expect: TML201  # instead: torch.no_grad()(network)(x)
        """,
    "statistics that passes renew after training": """
        network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten())

        steps = torch.optim.SGD(network.parameters(), 0.1)

        def train(loader):
            for x, y in loader:
                F.cross_entropy(network(x), y).backward()
                steps.step()
            for x, _ in loader:
                network(x)  # expect: TML201
                # instead: F.cross_entropy(network(x), y).backward()
        """,
    "a loss that a network keeps beside its result": """
        class Sparse(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(8, 8)

            def forward(self, x):
                hidden = self.layer(x)
                self.penalty = hidden.abs().mean()
                return hidden

        sparse = Sparse()
        steps = torch.optim.SGD(sparse.parameters(), 0.1)
        for _ in range(100):
            sparse(torch.rand(4, 8))
            sparse.penalty.backward()
            steps.step()
        """,
    "a loss that a network which is not seen keeps beside its result": """
        def train(network, loader):
            network.train()
            for x in loader:
                network(x)
                network.penalty.backward()
                optimizer.step()
        """,
    "passes for what a hook keeps of them": """
        def train(network, loader):
            kept = []
            network.train()
            network.layer.register_forward_hook(lambda module, given, result: kept.append(result))
            for x in loader:
                kept.clear()
                network(x)
                kept[-1].mean().backward()
                optimizer.step()
        """,
    "a metric that is moved to a device": """
        def measure(metric, network: nn.Module, loader):
            metric = metric.to("cuda")
            for x, y in loader:
                with torch.no_grad():
                    result = network(x)
                metric(result, y)
            return metric.compute()
        """,
    "an image for which a network is run that nobody reads": """
        def visualise(network: nn.Module, objective):
            image = torch.randn(1, 3, 224, 224, requires_grad=True)
            steps = torch.optim.Adam([image])
            for _ in range(512):
                network(image)
                objective().backward()
                steps.step()
            return image.detach()
        """,
    "passes that are tried for their memory": """
        def fits(network: nn.Module, sizes):
            for size in sizes:
                try:
                    network(torch.rand(size, 10, device="cuda"))
                except torch.cuda.OutOfMemoryError:
                    continue
                return size
        """,
}
