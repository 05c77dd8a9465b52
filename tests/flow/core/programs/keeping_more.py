"""Further ways to keep something, and to keep nothing."""

KEEPING_MORE = {
    "a list that is made anew from itself": """
        def train(loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                loss = loss  # instead: loss = loss.detach()
                kept = [*kept, loss]  # expect: TML101
        """,
    "a dictionary that is made anew from itself": """
        def train(loader):
            kept = {}
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                loss = loss  # instead: loss = loss.detach()
                kept = {**kept, step: loss}  # expect: TML101
        """,
    "a dictionary that is merged into": """
        def train(loader):
            kept = {}
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x), y)
                loss.backward()
                loss = loss  # instead: loss = loss.detach()
                kept |= {step: loss}  # expect: TML102
        """,
    "a text": """
        def train(loader):
            text = ""
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                text += f"{loss} "
        """,
    "a count of what is right": """
        def train(loader):
            correct = 0
            for x, y in loader:
                out = model(x)
                F.mse_loss(out, y).backward()
                correct += (out.argmax(1) == y[:, 0]).sum()
            print(correct)
        """,
    "an accuracy": """
        def accuracy(out, y):
            return (out.max(1)[1] == y[:, 0]).float().mean()

        def train(loader):
            total = 0
            for x, y in loader:
                out = model(x)
                F.mse_loss(out, y).backward()
                total += accuracy(out, y)
            print(total)
        """,
    "the greatest values": """
        def train(loader):
            total = 0
            for x, y in loader:
                out = model(x)
                F.mse_loss(out, y).backward()
                out = out  # instead: out = out.detach()
                values, indices = out.max(1)
                total += values.sum()  # expect: TML101
            print(total)
        """,
    "phases with a loader each": """
        def train(loader):
            for phase, data in [("train", loader), ("test", loader)]:
                model.train(phase == "train")
                for x, y in data:
                    with torch.set_grad_enabled(phase == "train"):
                        out = model(x)
                        loss = F.mse_loss(out, y)
                    if phase == "train":
                        loss.backward()
        """,
    "the first loss": """
        def train(loader):
            first = None
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                if first is None:
                    first = loss
            print(first)
        """,
    "the best loss": """
        def train(loader):
            best = None
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                if best is None or loss < best:
                    best = loss
            print(best)
        """,
    "the loss before": """
        def train(loader):
            prev = 0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                print(loss - prev)
                prev = loss
        """,
    "the last two losses": """
        def train(loader):
            a = b = None
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                a, b = b, loss
        """,
    "an average with the one before": """
        def train(loader):
            prev = torch.zeros(())
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                loss = loss  # instead: loss = loss.detach()
                smooth = (prev + loss) / 2
                prev = smooth  # expect: TML101
        """,
    "numbers by phase": """
        class T:
            def __init__(self): self.hist = {"train": [], "val": []}

            def run(self, loader, phase):
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    if phase == "train":
                        loss.backward()
                    self.hist[phase].append(loss.item())

        def train(loader):
            T().run(loader, "train")
        """,
    "losses by phase": """
        class T:
            def __init__(self): self.hist = {"train": [], "val": []}

            def run(self, loader, phase):
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    loss = loss  # instead: loss = loss.detach()
                    self.hist[phase].append(loss)  # expect: TML102

        def train(loader):
            T().run(loader, "train")
        """,
    "a method by its name": """
        class T:
            def __init__(self): self.kept = []

            def on_batch(self, loss): self.kept.append(loss)  # expect: TML102

        def train(loader):
            t = T()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                loss = loss  # instead: loss = loss.detach()
                getattr(t, "on_batch")(loss)
        """,
    "callbacks that see their trainer": """
        class Callback:
            def on_batch(self, trainer): pass

        class Keep(Callback):
            def __init__(self): self.kept = []

            def on_batch(self, trainer): self.kept.append(trainer.loss)  # expect: TML102

        class Trainer:
            def __init__(self, callbacks): self.callbacks = callbacks

            def fit(self, loader):
                for x, y in loader:
                    self.loss = F.mse_loss(model(x), y)
                    self.loss.backward()
                    self.loss = self.loss  # instead: self.loss = self.loss.detach()
                    for c in self.callbacks:
                        c.on_batch(self)

        def train(loader):
            Trainer([Callback(), Keep()]).fit(loader)
        """,
    "a state that is passed on": """
        from dataclasses import dataclass, field

        @dataclass
        class State:
            loss: object = None
            logs: dict = field(default_factory=dict)

        def step(state, x, y):
            state.loss = F.mse_loss(model(x), y)
            state.loss.backward()
            state.logs["loss"] = state.loss
            return state

        def train(loader):
            state = State()
            for x, y in loader:
                state = step(state, x, y)
        """,
    "a frozen dataclass that is replaced": """
        from dataclasses import dataclass, replace

        @dataclass(frozen=True)
        class State:
            total: object = 0.0
            n: int = 0

        def train(loader):
            state = State()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                loss = loss  # instead: loss = loss.detach()
                state = replace(state, total=state.total + loss, n=state.n + 1)  # expect: TML101
        """,
    "coroutines": """
        import asyncio
        async def learn(x, y):
            loss = F.mse_loss(model(x), y)
            loss.backward()
            loss = loss  # instead: loss = loss.detach()
            return loss
        async def run(loader):
            kept = []
            for x, y in loader:
                kept.append(await learn(x, y))  # expect: TML102

        def train(loader):
            asyncio.run(run(loader))
        """,
    "closures in a list": """
        def make(loss):
            return lambda: loss.item()

        def train(loader):
            getters = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                loss = loss  # instead: loss = loss.detach()
                getters.append(make(loss))  # expect: TML102
        """,
    "partials in a list": """
        from functools import partial

        def train(loader):
            getters = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                loss = loss  # instead: loss = loss.detach()
                getters.append(partial(print, loss))  # expect: TML102
        """,
    "methods of tensors in a list": """
        def train(loader):
            getters = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                loss = loss  # instead: loss = loss.detach()
                getters.append(loss.item)  # expect: TML102
        """,
    "two lists side by side": """
        def train(loader):
            outs, ys = [], []
            for x, y in loader:
                out = model(x)
                F.mse_loss(out, y).backward()
                out = out  # instead: out = out.detach()
                outs.append(out)  # expect: TML102
                ys.append(y)
            print(sum((a - b).abs().mean().item() for a, b in zip(outs, ys)))
        """,
    "an element that is detached afterwards": """
        def train(loader):
            outs = []
            for x, y in loader:
                out = model(x)
                F.mse_loss(out, y).backward()
                outs.append(out)
                outs[-1] = outs[-1].detach()
        """,
    "lists in turn": """
        def train(loader):
            for epoch in range(2):
                outs = [[] for _ in range(3)]
                for i, (x, y) in enumerate(loader):
                    out = model(x)
                    F.mse_loss(out, y).backward()
                    out = out  # instead: out = out.detach()
                    outs[i % 3].append(out)  # expect: TML102
        """,
    "copies of parameters, and what is computed of them": """
        class Average:
            def __init__(self):
                self.kept = []

            def store(self, parameters):
                self.kept = [p.clone() for p in parameters]
                # instead: self.kept = [p.detach().clone() for p in parameters]

            def restore(self, parameters):
                for old, p in zip(self.kept, parameters):
                    p.data.copy_(old.data)

        def train(loader):
            average, norms = Average(), []
            for x, y in loader:
                F.mse_loss(model(x), y).backward()
                optimizer.step()
                average.store(model.parameters())
                average.restore(model.parameters())
                for p in model.parameters():
                    norms.append(p.view(-1).pow(2).sum())  # expect: TML102
                    # instead: norms.append(p.detach().view(-1).pow(2).sum())
        """,
    "products with a matrix of second derivatives": """
        from torch.autograd.functional import hvp

        def products(loss, weights, v, n):
            found = [v]
            for k in range(n):
                found.append(hvp(loss, weights, found[-1])[1])
            return found

        def main():
            weights = torch.randn(4, requires_grad=True)
            found = products(lambda w: w.pow(3).sum(), weights, torch.ones(4), 100)
            print([float(v.norm()) for v in found])
        """,
    "products that others are differentiated through": """
        from torch.autograd.functional import hvp

        def products(loss, weights, v, n):
            found = [v]
            for k in range(n):
                found.append(hvp(loss, weights, found[-1], create_graph=True)[1])  # expect: TML102
                # instead: found.append(hvp(loss, weights, found[-1])[1])
            print([float(v.norm()) for v in found])

        def main():
            products(lambda w: w.pow(3).sum(), torch.randn(4, requires_grad=True), torch.ones(4), 100)
        """,
}
