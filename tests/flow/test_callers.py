"""A function that the whole project calls with gradients off is not reported; any other is, as before."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.findings import Lead
from torchmemlint.flow import callers
from torchmemlint.flow.analysis import analyse
from torchmemlint.flow.program import Program
from torchmemlint.flow.project import Project
from torchmemlint.flow.values import Mode
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

OFF = "with torch.no_grad():"
ON = "with open('log'):"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def rows(root: Path, name: str, project: Project | None = None) -> list[int]:
    """Where networks run with gradients on, as far as callers decide."""
    path = root / name
    facts = analyse(SourceModule(path.read_text(encoding="utf-8"), path), project or Project(root))
    on = (call for call in facts.module_calls if call.scope.mode is Mode.ON and not call.site.piece.context)
    return sorted({c.site.span.start.row for c in on if not facts.enters_without_gradients(c.scope.function)})


def codes(root: Path, name: str, project: Project | None = None) -> list[str]:
    return ["TML201"] if rows(root, name, project) else []


CALLERS = {
    "from": "import torch\nfrom pkg.evaluate import validate\n\ndef main(model, data):\n    {context}\n"
    "        validate(model, data)\n",
    "as": "import torch\nfrom pkg.evaluate import validate as check\n\ndef main(model, data):\n    {context}\n"
    "        check(model, data)\n",
    "module": "import torch\nimport pkg.evaluate\n\ndef main(model, data):\n    {context}\n"
    "        pkg.evaluate.validate(model, data)\n",
    "module as": "import torch\nfrom pkg import evaluate as ev\n\ndef main(model, data):\n    {context}\n"
    "        ev.validate(model, data)\n",
    "star": "import torch\nfrom pkg.evaluate import *\n\ndef main(model, data):\n    {context}\n"
    "        validate(model, data)\n",
    "exported again": "import torch\nfrom pkg import validate\n\ndef main(model, data):\n    {context}\n"
    "        validate(model, data)\n",
    "inside": "import torch\n\ndef main(model, data):\n    from pkg.evaluate import validate\n    {context}\n"
    "        validate(model, data)\n",
    "script": "import torch\nfrom pkg.evaluate import validate\n\nif __name__ == '__main__':\n    {context}\n"
    "        validate(None, None)\n",
    "handed on": "import torch\nfrom pkg.evaluate import validate\n\ndef main(run):\n    {context}\n"
    "        run(validate)\n",
}


@pytest.mark.parametrize("form", CALLERS)
def test_callers_in_other_files(form: str, tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "from .evaluate import validate\n", "pkg/evaluate.py": VALIDATE})
    write(tmp_path, {"train.py": CALLERS[form].format(context=OFF)})
    assert codes(tmp_path, "pkg/evaluate.py") == []
    write(tmp_path, {"train.py": CALLERS[form].format(context=ON)})
    assert codes(tmp_path, "pkg/evaluate.py") == ["TML201"]


@pytest.mark.parametrize(
    ("context", "found"),
    [
        ("with torch.no_grad():", False),
        ("with torch.inference_mode():", False),
        ("with torch.autocast('cuda'), torch.no_grad():", False),
        ("with torch.set_grad_enabled(False):", False),
        ("with torch.set_grad_enabled(model is None):", False),  # perhaps off: silent, as within one file
        ("with torch.set_grad_enabled(True):", True),
        ("with torch.no_grad(), torch.enable_grad():", True),
        ("with torch.autocast('cuda'):", True),
        ("with quiet():", False),
        ("with timed():", True),
        ("if True:", True),
    ],
)
def test_contexts_around_the_call(context: str, found: bool, tmp_path: Path) -> None:
    tools = """
import contextlib
import torch

@contextlib.contextmanager
def quiet():
    with torch.no_grad():
        yield

@contextlib.contextmanager
def timed():
    print("start")
    yield
