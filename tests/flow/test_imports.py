"""Every way of importing leads to the file that defines the name: each with a meter that keeps graphs and one that
does not, so that the finding comes from what that file says and from nothing else.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.shown import check_text
from torchmemlint.findings import Finding
from torchmemlint.flow.project import Project
from torchmemlint.rules.registry import by_code

CODES = frozenset(code for code in by_code() if not code.startswith("TML0"))

KEEPS = """class Meter:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)
"""
COUNTS = KEEPS.replace("append(value)", "append(value.item())")

TRAIN = """
import torch
{imports}


def train(model, loader, optimizer):
    meter = {made}
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss)
"""


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def check(root: Path, name: str, project: Project | None = None) -> list[Finding]:
    path = root / name
    return check_text(path.read_text(encoding="utf-8"), path, CODES, project or Project(root))


def codes(root: Path, name: str) -> list[str]:
    return [finding.code for finding in check(root, name)]


def train(imports: str, made: str = "Meter()") -> str:
    return TRAIN.format(imports=imports, made=made)


# Each form: where the meter is, the trainer, how it imports, how it makes the meter, other files.
FORMS: dict[str, tuple[str, str, str, str, dict[str, str]]] = {
    "absolute": ("pkg/meters.py", "train.py", "from pkg.meters import Meter", "Meter()", {"pkg/__init__.py": ""}),
    "module": ("pkg/meters.py", "train.py", "import pkg.meters", "pkg.meters.Meter()", {"pkg/__init__.py": ""}),
    "module as": ("pkg/meters.py", "train.py", "import pkg.meters as m", "m.Meter()", {"pkg/__init__.py": ""}),
    "name as": ("pkg/meters.py", "train.py", "from pkg.meters import Meter as M", "M()", {"pkg/__init__.py": ""}),
    "submodule": ("pkg/meters.py", "train.py", "from pkg import meters", "meters.Meter()", {"pkg/__init__.py": ""}),
    "beside": ("pkg/meters.py", "pkg/train.py", "from .meters import Meter", "Meter()", {"pkg/__init__.py": ""}),
    "module beside": (
        "pkg/meters.py",
        "pkg/train.py",
        "from . import meters as m",
        "m.Meter()",
        {"pkg/__init__.py": ""},
    ),
    "two up": (
        "pkg/meters.py",
        "pkg/a/b/train.py",
        "from ...meters import Meter",
        "Meter()",
        {"pkg/__init__.py": "", "pkg/a/__init__.py": "", "pkg/a/b/__init__.py": ""},
    ),
    "from the package itself": (
        "pkg/meters.py",
        "pkg/train.py",
        "from . import Meter",
        "Meter()",
        {"pkg/__init__.py": "from .meters import Meter\n"},
    ),
    "star": ("pkg/meters.py", "train.py", "from pkg.meters import *", "Meter()", {"pkg/__init__.py": ""}),
    "relative star": ("pkg/meters.py", "pkg/train.py", "from .meters import *", "Meter()", {"pkg/__init__.py": ""}),
    "exported again": (
        "pkg/meters.py",
        "train.py",
        "from pkg import Meter",
        "Meter()",
        {"pkg/__init__.py": "from .meters import Meter\n__all__ = ['Meter']\n"},
    ),
    "exported again by a package with a module of that name": (
        "pkg/Meter.py",
        "train.py",
        "from pkg import Meter",
        "Meter()",
        {"pkg/__init__.py": "from pkg.Meter import Meter\n"},
    ),
    "exported again under another name": (
        "pkg/meters.py",
        "train.py",
        "from pkg import Average",
        "Average()",
        {"pkg/__init__.py": "from .meters import Meter as Average\n"},
    ),
    "exported again by a star": (
        "pkg/meters.py",
        "train.py",
        "from pkg import Meter",
        "Meter()",
        {"pkg/__init__.py": "from .meters import *\n"},
    ),
    "exported again three times": (
        "pkg/a/b/meters.py",
        "train.py",
        "from pkg import Meter",
        "Meter()",
        {
            "pkg/__init__.py": "from .a import *\n",
            "pkg/a/__init__.py": "from pkg.a.b import Meter\n",
            "pkg/a/b/__init__.py": "from . import meters\nfrom .meters import *\n",
        },
    ),
    "a module exported again": (
        "pkg/a/meters.py",
        "train.py",
        "import pkg",
        "pkg.m.Meter()",
        {"pkg/__init__.py": "from .a import meters as m\n", "pkg/a/__init__.py": ""},
    ),
    "a module that its package imports": (
        "pkg/meters.py",
        "train.py",
        "from pkg import meters",
        "meters.Meter()",
        {"pkg/__init__.py": "from . import meters\n"},
    ),
    "a module that its package imports by its whole name": (
        "pkg/meters.py",
        "train.py",
        "import pkg",
        "pkg.meters.Meter()",
        {"pkg/__init__.py": "from pkg import meters\n"},
    ),
    "src layout": (
        "src/pkg/meters.py",
        "train.py",
        "from pkg.meters import Meter",
        "Meter()",
        {"src/pkg/__init__.py": ""},
    ),
    "src layout from within": (
        "src/pkg/meters.py",
        "src/pkg/run/train.py",
        "from pkg.meters import Meter",
        "Meter()",
        {"src/pkg/__init__.py": "", "src/pkg/run/__init__.py": ""},
    ),
    "namespace package": ("pkg/part/meters.py", "train.py", "from pkg.part.meters import Meter", "Meter()", {}),
    "relative in a namespace package": (
        "pkg/meters.py",
        "pkg/run/train.py",
        "from ..meters import Meter",
        "Meter()",
        {},
    ),
    "a module before a folder of its name": (
        "meters.py",
        "train.py",
        "from meters import Meter",
        "Meter()",
        {"meters/data.txt": "", "meters/other.py": ""},
    ),
    "script beside": ("tools/meters.py", "tools/train.py", "from meters import Meter", "Meter()", {}),
    "under a condition": (
        "pkg/meters.py",
        "train.py",
        "try:\n    from pkg.meters import Meter\nexcept ImportError:\n    raise",
        "Meter()",
        {"pkg/__init__.py": ""},
    ),
    "in the function": (
        "pkg/meters.py",
        "train.py",
        "",
        "None\n    from pkg.meters import Meter\n    meter = Meter()",
        {"pkg/__init__.py": ""},
    ),
    "module in the function": (
        "pkg/meters.py",
        "pkg/train.py",
        "",
        "None\n    from . import meters as m\n    meter = m.Meter()",
        {"pkg/__init__.py": ""},
    ),
    "in a circle": (
        "pkg/meters.py",
        "pkg/train.py",
        "from .names import Meter",
        "Meter()",
        {"pkg/__init__.py": "from .names import *\n", "pkg/names.py": "from . import *\nfrom .meters import Meter\n"},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str, tmp_path: Path) -> None:
    meters, trainer, imports, made, others = FORMS[form]
    write(tmp_path, {**others, trainer: train(imports, made), meters: KEEPS})
    (found,) = check(tmp_path, trainer)
    assert found.code == "TML102"
    assert {e.filename for e in found.evidence if e.filename} == {tmp_path / meters}
    write(tmp_path, {meters: COUNTS})
    assert check(tmp_path, trainer) == []


SCRIPT = """
import torch
import meter

