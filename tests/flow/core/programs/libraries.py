"""What the standard library does with values."""

LIBRARIES = {
    "reduce": """
        from functools import reduce

        def learn(batch):
            loss = F.mse_loss(model(batch[0]), batch[1])
            loss.backward()
            return loss  # instead: return loss.item()

        def train(loader):
            print(reduce(lambda total, batch: total + learn(batch), loader, 0.0))  # expect: TML101
        """,
    "accumulate": """
        from itertools import accumulate

        def learn(batch):
            loss = F.mse_loss(model(batch[0]), batch[1])
            loss.backward()
            return loss  # instead: return loss.item()

        def train(loader):
            kept = list(accumulate(map(learn, loader)))  # expect: TML102
            print(len(kept))
        """,
    "chain": """
        from itertools import chain

        def train(loader):
            losses = []
            for x, y in chain(loader, loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
            print(len(losses))
        """,
    "starmap": """
        from itertools import starmap

        def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss  # instead: return loss.item()

        def train(loader):
            kept = list(starmap(learn, loader))  # expect: TML102
            print(len(kept))
        """,
    "filter": """
        def learn(batch):
            loss = F.mse_loss(model(batch[0]), batch[1])
            loss.backward()
            return loss  # instead: return loss.item()

        def train(loader):
            kept = list(filter(None, map(learn, loader)))  # expect: TML102
            print(len(kept))
        """,
    "an iterator with a sentinel": """
        def train(loader):
            batches, losses = iter(loader), []
            for batch in iter(lambda: next(batches, None), None):
                x, y = batch
                loss = F.mse_loss(model(x), y)
                loss.backward()
                losses.append(loss)  # expect: TML102  # instead: losses.append(loss.item())
            print(len(losses))
        """,
    "operators as functions": """
        import operator

        def train(loader):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                total = operator.add(total, loss)  # expect: TML101  # instead: total = operator.add(total, loss.item())
            print(total)
        """,
    "a queue": """
        import queue

        def train(loader):
            waiting = queue.Queue()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                waiting.put(loss)  # expect: TML102  # instead: waiting.put(loss.item())
            print(waiting.qsize())
        """,
    "a queue that is emptied": """
        import queue

        def train(loader):
            waiting = queue.Queue()
            for x, y in loader:
                waiting.put(F.mse_loss(model(x), y))
                waiting.get().backward()
        """,
    "a counter": """
        from collections import Counter

        def train(loader):
            totals = Counter()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                totals["loss"] += loss  # expect: TML101  # instead: totals["loss"] += loss.item()
            print(len(totals))
        """,
    "an ordered dictionary": """
        from collections import OrderedDict

        def train(loader):
            kept = OrderedDict()
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept[step] = loss  # expect: TML102  # instead: kept[step] = loss.item()
            print(len(kept))
        """,
    "a copy of an object": """
        import copy

        class Stats:
            def __init__(self):
                self.loss = None

        def train(loader):
            kept, stats = [], Stats()
            for x, y in loader:
                stats.loss = F.mse_loss(model(x), y)
                stats.loss.backward()
                stats.loss = stats.loss  # instead: stats.loss = stats.loss.item()
                kept.append(copy.copy(stats))  # expect: TML102
            print(len(kept))
        """,
    "itemgetter": """
        from operator import itemgetter

        def train(loader):
            kept, get = [], itemgetter("loss")
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept.append(get({"loss": loss}))  # expect: TML102  # instead: kept.append(get({"loss": loss.item()}))
            print(len(kept))
        """,
    "asdict": """
        from dataclasses import asdict, dataclass

        @dataclass
        class Row:
            step: int
            value: float

        def train(loader):
            kept = []
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept.append(asdict(Row(step, loss.item())))
            print(len(kept))
        """,
    "a mean by statistics": """
        from statistics import mean

        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept.append(loss)  # expect: TML102  # instead: kept.append(loss.item())
            print(mean(map(float, kept)))
        """,
    "a log": """
        import logging

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                logging.info("loss %s", loss.item())
                logging.info(f"loss {loss}")
        """,
    "json": """
        import json

        def train(loader):
            rows = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                rows.append(json.dumps({"loss": loss.item()}))
            print(rows)
        """,
    "a weak dictionary of numbers": """
        import weakref

        class Key:
            pass

        def train(loader):
            kept = weakref.WeakKeyDictionary()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept[Key()] = loss.item()
            print(len(kept))
        """,
    "singledispatch": """
        from functools import singledispatch

        kept = []

        @singledispatch
        def keep(value):
            kept.append(value)  # expect: TML102

        @keep.register
        def _(value: float):
            kept.append(value)

        def train(loader):
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                keep(loss)  # instead: keep(loss.item())
        """,
    "an enum as a key": """
        import enum

        class Name(enum.Enum):
            LOSS = 1

        def train(loader):
            totals = {Name.LOSS: 0.0}
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                totals[Name.LOSS] += loss  # expect: TML101  # instead: totals[Name.LOSS] += loss.item()
            print(totals)
        """,
    "cycle": """
        from itertools import cycle

        def train(loader):
            others, total = cycle([1.0, 2.0]), 0.0
            for x, y in loader:
                loss = next(others) * F.mse_loss(model(x), y)
                loss.backward()
                total += loss  # expect: TML101  # instead: total += loss.item()
            print(total)
        """,
    "the last argument of a partial": """
        from functools import partial

        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept.append(partial(print, 1, loss).args[-1])  # expect: TML102
                # instead: kept.append(partial(print, 1, loss.item()).args[-1])
            print(len(kept))
        """,
}
