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
    "records that a generator of a base class gives, with what is put in later": """
        class Rows(torch.utils.data.Dataset):
            def __init__(self, path):
                self.rows = list(self.read(path))

            def read(self, path):
                for line in open(path):
                    row = {"path": line}
                    row["length"] = len(line)  # instead: row["length"] = torch.zeros(len(line))
                    yield row  # expect: TML405

        class Clips(Rows):
            def __getitem__(self, index):
                return self.rows[index]["path"]

        loader = torch.utils.data.DataLoader(Clips("rows"), shuffle=True, num_workers=4)
        """,
    "names with numbers, in two lists": """
        import os

        class Clips(torch.utils.data.Dataset):
            def __init__(self, root):
                names = []
                for name in os.listdir(root):
                    names.append(os.path.join(root, name))
                self.clips = list(zip(names, range(9)))  # expect: TML405

            def __getitem__(self, index):
                return self.clips[index]

        loader = torch.utils.data.DataLoader(Clips("."), shuffle=True, num_workers=4)  # instead: loader = Clips(".")
        """,
    "rows under their names": """
        import csv

        class Clips(torch.utils.data.Dataset):
            def __init__(self, path):
                self.clips = {}
                for name, *rest in csv.reader(open(path)):
                    self.clips[name] = (name, rest)  # expect: TML405

            def __getitem__(self, name):
                return self.clips[name]  # instead: return self.clips["first"]

        loader = torch.utils.data.DataLoader(Clips("rows"), shuffle=True, num_workers=4)
        """,
    "a data set of another file, filled by its subclass": """
        from clips import Clips

        loader = torch.utils.data.DataLoader(Clips("rows"), shuffle=True, num_workers=4)

        # file: clips.py
        import torch
        import numpy

        class Rows(torch.utils.data.Dataset):
            def __init__(self, path):
                self.load(path)

            def __getitem__(self, index):
                return self.rows[index]["path"]

        class Clips(Rows):
            def load(self, path):
                for line in open(path):
                    size = len(line) / 2  # instead: size = numpy.load(line) / 2
                    self.rows += [{"path": line, "size": size} for line in open(path)]  # expect: TML405
        """,
    "a list that a function of a file without torch fills": """
        from tables import read

        class Clips(torch.utils.data.Dataset):
            def __init__(self, path):
                self.clips = read(path)

            def __getitem__(self, index):
                name, *rest = self.clips[index]
                return name

        loader = torch.utils.data.DataLoader(Clips("rows"), shuffle=True, num_workers=4)  # expect: TML405

        # file: tables.py
        import csv

        def read(path):
            with open(path) as file:
                return list(csv.reader(file))  # instead: return file.readlines()
        """,
}
