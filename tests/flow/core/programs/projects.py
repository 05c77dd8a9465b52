"""Programs in several files."""

PROJECTS = {
    "three files": """
        from trainer import Trainer

        def train(loader):
            Trainer(model).fit(loader)

        # file: trainer.py
        from torch.nn import functional as F
        from meters import Meter

        class Trainer:
            def __init__(self, network):
                self.network = network
                self.meter = Meter()

            def fit(self, loader):
                for x, y in loader:
                    loss = F.mse_loss(self.network(x), y)
                    loss.backward()
                    self.meter.update(loss)  # instead: self.meter.update(loss.item())

        # file: meters.py
        class Meter:
            def __init__(self):
                self.total = 0.0

            def update(self, value):
                self.total += value  # expect: TML101
        """,
    "a base class in another file": """
        from base import Base

        class Trainer(Base):
            def step(self, x, y):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                return loss  # instead: return loss.item()

        def train(loader):
            Trainer().fit(loader)

        # file: base.py
        class Base:
            def __init__(self):
                self.losses = []

            def fit(self, loader):
                for x, y in loader:
                    self.losses.append(self.step(x, y))  # expect: TML102
        """,
    "a subclass in another file": """
        class Base:
            def keep(self, kept, loss):
                kept.append(loss)  # expect: TML102

        def train(loader):
            from special import Special

            kept, special = [], Special()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                special.store(kept, loss)

        # file: special.py
        from main import Base

        class Special(Base):
            def store(self, kept, loss):
                self.keep(kept, loss)  # instead: self.keep(kept, loss.item())
        """,
    "an import under another name": """
        import steps as s
        from steps import learn as go

        def train(loader):
            kept = []
            for x, y in loader:
                kept.append(s.number(go(model, x, y)))  # expect: TML102

        # file: steps.py
        import torch.nn.functional as functional

        def learn(network, x, y):
            loss = functional.mse_loss(network(x), y)
            loss.backward()
            return loss

        def number(loss):
            return loss  # instead: return loss.item()
        """,
    "an import of everything": """
        from steps import *

        def train(loader):
            kept = []
            for x, y in loader:
                kept.append(learn(model, x, y))  # expect: TML102

        # file: steps.py
        from torch.nn.functional import mse_loss

        def learn(network, x, y):
            loss = mse_loss(network(x), y)
            loss.backward()
            return loss  # instead: return loss.item()
        """,
    "a name that is passed on by a file": """
        from tools import learn

        def train(loader):
            kept = []
            for x, y in loader:
                kept.append(learn(model, x, y))  # expect: TML102

        # file: tools.py
        from steps import learn

        # file: steps.py
        from torch.nn.functional import mse_loss

        def learn(network, x, y):
            loss = mse_loss(network(x), y)
            loss.backward()
            return loss  # instead: return loss.item()
        """,
    "a decorator in another file": """
        from tools import recorded

        @recorded
        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss

        def train(loader):
            for x, y in loader:
                learn(x, y)

        # file: tools.py
        import functools

        KEPT = []

        def recorded(function):
            @functools.wraps(function)
            def inner(*args, **kwargs):
                result = function(*args, **kwargs)
                KEPT.append(result)  # expect: TML102  # instead: KEPT.append(result.item())
                return result
            return inner
        """,
    "a context in another file": """
        from tools import evaluating

        def train(loader):
            with evaluating(model):
                for x, y in loader:
                    print(F.mse_loss(model(x), y).item())  # expect: TML201

        # file: tools.py
        import contextlib
        import torch

        @contextlib.contextmanager
        def evaluating(network):
            network.eval()
            with contextlib.nullcontext():  # instead: with torch.no_grad():
                yield
        """,
    "a network in another file that is evaluated": """
        import nets

        net = nets.Net()

        def train(loader):
            net.eval()
            for x, y in loader:
                print(net(x).argmax(1))  # expect: TML201  # instead: print(torch.no_grad()(net)(x).argmax(1))

        # file: nets.py
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(4, 2)

            def forward(self, x):
                return self.layer(x)
        """,
    "an object that a file makes": """
        from logs import log

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                log.add(loss)  # instead: log.add(loss.item())

        # file: logs.py
        class Log:
            def __init__(self):
                self.rows = []

            def add(self, value):
                self.rows.append(value)  # expect: TML102

        log = Log()
        """,
    "a function that makes a network": """
        from nets import build

        net = build(3)

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)

        # file: nets.py
        from torch import nn

        def build(depth):
            layers = [nn.Linear(4, 4) for _ in range(depth)]
            return nn.Sequential(*layers, nn.Linear(4, 1))
        """,
    "a callback in another file": """
        from engine import run

        def train(loader):
            losses = []

            def after(loss):
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())

            run(model, loader, after)

        # file: engine.py
        from torch.nn.functional import mse_loss

        def run(network, loader, after):
            for x, y in loader:
                loss = mse_loss(network(x), y)
                loss.backward()
                after(loss)
        """,
    "a generator in another file": """
        from steps import losses

        def train(loader):
            kept = []
            for loss in losses(model, loader):
                kept.append(loss)  # expect: TML102

        # file: steps.py
        from torch.nn.functional import mse_loss

        def losses(network, loader):
            for x, y in loader:
                loss = mse_loss(network(x), y)
                loss.backward()
                yield loss  # instead: yield loss.item()
        """,
    "state of a module": """
        import state
        import steps

        def train(loader):
            for x, y in loader:
                steps.learn(model, x, y)
            print(state.total)

        # file: state.py
        total = 0.0

        # file: steps.py
        import state
        from torch.nn.functional import mse_loss

        def learn(network, x, y):
            loss = mse_loss(network(x), y)
            loss.backward()
            state.total += loss  # expect: TML101  # instead: state.total += loss.item()
        """,
    "two files that import each other": """
        def number(loss):
            return loss  # instead: return loss.item()

        def train(loader):
            import steps

            kept = []
            for x, y in loader:
                steps.learn(model, x, y, kept)

        # file: steps.py
        import main
        from torch.nn.functional import mse_loss

        def learn(network, x, y, kept):
            loss = mse_loss(network(x), y)
            loss.backward()
            kept.append(main.number(loss))  # expect: TML102
        """,
    "what a file sets only where it is run as a program": """
        from settings import losses

        for step in range(9):
            loss = model(torch.ones(4) * step).mean()
            loss.backward()
            if losses is not None:
                losses.append(loss)  # expect: TML102
        print(losses)

        # file: settings.py
        losses = []  # instead: losses = None

        if __name__ == "__main__":
            losses = []
            print(losses)
        """,
    "a file that is run as a program, and imported": """
        from steps import observe

        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                observe(kept, loss)
            print(len(kept))

        # file: steps.py
        import torch

        def observe(kept, loss):
            kept.append(loss)  # expect: TML102  # instead: kept.append(loss.item())

        if __name__ == "__main__":
            seen = []
            network = torch.nn.Linear(4, 1)
            for _ in range(9):
                out = network(torch.ones(4))
                out.backward()
                seen.append(out)  # expect: TML102  # instead: seen.append(out.item())
            print(len(seen))
        """,
}
