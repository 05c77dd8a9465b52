"""Walking only the functions that could come to something finds what walking all of them finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.shown import check_text
from tests.torch_files import torch_files
from torchmemlint.findings import Finding
from torchmemlint.flow import relevance
from torchmemlint.flow.program import Program
from torchmemlint.flow.relevance import Relevance
from torchmemlint.rules.registry import by_code
from torchmemlint.syntax.source_module import SourceModule

# Advice that is off by default, and looks at what the other rules need: nothing more is walked for it.
CONTENT = frozenset({"TML204", "TML205", "TML602", "TML603", "TML604"})
CODES = frozenset(code for code in by_code() if not code.startswith("TML0")) - CONTENT
FIXTURES = sorted(
    path for path in (Path(__file__).parents[2] / "fixtures").glob("TML*/*.py") if ".fixed" not in path.name
)
LAYERS = torch_files("nn/modules/*.py", "optim/*.py", "distributions/*.py")


def everything(program: Program) -> Relevance:
    units = list(relevance._units(program))
    return Relevance(tuple(unit.function for unit in units), frozenset(), True)


def findings(path: Path) -> list[Finding]:
    return check_text(path.read_text(encoding="utf-8"), path, CODES)


def compare(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = findings(path)
    monkeypatch.setattr(relevance, "find", everything)
    assert chosen == findings(path)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parent.name[:6]}-{path.stem}")
def test_fixtures(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(path, monkeypatch)


@pytest.mark.parametrize("path", LAYERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_library_code(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(path, monkeypatch)


def walked(text: str, name: str = "layers.py") -> set[str]:
    return {function.qualname for function in relevance.find(Program(SourceModule(text, Path(name)))).functions}


LAYER = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        y = self.fc(x)
        return x + y
"""


def test_plain_layers_are_not_walked() -> None:
    assert walked(LAYER) == set()


STEP = "\ndef step(model, x):\n    model(x).sum().backward()\n"


def test_where_a_file_trains_all_is_walked_but_what_only_computes_in_layers() -> None:
    assert walked(LAYER + STEP + "\ndef other(x):\n    return x.sum()\n") == {"step", "other"}
    assert walked(LAYER + STEP.replace("(model,", "(model: Block,")) == {"Block.__init__", "step"}
    assert walked(LAYER + STEP.replace("(model,", "(model: 'Block | None',")) == {"Block.__init__", "step"}
    assert walked(LAYER + STEP.replace("model(x)", "Block()(x)")) == {"Block.__init__", "step"}


def test_layers_that_train_or_evaluate_themselves_are_walked_with_what_works_on_the_same() -> None:
    text = LAYER + (
        "\n    def learn(self, x):\n        self.fc(x).sum().backward()\n\n    def freeze(self):\n        return 1\n"
    )
    assert walked(text) == {"Block.__init__", "Block.forward", "Block.learn"}
    kept = text.replace("        self.fc(x).sum()", "        self.total = x + self.total\n        self.fc(x).sum()")
    assert walked(kept) == walked(text)  # what it keeps is no reason to forget what else it works on
    promised = LAYER.replace("from torch", "import lightning\nfrom torch").replace(
        "nn.Module", "lightning.LightningModule"
    )
    assert walked(promised) == {"Block.__init__", "Block.forward"}


def test_layers_built_from_a_configuration_evaluate_nothing() -> None:
    text = LAYER.replace("nn.Linear(8, 8)", "AutoModel.from_config(config)")
    assert walked(text) == set()
    built = LAYER + "\ndef build(config):\n    return AutoModel.from_config(config)\n"
    assert walked(built) == {"build"}
    rebuilt = text + "\n    def reset(self):\n        self.fc = AutoModel.from_config(config)\n"
    assert walked(rebuilt) == {"Block.__init__", "Block.forward", "Block.reset"}


def test_layers_that_generate_by_layers_evaluate_nothing() -> None:
    text = LAYER + "\n    def predict(self, x):\n        return self.fc.generate(x)\n"
    assert walked(text) == set()
    assert walked(text + "\ndef predict(model, x):\n    return model.generate(x)\n") == {"predict"}


