"""Graphs that objects hold."""

OBJECTS = {
    "a network within a network is trained, then used": """
        class Inner(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(6)])

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x

        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Inner()

            def forward(self, x):
                return self.inner(x)

        def main(loader, test):
            net = Outer()
            for x, y in loader:
                F.mse_loss(net(x), y).backward()
            for x, y in test:
                print(net(x).argmax(1))  # expect: TML201
                # instead: print(net(x).backward())
        """,
    "a base class that does nothing is used itself": """
        class Silent:
            def see(self, value):
                pass

        class Observer(Silent):
            def __init__(self):
                self.values = []

            def see(self, value):
                self.values.append(value)

        def train(loader):
            observers = [Silent(), Observer()]
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                for observer in observers:
                    observer.see(loss)
                observers[1].values.clear()
        """,
    "a subclass is used in place of a base class that does nothing": """
        class Silent:
            def see(self, value):
                pass

        class Observer(Silent):
            def __init__(self):
                self.values = []

            def see(self, value):
                self.values.append(value)  # expect: TML102  # instead: self.values.append(value.item())

        def train(loader):
            observers = [Silent(), Observer()]
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                for observer in observers:
                    observer.see(loss)
        """,
    "a meter": """
        class Meter:
            def __init__(self):
                self.total = 0.0
                self.count = 0

            def update(self, value):
                self.total += value  # expect: TML101
                self.count += 1

        def train(loader):
            meter = Meter()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                meter.update(loss)  # instead: meter.update(loss.item())
            print(meter.total / meter.count)
        """,
    "a trainer": """
        class Trainer:
            def __init__(self):
                self.total = 0.0

            def step(self, x, y):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                self.total += loss  # expect: TML101  # instead: self.total += loss.item()

            def fit(self, loader):
                for x, y in loader:
                    self.step(x, y)

        def train(loader):
            Trainer().fit(loader)
        """,
    "a trainer that has its network": """
        class Trainer:
            def __init__(self, network):
                self.network = network
                self.losses = []

            def fit(self, loader):
                for x, y in loader:
                    loss = F.mse_loss(self.network(x), y)
                    loss.backward()
                    self.losses.append(loss)  # expect: TML102  # instead: self.losses.append(loss.item())

        def train(loader):
            Trainer(model).fit(loader)
        """,
    "a list of the class": """
        class Trainer:
            losses = []

            def fit(self, loader):
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    self.losses.append(loss)  # expect: TML102  # instead: self.losses.append(loss.item())

        def train(loader):
            Trainer().fit(loader)
            print(len(Trainer.losses))
        """,
    "a sum of the class": """
        class Stats:
            total = 0.0

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                Stats.total += loss  # expect: TML101  # instead: Stats.total += loss.item()
            print(Stats.total)
        """,
    "an attribute that is replaced": """
        class Trainer:
            def __init__(self):
                self.loss = None

            def fit(self, loader):
                for x, y in loader:
                    self.loss = F.mse_loss(model(x), y)
                    self.loss.backward()
                    print(self.loss.item())

        def train(loader):
            Trainer().fit(loader)
        """,
    "an object that is called": """
        class Recorder:
            def __init__(self):
                self.kept = []

            def __call__(self, loss):
                self.kept.append(loss)  # expect: TML102  # instead: self.kept.append(loss.item())

        def train(loader):
            record = Recorder()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                record(loss)
        """,
    "an object in an object": """
        class Meter:
            def __init__(self):
                self.values = []

        class Trainer:
            def __init__(self):
                self.meter = Meter()

        def train(loader):
            trainer = Trainer()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                trainer.meter.values.append(loss)  # expect: TML102  # instead: trainer.meter.values.append(loss.item())
        """,
    "meters in a dictionary": """
        class Meter:
            def __init__(self):
                self.total = 0.0

            def update(self, value):
                self.total = self.total + value  # expect: TML101

        def train(loader):
            meters = {"loss": Meter(), "size": Meter()}
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                meters["size"].update(len(x))
                meters["loss"].update(loss)  # instead: meters["loss"].update(loss.item())
        """,
    "a meter that is reset for each epoch": """
        class Meter:
            def __init__(self):
                self.reset()

            def reset(self):
                self.total = 0.0

            def update(self, value):
                self.total += value  # expect: TML101

        def train(loader):
            meter = Meter()
            for epoch in range(2):
                meter.reset()
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    meter.update(loss)  # instead: meter.update(loss.item())
        """,
    "a method of a base class": """
        class Base:
            def __init__(self):
                self.losses = []

            def keep(self, loss):
                self.losses.append(loss)  # expect: TML102

        class Trainer(Base):
            def fit(self, loader):
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    self.keep(loss)  # instead: self.keep(loss.item())

        def train(loader):
            Trainer().fit(loader)
        """,
    "a method of a subclass": """
        class Base:
            def fit(self, loader):
                total = 0.0
                for x, y in loader:
                    total += self.step(x, y)  # expect: TML101
                print(total)

        class Trainer(Base):
            def step(self, x, y):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                return loss  # instead: return loss.item()

        def train(loader):
            Trainer().fit(loader)
        """,
    "super": """
        class Base:
            def __init__(self):
                self.losses = []

            def keep(self, value):
                self.losses.append(value)  # expect: TML102

        class Doubled(Base):
            def __init__(self):
                super().__init__()

            def keep(self, value):
                super().keep(2 * value)  # instead: super().keep(2 * value.item())

        def train(loader):
            meter = Doubled()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                meter.keep(loss)
        """,
    "an override that detaches": """
        class Base:
            def __init__(self):
                self.losses = []

            def number(self, value):
                return value

            def keep(self, value):
                self.losses.append(self.number(value))

        class Plain(Base):
            def number(self, value):
                return value.item()

        def train(loader):
            meter = Plain()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                meter.keep(loss)
        """,
    "a property": """
        class Holder:
            def __init__(self):
                self._kept = []

            @property
            def kept(self):
                return self._kept

        def train(loader):
            holder = Holder()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                holder.kept.append(loss)  # expect: TML102  # instead: holder.kept.append(loss.item())
        """,
    "a setter": """
        class Holder:
            def __init__(self):
                self.total = 0.0

            @property
            def last(self):
                return self.total

            @last.setter
            def last(self, value):
                self.total = self.total + value  # expect: TML101

        def train(loader):
            holder = Holder()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                holder.last = loss  # instead: holder.last = loss.item()
        """,
    "a meter with an operator": """
        class Meter:
            def __init__(self):
                self.total = 0.0

            def __iadd__(self, value):
                self.total = self.total + value  # expect: TML101
                return self

        def train(loader):
            meter = Meter()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                meter += loss  # instead: meter += loss.item()
            print(meter.total)
        """,
    "a log with an item": """
        class Log:
            def __init__(self):
                self.rows = []

            def __setitem__(self, key, value):
                self.rows.append((key, value))  # expect: TML102

        def train(loader):
            log = Log()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                log["loss"] = loss  # instead: log["loss"] = loss.item()
        """,
    "a dataclass with a list": """
        from dataclasses import dataclass, field

        @dataclass
        class History:
            losses: list = field(default_factory=list)
            steps: int = 0

        def train(loader):
            history = History()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                history.steps += 1
                history.losses.append(loss)  # expect: TML102  # instead: history.losses.append(loss.item())
        """,
    "a dataclass with a sum": """
        from dataclasses import dataclass

        @dataclass
        class Stats:
            total: float = 0.0

            def add(self, loss):
                self.total += loss  # expect: TML101

        def train(loader):
            stats = Stats()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                stats.add(loss)  # instead: stats.add(float(loss))
        """,
    "a namespace": """
        from types import SimpleNamespace

        def train(loader):
            state = SimpleNamespace(total=0.0)
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                state.total += loss  # expect: TML101  # instead: state.total += loss.item()
        """,
    "a subclass of list": """
        class History(list):
            def keep(self, value):
                self.append(value)  # expect: TML102

        def train(loader):
            history = History()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                history.keep(loss)  # instead: history.keep(loss.item())
        """,
    "a subclass of dict": """
        class Logs(dict):
            def add(self, key, value):
                self.setdefault(key, []).append(value)  # expect: TML102

        def train(loader):
            logs = Logs()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                logs.add("loss", loss)  # instead: logs.add("loss", loss.item())
        """,
    "a static method": """
        class Tools:
            @staticmethod
            def keep(kept, value):
                kept.append(value)  # expect: TML102

        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                Tools.keep(kept, loss)  # instead: Tools.keep(kept, loss.item())
        """,
    "a class method": """
        class Registry:
            kept = []

            @classmethod
            def keep(cls, value):
                cls.kept.append(value)  # expect: TML102

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                Registry.keep(loss)  # instead: Registry.keep(loss.item())
        """,
    "setattr and getattr": """
        class Stats:
            pass

        def train(loader):
            stats = Stats()
            setattr(stats, "total", 0.0)
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                setattr(stats, "total", getattr(stats, "total") + loss)  # expect: TML101
                # instead: setattr(stats, "total", getattr(stats, "total") + loss.item())
        """,
    "a network that keeps its outputs": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 1)
                self.outputs = []

            def forward(self, x):
                out = self.layer(x)
                self.outputs.append(out)  # expect: TML102  # instead: self.outputs.append(out.detach())
                return out

        net = Net()

        def train(loader):
            for x, y in loader:
                F.mse_loss(net(x), y).backward()
        """,
    "a network that keeps its last output": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 1)
                self.penalty = None

            def forward(self, x):
                out = self.layer(x)
                self.penalty = out.pow(2).mean()
                return out

        net = Net()

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(net(x), y) + net.penalty
                loss.backward()
        """,
    "an iterator of its own": """
        class Losses:
            def __init__(self, loader):
                self.batches = iter(loader)

            def __iter__(self):
                return self

            def __next__(self):
                x, y = next(self.batches)
                loss = F.mse_loss(model(x), y)
                loss.backward()
                return loss  # instead: return loss.item()

        def train(loader):
            kept = []
            for loss in Losses(loader):
                kept.append(loss)  # expect: TML102
        """,
    "an attribute that is deleted": """
        class Memory:
            def __init__(self):
                self.kept = []

            def clear(self):
                del self.kept[:]

        def train(loader):
            memory = Memory()
            for x, y in loader:
                memory.kept.append(F.mse_loss(model(x), y))
                sum(memory.kept).backward()
                memory.clear()
        """,
    "objects in a list": """
        class Row:
            def __init__(self, step, loss):
                self.step = step
                self.loss = loss  # instead: self.loss = loss.item()

        def train(loader):
            rows = []
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                rows.append(Row(step, loss))  # expect: TML102
        """,
    "a class that collects what is stored in it, in a function": """
        class Statistics:
            def __init__(self):
                self.values = {"loss": []}

            def __setitem__(self, name, value):
                self.values[name].append(value)  # expect: TML102

            def __getitem__(self, name):
                return self.values[name]

        def step(x, y, statistics):
            loss = F.mse_loss(model(x), y)
            statistics["loss"] = loss  # instead: statistics["loss"] = loss.item()
            return loss

        def train(loader):
            statistics = Statistics()
            for x, y in loader:
                step(x, y, statistics).backward()
            print(len(statistics["loss"]))
        """,
    "a class that keeps the last of what is stored in it, in a function": """
        class Statistics:
            def __init__(self):
                self.values = {}

            def __setitem__(self, name, value):
                self.values[name] = value

        def step(x, y, statistics):
            loss = F.mse_loss(model(x), y)
            statistics["loss"] = loss
            return loss

        def train(loader):
            statistics = Statistics()
            for x, y in loader:
                step(x, y, statistics).backward()
            print(len(statistics.values))
        """,
    "a copy with copies of all parameters": """
        class Learner(nn.Module):
            def __init__(self, net, rates=None):
                super().__init__()
                self.net = net
                self.rates = rates or nn.ParameterDict({name: nn.Parameter(p) for name, p in net.named_parameters()})

            def forward(self, x):
                return self.net(x)

            def clone(self):
                return Learner(self.net, {name: rate.clone() for name, rate in self.rates.items()})
        """,
    "an object that collects losses, and is returned": """
        class Statistics:
            def __init__(self):
                self.losses = []

        def measure(loader):
            statistics = Statistics()
            for x, y in loader:
                statistics.losses.append(F.mse_loss(model(x), y))
            return statistics
        """,
    "an item that a method gives, of what a decorated function made": """
        class Row:
            def __init__(self, loss):
                self.loss = loss

            def __getitem__(self, key):
                return self.loss  # instead: return self.loss.item()

        def counted(function):
            def wrapper(*given):
                return function(*given)
            return wrapper

        @counted
        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return Row(loss)

        def train(loader):
            losses = []
            for x, y in loader:
                row = learn(x, y)
                losses.append(row["value"])  # expect: TML102
            print(sum(losses))
        """,
    "handlers that are looked up by the names in an attribute": """
        class Events:
            def __init__(self, target):
                self.names = ["on_start", "on_batch"]  # tensors have an attribute that is called so, too
                self.target = target

            def all(self, loader):
                for batch in loader:
                    for name in self.names:
                        handler = getattr(self.target, name, None)
                        if handler is not None:
                            handler(batch)

        class Trainer:
            def __init__(self):
                self.losses = []

            def on_batch(self, batch):
                loss = F.mse_loss(model(batch[0]), batch[1])
                loss.backward()
                self.losses.append(loss)  # expect: TML102  # instead: self.losses.append(loss.item())

        def train(loader):
            trainer = Trainer()
            Events(trainer).all(loader)
            print(trainer.losses)
        """,
}
