"""Classes whose methods are called from elsewhere, and functions whose callers are not seen."""

LIVES = {
    "a step of a trainer that is called from outside": """
        class Trainer:
            def __init__(self):
                self.losses = []

            def step(self, x, y):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                self.losses.append(loss)  # expect: TML102  # instead: self.losses.append(loss.item())

        def train(loader):
            run(Trainer(), loader)

        def run(trainer, loader):
            for x, y in loader:
                trainer.step(x, y)
        """,
    "a trainer without a caller": """
        class Trainer:
            def __init__(self):
                self.total = 0.0

            def step(self, x, y):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                self.total += loss  # expect: TML101  # instead: self.total += loss.item()
                return loss.item()

        def train(loader):
            trainer = globals()["Trainer"]()
            for x, y in loader:
                trainer.step(x, y)
        """,
    "a trainer whose list another method empties": """
        class Trainer:
            def __init__(self):
                self.losses = []

            def step(self, x, y):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                self.losses.append(loss)

            def end(self):
                print(sum(loss.item() for loss in self.losses))
                self.losses.clear()

        def train(loader):
            trainer = globals()["Trainer"]()
            for x, y in loader:
                trainer.step(x, y)
                trainer.end()
        """,
    "a trainer whose list another method differentiates": """
        class Trainer:
            def __init__(self):
                self.losses = []

            def observe(self, x, y):
                self.losses.append(F.mse_loss(model(x), y))

            def update(self):
                optimizer.zero_grad()
                torch.stack(self.losses).sum().backward()
                optimizer.step()
                self.losses = []

        def train(loader):
            trainer = globals()["Trainer"]()
            for x, y in loader:
                trainer.observe(x, y)
                trainer.update()
        """,
    "a loss that another method differentiates": """
        class Trainer:
            def forward(self, x, y):
                self.loss = F.mse_loss(model(x), y)

            def backward(self):
                self.loss.backward()
                print(self.loss.item())

        def train(loader):
            trainer = globals()["Trainer"]()
            for x, y in loader:
                trainer.forward(x, y)
                trainer.backward()
        """,
    "a loss that a caller differentiates": """
        def loss_of(x, y):
            return F.mse_loss(model(x), y)

        def train(loader):
            for x, y in loader:
                loss = globals()["loss_of"](x, y)
                loss.backward()
        """,
    "a network as a parameter": """
        def learn(network, x, y, losses):
            loss = F.mse_loss(network(x), y)
            loss.backward()
            losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())

        def train(loader, network=None):
            losses = []
            for x, y in loader:
                learn(network or model, x, y, losses)
            print(len(losses))
        """,
    "an evaluation of a network that is a parameter": """
        def evaluate(network: nn.Module, loader):
            network.eval()
            for x, y in loader:
                print(network(x).argmax(1))  # expect: TML201  # instead: print(torch.no_grad()(network)(x).argmax(1))

        def train(loader):
            globals()["evaluate"](model, loader)
        """,
    "a predictor": """
        class Predictor:
            def __init__(self):
                self.network = nn.Linear(4, 2)
                self.network.eval()

            def label(self, x):
                return self.network(x).argmax(1).tolist()  # expect: TML201
                # instead: return torch.no_grad()(self.network)(x).argmax(1).tolist()

        def train(loader):
            predictor = globals()["Predictor"]()
            for x, y in loader:
                predictor.label(x)
        """,
    "a predictor with a decorator": """
        class Predictor:
            def __init__(self):
                self.network = nn.Linear(4, 2)

            @torch.no_grad()
            def label(self, x):
                self.network.eval()
                return self.network(x)

        def train(loader):
            predictor = globals()["Predictor"]()
            for x, y in loader:
                predictor.label(x)
        """,
    "an environment that keeps its state": """
        class World:
            def __init__(self):
                self.state = torch.zeros(8, 4)

            def step(self, action):
                self.state = self.state + action.detach()
                return self.state

        def train(loader):
            world = World()
            for x, y in loader:
                loss = model(world.step(x)).pow(2).mean()
                loss.backward()
        """,
    "an environment that keeps graphs": """
        policy = nn.Linear(4, 4)

        class World:
            def __init__(self):
                self.state = torch.zeros(8, 4)

            def step(self, action):
                self.state = self.state + action  # expect: TML104  # instead: self.state = self.state.detach() + action
                return self.state

        def train(loader):
            world = World()
            for x, y in loader:
                state = world.step(policy(x))
                loss = model(state).pow(2).mean() + policy(x).mean()
                loss.backward(retain_graph=True)  # instead: loss.backward()
        """,
    "a generator of batches": """
        def augmented(loader):
            for x, y in loader:
                yield x + torch.randn_like(x), y

        def train(loader):
            total = 0.0
            for x, y in augmented(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a pipeline of generators": """
        def outputs(loader):
            for x, y in loader:
                yield model(x), y

        def losses(pairs):
            for out, y in pairs:
                loss = F.mse_loss(out, y)
                loss.backward()
                yield loss

        def train(loader):
            kept = []
            for loss in losses(outputs(loader)):
                kept.append(loss)  # expect: TML102  # instead: kept.append(loss.item())
            print(len(kept))
        """,
    "events": """
        class Bus:
            def __init__(self):
                self.handlers = {}

            def on(self, name, handler):
                self.handlers.setdefault(name, []).append(handler)

            def emit(self, name, value):
                for handler in self.handlers.get(name, []):
                    handler(value)

        kept = []

        def keep(loss):
            kept.append(loss)  # expect: TML102  # instead: kept.append(loss.item())

        def train(loader):
            bus = Bus()
            bus.on("loss", keep)
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                bus.emit("loss", loss)
        """,
    "a registry of classes": """
        METERS = {}

        def register(cls):
            METERS[cls.__name__] = cls
            return cls

        @register
        class Mean:
            def __init__(self):
                self.total = 0.0

            def update(self, value):
                self.total += value  # expect: TML101

        def train(loader):
            meter = METERS["Mean"]()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                meter.update(loss)  # instead: meter.update(loss.item())
        """,
    "a wrapper that passes calls on": """
        class Meter:
            def __init__(self):
                self.kept = []

            def update(self, value):
                self.kept.append(value)  # expect: TML102

        class Wrapper:
            def __init__(self, inner):
                self.inner = inner

            def __getattr__(self, name):
                return getattr(self.inner, name)

        def train(loader):
            meter = Wrapper(Meter())
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                meter.update(loss)  # instead: meter.update(loss.item())
        """,
    "a builder that returns itself": """
        class Log:
            def __init__(self):
                self.kept = []

            def add(self, value):
                self.kept.append(value)  # expect: TML102
                return self

        def train(loader):
            log = Log()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                log.add(len(x)).add(loss)  # instead: log.add(len(x)).add(loss.item())
        """,
    "two objects of one class": """
        class Meter:
            def __init__(self):
                self.total = 0.0

            def update(self, value):
                self.total = value

        def train(loader):
            first, second = Meter(), Meter()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                first.update(loss.item())
                second.update(loss)
            print(first.total)
        """,
    "mixins": """
        class Keeping:
            def keep(self, value):
                self.kept.append(value)  # expect: TML102

        class Counting:
            def count(self):
                self.steps += 1

        class Trainer(Keeping, Counting):
            def __init__(self):
                self.kept, self.steps = [], 0

            def step(self, x, y):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                self.count()
                self.keep(loss)  # instead: self.keep(loss.item())

        def train(loader):
            trainer = Trainer()
            for x, y in loader:
                trainer.step(x, y)
        """,
    "an abstract base": """
        from abc import ABC, abstractmethod

        class Base(ABC):
            @abstractmethod
            def value(self, loss): ...

            def fit(self, loader):
                kept = []
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    kept.append(self.value(loss))  # expect: TML102

        class Whole(Base):
            def value(self, loss):
                return loss  # instead: return loss.item()

        def train(loader):
            Whole().fit(loader)
        """,
    "a trainer with a table of lists that come into being as they are asked for": """
        from collections import defaultdict

        class Trainer:
            def __init__(self):
                self.metrics = defaultdict(lambda: defaultdict(list))

            def step(self, x, y, phase="train"):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                found = {f"{phase} loss": loss.cpu()}  # instead: found = {f"{phase} loss": loss.item()}
                for name, value in found.items():
                    self.metrics[phase][name].append(value)  # expect: TML102
        """,
    "a trainer with a list of one step": """
        class Trainer:
            def __init__(self):
                self.terms = []

            def step(self, x, y):
                self.terms = []
                self.terms.append(F.mse_loss(model(x), y))
                self.terms[0].backward()
        """,
    "a tensor that is filled in each call, and made anew for it": """
        class Filled:
            def begin(self, x):
                self.weight = torch.zeros_like(x)

            def add(self, mask, value):
                self.weight[..., mask] = value

            def fill(self, x):
                self.begin(x)
                self.add(x > 0, model(x))
                self.add(x < 0, -model(x))
        """,
    "a tensor that is filled in each call, and made once": """
        class Filled:
            def __init__(self):
                self.weight = torch.zeros(4)

            def fill(self, x):
                self.weight[x > 0] = model(x)  # expect: TML102  # instead: self.weight[x > 0] = x
        """,
    "what the forward of a network keeps, and a method reads": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
                self.seen = []

            def forward(self, x):
                y = self.layer(x)
                self.seen.append(y)  # expect: TML102  # instead: self.seen.append(y.detach())
                return y

            def largest(self):
                return max(y.abs().max().item() for y in self.seen)
        """,
    "what the forward of a network sums up, and a method reads": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
                self.norm = torch.zeros(())

            def forward(self, x):
                y = self.layer(x)
                self.norm = self.norm + y.norm()  # expect: TML101  # instead: self.norm = self.norm + y.norm().item()
                return y

            def read(self):
                return self.norm.item()
        """,
    "what the forward of a network adds to what it is given": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
                self.place = nn.Parameter(torch.zeros(4))

            def forward(self, x):
                x += self.place
                return self.layer(x)

            def read(self, x):
                with torch.no_grad():
                    return self(x).sum().item()
        """,
}