OTHER = "\ndef other(x):\n    return x.sum()\n"


@pytest.mark.parametrize(
    ("method", "driven"),
    [
        ("def from_pretrained(cls, name):\n        return super().from_pretrained(name)", False),
        ("def load(cls, name):\n        return super().from_pretrained(name)", True),
        ("def eval(self):\n        self.count = 0\n        return super().eval()", False),
        ("def train(self, mode=True):\n        self.fc.eval()\n        return super().train(mode)", True),
    ],
)
def test_layers_that_hand_a_call_on_to_their_base_class_evaluate_nothing(method: str, driven: bool) -> None:
    assert ("other" in walked(LAYER + f"\n    {method}\n" + OTHER)) is driven


def test_layers_that_put_a_part_into_evaluation_mode_as_they_are_made_evaluate_nothing_else() -> None:
    text = LAYER.replace("Linear(8, 8)\n", "Linear(8, 8)\n        self.teacher.eval()\n")
    assert walked(text + OTHER) == {"Block.__init__"}
    assert walked(text + "\n    def check(self):\n        self.fc.eval()\n" + OTHER) >= {"Block.__init__", "other"}


@pytest.mark.parametrize(
    ("made", "driven"),
    [
        ("AutoTokenizer", False),
        ("transformers.BertTokenizerFast", False),
        ("AutoConfig", False),
        ("CLIPImageProcessor", False),
        ("AutoModel", True),
        ("tokenizer_class", True),
        ("registry[name]", True),
    ],
)
def test_what_makes_no_model_evaluates_none(made: str, driven: bool) -> None:
    text = f"import torch\nimport transformers\n\ndef make(name):\n    return {made}.from_pretrained(name)\n{OTHER}"
    assert ("other" in walked(text)) is driven
    both = text + "\ndef load(name):\n    return load_model.from_pretrained(name)\n"
    assert "other" in walked(both)


def test_of_a_constructor_that_puts_a_part_into_evaluation_mode_what_runs_that_part_is_walked() -> None:
    text = LAYER.replace("Linear(8, 8)\n", "Linear(8, 8)\n        self.teacher = load()\n        self.teacher.eval()\n")
    assert walked(text) == {"Block.__init__"}
    teaching = text + "\n    def teach(self, x):\n        return self.teacher(x)\n"
    assert walked(teaching) == {"Block.__init__", "Block.teach"}
    indirect = text.replace(
        "        self.teacher = load()\n        self.teacher", "        teacher = load()\n        teacher"
    )
    assert walked(indirect) == {"Block.__init__", "Block.forward"}
    loading = LAYER.replace("Linear(8, 8)\n", "Linear(8, 8)\n        self.rows = DataLoader(rows)\n")
    assert walked(loading) == {"Block.__init__", "Block.forward"}


CHAIN = """
import functools
import torch

def cut(x):
    return x.detach() * 2

def near(x):
    return cut(x).sum()

def far(x):
    return near(x).sum()
"""


def test_callers_of_callers_have_a_say_by_the_gradient_mode() -> None:
    assert walked(CHAIN) == {"cut", "near"}
    guarded = CHAIN.replace("    return near(x).sum()", "    with torch.no_grad():\n        return near(x).sum()")
    assert walked(guarded) == {"cut", "near", "far"}


def test_of_tests_what_counts_there_is_walked() -> None:
    text = LAYER + (
        "\ndef test_trains():\n    total = 0\n    for _ in range(3):\n        loss = Block()(torch.ones(1)).sum()\n"
        "        loss.backward()\n        total += loss\n"
        "\ndef test_mode():\n    torch.no_grad()\n    Block()(torch.ones(1))\n"
        "\ndef test_frozen():\n    block = Block()\n    block.requires_grad = False\n"
    )
    assert walked(text, "test_layers.py") == {"Block.__init__", "test_mode", "test_frozen"}


DATA = """
import torch
from torch.utils.data import Dataset

class Scans(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.read(index)

    def read(self, index):
        return torch.tensor(self.files[index])
"""


def test_a_data_set_on_the_host_is_not_walked() -> None:
    assert walked(DATA) == set()
