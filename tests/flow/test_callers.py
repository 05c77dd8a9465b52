"""Which calls of a function are found in a project."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.findings import Lead
from torchmemlint.flow import callers
from torchmemlint.flow.program import Program
from torchmemlint.flow.project import Project
from torchmemlint.syntax.source_module import SourceModule

VALIDATE = """
import torch
from torch import nn


def validate(model: nn.Module, loader):
    model.eval()
    right = 0
    for x, y in loader:
        right += (model(x).argmax(1) == y).sum().item()
    return right
"""

RUNNER = """
import torch
from torch import nn


class Runner:
    def __init__(self, model: nn.Module):
        self.model = model

    def score(self, loader):
        self.model.eval()
        right = 0
        for x, y in loader:
            right += (self.model(x).argmax(1) == y).sum().item()
        return right
"""

WITHIN = "if True:"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def called(root: Path, name: str, method: str, project: Project | None = None) -> list[str]:
    """The files, without their endings, in which calls of a function or method are found."""
    path = root / name
    program = Program(SourceModule(path.read_text(encoding="utf-8"), path), project or Project(root))
    cls = program.find_class("Runner") or program.find_class("Agent")
    function = cls.methods[method] if cls is not None else program.find_function(method)
    assert function is not None
    return sorted(site.program.source.path.stem for site in callers.Callers(program).calls(function))


CALLERS = {
    "from": "from pkg.evaluate import validate\n\ndef main(model, data):\n    {context}\n"
    "        validate(model, data)\n",
    "as": "from pkg.evaluate import validate as check\n\ndef main(model, data):\n    {context}\n"
    "        check(model, data)\n",
    "module": "import torch\nimport pkg.evaluate\n\ndef main(model, data):\n    {context}\n"
    "        pkg.evaluate.validate(model, data)\n",
    "module as": "from pkg import evaluate as ev\n\ndef main(model, data):\n    {context}\n"
    "        ev.validate(model, data)\n",
    "star": "from pkg.evaluate import *\n\ndef main(model, data):\n    {context}\n        validate(model, data)\n",
    "exported again": "from pkg import validate\n\ndef main(model, data):\n    {context}\n"
    "        validate(model, data)\n",
    "inside": "import torch\n\ndef main(model, data):\n    from pkg.evaluate import validate\n    {context}\n"
    "        validate(model, data)\n",
    "script": "from pkg.evaluate import validate\n\nif __name__ == '__main__':\n    {context}\n"
    "        validate(None, None)\n",
}


@pytest.mark.parametrize("form", CALLERS)
def test_callers_in_other_files(form: str, tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "from .evaluate import validate\n", "pkg/evaluate.py": VALIDATE})
    write(tmp_path, {"train.py": CALLERS[form].format(context=WITHIN)})
    assert called(tmp_path, "pkg/evaluate.py", "validate") == ["train"]


METHODS = {
    "made": "def main(model, data):\n    runner = Runner(model)\n    {context}\n        runner.score(data)\n",
    "at once": "def main(model, data):\n    {context}\n        Runner(model).score(data)\n",
    "parameter": "def main(runner: Runner, data):\n    {context}\n        runner.score(data)\n",
    "text": 'def main(runner: "Runner", data):\n    {context}\n        runner.score(data)\n',
    "optional": "def main(runner: Runner | None, data):\n    {context}\n        runner.score(data)\n",
    "attribute": "class App:\n    def __init__(self, model):\n        self.runner = Runner(model)\n\n"
    "    def main(self, data):\n        {context}\n            self.runner.score(data)\n",
    "given attribute": "class App:\n    def __init__(self, runner: Runner):\n        self.runner = runner\n\n"
    "    def main(self, data):\n        {context}\n            self.runner.score(data)\n",
    "derived": "class Fast(Runner):\n    def main(self, data):\n        {context}\n            self.score(data)\n",
    "super": "class Fast(Runner):\n    def score(self, data):\n        {context}\n"
    "            return super().score(data)\n",
    "object of a derived class": "class Fast(Runner):\n    pass\n\ndef main(model, data):\n    {context}\n"
    "        Fast(model).score(data)\n",
    "unknown object, the only method of this name": "def main(runner, data):\n    {context}\n"
    "        runner.score(data)\n",
    "module level": "runner = Runner(None)\n\ndef main(data):\n    {context}\n        runner.score(data)\n",
}


@pytest.mark.parametrize("form", METHODS)
def test_methods(form: str, tmp_path: Path) -> None:
    head = "import torch\nfrom runner import Runner\n\n"
    write(tmp_path, {"runner.py": RUNNER, "train.py": head + METHODS[form].format(context=WITHIN)})
    assert called(tmp_path, "runner.py", "score") == ["train"]


def test_namesakes_do_not_count(tmp_path: Path) -> None:
    """Calls of `score` of another class, or of another module's `validate`, are none."""
    game = """
from runner import Runner

class Game:
    def score(self, data):
        return 0

def play(game: Game, runner: Runner, data):
    game.score(data)
"""
    write(tmp_path, {"runner.py": RUNNER, "game.py": game})
    assert called(tmp_path, "runner.py", "score") == []
    write(tmp_path, {"game.py": game + "    runner.score(data)\n"})
    assert called(tmp_path, "runner.py", "score") == ["game"]
    other = "from elsewhere import validate\n\ndef main(model, data):\n    validate(model, data)\n"
    write(tmp_path, {"evaluate.py": VALIDATE, "other.py": other})
    assert called(tmp_path, "evaluate.py", "validate") == []