meter = meter.Meter()
model = torch.nn.Linear(3, 3)
for x in torch.ones(9, 3):
    loss = model(x).sum()
    loss.backward()
    meter.update(loss)
print(meter.values[-1].item())
"""


def test_a_name_that_is_bound_to_something_else_afterwards(tmp_path: Path) -> None:
    write(tmp_path, {"meter.py": KEEPS, "script.py": SCRIPT})
    assert codes(tmp_path, "script.py") == ["TML102"]
    write(tmp_path, {"meter.py": COUNTS})
    assert codes(tmp_path, "script.py") == []


# -- what a package does not give, or does not say that it gives ------------------------------------------------------


def test_a_star_gives_what_all_names(tmp_path: Path) -> None:
    for exported, found in (("__all__ = ['Meter']\n", 1), ("__all__ = ['Other']\n", 0), ("__all__ = list(NAMES)\n", 1)):
        write(tmp_path, {"meters.py": exported + KEEPS, "train.py": train("from meters import *")})
        assert codes(tmp_path, "train.py") == ["TML102"] * found
    # What is asked for by name comes whatever `__all__` says.
    write(tmp_path, {"meters.py": "__all__ = ['Other']\n" + KEEPS, "train.py": train("from meters import Meter")})
    assert codes(tmp_path, "train.py") == ["TML102"]


def test_a_star_gives_no_private_names(tmp_path: Path) -> None:
    private = KEEPS.replace("Meter", "_Meter")
    write(tmp_path, {"meters.py": private, "train.py": train("from meters import *", "_Meter()")})
    assert codes(tmp_path, "train.py") == []
    write(tmp_path, {"train.py": train("from meters import _Meter", "_Meter()")})
    assert codes(tmp_path, "train.py") == ["TML102"]


LAZY = """
def __getattr__(name):
    from . import meters
    return getattr(meters, name)
