"""Data sets, and functions that loaders are handed, which put what they make on an accelerator."""

PLACING = {
    "a device that a data set of another file is given": """
        from rows import Rows

        loader = torch.utils.data.DataLoader(Rows("cuda"), num_workers=2)  # instead: loader = Rows("cpu")

        # file: rows.py
        import torch

        class Rows(torch.utils.data.Dataset):
            def __init__(self, device):
                self.device = torch.device(device)

            def __getitem__(self, index):
                return torch.ones(index).to(self.device)  # expect: TML406
        """,
    "single items that another file loads": """
        from rows import Rows

        loader = torch.utils.data.DataLoader(
            Rows(),
            batch_size=2,  # instead: batch_size=1,
        )

        # file: rows.py
        import torch

        class Rows(torch.utils.data.Dataset):
            def __getitem__(self, index):
                return torch.ones(index).cuda()  # expect: TML406
        """,
    "a helper of another file": """
        from helpers import brought

        class Rows(torch.utils.data.Dataset):
            def __init__(self):
                self.device = "cuda"  # instead: self.device = "cpu"

            def __getitem__(self, index):
                return brought(torch.ones(index), self.device)  # expect: TML406

        # file: helpers.py
        def brought(x, device):
            return x.to(device)
        """,
    "an option that brings it there": """
        import argparse

        args = argparse.ArgumentParser().parse_args()

        class Rows(torch.utils.data.Dataset):
            def __getitem__(self, index):
                x = torch.ones(index)
                if torch.cuda.is_available():  # instead: if args.cuda:
                    x = x.cuda()  # expect: TML406
                return x
        """,
    "a flag of the data set": """
        class Rows(torch.utils.data.Dataset):
            def __init__(self, cuda):
                self.cuda = cuda

            def __getitem__(self, index):
                x = torch.ones(index)
                return x.cuda() if self.cuda else x  # expect: TML406

        rows = Rows(True)  # instead: rows = Rows(False)
        torch.utils.data.DataLoader(rows, num_workers=2)
        """,
    "a method of what builds the loader": """
        class Task:
            def __init__(self, data):
                self.data = data
                self.device = "cuda"  # instead: self.device = "cpu"

            def collate(self, rows):
                return torch.stack(rows).to(self.device)  # expect: TML406

            def loader(self):
                return torch.utils.data.DataLoader(self.data, num_workers=2, collate_fn=self.collate)
        """,
    "a device beside a type, or by its number": """
        class Rows(torch.utils.data.Dataset):
            def __getitem__(self, index):
                x = torch.ones(index).to("cuda", dtype=torch.half)  # expect: TML406  # instead: x = torch.ones(index)
                return x, self.one(index), self.other(x)

            def one(self, index):
                return torch.ones(index).to(0)  # expect: TML406
                # instead: return torch.ones(index).to(torch.half)

            def other(self, x):
                return x.new_zeros(8, device="cuda")  # expect: TML406  # instead: return x.new_zeros(8)
        """,
    "a lambda that makes batches": """
        loader = torch.utils.data.DataLoader(
            data,
            num_workers=2,  # instead: num_workers=0,
            collate_fn=lambda rows: [row.to("cuda") for row in rows],  # expect: TML406
        )
        """,
    "a network that a data set applies": """
        class Rows(torch.utils.data.Dataset):
            def __init__(self, network):
                self.network = network.cuda()

            def __getitem__(self, index):
                x = torch.ones(index).cuda()  # expect: TML406  # instead: x = index
                return self.network(x)
        """,
    "one of the parts of a data set": """
        class Rows(torch.utils.data.Dataset):
            def __init__(self, device):
                self.device = device

            def __getitem__(self, index):
                return torch.ones(index).to(self.device)  # expect: TML406

        first, second = torch.utils.data.random_split(Rows("cuda"), [8, 2])  # instead: first = Rows("cpu")
        torch.utils.data.DataLoader(first, num_workers=1)
        """,
}