def test_a_base_class_that_runs_the_method(tmp_path: Path) -> None:
    base = "class Base:\n    def run(self, loader):\n        return self.score(loader)\n"
    runner = RUNNER.replace("class Runner:", "from base import Base\n\nclass Runner(Base):")
    write(tmp_path, {"base.py": base, "runner.py": runner})
    assert called(tmp_path, "runner.py", "score") == ["base"]


def test_a_method_that_is_called_under_another_name(tmp_path: Path) -> None:
    agent = """
class Agent:
    def __init__(self):
        self.values = self.plain

    def plan(self, states):
        return self.values(states)

    def plain(self, states):
        return states
"""
    write(tmp_path, {"agent.py": agent})
    assert called(tmp_path, "agent.py", "plain") == ["agent"]


def test_tests_do_not_count_as_callers(tmp_path: Path) -> None:
    script = CALLERS["from"].format(context=WITHIN)
    write(tmp_path, {"pkg/__init__.py": "", "pkg/evaluate.py": VALIDATE, "tests/checks.py": script})
    write(tmp_path, {"a.py": script, "test_a.py": script + "\n\ndef test_a():\n    pass\n"})
    assert called(tmp_path, "pkg/evaluate.py", "validate") == ["a"]
    write(tmp_path, {"test_a.py": script})  # which runs a model on a test set
    assert called(tmp_path, "pkg/evaluate.py", "validate") == ["a", "test_a"]


@pytest.mark.parametrize(("signature", "counts"), [("test()", False), ("test(model, loader)", True), ("tried()", True)])
def test_a_self_check_does_not_count_beside_other_callers(signature: str, counts: bool, tmp_path: Path) -> None:
    check_itself = f"\n\ndef {signature}:\n    validate(nn.Linear(2, 2), [])\n"
    main = "from evaluation import validate\n\n\ndef main(model, loader):\n    validate(model, loader)\n"
    write(tmp_path, {"evaluation.py": VALIDATE + check_itself, "main.py": main})
    assert called(tmp_path, "evaluation.py", "validate") == ["evaluation"] * counts + ["main"]


def test_only_files_that_mention_the_function_are_parsed(tmp_path: Path) -> None:
    write(tmp_path, {f"m{n}.py": "def other():\n    pass\n" for n in range(20)})
    write(tmp_path, {f"n{n}.py": "def validate():\n    pass\n" for n in range(20)})
    script = CALLERS["from"].format(context=WITHIN)
    write(tmp_path, {"pkg/__init__.py": "", "pkg/evaluate.py": VALIDATE, "a.py": script})
    project = Project(tmp_path)
    assert called(tmp_path, "pkg/evaluate.py", "validate", project) == ["a"]
    assert {path.name: one.lead for path, one in project.read.items()} == {"a.py": Lead.CALLER}


def test_too_many_files_are_not_parsed(tmp_path: Path) -> None:
    script = CALLERS["from"].format(context=WITHIN)
    write(tmp_path, {"pkg/__init__.py": "", "pkg/evaluate.py": VALIDATE})
    write(tmp_path, {f"m{n}.py": script for n in range(callers.MAX_FILES)})
    assert len(called(tmp_path, "pkg/evaluate.py", "validate")) == callers.MAX_FILES
    write(tmp_path, {"more.py": script})
    project = Project(tmp_path)
    assert called(tmp_path, "pkg/evaluate.py", "validate", project) == []
    assert project.read == {}


def test_of_methods_only_files_that_call_one_of_that_name_count(tmp_path: Path) -> None:
    caller = "from pkg.runner import Runner\n\n\ndef main(model, loader):\n    print(Runner(model).score(loader))\n"
    write(tmp_path, {"pkg/__init__.py": "", "pkg/runner.py": RUNNER, "main.py": caller})
    write(tmp_path, {f"m{n}.py": "score = 0\n" for n in range(callers.MAX_FILES)})
    assert called(tmp_path, "pkg/runner.py", "score") == ["main"]


def test_a_caller_that_cannot_be_read_leaves_all_unknown(tmp_path: Path) -> None:
    script = CALLERS["from"].format(context=WITHIN)
    write(tmp_path, {"pkg/__init__.py": "", "pkg/evaluate.py": VALIDATE, "a.py": script})
    write(tmp_path, {"broken.py": "def f(:\n    validate(\n"})
    assert called(tmp_path, "pkg/evaluate.py", "validate") == []


def test_the_cells_of_a_notebook_are_all_its_callers(tmp_path: Path) -> None:
    cells = VALIDATE + "\n\nclass Run:\n    def all(self, model):\n        print(validate(model, [1]))\n"
    write(tmp_path, {"validate.py": VALIDATE, "run.ipynb": "{}"})
    program = Program(SourceModule(cells, tmp_path / "run.ipynb"), Project(tmp_path))
    function = program.find_function("validate")
    assert function is not None
    (site,) = callers.Callers(program).calls(function)
    assert site.function is not None
    assert site.function.qualname == "Run.all"


def test_a_function_within_the_caller(tmp_path: Path) -> None:
    main = "from evaluate import validate\n\ndef main(run):\n    def epoch(step):\n        validate(run, step)\n\n"
    write(tmp_path, {"evaluate.py": VALIDATE, "main.py": main + "    run(epoch)\n"})
    assert called(tmp_path, "evaluate.py", "validate") == ["main"]
