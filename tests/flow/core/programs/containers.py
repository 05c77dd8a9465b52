"""What is put into lists, dictionaries and other containers."""

CONTAINERS = {
    "a dict made anew in some iterations": """
        def parts(outputs):
            losses = []
            for output in outputs:
                losses.append(output.mean())
            return sum(losses), losses

        def train(loader, writer):
            for step, (x, y) in enumerate(loader):
                loss, losses = parts([model(part) for part in x])
                loss.backward()
                if step % 10 == 0:
                    shown = {"total": loss}
                    shown.update({str(number): part for number, part in enumerate(losses)})
                    writer.add(shown)
        """,
    "a list that a method fills and its caller replaces": """
        class Log:
            def note(self, name, value):
                self.entries.setdefault(name, []).append(value)

        class Trainer(Log):
            def __init__(self):
                self.entries = {}

            def fit(self, loader):
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    self.note("loss", loss)
                    self.entries["loss"] = []

        def train(loader):
            Trainer().fit(loader)
        """,
    "a list that a method fills for good": """
        class Log:
            def note(self, name, value):
                self.entries.setdefault(name, []).append(value)  # expect: TML102
                # instead: self.entries.setdefault(name, []).append(value.item())

        class Trainer(Log):
            def __init__(self):
                self.entries = {}

            def fit(self, loader):
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    self.note("loss", loss)
                    self.entries["rates"] = []

        def train(loader):
            Trainer().fit(loader)
        """,
    "lists of lists in one of two branches": """
        def train(loader, parts):
            for x, y in loader:
                if parts:
                    found = [[model(part) for part in each] for each in x]
                else:
                    found = [[model(x)]]
                loss = sum(sum(F.mse_loss(part, y) for part in each) for each in found)
                loss.backward()
        """,
    "a list that each iteration makes and one of them keeps": """
        def train(loader):
            rows = []
            for x, y in loader:
                row = []
                for part in x:
                    loss = F.mse_loss(model(part), y)
                    loss.backward()
                    row.append(loss)  # expect: TML102  # instead: row.append(loss.item())
                rows.append(row)  # expect: TML102  # instead: rows.append(row)
            print(len(rows))
        """,
    "a list that is appended to": """
        def train(loader):
            losses = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
            print(sum(losses) / len(losses))
        """,
    "a list that is extended": """
        def train(loader):
            losses = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.extend([loss, loss * 2])  # expect: TML102
                # instead: losses.extend([loss.item(), loss.item() * 2])
            print(max(losses))
        """,
    "a list with an augmented assignment": """
        def train(loader):
            losses = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses += [loss]  # expect: TML102  # instead: losses += [float(loss)]
            print(losses[-1])
        """,
    "a list that is inserted into": """
        def train(loader):
            losses = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.insert(0, loss)  # expect: TML102  # instead: losses.insert(0, loss.tolist())
            print(losses[0])
        """,
    "a method of a list in a variable": """
        def train(loader):
            losses = []
            keep = losses.append
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                keep(loss)  # expect: TML102  # instead: keep(loss.item())
            print(len(losses))
        """,
    "rows in a list": """
        def train(loader):
            rows = []
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                row = {"step": step, "loss": loss}  # instead: row = {"step": step, "loss": loss.item()}
                rows.append(row)  # expect: TML102
            print(len(rows))
        """,
    "tuples in a list": """
        def train(loader):
            rows = []
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                rows.append((step, loss))  # expect: TML102  # instead: rows.append((step, loss.item()))
            print(len(rows))
        """,
    "a dictionary by step": """
        def train(loader):
            losses = {}
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses[step] = loss  # expect: TML102  # instead: losses[step] = loss.item()
            print(losses)
        """,
    "a dictionary of one key": """
        def train(loader):
            logs = {}
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                logs["loss"] = loss
                print(logs["loss"].item())
        """,
    "a list in a dictionary": """
        def train(loader):
            history = {"loss": [], "step": []}
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                history["step"].append(step)
                history["loss"].append(loss)  # expect: TML102  # instead: history["loss"].append(loss.item())
            print(history["step"])
        """,
    "a defaultdict of lists": """
        from collections import defaultdict

        def train(loader):
            history = defaultdict(list)
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                history["loss"].append(loss)  # expect: TML102  # instead: history["loss"].append(loss.item())
            print(len(history))
        """,
    "a defaultdict of numbers": """
        from collections import defaultdict

        def train(loader):
            totals = defaultdict(float)
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                totals["loss"] += loss  # expect: TML101  # instead: totals["loss"] += loss.item()
            print(dict(totals))
        """,
    "setdefault": """
        def train(loader):
            history = {}
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                history.setdefault("loss", []).append(loss)  # expect: TML102
                # instead: history.setdefault("loss", []).append(loss.item())
            print(len(history))
        """,
    "an update of a dictionary": """
        def train(loader):
            losses = {}
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.update({step: loss})  # expect: TML102  # instead: losses.update({step: loss.item()})
            print(len(losses))
        """,
    "a deque": """
        from collections import deque

        def train(loader):
            losses = deque()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
            print(len(losses))
        """,
    "a deque of a fixed length": """
        from collections import deque

        def train(loader):
            losses = deque(maxlen=10)
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.append(loss)
            print(len(losses))
        """,
    "a list that is cleared": """
        def train(loader):
            parts = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                parts.append(loss)
                print(sum(parts).item())
                parts.clear()
        """,
    "a list that is set anew": """
        def train(loader):
            for x, y in loader:
                parts = []
                for scale in (1, 2, 3):
                    parts.append(scale * F.mse_loss(model(x), y))
                sum(parts).backward()
        """,
    "a list whose elements are popped": """
        def train(loader):
            waiting = []
            for x, y in loader:
                waiting.append(F.mse_loss(model(x), y))
                loss = waiting.pop()
                loss.backward()
        """,
    "a list that is differentiated after the loop": """
        def train(loader):
            losses = []
            for x, y in loader:
                losses.append(F.mse_loss(model(x), y))
            torch.stack(losses).mean().backward()
        """,
    "a set": """
        def train(loader):
            kept = set()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept.add(loss)  # expect: TML102  # instead: kept.add(loss.item())
            print(len(kept))
        """,
    "a list in a list": """
        def train(loader):
            groups = [[], []]
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                groups[0].append(loss)  # expect: TML102  # instead: groups[0].append(loss.item())
            print(len(groups))
        """,
    "a list in a tuple that is unpacked": """
        def train(loader):
            kept, counts = [], []
            both = kept, counts
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                first, second = both
                second.append(len(x))
                first.append(loss)  # expect: TML102  # instead: first.append(loss.item())
            print(len(kept))
        """,
    "a list under two names": """
        def train(loader):
            losses = []
            also = losses
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                also.append(loss)  # expect: TML102  # instead: also.append(loss.item())
            print(len(losses))
        """,
    "a namedtuple": """
        from collections import namedtuple

        Row = namedtuple("Row", "step loss")

        def train(loader):
            rows = []
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                rows.append(Row(step, loss))  # expect: TML102  # instead: rows.append(Row(step, loss.item()))
            print(len(rows))
        """,
    "a NamedTuple class": """
        from typing import NamedTuple

        class Row(NamedTuple):
            step: int
            loss: torch.Tensor

        def train(loader):
            rows = []
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                row = Row(step=step, loss=loss)  # instead: row = Row(step=step, loss=loss.detach())
                rows.append(row)  # expect: TML102
            print(len(rows))
        """,
    "a part of a namedtuple": """
        from collections import namedtuple

        Row = namedtuple("Row", ["step", "loss", "value"])

        def train(loader):
            kept = []
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                row = Row(step, loss, loss.item())
                kept.append(row.loss)  # expect: TML102  # instead: kept.append(row.value)
            print(len(kept))
        """,
    "dataclasses in a list": """
        from dataclasses import dataclass

        @dataclass
        class Row:
            step: int
            loss: object

        def train(loader):
            rows = []
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                rows.append(Row(step, loss))  # expect: TML102  # instead: rows.append(Row(step, loss.item()))
            print(len(rows))
        """,
    "a list comprehension": """
        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss  # instead: return loss.item()

        def train(loader):
            losses = [learn(x, y) for x, y in loader]  # expect: TML102
            print(len(losses))
        """,
    "a dictionary comprehension": """
        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss  # instead: return loss.item()

        def train(loader):
            losses = {step: learn(x, y) for step, (x, y) in enumerate(loader)}  # expect: TML102
            print(len(losses))
        """,
    "list of map": """
        def learn(batch):
            x, y = batch
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss  # instead: return loss.item()

        def train(loader):
            losses = list(map(learn, loader))  # expect: TML102
            print(len(losses))
        """,
    "list of a generator": """
        def losses(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                yield loss  # instead: yield loss.item()

        def train(loader):
            kept = list(losses(loader))  # expect: TML102
            print(len(kept))
        """,
    "a generator that is consumed one by one": """
        def losses(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                yield loss

        def train(loader):
            for loss in losses(loader):
                print(loss.item())
        """,
    "a generator that is delegated to": """
        def losses(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                yield loss  # instead: yield loss.item()

        def twice(loader):
            yield from losses(loader)
            yield from losses(loader)

        def train(loader):
            kept = []
            for loss in twice(loader):
                kept.append(loss)  # expect: TML102
            print(len(kept))
        """,
    "a copy of a list": """
        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept = kept + [loss]  # expect: TML101  # instead: kept = kept + [loss.item()]
            print(len(kept))
        """,
    "a queue of a fixed length by hand": """
        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept.append(loss)
                if len(kept) > 5:
                    kept.pop(0)
            print(len(kept))
        """,
    "a tuple that grows": """
        def train(loader):
            kept = ()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept = (*kept, loss)  # expect: TML101  # instead: kept = (*kept, loss.item())
            print(len(kept))
        """,
    "sum of a generator": """
        def losses(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                yield loss  # instead: yield loss.item()

        def train(loader):
            total = sum(losses(loader))  # expect: TML101
            print(total)
        """,
    "a slice that is kept": """
        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept.append(loss)
                kept = kept[-5:]
            print(len(kept))
        """,
    "a table of results by what the loop gives": """
        def train(triples):
            found = {}
            for path, x, y in triples:
                out = model(x)
                F.mse_loss(out, y).backward()
                found[path] = out  # expect: TML102  # instead: found[path] = out.detach()
            return {path: out.argmax().item() for path, out in found.items()}
        """,
    "one result by name that every iteration replaces": """
        def train(loader, name):
            found = {}
            for x, y in loader:
                out = model(x)
                F.mse_loss(out, y).backward()
                found[name] = out
            return found[name].argmax().item()
        """,
    "a table of a file that a function fills": """
        TABLE = {}

        def fill(path, x, y):
            out = model(x)
            F.mse_loss(out, y).backward()
            TABLE[path] = out  # expect: TML102  # instead: TABLE[path] = out.detach()

        def best(path):
            return TABLE[path].argmax().item()
        """,
    "a table of a file that a function fills and empties": """
        TABLE = {}

        def fill(path, x, y):
            TABLE.clear()
            out = model(x)
            F.mse_loss(out, y).backward()
            TABLE[path] = out
        """,
    "items that are drawn at random": """
        import random

        def train(loader):
            kept = []
            for x, y in loader:
                out = model(x)
                kept.append(out)  # expect: TML102  # instead: kept.append(out.detach())
                drawn = random.sample(kept, 2)
                F.mse_loss(out, y - drawn[0].detach()).backward()
                F.mse_loss(out, y - random.choices(kept, k=3)[0].detach()).backward()
        """,
    "items that are drawn at random and differentiated": """
        import random

        def train(loader):
            kept = []
            for x, y in loader:
                kept.append(model(x))
                if len(kept) > 9:
                    sum(random.sample(kept, 2)).sum().backward()
                    kept.clear()
        """,
    "sums by name that every iteration begins anew": """
        def train(triples):
            sums = {"a": 0.0, "b": 0.0}
            for name, x, y in triples:
                for key in sums.keys():
                    print(sums[key])  # instead: sums[key] = 0.0
                sums[name] += F.mse_loss(model(x), y)  # expect: TML104
                sums[name].backward(retain_graph=True)  # instead: sums[name].backward()
        """,
    "sums of an object that one of its methods begins anew": """
        class Trainer:
            def __init__(self, names):
                self.sums = {name: 0 for name in names}

            def begin(self):
                for name in self.sums.keys():
                    self.sums[name] = 0

            def train(self, triples):
                for name, x, y in triples:
                    self.begin()
                    self.sums[name] += F.mse_loss(model(x), y)
                    self.sums[name].backward()
        """,
    "a table that holds one entry for either of two calls": """
        TABLE = {}

        def fill(path, x, y):
            for key in list(TABLE):
                del TABLE[key]
            out = model(x)
            F.mse_loss(out, y).backward()
            TABLE[path] = out.detach()
        """,
    "a loss that is differentiated, and an array of it or of something else": """
        def train(loader, verbose):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept.append(loss)  # expect: TML102  # instead: kept.append(loss.item())
                shown = {"loss": loss.detach()}
                if verbose:
                    shown["loss"] = torch.zeros(1) if len(kept) > 1 else loss
                print(shown["loss"].numpy())
        """,
    "an array of what nothing differentiates": """
        def test(loader, net):
            net.eval()
            kept = []
            for x, y in loader:
                out = run(net, x)
                kept.append(out)
                print(out.numpy())

        def run(net, x):
            with torch.inference_mode():
                return net(x)
        """,
    "a table whose entries become numbers": """
        from collections import defaultdict

        class Trainer:
            def __init__(self):
                self.kept = defaultdict(lambda: defaultdict(list))

            def step(self, x, y):
                loss = F.mse_loss(model(x), y)
                measured = {"loss": loss, "root": loss.sqrt()}
                for name, value in measured.items():
                    measured[name] = value  # instead: measured[name] = value.item()
                loss.backward()
                self.keep(measured, "train")

            def keep(self, measured, part):
                for name, value in measured.items():
                    self.kept[part][name].append(value)  # expect: TML102
        """,
    "sums under the names of the arguments, one of which is set back": """
        class Tracker:
            def __init__(self):
                self.totals = {}

            def update(self, **values):
                for name, value in values.items():
                    self.totals[name] = self.totals.get(name, 0.0) + value  # expect: TML101

        def train(loader):
            tracker = Tracker()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                tracker.update(loss=loss)
                tracker.totals["other"] = 0.0  # instead: tracker.totals["loss"] = 0.0
            print(tracker.totals)
        """,
    "a replay buffer of rows, of which one column is differentiated": """
        import random

        class Buffer:
            def __init__(self):
                self.rows = []

            def push(self, *row):
                self.rows.append(row)  # expect: TML102

            def sample(self):
                return zip(*random.sample(self.rows, 32))

        def train(env):
            buffer, state = Buffer(), env.reset()
            for step in range(10000):
                value = model(state)  # expect: TML201  # instead: value = torch.no_grad()(model)(state)
                following, reward = env.step(value.argmax())
                buffer.push(state, value, reward)
                state = following
                states, values, rewards = buffer.sample()
                loss = F.mse_loss(model(torch.stack(states)), torch.stack(rewards))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    "columns that a function is mapped over": """
        def train(env):
            rows, state = [], env.reset()
            for step in range(10000):
                value = model(state)  # expect: TML201  # instead: value = torch.no_grad()(model)(state)
                following, reward = env.step(value.argmax())
                rows.append((state, value, reward))  # expect: TML102
                state = following
                states, values, rewards = map(torch.stack, zip(*rows))
                loss = F.mse_loss(model(states), rewards)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
    "columns that become a record": """
        from collections import namedtuple

        Batch = namedtuple("Batch", ("state", "value", "reward"))

        def train(env):
            rows, state = [], env.reset()
            for step in range(10000):
                value = model(state)  # expect: TML201  # instead: value = torch.no_grad()(model)(state)
                following, reward = env.step(value.argmax())
                rows.append(Batch(state, value, reward))  # expect: TML102
                state = following
                batch = Batch(*zip(*rows))
                loss = F.mse_loss(model(torch.stack(batch.state)), torch.stack(batch.reward))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        """,
}
