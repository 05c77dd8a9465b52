"""Loaders, what they are given, and where they are iterated over."""

LOADING = {
    "keywords that a helper passes on": """
        def build(**settings):
            return torch.utils.data.DataLoader(data, **settings)  # expect: TML404

        loader = build(num_workers=4)  # instead: loader = build(num_workers=4, persistent_workers=True)
        for epoch in range(9):
            for x in loader:
                print(x)
        """,
    "a batch at a time": """
        loader = torch.utils.data.DataLoader(data, num_workers=2)  # expect: TML404

        def show():
            print(next(iter(loader)))

        for epoch in range(9):  # instead: if data:
            show()
        """,
    "settings that are added where there is an accelerator": """
        settings = {"batch_size": 8}
        if torch.cuda.is_available():
            settings.update(num_workers=2)
        loader = torch.utils.data.DataLoader(open("rows"), **settings)  # expect: TML404
        for epoch in range(9):
            loader.dataset  # instead: loader.dataset.epoch = epoch
            for x in loader:
                print(x)
        """,
    "the default of an option that a function of another reads": """
        import argparse

        def options(parser):
            parser.add_argument("--workers", type=int, default=96)
            return vars(parser.parse_args())

        def build(settings):
            return torch.utils.data.DataLoader(data, num_workers=settings["workers"])  # expect: TML407

        build(options(argparse.ArgumentParser()))  # instead: build({"workers": 3})
        """,
    "several workers for each CPU": """
        import os

        workers = int(2 * os.cpu_count())  # instead: workers = int(os.cpu_count() / 2)
        loader = torch.utils.data.DataLoader(data, num_workers=workers)  # expect: TML407
        """,
}
