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
                return self.actor(x)  # expect: TML201  # instead: return torch.no_grad()(self.actor)(x)

        def play(env, path):
            agent = Agent()
            agent.load_state_dict(torch.load(path))
            agent.eval()
            x = env.reset()
            while x is not None:
                x = env.step(agent.act(x).argmax().item())
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
                return self.first(x)  # expect: TML201

        def measure(loader):
            net = Slices(False)  # instead: net = Slices(True)
            for x, y in loader:
                print(net.features(x).item())
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
}