"""
    train = CALLERS["from"].format(context=context).replace("import torch\n", "import torch\nfrom tools import *\n", 1)
    train = train.replace("from tools import *", "from tools import quiet, timed")
    write(tmp_path, {"pkg/__init__.py": "", "pkg/evaluate.py": VALIDATE, "tools.py": tools, "train.py": train})
    assert codes(tmp_path, "pkg/evaluate.py") == ["TML201"] * found


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("torch.set_grad_enabled(False)", False),
        ("torch.set_grad_enabled(False)\ntorch.set_grad_enabled(True)", True),
        ("torch.manual_seed(0)", True),
    ],
)
def test_statements_before_the_call(before: str, found: bool, tmp_path: Path) -> None:
    train = f"import torch\nfrom evaluate import validate\n\n{before}\nvalidate(None, None)\n"
    write(tmp_path, {"evaluate.py": VALIDATE, "train.py": train})
    assert codes(tmp_path, "evaluate.py") == ["TML201"] * found


@pytest.mark.parametrize(
    ("context", "found"),
    [("with torch.no_grad():", False), ("with torch.autocast('cuda'):", True), ("if True:", True)],
)
def test_main_of_a_script(context: str, found: bool, tmp_path: Path) -> None:
    """`main` is called by the script that it stands in; called by nothing, it runs with gradients on."""
    train = "import torch\nfrom evaluate import validate\n\ndef main(model, data):\n    return validate(model, data)\n"
    write(tmp_path, {"evaluate.py": VALIDATE, "test_it.py": "def main():\n    pass\n", "train.py": train})
    assert codes(tmp_path, "evaluate.py") == ["TML201"]
    write(tmp_path, {"train.py": f"{train}\nif __name__ == '__main__':\n    {context}\n        main(None, None)\n"})
    assert codes(tmp_path, "evaluate.py") == ["TML201"] * found


@pytest.mark.parametrize(
    ("decorator", "found"),
    [
        ("@torch.no_grad()", False),
        ("@torch.inference_mode()", False),
        ("@torch.enable_grad()", True),
        ("@quiet", False),
        ("@logged", True),
    ],
)
def test_decorated_callers(decorator: str, found: bool, tmp_path: Path) -> None:
    tools = """
import torch

def quiet(function):
    return torch.no_grad()(function)

def logged(function):
    return function
"""
    train = f"import torch\nfrom tools import quiet, logged\nfrom evaluate import validate\n\n{decorator}\n"
    train += "def main(model, data):\n    return validate(model, data)\n"
    write(tmp_path, {"evaluate.py": VALIDATE, "tools.py": tools, "train.py": train})
    assert codes(tmp_path, "evaluate.py") == ["TML201"] * found


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
    write(tmp_path, {"runner.py": RUNNER, "train.py": head + METHODS[form].format(context=OFF)})
    assert codes(tmp_path, "runner.py") == []
    write(tmp_path, {"train.py": head + METHODS[form].format(context=ON)})
    assert codes(tmp_path, "runner.py") == ["TML201"]


def test_namesakes_do_not_count(tmp_path: Path) -> None:
    """What `score` of another class, or another module's `validate`, is called in says nothing."""
    game = """
import torch
from runner import Runner

class Game:
    def score(self, data):
        return 0

def play(game: Game, runner: Runner, data):
    {first}
        game.score(data)
    {second}
        runner.score(data)
"""
    write(tmp_path, {"runner.py": RUNNER, "game.py": game.format(first=ON, second=OFF)})
    assert codes(tmp_path, "runner.py") == []
    write(tmp_path, {"game.py": game.format(first=OFF, second=ON)})
    assert codes(tmp_path, "runner.py") == ["TML201"]
    other = "import torch\nfrom elsewhere import validate\n\ndef main(model, data):\n    with torch.no_grad():\n"
    write(tmp_path, {"evaluate.py": VALIDATE, "other.py": other + "        validate(model, data)\n"})
    assert codes(tmp_path, "evaluate.py") == ["TML201"]


def test_a_base_class_that_runs_the_method_without_gradients(tmp_path: Path) -> None:
    base = """
import torch

class Base:
    def run(self, loader):
        {context}
            return self.score(loader)
"""
    runner = RUNNER.replace("class Runner:", "class Runner(Base):").replace(
        "import torch\n", "import torch\nfrom base import Base\n", 1
    )
    runner = runner.replace("        return right\n", "        return str(right)\n")
    write(tmp_path, {"base.py": base.format(context=OFF), "runner.py": runner})
    assert codes(tmp_path, "runner.py") == []
    write(tmp_path, {"base.py": base.format(context=ON)})
    assert codes(tmp_path, "runner.py") == ["TML201"]


