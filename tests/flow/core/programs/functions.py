"""Graphs that pass through functions, closures, callbacks and decorators."""

FUNCTIONS = {
    "a loop over a generator expression": """
        def train(loader):
            def one(x, y):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                return loss

            kept = []
            for loss in (one(x, y) for x, y in loader):
                kept.append(loss)  # expect: TML102  # instead: kept.append(loss.item())
            print(len(kept))
        """,
    "a generator expression that a loop trains with": """
        def train(loader):
            total = 0.0
            for loss in (F.mse_loss(model(x), y) for x, y in loader):
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a sum of a generator expression": """
        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss

        def train(loader):
            total = sum(learn(x, y) for x, y in loader)  # expect: TML101
            # instead: total = sum(learn(x, y).item() for x, y in loader)
            print(total)
        """,
    "generator expressions that other calls consume": """
        kept = []

        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            kept.append(loss)  # expect: TML102  # instead: kept.append(loss.item())
            return False

        def train(loader):
            any(learn(x, y) for x, y in loader)
            print(*(learn(x, y) for x, y in loader))
            print(",".join(str(learn(x, y)) for x, y in loader))
        """,
    "a call that is not seen consumes a generator expression": """
        def test(loader, mean):
            for x, y in loader:
                print(mean(model(part) for part in x).item())  # expect: TML201
                # instead: mean(model(part) for part in x).sum().backward()

        def train(loader, mean):
            for x, y in loader:
                mean(F.mse_loss(model(part), y) for part in x).backward()
        """,
    "a norm over parameters": """
        def train(loader):
            for x, y in loader:
                F.mse_loss(model(x), y).backward()
                norm = sum(p.pow(2).sum() for p in model.parameters())
                print(norm.item())
        """,
    "a name that a generator expression binds for its function": """
        def train(loader, limit):
            last = None
            for x, y in loader:
                if any((last := part).sum() > limit for part in x):
                    loss = F.mse_loss(model(last), y)
                    loss.backward()
            print(last)
        """,
    "a helper that returns the loss": """
        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss  # instead: return loss.item()

        def train(loader):
            total = 0.0
            for x, y in loader:
                total += learn(x, y)  # expect: TML101
            print(total)
        """,
    "a helper that returns a dictionary": """
        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return {"loss": loss, "count": len(x)}  # instead: return {"loss": loss.item(), "count": len(x)}

        def train(loader):
            total, count = 0.0, 0
            for x, y in loader:
                logs = learn(x, y)
                count += logs["count"]
                total += logs["loss"]  # expect: TML101
            print(total / count)
        """,
    "a helper that returns a tuple": """
        def learn(x, y):
            out = model(x)
            loss = F.mse_loss(out, y)
            loss.backward()
            return loss, out.detach()

        def train(loader):
            losses, outputs = [], []
            for x, y in loader:
                loss, out = learn(x, y)
                outputs.append(out)
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
            print(len(losses), len(outputs))
        """,
    "a helper of a helper": """
        def forward(x, y):
            return F.mse_loss(model(x), y)

        def learn(x, y):
            loss = forward(x, y)
            loss.backward()
            return loss

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = learn(x, y)
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a helper that stores": """
        def keep(losses, loss):
            losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())

        def train(loader):
            losses = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                keep(losses, loss)
            print(len(losses))
        """,
    "a helper that is given what to store": """
        def keep(losses, value):
            losses.append(value)

        def train(loader):
            losses = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                keep(losses, loss.item())
            print(len(losses))
        """,
    "a helper that detaches": """
        def number(loss, as_float=True):
            return loss.item() if as_float else loss

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total += number(loss)
            print(total)
        """,
    "a helper that a constant keeps from detaching": """
        def number(loss, as_float=True):
            if as_float:
                return loss.item()
            return loss

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total += number(loss, as_float=False)  # expect: TML101  # instead: total += number(loss, as_float=True)
            print(total)
        """,
    "a closure": """
        def train(loader):
            losses = []

            def learn(x, y):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())

            for x, y in loader:
                learn(x, y)
            print(len(losses))
        """,
    "a nonlocal sum": """
        def train(loader):
            total = 0.0

            def learn(x, y):
                nonlocal total
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()

            for x, y in loader:
                learn(x, y)
            print(total)
        """,
    "a global sum": """
        total = 0.0

        def train(loader):
            global total
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "a global list": """
        history = []

        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            history.append(loss)  # expect: TML102  # instead: history.append(loss.item())

        def train(loader):
            for x, y in loader:
                learn(x, y)
            print(len(history))
        """,
    "a function that makes a function": """
        def recorder():
            kept = []

            def record(value):
                kept.append(value)  # expect: TML102

            return record

        def train(loader):
            record = recorder()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                record(loss)  # instead: record(loss.item())
        """,
    "callbacks in a list": """
        losses = []

        def show(loss):
            print(loss.item())

        def keep(loss):
            losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())

        CALLBACKS = [show, keep]

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                for callback in CALLBACKS:
                    callback(loss)
        """,
    "a callback that is passed": """
        def run(loader, after):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                after(loss)  # expect: TML102

        def train(loader):
            losses = []
            run(loader, losses.append)  # instead: run(loader, lambda loss: losses.append(loss.item()))
            print(len(losses))
        """,
    "a lambda": """
        def train(loader):
            losses = []
            keep = lambda loss: losses.append(loss)  # expect: TML102
            # instead: keep = lambda loss: losses.append(loss.item())
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                keep(loss)
            print(len(losses))
        """,
    "a partial": """
        from functools import partial

        def keep(losses, loss):
            losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())

        def train(loader):
            losses = []
            record = partial(keep, losses)
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                record(loss)
            print(len(losses))
        """,
    "a bound method in a dictionary": """
        class Meter:
            def __init__(self):
                self.values = []

            def keep(self, loss):
                self.values.append(loss)  # expect: TML102  # instead: self.values.append(loss.item())

        def train(loader):
            meter = Meter()
            hooks = {"loss": meter.keep, "step": print}
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                hooks["step"](step)
                hooks["loss"](loss)
        """,
    "a default argument that lasts": """
        def keep(loss, kept=[]):
            kept.append(loss)  # expect: TML102  # instead: kept.append(loss.item())

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                keep(loss)
        """,
    "the second of the arguments": """
        kept = []

        def log(*values):
            kept.append(values[1])  # expect: TML102  # instead: kept.append(values[0])

        def train(loader):
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                log(step, loss)
        """,
    "a dictionary that is spread": """
        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return {"loss": loss, "size": len(x)}

        def train(loader):
            logs = []
            for step, (x, y) in enumerate(loader):
                logs.append({"step": step, **learn(x, y)})  # expect: TML102
                # instead: logs.append({"step": step, "loss": learn(x, y)["loss"].item()})
            print(len(logs))
        """,
    "a decorator of its own": """
        import functools

        kept = []

        def recorded(function):
            @functools.wraps(function)
            def inner(*args, **kwargs):
                result = function(*args, **kwargs)
                kept.append(result)  # expect: TML102  # instead: kept.append(result.item())
                return result

            return inner

        @recorded
        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss

        def train(loader):
            for x, y in loader:
                learn(x, y)
        """,
    "a decorator with arguments": """
        def scaled(factor):
            def decorate(function):
                def inner(x, y):
                    return factor * function(x, y)
                return inner
            return decorate

        @scaled(2.0)
        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss  # instead: return loss.item()

        def train(loader):
            total = 0.0
            for x, y in loader:
                total += learn(x, y)  # expect: TML101
            print(total)
        """,
    "a decorator that detaches": """
        import functools

        def as_number(function):
            @functools.wraps(function)
            def inner(*args):
                return function(*args).item()
            return inner

        @as_number
        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss

        def train(loader):
            total = 0.0
            for x, y in loader:
                total += learn(x, y)
            print(total)
        """,
    "a cache that is kept small": """
        from functools import lru_cache

        data = {}

        @lru_cache(maxsize=1)
        def encoded(step):
            return model(data[step]).mean()

        def train(loader):
            for step, (x, y) in enumerate(loader):
                data[step] = x
                loss = F.mse_loss(model(x), y) * encoded(step)
                loss.backward()
        """,
    "a recursion": """
        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss  # instead: return loss.item()

        def collect(batches, kept):
            for x, y in batches:
                kept.append(learn(x, y))  # expect: TML102
                return collect(batches, kept)
            return kept

        def train(loader):
            print(len(collect(iter(loader), [])))
        """,
    "a branch that is chosen by a name": """
        def learn(x, y, reduction="number"):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            if reduction == "number":
                return loss.item()
            return loss

        def train(loader):
            total = 0.0
            for x, y in loader:
                total += learn(x, y, reduction="none")  # expect: TML101
                # instead: total += learn(x, y, reduction="number")
            print(total)
        """,
    "a sum that is returned and passed in again": """
        def learn(x, y, total):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return total + loss  # instead: return total + loss.item()

        def train(loader):
            total = 0.0
            for x, y in loader:
                total = learn(x, y, total)  # expect: TML101
            print(total)
        """,
    "a function in another file": """
        from steps import learn

        def train(loader):
            losses = []
            for x, y in loader:
                losses.append(learn(model, x, y))  # expect: TML102  # instead: losses.append(learn(model, x, y).item())
            print(len(losses))

        # file: steps.py
        from torch.nn import functional as F

        def learn(network, x, y):
            loss = F.mse_loss(network(x), y)
            loss.backward()
            return loss
        """,
    "a list in another file": """
        import logs
        from steps import learn

        def train(loader):
            for x, y in loader:
                logs.keep(learn(model, x, y))
            print(len(logs.KEPT))

        # file: logs.py
        KEPT = []

        def keep(value):
            KEPT.append(value)  # expect: TML102

        # file: steps.py
        from torch.nn import functional as F

        def learn(network, x, y):
            loss = F.mse_loss(network(x), y)
            loss.backward()
            return loss  # instead: return loss.item()
        """,
    "a meter in another file": """
        from meters import Meter

        def train(loader):
            meter = Meter()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                meter.update(loss, len(x))  # instead: meter.update(loss.item(), len(x))
            print(meter.mean())

        # file: meters.py
        class Meter:
            def __init__(self):
                self.total, self.count = 0.0, 0

            def update(self, value, n=1):
                self.total += value * n  # expect: TML101
                self.count += n

            def mean(self):
                return self.total / self.count
        """,
    "a network in another file": """
        from nets import Net

        net = Net()

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)

        # file: nets.py
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 1)

            def forward(self, x):
                return self.layer(x).relu()
        """,
    "positional arguments as a tuple": """
        kept = []

        def log(*values):
            kept.append(values)  # expect: TML102

        def train(loader):
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                log(step, loss)  # instead: log(step, loss.item())
        """,
    "named arguments as a dictionary": """
        kept = []

        def log(**values):
            kept.append(values)  # expect: TML102

        def train(loader):
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                log(step=step, loss=loss)  # instead: log(step=step, loss=loss.item())
        """,
    "arguments that are passed on": """
        kept = []

        def log(name, value):
            kept.append(value)  # expect: TML102

        def logged(*args, **kwargs):
            log(*args, **kwargs)

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                logged("loss", value=loss)  # instead: logged("loss", value=loss.item())
        """,
    "two arguments that are read at once": """
        def distance(outputs, targets):
            return sum((output - target).pow(2).mean() for output, target in zip(outputs, targets))

        def train(loader):
            model.eval()
            for x, y in loader:
                h = model(x)
                distance([h, h.relu()], [y, y]).backward()
                optimizer.step()
        """,
    "two arguments that are read at once and kept": """
        kept = []

        def note(names, losses):
            for name, loss in zip(names, losses):
                kept.append(loss)  # expect: TML102  # instead: kept.append(name)

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                note(["sum"], [loss])
        """,
    "two arguments of which the first is kept": """
        kept = []

        def note(losses, names):
            for loss, name in zip(losses, names):
                kept.append(loss)  # expect: TML102  # instead: kept.append(name)

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                note([loss], ["sum"])
        """,
    "arguments that stand in a dictionary of the function around": """
        def learn(network, optimizer, x, y):
            loss = F.mse_loss(network(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss  # instead: return loss.item()

        def train(loader):
            parts = {"network": model, "optimizer": optimizer}
            losses = []

            def one(x, y):
                print(len(x))
                losses.append(learn(x=x, y=y, **parts))  # expect: TML102

            for x, y in loader:
                one(x, y)
            print(sum(losses))
        """,
}
