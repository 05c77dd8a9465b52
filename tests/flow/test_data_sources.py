"""Whether there is work in the items of a loader's data, which other files make."""

from __future__ import annotations

import pytest

from torchmemlint.flow.fact import cases

DATA = """
import torch
from PIL import Image
from torch.utils.data import Dataset, TensorDataset

class Encoded(Dataset):
    def __init__(self, rows, transform=None):
        self.rows = torch.tensor(rows)
        self.transform = transform

    def __getitem__(self, index):
        row = self.rows[index]
        return self.transform(row) if self.transform else row

class Opened(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __getitem__(self, index):
        return Image.open(self.paths[index])

def load(path, with_paths=False):
    if with_paths:
        return TensorDataset(torch.load(path)), path
    return TensorDataset(torch.load(path))

def examples_and(kind, paths):
    data = Opened(paths) if kind == "opened" else torch.load(kind)
    return paths, data
"""
LOADING = "import torch\nfrom torch.utils.data import DataLoader\nfrom data import *\n"


def shows_work(text: str, **others: str) -> bool:
    """Is work seen in what the one loader of a file loads, which stands beside others?"""
    return _reports(LOADING + text, **others)


def _reports(text: str, **others: str) -> bool:
    files = {"loading.py": text, "data.py": DATA, **{f"{name}.py": other for name, other in others.items()}}
    return any((case.file, case.code) == ("loading.py", "TML401") for case in cases.cases(files))


@pytest.mark.parametrize(
    ("data", "work"),
    [
        ("Encoded([1, 2])", False),
        ("Encoded([1, 2], transform=None)", False),
        ("Encoded([1, 2], transform=crop)", True),
        ("Opened(paths)", True),
        ("load('rows.pt')", False),
        ("load('rows.pt', with_paths=True)[0]", False),
        ("examples_and('opened', paths)[1]", True),
        ("examples_and('opened', paths)[0]", False),
        ("{'train': Opened(paths), 'val': Encoded(rows)}['val']", False),
        ("{'train': Opened(paths), 'val': Encoded(rows)}['train']", True),
        ("Opened(paths) if wanted else Encoded(rows)", True),
        ("nowhere(paths)", False),
        ("[Opened(paths), None][1]", False),
        ("[Opened(paths), None][0]", True),
    ],
)
def test_what_is_loaded_comes_from_another_file(data: str, work: bool) -> None:
    assert shows_work(f"data = {data}\nloader = DataLoader(data)\n") is work


def test_an_element_of_what_a_helper_returns() -> None:
    text = "{} = examples_and('opened', ['a.png'])\nloader = DataLoader(chosen)\n"
    assert shows_work(text.format("rest, chosen"))
    assert not shows_work(text.format("chosen, rest"))
    assert shows_work(text.format("*rest, chosen"))


def test_what_callers_of_other_files_give() -> None:
    text = "def run(settings, data):\n    loader = DataLoader(data)\n"
    assert not shows_work(text)
    call = "from data import *\nfrom loading import run\nrun({}, {})\n"
    assert not shows_work(text, train=call.format(1, "Encoded([])"))
    assert shows_work(text, train=call.format(1, "Opened([])"))
    assert not shows_work(text, train=call.format("Opened([])", 1))


def test_what_is_given_to_a_constructor() -> None:
    text = (
        "class Runner:\n"
        "    def __init__(self, data):\n"
        "        self.data = data\n"
        "    def run(self):\n"
        "        loader = DataLoader(self.data)\n"
    )
    call = "from data import *\nfrom loading import Runner\nRunner({}).run()\n"
    assert not shows_work(text, train=call.format("load('rows.pt')"))
    assert shows_work(text, train=call.format("Opened([])"))


def test_a_method_that_classes_of_other_files_replace() -> None:
    text = (
        "class Evaluation:\n"
        "    def load(self, split):\n"
        "        raise NotImplementedError\n"
        "    def run(self):\n"
        "        loader = DataLoader(self.load('val'))\n"
    )
    below = (
        "from data import *\n"
        "from loading import Evaluation\n"
        "class OfImages(Evaluation):\n"
        "    def load(self, split):\n"
        "        return {}\n"
    )
    assert not shows_work(text)
    assert not shows_work(text, images=below.format("load(split)"))
    assert shows_work(text, images=below.format("Opened(split)"))


def test_a_circle_comes_to_an_end() -> None:
    text = "def again(data):\n    data = again(data)\n    return data\nloader = DataLoader(again(again))\n"
    assert not shows_work(text)


GIVEN = """
from torch.utils.data import DataLoader
from data import Opened

def give(paths):
    loader = DataLoader(Opened(paths))
    return loader, len(paths)
"""


@pytest.mark.parametrize(
    ("use", "single"),
    [
        ("images = next(iter(loader))", True),
        ("batches = iter(loader)\nimages = next(batches)", True),
        ("print(len(loader), len(loader.dataset), next(iter(loader)))", True),
        ("images = None", False),
        ("images = list(loader)", False),
        ("images = next(iter(loader))\nfor batch in loader:\n    print(batch)", False),
        ("batches = iter(loader)\nimages = next(batches)\nrest = list(batches)", False),
    ],
)
def test_single_batches_are_taken_in_another_file(use: str, single: bool) -> None:
    using = f"from loading import give\nloader, number = give([])\n{use}\n"
    assert _reports(GIVEN, using=using) is not single
