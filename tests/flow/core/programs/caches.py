"""Caches: results that a decorator keeps, and dictionaries of objects and files that grow from call to call."""

CACHES = {
    "results that are differentiated at once": """
        from functools import lru_cache

        @lru_cache(maxsize=None)  # instead: @lru_cache(maxsize=1)
        def encoded(step):
            return model(torch.ones(4) * step).mean()  # expect: TML103

        def train(loader):
            for step, (x, y) in enumerate(loader):
                encoded(step).backward()
        """,
    "results that are read": """
        import functools

        @functools.cache
        def encoded(step):
            scaled = torch.ones(4) * step
            return F.normalize(model.weight[0] * scaled, dim=0)  # expect: TML103

        def show(steps):
            for step in steps:
                print(encoded(step).sum().item())
        """,
    "results without a graph": """
        from functools import lru_cache

        @lru_cache(maxsize=None)
        @torch.no_grad()
        def encoded(step):
            return model(torch.ones(4) * step).mean()

        def show(steps):
            for step in steps:
                print(encoded(step).item())
        """,
    "a parameter behind a function of a file": """
        def picked(label):
            return F.normalize(model.weight[label], dim=0)

        def train(loader):
            kept = []
            for label, y in loader:
                kept.append(picked(label))  # expect: TML102  # instead: kept.append(picked(label).detach())
            print(len(kept))
        """,
    "a global that is read as a number": """
        LATEST = None

        def learn(x, y):
            global LATEST
            loss = F.mse_loss(model(x), y)
            loss.backward()
            LATEST = loss  # expect: TML103  # instead: LATEST = loss.detach()

        def train(loader):
            for x, y in loader:
                learn(x, y)
                print(LATEST.item())
        """,
    "a variable of a closure that lasts": """
        def make_learner():
            previous = None

            def learn(x, y):
                nonlocal previous
                out = model(x)
                F.mse_loss(out, y).backward()
                change = 0.0 if previous is None else (out.detach() - previous.detach()).norm().item()
                previous = out  # expect: TML103  # instead: previous = out.detach()
                return change

            return learn

        def train(loader):
            learn = make_learner()
            for x, y in loader:
                print(learn(x, y))
        """,
    "a variable of a closure that ends with the call": """
        def train(loader):
            loss = None

            def learn(x, y):
                nonlocal loss
                loss = F.mse_loss(model(x), y)
                loss.backward()

            for x, y in loader:
                learn(x, y)
                print(loss.item())
        """,
}