"""


def test_what_a_lazy_package_makes_up_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": LAZY, "pkg/meters.py": KEEPS, "train.py": train("from pkg import Meter")})
    assert codes(tmp_path, "train.py") == []
    # Unless it tells type checkers.
    told = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .meters import Meter\n"
    write(tmp_path, {"pkg/__init__.py": told + LAZY})
    assert codes(tmp_path, "train.py") == ["TML102"]


def test_a_package_before_a_namespace_package(tmp_path: Path) -> None:
    """A folder without `__init__.py` counts only where no folder of the path has a package or module of that name."""
    script = train("from pkg.meters import Meter")
    write(tmp_path, {"pkg/meters.py": KEEPS, "src/pkg/meters.py": COUNTS, "train.py": script})
    assert codes(tmp_path, "train.py") == ["TML102"]
    write(tmp_path, {"src/pkg/__init__.py": ""})
    assert codes(tmp_path, "train.py") == []


def test_a_folder_around_the_file_has_the_name_of_the_package(tmp_path: Path) -> None:
    """A package deep in a repository, some of whose folders have no `__init__.py`, imports from itself."""
    script = train("from codec.meters import Meter")
    write(
        tmp_path,
        {"models/codec/__init__.py": "", "models/codec/meters.py": KEEPS, "models/codec/runs/a/train.py": script},
    )
    assert codes(tmp_path, "models/codec/runs/a/train.py") == ["TML102"]
    write(tmp_path, {"codec/__init__.py": "", "codec/meters.py": COUNTS})  # what Python would find comes first
    assert codes(tmp_path, "models/codec/runs/a/train.py") == []


def test_a_part_of_a_package_has_the_name_of_a_library(tmp_path: Path) -> None:
    """`agents/torch/` is `agents.torch`: who imports torch in it, or beside it, means torch."""
    keeps = train("from agents.torch.meters import Meter")
    write(tmp_path, {"agents/__init__.py": "", "agents/torch/__init__.py": "", "agents/torch/meters.py": KEEPS})
    write(tmp_path, {"agents/torch/sac/train.py": keeps, "agents/torch/train.py": keeps, "agents/train.py": keeps})
    for path in ("agents/torch/sac/train.py", "agents/torch/train.py", "agents/train.py"):
        assert codes(tmp_path, path) == ["TML102"]
    # A package of another name is a part of that package, too.
    write(tmp_path, {"agents/nets/meters.py": KEEPS, "agents/nets/__init__.py": ""})
    write(tmp_path, {"agents/nets/a/train.py": train("from nets.meters import Meter")})
    assert codes(tmp_path, "agents/nets/a/train.py") == []


def test_a_part_of_a_package_has_the_name_of_a_module_of_python(tmp_path: Path) -> None:
    """`kit/typing.py` is `kit.typing`: who imports typing beside it means Python's, and so does that file itself."""
    write(tmp_path, {"kit/__init__.py": "", "kit/typing.py": "from typing import cast\n" + KEEPS})
    write(
        tmp_path, {"kit/train.py": train("from typing import Meter"), "train.py": train("from kit.typing import Meter")}
    )
    assert codes(tmp_path, "kit/train.py") == []
    assert codes(tmp_path, "train.py") == ["TML102"]
    # A script finds what lies beside it first.
    write(tmp_path, {"scripts/queue.py": KEEPS, "scripts/train.py": train("from queue import Meter")})
    assert codes(tmp_path, "scripts/train.py") == ["TML102"]


