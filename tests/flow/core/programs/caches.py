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
}