CHOSEN = """
import torch
from torch import nn


class Agent:
    def __init__(self, net: nn.Module):
        self.net = net
        self.values = self._plain

    def plan(self, states):
        WITH
            return self.values(states)

    def _plain(self, states):
        self.net.eval()
        return self.net(states).detach()
"""


@pytest.mark.parametrize(("around", "found"), [(OFF, False), (ON, True)])
def test_a_method_that_is_called_under_another_name(around: str, found: bool, tmp_path: Path) -> None:
    write(tmp_path, {"agent.py": CHOSEN.replace("WITH", around)})

    assert bool(rows(tmp_path, "agent.py")) is found


def test_all_callers_count(tmp_path: Path) -> None:
    """One call with gradients on is enough; so is none at all."""
    write(tmp_path, {"pkg/__init__.py": "", "pkg/evaluate.py": VALIDATE})
    assert codes(tmp_path, "pkg/evaluate.py") == ["TML201"]
    write(tmp_path, {"a.py": CALLERS["from"].format(context=OFF), "b.py": CALLERS["from"].format(context=OFF)})
    assert codes(tmp_path, "pkg/evaluate.py") == []
    write(tmp_path, {"b.py": CALLERS["from"].format(context=ON)})
    assert codes(tmp_path, "pkg/evaluate.py") == ["TML201"]