def test_star_imports_of_many_files(tmp_path: Path) -> None:
    stars = "".join(f"from .m{n} import *\n" for n in range(70))
    write(tmp_path, {f"pkg/m{n}.py": "class Other:\n    pass\n" for n in range(70)})
    write(tmp_path, {"pkg/__init__.py": stars + "from .meters import *\n", "pkg/meters.py": KEEPS})
    write(tmp_path, {"train.py": train("from pkg import Meter")})
    assert codes(tmp_path, "train.py") == ["TML102"]


# -- classes over several files ---------------------------------------------------------------------------------------

NET = """
import torch
from middle import Middle


class Net(Middle):
    def encode(self, x):
        return self.layer(x)


def evaluate(net: Net, loader):
    net.eval()
    right = 0
    for x, y in loader:
        right += (net(x).argmax(1) == y).sum().item()
    return right
"""


@pytest.mark.parametrize("top", ["nn.Module", "object"])  # a class that is no module runs one, too
def test_a_module_three_bases_away(top: str, tmp_path: Path) -> None:
    base = f"from torch import nn\n\nclass Base({top}):\n    def __init__(self):\n        super().__init__()\n"
    base += "        self.layer = nn.Linear(8, 2)\n"
    write(tmp_path, {"base.py": base, "low.py": "from base import Base\n\nclass Low(Base):\n    pass\n"})
    write(tmp_path, {"middle.py": "import low\n\nclass Middle(low.Low):\n    pass\n", "net.py": NET})
    assert codes(tmp_path, "net.py") == ["TML201"]


TASK = """
import torch
from base import Base


class Task(Base):
    def step(self, batch):
        loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        {keep}
"""

BASE = """
from collections import deque


class Base:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.seen = {seen}
"""


@pytest.mark.parametrize(
    ("seen", "keep", "found"),
    [
        ("[]", "self.seen.append(loss)", ["TML102"]),
        ("[]", "self.seen.append(loss.item())", []),
        ("deque(maxlen=10)", "self.seen.append(loss)", []),
    ],
)
def test_attributes_that_a_parent_elsewhere_makes(seen: str, keep: str, found: list[str], tmp_path: Path) -> None:
    write(tmp_path, {"base.py": BASE.format(seen=seen), "task.py": TASK.format(keep=keep)})
    assert codes(tmp_path, "task.py") == found


# -- what keeps what it is given ---------------------------------------------------------------------------------------

REPLAY = """
import random


class Replay:
    def __init__(self{capacity}):
        self.items = []

    def push(self, state, value):
        self.items.append((state, {value}))
        {bound}

    def sample(self, count):
        return random.sample(self.items, count)
"""

COLLECT = """
import torch
from replay import Replay


def collect(policy, environment, optimizer):
    memory = Replay()
    state = environment.reset()
    for _ in range(10_000):
        value = policy(state).sum()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        memory.push(state, value)
        state = environment.step(value.item())
"""


@pytest.mark.parametrize(
    ("value", "bound", "found"),
    [
        ("value", "pass", ["TML102"]),
        ("value.detach()", "pass", []),
        ("float(value)", "pass", []),
        ("value", "del self.items[0]", []),
        ("value", "self.items.pop(0)", []),
    ],
)
def test_a_replay_storage_elsewhere(value: str, bound: str, found: list[str], tmp_path: Path) -> None:
    write(tmp_path, {"replay.py": REPLAY.format(capacity="", value=value, bound=bound), "collect.py": COLLECT})
    assert codes(tmp_path, "collect.py") == found


