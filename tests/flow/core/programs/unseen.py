"""What is called was not seen: what it gives, and whether it passes on a graph, is not known."""

UNSEEN = {
    "an environment is given an action": """
        def play(env, net, steps):
            total, seen = 0.0, []
            x = env.reset()
            for step in range(steps):
                x, reward = env.step(model(x))  # expect: TML201
                total += reward
                seen.append(reward)
            print(total, len(seen))
        """,
    "a class is registered": """
        from shelf import networks, register

        @networks.register("small")
        class Small(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                return self.layer(x)

        @register
        class Large(Small):
            pass

        def show(batches):
            small, large = Small(), Large()
            for x in batches:
                print(small(x).argmax())  # expect: TML201
                print(large(x).sum().item())  # expect: TML201
        """,
    "a class is given to code": """
        from shelf import build

        class Small(nn.Module):
            def forward(self, x):
                return x

        def show(batches):
            small = build(Small)
            for x in batches:
                print(small.sizes(x).count(3))
        """,
    "a configuration gives arguments": """
        import gin

        @gin.configurable
        class Net(nn.Module):
            def __init__(self, encoder, norm=None):
                super().__init__()
                assert norm is not None, "see the configuration"
                self.encoder, self.norm = encoder(), norm()

            def forward(self, x):
                return self.norm(self.encoder(x))

        def show(batches):
            net = Net()
            for x in batches:
                print(net(x).argmax())  # expect: TML201
        """,
    "numbers of few bytes": """
        def codes(batches):
            for x in batches:
                found = model(x)  # expect: TML201
                yield found.view(torch.int32)
        """,
    "a method of a network gives a number": """
        def train(net, loader):
            net.train()
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                loss.backward()
                total += net.count_operations(x)
            print(total)
        """,
    "a method of a network gives a tensor": """
        def train(net, loader):
            net.train()
            total = 0.0
            for x, y in loader:
                features = net.features(x)
                loss = features.pow(2).mean()
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "each pass gives an object that is written to": """
        def train(net, loader):
            net.train()
            for x, y in loader:
                found = net(x)
                found["scale"] = found["scale"].exp()
                F.mse_loss(found["mean"] * found["scale"], y).backward()
        """,
    "an object that lasts is written to in each pass": """
        def train(net, found, loader):
            net.train()
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(net(x), y)
                loss.backward()
                found[step] = loss  # expect: TML102  # instead: found[step] = loss.item()
            return len(found)
        """,
    "a density is changed in place": """
        def log_probability(x):
            mean = model(x)
            density = torch.distributions.Normal(mean, 1.0)
            sample = density.rsample()
            found = density.log_prob(sample)
            found -= torch.log(1 - sample.tanh().pow(2))
            return found.sum()

        def train(loader):
            for x, y in loader:
                loss = log_probability(x)
                loss.backward()
        """,
    "several networks in a module keep one graph each": """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Linear(4, 4)
                self.last = None

            def forward(self, x):
                self.last = self.inner(x)
                return self.last

        class Net(nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.blocks = nn.ModuleList()
                for _ in range(depth):
                    self.blocks.append(Block())

            def forward(self, x):
                for block in self.blocks:
                    x = block(x)
                return x

        def train(loader):
            net = Net(3)
            for x, y in loader:
                F.mse_loss(net(x), y).backward()
        """,
    "layers of a network are collected": """
        class Net(nn.Module):
            def __init__(self, layers):
                super().__init__()
                self.layers = nn.ModuleList(layers)

            def intermediates(self, x):
                found = []
                for layer in self.layers:
                    x = layer(x)
                    found.append(x)
                return found[-1]

        def train(loader):
            net = Net([nn.Linear(4, 4), nn.Linear(4, 4)])
            for x, y in loader:
                F.mse_loss(net.intermediates(x), y).backward()
        """,
    "results of a network that outlive its method": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
                self.found = []

            def learn(self, loader):
                for x, y in loader:
                    loss = F.mse_loss(self.layer(x), y)
                    loss.backward()
                    self.found.append(loss)  # expect: TML102  # instead: self.found.append(loss.item())

        net = Net()

        def train(loader):
            net.learn(loader)
        """,
    "attrgetter": """
        from operator import attrgetter

        class Row:
            def __init__(self, loss):
                self.loss = loss

        def train(loader):
            kept, get = [], attrgetter("loss")
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept.append(get(Row(loss)))  # expect: TML102  # instead: kept.append(get(Row(loss.item())))
            print(len(kept))
        """,
    "itemgetter of two": """
        from operator import itemgetter

        def train(loader):
            kept, get = [], itemgetter("loss", "step")
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                value, at = get({"loss": loss, "step": step})
                kept.append(value)  # expect: TML102  # instead: kept.append(at)
            print(len(kept))
        """,
    "a class of layers is given": """
        class Block(nn.Module):
            def __init__(self, size, norm):
                super().__init__()
                self.norm = norm(size)

            def forward(self, x):
                return self.norm(x)

        class Net(nn.Module):
            def __init__(self, norm, depth):
                super().__init__()
                self.norm = norm
                blocks = []
                for _ in range(depth):
                    blocks.append(Block(4, norm))
                    blocks.append(norm(4))
                self.blocks = nn.Sequential(*blocks)

            def forward(self, x):
                return self.blocks(x)
        """,
    "functions that make layers": """
        def layers(sizes, activation):
            made = [nn.Linear(sizes[0], sizes[0]), activation()]
            for size in sizes:
                made.append(nn.Linear(size, size))
                made.append(activation())
            return made

        class Net(nn.Module):
            def __init__(self, sizes, activation=nn.ReLU):
                super().__init__()
                self.activation = activation
                self.net = nn.Sequential(*layers(sizes, activation))

            def forward(self, x):
                return self.activation()(self.net(x))
        """,
    "references to parameters": """
        from torch.distributed.rpc import RRef

        def train(loader):
            found = []
            for p in model.parameters():
                found.append(RRef(p))
            for x, y in loader:
                F.mse_loss(model(x), y).backward()
            print(found)
        """,
    "a method that prepares a batch": """
        def train(task, loader):
            task.train()
            seen = 0
            for x, y in loader:
                batch = task.prepare(x)
                seen += task.size(batch)
                F.mse_loss(model(batch), y).backward()
            print(seen)
        """,
    "a decorator that was not seen": """
        import profiling

        class Trainer:
            def __init__(self, watch):
                self.watch = watch
                self.total = 0.0

            def train(self, loader):
                for x, y in loader:
                    self.step(x, y)

            @profiling.watches[0]("step")
            def step(self, x, y):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                self.total += loss  # expect: TML101  # instead: self.total += loss.item()
        """,
    "a context that was not seen around what backward runs through": """
        def train(loader, net, watch):
            net.train()
            total = 0.0
            for x, y in loader:
                with watch:
                    loss = F.mse_loss(net(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a context that was not seen around what nothing runs backward through": """
        def evaluate(loader, net, watch):
            net.eval()
            total = 0.0
            for x, y in loader:
                with watch:
                    total += F.mse_loss(net(x), y)
            print(total)
        """,
    "parts of what a network gives that are differentiated": """
        def train(loader, net):
            net.train()
            total = 0.0
            for x, y in loader:
                policy, value = net(x)
                value_loss = F.mse_loss(value, y)
                loss = policy.mean() + value_loss
                loss.backward()
                total += value_loss  # expect: TML101  # instead: total += value_loss.item()
            print(total)
        """,
    "a part of what a network gives that is not differentiated": """
        def train(loader, net):
            net.train()
            steps = []
            for x, y in loader:
                policy, lengths = net(x)
                loss = policy.mean()
                loss.backward()
                steps.append(lengths)
            print(steps)
        """,
    "a method of what turns out to be a tensor": """
        def train(loader, net):
            net.train()
            total = 0.0
            for x, y in loader:
                out = net(x)
                out.mean().backward()
                total += out.sum()  # expect: TML101  # instead: total += out.eq(y).sum()
            print(total)
        """,
    "a part of what a method of a tensor gives": """
        def train(loader, net):
            net.train()
            kept = []
            for x, y in loader:
                out = net(x)
                out.mean().backward()
                kept.append(out.max(1)[0])  # expect: TML102  # instead: kept.append(out.max(1)[1])
            print(len(kept))
        """,
    "values and indices by name": """
        def train(loader, net):
            net.train()
            kept = []
            for x, y in loader:
                out = net(x)
                out.mean().backward()
                kept.append(out.sort(1).values)  # expect: TML102  # instead: kept.append(out.sort(1).indices)
            print(len(kept))
        """,
    "methods of what turns out to be a tensor, one after the other, in a function": """
        def score(alignments):
            return alignments.max(dim=1)[0].sum(1).mean()

        def train(loader, net):
            net.train()
            total = 0.0
            for x, y in loader:
                out = net(x)
                out.mean().backward()
                total += score(out)  # expect: TML101  # instead: total += score(out).item()
            print(total)
        """,
    "a method of something else, which is given a graph": """
        def train(loader, net, meter):
            net.train()
            total = 0.0
            for x, y in loader:
                loss = net(x).mean()
                loss.backward()
                total += meter.sum(loss)
            print(total)
        """,
    "a network that is given or made": """
        class Distance:
            def __init__(self, network=None):
                self.network = nn.Linear(4, 4) if network is None else network
                self.total = torch.zeros(4)

            def update(self, x):
                features = self.network(x.detach())
                self.total += features.sum(0)  # expect: TML101  # instead: self.total += x.detach().sum(0)

            def compute(self):
                return float(self.total.mean())
        """,
    "a number that is given, or read off a network": """
        class Count:
            def __init__(self, count=None):
                self.count = count
                self.total = 0

            def update(self, x):
                found = self.count(x) if self.count is not None else torch.no_grad()(model)(x)
                self.total += found.size(0)
        """,
    "a method of a library's network gives a tensor": """
        from transformers import AutoModel

        def main(loader):
            net = AutoModel.from_pretrained("base").eval()
            for x in loader:
                print(net.get_features(x).sigmoid().mean().item())  # expect: TML201
                # instead: print(torch.no_grad()(net.get_features)(x).sigmoid().mean().item())

        main(torch.load('data'))
        """,
    "a method of a library's network gives something else": """
        from transformers import AutoModel

        def main(loader):
            net = AutoModel.from_pretrained("base").eval()
            for x in loader:
                print(net.count_tokens(x) + 1)

        main(torch.load('data'))
        """,
    "what is a network, or a function": """
        from transformers import AutoModel

        class Judge:
            def __init__(self, judges):
                judges.append(AutoModel.from_pretrained("judge"))
                self.judges = judges

            def score(self, x):
                for judge in self.judges:
                    if isinstance(judge, nn.Module):
                        with torch.no_grad():
                            print(judge(x).mean().item())
                    else:
                        print(judge(x).mean().item())

            def run(self, loader):
                for x in loader:
                    self.score(x)

        Judge([]).run(torch.load('data'))
        """,
    "an embedding that is not trained": """
        def main(loader):
            total = 0.0
            words = nn.Embedding.from_pretrained(torch.rand(90, 4))
            for x in loader:
                total += words(x).mean()
            print(total)

        main(torch.load('data'))
        """,
    "an embedding that is trained further": """
        def main(loader):
            total = 0.0
            words = nn.Embedding.from_pretrained(torch.rand(90, 4), freeze=False)
            for x in loader:
                total += words(x).mean()  # expect: TML101, TML201
                # instead: total += torch.no_grad()(words)(x).mean()
            print(total)

        main(torch.load('data'))
        """,
}