def test_tests_do_not_count_as_callers(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/evaluate.py": VALIDATE})
    write(tmp_path, {"tests/checks.py": CALLERS["from"].format(context=OFF)})
    assert codes(tmp_path, "pkg/evaluate.py") == ["TML201"]
    script = CALLERS["from"].format(context=ON)
    test = script + "\n\ndef test_a():\n    pass\n"
    write(tmp_path, {"a.py": CALLERS["from"].format(context=OFF), "test_a.py": test})
    assert codes(tmp_path, "pkg/evaluate.py") == []
    write(tmp_path, {"test_a.py": script})  # which runs a model on a test set
    assert codes(tmp_path, "pkg/evaluate.py") == ["TML201"]


@pytest.mark.parametrize(("signature", "found"), [("test()", False), ("test(model, loader)", True), ("tried()", True)])
def test_a_self_check_does_not_count_beside_other_callers(signature: str, found: bool, tmp_path: Path) -> None:
    check_itself = f"\n\ndef {signature}:\n    validate(nn.Linear(2, 2), [])\n"
    main = f"import torch\nfrom evaluation import validate\n\n\ndef main(model, loader):\n    {OFF}\n"
    files = {"evaluation.py": VALIDATE + check_itself, "main.py": f"{main}        validate(model, loader)\n"}
    write(tmp_path, files)
    assert bool(rows(tmp_path, "evaluation.py")) is found


@pytest.mark.parametrize("length", [1, callers.MAX_DEPTH, callers.MAX_DEPTH + 1])
def test_callers_of_callers(length: int, tmp_path: Path) -> None:
    files = {"step0.py": VALIDATE.replace("validate", "step0")}
    for n in range(1, length + 1):
        text = (
            f"from step{n - 1} import step{n - 1}\n\ndef step{n}(model, data):\n    return step{n - 1}(model, data)\n"
        )
        files[f"step{n}.py"] = text
    top = (
        f"import torch\nfrom step{length} import step{length}\n\nwith torch.no_grad():\n    step{length}(None, None)\n"
    )
    write(tmp_path, {**files, "top.py": top})
    assert codes(tmp_path, "step0.py") == ["TML201"] * (length > callers.MAX_DEPTH)


def test_a_caller_that_nobody_is_known_to_call(tmp_path: Path) -> None:
    text = "from evaluate import validate\n\ndef entry(model, data):\n    validate(model, data)\n"
    write(tmp_path, {"evaluate.py": VALIDATE, "a.py": text})
    write(
        tmp_path, {"b.py": "import torch\nfrom evaluate import validate\n\nwith torch.no_grad():\n    validate(1, 2)\n"}
    )
    assert codes(tmp_path, "evaluate.py") == ["TML201"]


def test_callers_in_a_circle(tmp_path: Path) -> None:
    text = "from evaluate import validate\nfrom {other} import {other}\n\ndef {name}(model, data):\n"
    text += "    validate(model, data)\n    {other}(model, data)\n"
    write(tmp_path, {"evaluate.py": VALIDATE, "a.py": text.format(name="a", other="b")})
    write(tmp_path, {"b.py": text.format(name="b", other="a")})
    assert codes(tmp_path, "evaluate.py") == ["TML201"]  # nobody is known to begin
    write(tmp_path, {"top.py": "import torch\nfrom a import a\n\nwith torch.no_grad():\n    a(None, None)\n"})
    assert codes(tmp_path, "evaluate.py") == []
    write(tmp_path, {"low.py": "import torch\nfrom b import b\n\nb(None, None)\n"})
    assert codes(tmp_path, "evaluate.py") == ["TML201"]


def test_a_framework_that_runs_the_caller_without_gradients(tmp_path: Path) -> None:
    module = """
from pytorch_lightning import LightningModule
from evaluate import validate

class Task(LightningModule):
    def {hook}(self, batch, index):
        return validate(self, batch)
"""
    write(tmp_path, {"evaluate.py": VALIDATE, "task.py": module.format(hook="validation_step")})
    assert codes(tmp_path, "evaluate.py") == []
    write(tmp_path, {"task.py": module.format(hook="training_step")})
    assert codes(tmp_path, "evaluate.py") == ["TML201"]


@pytest.mark.parametrize(("method", "found"), [("prediction_step", True), ("count_right", False)])
def test_a_framework_that_calls_the_method_itself(method: str, found: bool, tmp_path: Path) -> None:
    trainer = f"""
import torch
from transformers import Trainer

class Own(Trainer):
    def {method}(self, model, batches):
        model.eval()
        right = 0
        for x, y in batches:
            right += (model(x).argmax(1) == y).sum().item()
        return right
"""
    use = f"""
import torch
from trainer import Own

def report(trainer: Own, batches):
    with torch.no_grad():
        return trainer.{method}(trainer.model, batches)
"""
    write(tmp_path, {"trainer.py": trainer, "use.py": use})
    assert codes(tmp_path, "trainer.py") == ["TML201"] * found


def test_what_turns_gradients_on_itself_is_reported(tmp_path: Path) -> None:
    evaluate = VALIDATE.replace("    right = 0\n", "    right = 0\n    torch.set_grad_enabled(True)\n")
    write(tmp_path, {"pkg/__init__.py": "", "pkg/evaluate.py": evaluate, "a.py": CALLERS["from"].format(context=OFF)})
    assert codes(tmp_path, "pkg/evaluate.py") == ["TML201"]


KEPT = """
import torch
from torch import nn

def collect(model: nn.Module, loader):
    total = 0
    for x, y in loader:
        total += nn.functional.cross_entropy(model(x), y)
    print(total.item())
"""

SPENT = KEPT.replace(
    "        total +=", "        nn.functional.cross_entropy(model(x), y).backward()\n        total +="
)


def test_the_project_is_searched_only_where_something_would_be_reported(tmp_path: Path) -> None:
    quiet = VALIDATE.replace("def validate", "@torch.no_grad()\ndef validate")
    write(tmp_path, {"pkg/__init__.py": "", "pkg/evaluate.py": quiet, "a.py": CALLERS["from"].format(context=ON)})
    project = Project(tmp_path)
    assert codes(tmp_path, "pkg/evaluate.py", project) == []
    assert project.read == {}
    assert not project.files.texts.was_read


def test_only_files_that_mention_the_function_are_parsed(tmp_path: Path) -> None:
    write(tmp_path, {f"m{n}.py": "def other():\n    pass\n" for n in range(20)})
    write(tmp_path, {f"n{n}.py": "def validate():\n    pass\n" for n in range(20)})
    write(tmp_path, {"pkg/__init__.py": "", "pkg/evaluate.py": VALIDATE, "a.py": CALLERS["from"].format(context=OFF)})
    project = Project(tmp_path)
    assert codes(tmp_path, "pkg/evaluate.py", project) == []
    assert {path.name: one.lead for path, one in project.read.items()} == {"a.py": Lead.CALLER}


def test_too_many_files_are_not_parsed(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/evaluate.py": VALIDATE})
    write(tmp_path, {f"m{n}.py": CALLERS["from"].format(context=OFF) for n in range(callers.MAX_FILES)})
    assert codes(tmp_path, "pkg/evaluate.py") == []
    write(tmp_path, {"more.py": CALLERS["from"].format(context=OFF)})
    project = Project(tmp_path)
    assert codes(tmp_path, "pkg/evaluate.py", project) == ["TML201"]
    assert project.read == {}


def test_of_methods_only_files_that_call_one_of_that_name_count(tmp_path: Path) -> None:
    caller = """import torch

from pkg.runner import Runner


def main(model, loader):
    with torch.no_grad():
        print(Runner(model).score(loader))
"""
    write(tmp_path, {"pkg/__init__.py": "", "pkg/runner.py": RUNNER, "main.py": caller})
    write(tmp_path, {f"m{n}.py": "score = 0\n" for n in range(callers.MAX_FILES)})
    assert codes(tmp_path, "pkg/runner.py") == []


WRAPPER = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x)


class Wrapper(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
        self.net.eval()

    def forward(self, x):
        return self.{run}.detach().squeeze(0)

    def generate(self, x):
        return [self.net(x).argmax(-1).item() for _ in range(8)]
"""
RUN = """import torch

from net import Wrapper


def main(xs):
    wrapper = Wrapper().to("cuda")
    wrapper = wrapper.half()
    for x in xs:
        {context}
            print(wrapper(x))
"""
LARGER = """from torch import nn

from net import Wrapper


class Larger(nn.Module):
    def __init__(self):
        super().__init__()
        self.wrapper = Wrapper()

    def forward(self, x):
        return self.wrapper(x)
"""
RUN_LARGER = RUN.replace("from net import Wrapper", "from larger import Larger as Wrapper")


def test_too_large_a_project_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/evaluate.py": VALIDATE, "a.py": CALLERS["from"].format(context=OFF)})
    for name in ("MAX_BYTES", "MAX_FILES"):
        with monkeypatch.context() as patch:
            patch.setattr(f"torchmemlint.flow.texts.{name}", 2)
            assert codes(tmp_path, "pkg/evaluate.py") == ["TML201"]
    assert codes(tmp_path, "pkg/evaluate.py") == []


def test_a_caller_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/evaluate.py": VALIDATE, "a.py": CALLERS["from"].format(context=OFF)})
    write(tmp_path, {"broken.py": "def f(:\n    validate(\n"})
    assert codes(tmp_path, "pkg/evaluate.py") == ["TML201"]


AGENTS = {
    "agents/__init__.py": "",
    "agents/plain.py": """import torch
import torch.nn.functional as F

class Agent:
    def loss(self, net, target, states, actions):
        {context}
            wanted = self.wanted(target, states)
        return F.mse_loss(net(states).gather(1, actions), wanted)

    def wanted(self, target, states):
        return self.values(target, states).unsqueeze(1)

    def values(self, target, states):
        return target(states).max(1)[0]
""",
    "agents/doubled.py": """import torch
from agents.plain import Agent

class Doubled(Agent):
    def values(self, target, states):
        best = torch.nn.Linear(4, 2)(states).detach().argmax(1)
        return target(states)[:, best]
""",
    "agents/weighted.py": """from agents.plain import Agent

class Weighted(Agent):
    def weighted_loss(self, net, target, states, weights):
        return (weights * self.wanted(target, states)).mean()
""",
}


def test_the_cells_of_a_notebook_are_all_its_callers(tmp_path: Path) -> None:
    cells = VALIDATE + "\n\nclass Run:\n    def all(self, model):\n        print(validate(model, [1]))\n"
    write(tmp_path, {"validate.py": VALIDATE, "run.ipynb": "{}"})
    program = Program(SourceModule(cells, tmp_path / "run.ipynb"), Project(tmp_path))
    function = program.find_function("validate")
    assert function is not None
    (site,) = callers.Callers(program).calls(function)
    assert site.function is not None
    assert site.function.qualname == "Run.all"


def test_a_function_named_forward_has_callers_like_any_other(tmp_path: Path) -> None:
    sampling = VALIDATE.replace("def validate(", "def forward(")
    plan = "import torch\nfrom sampling import forward\n\n@torch.no_grad()\ndef plan(model, data):\n"
    plan += "    return forward(model, data)\n"
    write(tmp_path, {"sampling.py": sampling, "plan.py": plan})
    assert codes(tmp_path, "sampling.py") == []
    write(tmp_path, {"plan.py": plan.replace("@torch.no_grad()\n", "")})
    assert codes(tmp_path, "sampling.py") == ["TML201"]


INNER = """import torch
from evaluate import validate

def main(run, model, data):
    def epoch(step):
        print(step, validate(model, data))

    with torch.no_grad():
        {mention}
"""


@pytest.mark.parametrize(
    ("mention", "context", "found"),
    [
        ("run(epoch)", "with torch.no_grad():", False),
        ("run(steps=epoch)", "with torch.no_grad():", False),
        ("epoch(1)", "with torch.no_grad():", False),
        ("run(epoch)", "with torch.enable_grad():", True),
        ("run(epoch)", "if True:", True),
        ("return epoch", "with torch.no_grad():", True),  # and is called when gradients are on again
    ],
)
def test_a_function_within_the_caller(mention: str, context: str, found: bool, tmp_path: Path) -> None:
    main = INNER.format(mention=mention).replace("with torch.no_grad():", context)
    write(tmp_path, {"evaluate.py": VALIDATE, "main.py": main})
    assert codes(tmp_path, "evaluate.py") == ["TML201"] * found


def test_a_function_within_the_caller_that_is_called_in_two_modes(tmp_path: Path) -> None:
    main = INNER.format(mention="run(epoch)") + "    run(epoch)\n"
    write(tmp_path, {"evaluate.py": VALIDATE, "main.py": main})
    assert codes(tmp_path, "evaluate.py") == ["TML201"]


NETWORK = """import torch

class Torch:
    def __init__(self, network, dropout):
        self.network = network
        if dropout:
            self.network.eval()

    def predict(self, x):
        values = self.network(x)
        return values

class Numpy(Torch):
    def predict(self, x):
        return super().predict(x).detach().cpu().numpy()
"""


def test_whoever_gets_a_method_back_decides(tmp_path: Path) -> None:
    text = "class Trainer:\n    def policy(self):\n        return self.alg.runner.score"
    write(tmp_path, {"runner.py": RUNNER, "trainer.py": text})
    assert codes(tmp_path, "runner.py") == []
    write(tmp_path, {"trainer.py": text.replace("return ", "print(") + ")\n"})  # nobody is known to call it
    assert codes(tmp_path, "runner.py") == ["TML201"]


PIPELINE = """from abc import ABC
import torch

class Pipeline(ABC):
    def run(self, sample):
        if self.framework == "torch":
            {context}
                out = self.forward(sample)
        else:
            out = self.forward(sample)
        return self.postprocess(out)
"""

FACES = """import torch
from torch import nn
from pipeline import Pipeline

class Faces(Pipeline):
    def __init__(self, model: nn.Module):
        self.model = model
        self.model.eval()

    def forward(self, faces):
        found = []
        for face in faces:
            found.append(torch.sigmoid(self.model(face)).tolist())
        return found
"""


@pytest.mark.parametrize(("context", "found"), [("with torch.no_grad():", False), ("if True:", True)])
@pytest.mark.parametrize("files", [0, callers.MAX_FILES + 1])
def test_a_base_class_runs_what_a_class_fills_in(context: str, found: bool, files: int, tmp_path: Path) -> None:
    """Also where more files speak of a method of that name than are searched, and one branch runs other networks."""
    write(tmp_path, {"pipeline.py": PIPELINE.format(context=context), "faces.py": FACES})
    write(tmp_path, {f"other_{number}.py": "def run(net, x):\n    return net.forward(x)\n" for number in range(files)})
    assert codes(tmp_path, "faces.py") == ["TML201"] * found
