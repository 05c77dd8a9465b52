"""Containers of which only a few elements are kept, and what else is done with them by way of other names."""

BOUNDED = {
    "a tuple that is put together": """
        def train(loader):
            series = ()
            for x, y in loader:
                losses = F.mse_loss(model(x), y, reduction="none").mean(1)
                losses.mean().backward()
                series = (*series, losses)  # expect: TML101
                series  # instead: series = series[-3:]
            print(float(sum(series).sum()))
        """,
    "the best of a list that is sorted": """
        def train(loader):
            best = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                best = sorted(best + [loss])  # expect: TML101  # instead: best = sorted(best + [loss])[:5]
        """,
    "the first of a list": """
        def train(loader):
            first = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                first.append(loss)  # expect: TML102
                first  # instead: first = first[:5]
        """,
    "a list that is shortened where it is too long": """
        def train(loader):
            last = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                last = last + [loss]  # expect: TML101
                if len(last) > 10:
                    pass  # instead: last = last[1:]
        """,
    "the smallest of a heap": """
        import heapq

        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept = [*kept, loss]  # expect: TML101  # instead: kept = heapq.nsmallest(5, [*kept, loss])
        """,
    "a heap": """
        import heapq

        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                heapq.heappush(kept, loss)  # expect: TML102
                kept  # instead: heapq.heappop(kept) if len(kept) > 5 else None
        """,
    "a list in an attribute that is extended": """
        class Runner:
            def __init__(self, optimizer):
                self.optimizer = optimizer
                self.history = []

            def run(self, loader):
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    self.optimizer.step()
                    self.history.extend([loss])  # expect: TML102
                    self  # instead: self.history = self.history[-3:]

        def main(loader):
            Runner(optimizer).run(loader)
        """,
    "a list of a class that an instance replaces": """
        def with_one_more(kept, value):
            kept += [value]  # expect: TML102
            return kept

        class Runner:
            history = []

            def run(self, loader):
                def one(x, y):
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    with_one_more(self.history, loss)
                    self  # instead: self.history = self.history[-3:]

                steps = {"train": one}
                for x, y in loader:
                    steps["train"](x, y)

        def main(loader):
            Runner().run(loader)
        """,
    "a slice of a tensor that is carried on": """
        def train(loader):
            total = torch.zeros(4)
            for x, y in loader:
                loss = F.mse_loss(model(x), y, reduction="none").flatten()
                loss.mean().backward()
                total = total[:2] + loss[:2]  # expect: TML101  # instead: total = total[:2] + loss[:2].detach()
            print(total.mean().item())
        """,
    "a queue that is emptied through what it is made of": """
        import queue

        def train(loader):
            waiting = queue.Queue()

            def one(x, y):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                waiting.put(loss)  # expect: TML102
                waiting  # instead: waiting.queue.clear()

            for x, y in loader:
                one(x, y)
        """,
    "an item that is set by the method's name": """
        def train(loader):
            model.eval()
            table = {}

            def one(x, y):
                table.__setitem__(len(table), F.mse_loss(model(x), y))  # expect: TML201
                pass  # instead: sum(table.values()).backward()
                table.clear()

            for x, y in loader:
                one(x, y)
        """,
    "a variable of the function around that is asked for its kind": """
        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                value = lambda: loss if torch.is_tensor(loss) else 0.0
                # instead: value = lambda: loss.item() if torch.is_tensor(loss) else loss
                kept.append(value())  # expect: TML102
        """,
    "losses by the names of others": """
        def train(loader):
            totals = {}
            for x, y in loader:
                out = model(x)
                losses = {"squared": F.mse_loss(out, y), "absolute": F.l1_loss(out, y)}
                sum(losses.values()).backward()
                for name, value in losses.items():
                    totals[name] = totals.get(name, 0) + value  # expect: TML101  # instead: totals[name] = value
            print(totals)
        """,
    "losses by names that are seen in turn and read again": """
        def train(loader):
            last, seen = {}, []
            for x, y in loader:
                out = model(x)
                losses = {"squared": F.mse_loss(out, y), "absolute": F.l1_loss(out, y)}
                sum(losses.values()).backward()
                for name, value in losses.items():
                    last[name] = value
                seen.append(last["squared"])  # expect: TML102  # instead: seen.append(last["squared"].item())
        """,
    "what a list begins with is copied": """
        import copy

        def train(loader):
            start = []
            for x, y in loader:
                kept = start  # instead: kept = copy.copy(start)
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept.append(loss)  # expect: TML102
        """,
    "a sum of a file that is set back every few steps, seen from where the function is called": """
        TOTAL = 0.0

        def train(loader):
            global TOTAL
            for step, (x, y) in enumerate(loader):
                for xs, ys in zip(x.chunk(2), y.chunk(2)):
                    loss = F.mse_loss(model(xs), ys)
                    loss.backward()
                TOTAL = TOTAL + loss  # expect: TML101
                if step % 3 == 0:
                    print(TOTAL)  # instead: TOTAL = 0.0

        train(torch.ones(9, 2, 4, 4))
        """,
}