REPORTER = """
class Reporter:
    def __init__(self):
        self.history = {{}}

    def log(self, **values):
        for name, value in values.items():
            self.history.setdefault(name, []).append({value})
"""

REPORTING = """
import torch
from reporter import Reporter


class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.reporter = Reporter()

    def train(self, loader):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.reporter.log(loss=loss)
"""


@pytest.mark.parametrize(("value", "found"), [("value", ["TML102"]), ("value.item()", []), ("float(value)", [])])
def test_a_reporter_elsewhere(value: str, found: list[str], tmp_path: Path) -> None:
    write(tmp_path, {"reporter.py": REPORTER.format(value=value), "trainer.py": REPORTING})
    assert codes(tmp_path, "trainer.py") == found


# -- what is named, and what is only read ------------------------------------------------------------------------------


def test_only_the_named_file_is_reported(tmp_path: Path) -> None:
    """The other file has findings of its own; they come when it is named."""
    own = "\n\ndef learn(model, loader):\n    meter = Meter()\n    for x in loader:\n        loss = model(x).sum()\n"
    own += "        loss.backward()\n        meter.update(loss)\n"
    write(tmp_path, {"meters.py": "import torch\n" + KEEPS + own, "train.py": train("from meters import Meter")})
    (named,) = check(tmp_path, "train.py")
    assert named.filename == tmp_path / "train.py"
    (other,) = check(tmp_path, "meters.py")
    assert other.filename == tmp_path / "meters.py"


def test_one_project_serves_all_files(tmp_path: Path) -> None:
    """The same findings whether each file is looked at on its own or all share what was read."""
    files = ["train.py", "meters.py", "pkg/train.py", "pkg/meters.py"]
    write(tmp_path, {"meters.py": KEEPS, "train.py": train("from pkg.meters import Meter")})
    write(tmp_path, {"pkg/__init__.py": "", "pkg/meters.py": COUNTS, "pkg/train.py": train("from meters import Meter")})
    alone = [codes(tmp_path, name) for name in files]
    assert alone == [[], [], ["TML102"], []]
    project = Project(tmp_path)
    assert [[f.code for f in check(tmp_path, name, project)] for name in files] == alone
    assert [[f.code for f in check(tmp_path, name, project)] for name in reversed(files)] == alone[::-1]


def test_an_edit_of_a_file_that_adds_folders(tmp_path: Path) -> None:
    """What is kept of a project follows: `train.py` imports another `meters.py`."""
    helper = "import sys\nfrom pathlib import Path\n\nROOT = Path(__file__).parent.parent\n"
    helper += "sys.path.insert(0, str(ROOT / {folder!r}))\n"
    files = {"lib/meters.py": KEEPS, "other/meters.py": COUNTS, "tools/paths.py": helper.format(folder="lib")}
    files["tools/train.py"] = train("import paths\nfrom meters import Meter")
    write(tmp_path, files)
    project = Project(tmp_path)
    assert [finding.code for finding in check(tmp_path, "tools/train.py", project)] == ["TML102"]
    for folder, found in (("other", []), ("lib", ["TML102"]), ("nowhere", [])):
        project.files.changed(tmp_path / "tools" / "paths.py", helper.format(folder=folder))
        assert [finding.code for finding in check(tmp_path, "tools/train.py", project)] == found, folder


def test_an_edit_of_what_imports_a_file_that_adds_folders(tmp_path: Path) -> None:
    helper = "import sys\nsys.path.append('lib')\n"
    files = {"lib/meters.py": KEEPS, "tools/paths.py": helper, "tools/all.py": "import paths\n"}
    files["tools/train.py"] = train("import all\nfrom meters import Meter")
    write(tmp_path, files)
    project = Project(tmp_path)
    for text, found in (("import paths\n", ["TML102"]), ("", []), ("import sys\nimport paths\n", ["TML102"])):
        project.files.changed(tmp_path / "tools" / "all.py", text)
        assert [finding.code for finding in check(tmp_path, "tools/train.py", project)] == found
