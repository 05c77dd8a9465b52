"""What is too long or too deep ends early, and says so; what is no program is not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.doubts import Doubt
from torchmemlint.flow.engine import machine
from torchmemlint.flow.fact import judgement
from torchmemlint.flow.fact.cases import cases
from torchmemlint.flow.fact.entries import runs
from torchmemlint.flow.names.finder import InMemory
from torchmemlint.flow.names.index import Index
from torchmemlint.flow.names.sources import Sources

from .findings import found

DEPTH = 500
HEAD = "import torch\n\nmodel = torch.nn.Linear(3, 3)\nx = torch.ones(3)\nkept = []\n"
COLLECTING = "for _ in range(9):\n    kept.append(model(x))\n"


def test_a_long_chain_of_loops() -> None:
    """A graph that goes from loop to loop is followed to its end, however many there are."""
    loops = "".join(f"    for i{n} in range(9):\n        y = y + i{n}\n" for n in range(DEPTH))
    text = f"{HEAD}def f(y):\n{loops}    return y\n\nfor _ in range(9):\n    kept.append(f(model(x)))\n"
    assert found({"main.py": text}) == {("main.py", text.count("\n"), "TML102")}


def test_deep_nesting() -> None:
    """What is nested too deep to be run does not end the analysis of the others."""
    deep = "def f(y):\n    return " + "g(" * 60 + "y" + ")" * 60 + "\n\ndef g(y):\n    return f(y)\n\n"
    text = f"{HEAD}{deep}{COLLECTING}"
    assert ("main.py", text.count("\n"), "TML102") in found({"main.py": text})


def _doubling(levels: int) -> str:
    """A class with methods of which each calls the one before it twice, through what only a caller knows."""
    methods = "".join(
        f"    def m{n}(self, y):\n        self.m{n - 1}(y)\n        self.m{n - 1}(y)\n" for n in range(1, levels)
    )
    return f"class Calls:\n    def m0(self, y):\n        self.seen = y\n{methods}\nCalls().m{levels - 1}(x)\n"


def test_a_run_that_is_too_long() -> None:
    """The rest of it is run, but calls are not followed, and what is found there is doubted."""
    text = f"{HEAD}{_doubling(22)}{COLLECTING}"
    (case,) = cases({"main.py": text})
    assert (case.line, case.code, case.doubts) == (text.count("\n"), "TML102", {Doubt.CUT})


def test_what_is_dropped_at_once_in_a_run_that_is_too_long() -> None:
    """No rest of a run could need it: it is told where it stands, not where it is called in a run that ended."""
    warm = f"{HEAD}def warm(data):\n    for one in data:\n        model(one)\n"
    use = "from warm import *\n\nwarm(torch.ones(9, 3))\n"
    files = {"warm.py": warm, "short.py": use, "long.py": use + _doubling(22)}
    assert found(files) == {("warm.py", warm.count("\n"), "TML201")}


def test_a_training_loop_that_was_not_reached() -> None:
    """What was not followed may differentiate a pass: where its file does so anywhere, nothing is said of the pass.

    Where another file that it calls does so, it is doubted; where none does, the pass is waste whatever follows.
    """
    loop = "for _ in range(9):\n    loss = model(x).sum()\n    print(loss.item())\n"
    quiet = f"{HEAD}{_doubling(22)}{loop}"
    trained = f"{HEAD}def end(loss):\n    loss.backward()\n\n{_doubling(22)}{loop}"
    assert [(case.code, case.doubts) for case in cases({"main.py": quiet})] == [("TML201", set())]
    ending = "def end(loss):\n    loss.backward()\n"
    beside = {"main.py": f"import ending\n{quiet}", "ending.py": ending}
    assert [(case.code, case.doubts) for case in cases(beside)] == [("TML201", set())]
    called = {"main.py": f"import ending\n{quiet}print(ending.end)\n", "ending.py": ending}
    assert [(case.code, case.doubts) for case in cases(called)] == [("TML201", {Doubt.CUT})]
    assert cases({"main.py": trained}) == []


def test_a_run_that_is_not_too_long() -> None:
    text = f"{HEAD}{_doubling(6)}{COLLECTING}"
    assert found({"main.py": text}) == {("main.py", text.count("\n"), "TML102")}


def test_an_object_that_is_long_in_the_making() -> None:
    """It takes a share of the work, and what is done with it is followed."""
    calls = _doubling(22).rpartition("Calls()")
    made = f"class Long:\n    def __init__(self):\n        {calls[1]}{calls[2]}"
    text = f"{HEAD}{calls[0]}{made}\none, other = Long(), Long()\n{COLLECTING}"
    assert [(case.line, case.doubts) for case in cases({"main.py": text})] == [(text.count("\n"), set())]


def test_a_network_that_is_long() -> None:
    """Its pass is one pass, and the rest is followed."""
    calls = _doubling(22).rpartition("Calls()")
    head = "class Long(torch.nn.Linear):\n    def forward(self, x):\n"
    net = f"{head}        {calls[1]}{calls[2]}        return model(x)\n"
    loop = "long = Long(3, 3)\nfor _ in range(9):\n    kept.append(long(x))\n"
    text = f"{HEAD}{calls[0]}{net}{loop}"
    assert [(case.line, case.code, case.doubts) for case in cases({"main.py": text})] == [
        (text.count("\n"), "TML102", set())
    ]


def test_a_network_that_is_long_and_is_run_often() -> None:
    """All its passes together take a share of the work, whether gradients are on or off."""
    calls = _doubling(10).rpartition("Calls()")
    head = "class Long(torch.nn.Linear):\n    def forward(self, x):\n"
    net = f"{head}        {calls[1]}{calls[2]}        return model(x)\n"
    quiet = "with torch.no_grad():\n    for _ in range(9):\n        print(long(x))\n"
    loop = "for _ in range(9):\n    kept.append(long(x))\n"
    text = f"{HEAD}{calls[0]}{net}long = Long(3, 3)\n{quiet * 4}{loop}"
    kept = [(case.line, case.doubts) for case in cases({"main.py": text}) if case.code == "TML102"]
    assert kept == [(text.count("\n"), set())]


def test_that_others_are_too_long() -> None:
    """Each entry has a share of its own, in any order."""
    long = f"{HEAD}{_doubling(22)}"
    short = f"{HEAD}{COLLECTING}"
    expected = {("b.py", short.count("\n"), "TML102")}
    assert found({"a.py": long, "b.py": short}) == expected
    assert found({"b.py": short, "c.py": long}) == expected


TRAINER = """
from torch import nn
from transformers import PreTrainedModel, Trainer

class Distilled(Trainer):
    def __init__(self, model, teacher: PreTrainedModel, **kwargs):
        super().__init__(model, **kwargs)
        self.teacher = teacher

    def compute_loss(self, model, inputs, return_outputs=False):
        goal = self.teacher(inputs["ids"])
        return nn.functional.mse_loss(model(inputs["ids"]), goal)

    def report(self, model, inputs):
        print(self.compute_loss(model, inputs).item())
"""


def test_that_what_a_framework_calls_comes_first() -> None:
    """Others that mention it are no reason to come to it last, when nothing is left."""
    long = "".join(f"def run{n}(y):\n    y.backward()\n    Calls().m21(y)\n\n" for n in range(24))
    text = f"{HEAD}{_doubling(22).rpartition('Calls()')[0]}{long}{TRAINER}"
    line = text[: text.index("self.teacher(inputs")].count("\n") + 1
    assert ("main.py", line, "TML206") in found({"main.py": text})


LIBRARY = (
    "import torch\n\nclass Tracker:\n    def __init__(self):\n        self.net = torch.nn.Linear(3, 3)\n"
    "        self.total = 0.0\n\n    def follow(self, data):\n        for x in data:\n"
    "            self.total += self.net(x).mean()\n        return None\n"
)
TEST = "from tracker import Tracker\n\ndef test_it():\n    kept = []\n    Tracker().follow([])\n"


def test_what_only_tests_call() -> None:
    """It is called from outside, as where the tests are not given."""
    alone = found({"tracker.py": LIBRARY})
    assert alone == {("tracker.py", 10, "TML101")}
    assert found({"tracker.py": LIBRARY, "test_tracker.py": TEST}) == alone
    assert found({"tracker.py": LIBRARY, "tests/things.py": TEST}) == alone


def test_tests_themselves() -> None:
    assert found({"test_main.py": f"{HEAD}{COLLECTING}\ndef test_it():\n    assert kept\n"}) == set()
    assert found({"main_test.py": f"{HEAD}{COLLECTING}\nclass TestKept:\n    pass\n"}) == set()
    assert found({"tests/main.py": f"{HEAD}{COLLECTING}"}) == set()


def test_a_program_that_is_called_like_a_test() -> None:
    """pytest would find no test in it."""
    text = f"{HEAD}{COLLECTING}\ndef main():\n    print(len(kept))\n"
    assert found({"test_net.py": text}) == {("test_net.py", 7, "TML102")}
    assert found({"net_test.py": text}) == {("net_test.py", 7, "TML102")}


def test_modules_that_import_each_other() -> None:
    """Each sees what the other leaves."""
    first = "import torch\nimport second\n\nkept = []\n"
    second = "import torch\nimport first\n\nmodel = torch.nn.Linear(3, 3)\n"
    loop = "def run(data):\n    for x in data:\n        first.kept.append(second.model(x))\n"
    assert found({"first.py": first, "second.py": second, "main.py": f"import first\nimport second\n\n{loop}"}) == {
        ("main.py", 6, "TML102")
    }
    assert found({"first.py": first, "second.py": f"{second}\n{loop.replace('second.model', 'model')}"}) == {
        ("second.py", 8, "TML102")
    }


EVALUATE = "def evaluate(net, data):\n    net.eval()\n    for y in data:\n        print(net(y).argmax())\n\n"


def _cut(call: str, file: str = "main.py") -> set[tuple[str, int, str]]:
    """What is found where a function runs something too long, and calls another after it or around it."""
    long = f"{HEAD}{_doubling(22)}".rpartition("\n\n")[0]
    work = "        Calls().m21(data)\n"
    return found({file: f"{long}\n\n{EVALUATE}def main(data):\n    for _ in range(9):\n{work}{call}\nmain([])\n"})


def test_what_a_run_calls_that_is_too_long() -> None:
    """It is run by itself, in the gradient mode in which it is called."""
    (one,) = _cut("        evaluate(model, data)\n")
    assert one[2] == "TML201"
    assert _cut("        with torch.no_grad():\n            evaluate(model, data)\n") == set()
    assert _cut("        torch.no_grad()(evaluate)(model, data)\n") == set()


def test_what_a_run_called_before_it_became_too_long() -> None:
    """What it shows of that is doubted, so that is run by itself, too."""
    long = f"{HEAD}{_doubling(22)}".rpartition("Calls().m21")[0]
    run = "def main(data):\n    {}evaluate(model, data)\n    Calls().m21(data)\n\nmain([])\n"
    text = f"{long}{EVALUATE}{run.format('')}"
    line = text.splitlines().index("        print(net(y).argmax())") + 1
    assert found({"main.py": text}) == {("main.py", line, "TML201")}
    assert found({"main.py": f"{long}{EVALUATE}{run.format('with torch.no_grad(): ')}"}) == set()


def test_what_a_run_of_another_file_calls_that_is_too_long() -> None:
    main = f"{HEAD}from evaluation import evaluate\n\n{_doubling(22)}evaluate(model, [x])\n"
    evaluation = f"import torch\n\n{EVALUATE}"
    assert found({"main.py": main, "evaluation.py": evaluation}) == {("evaluation.py", 6, "TML201")}
    without = main.replace("evaluate(model, [x])", "with torch.no_grad():\n    evaluate(model, [x])")
    assert found({"main.py": without, "evaluation.py": evaluation}) == set()


def test_what_a_run_left_that_others_may_begin_without_gradients() -> None:
    """Who calls the method that was too long is known by its name alone, and decides for what that calls."""
    calls = _doubling(22).rpartition("Calls()")[0]
    net = (
        "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layer = torch.nn.Linear(3, 3)\n\n"
        "    def choose(self, x):\n        Calls().m21(x)\n        return self.best(x)\n\n"
        "    def best(self, x):\n        return self.layer(x).argmax()\n"
    )
    text = f"{HEAD}{calls}{net}"
    run = "import torch\n\ndef run(net, x):\n    {}return net.choose(x)\n"
    assert found({"net.py": text, "main.py": run.format("")}) == {("net.py", text.count("\n"), "TML201")}
    assert found({"net.py": text, "main.py": run.format("with torch.no_grad(): ")}) == set()


def test_what_is_too_long_and_has_nothing_to_do_with_training() -> None:
    """Nothing that a run calls there could change what it shows of passes."""
    counting = f"import json\n\n{_doubling(22).rpartition('Calls()')[0]}"
    evaluate = "    net.eval()\n    for y in data:\n        kept.append(net(y).argmax())\n    Calls().m21(kept)\n"
    head = "import torch\nfrom counting import Calls\n\nkept = []\n\n"
    main = f"{head}def evaluate(net: torch.nn.Module, data):\n{evaluate}"
    assert found({"counting.py": counting, "main.py": main}) == {("main.py", 9, "TML201")}
    uncalled = f"{counting}\ndef train(loss):\n    loss.backward()\n"
    assert found({"counting.py": uncalled, "main.py": main}) == {("main.py", 9, "TML201")}
    trains = uncalled.replace("self.seen = y", "train(y)")
    assert found({"counting.py": trains, "main.py": main}) == set()


def test_what_a_run_that_was_too_long_may_train(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was not followed to the method that it shares with the prediction, and no work is left to run that."""
    monkeypatch.setattr(judgement, "_LEAST_WORK", 1_500)
    calls = _doubling(22).rpartition("Calls()")[0]
    trainer = (
        "class Trainer:\n    def __init__(self):\n        self.net = torch.nn.Linear(300, 300)\n\n"
        "    def run(self, x):\n        return self.net(x)\n\n"
        "    def update(self, loss):\n        loss.backward()\n\n"
        "    def train(self, data):\n        Calls().m21(data)\n        for x in data:\n"
        "            self.update(self.run(x).sum())\n\n"
        "    def predict(self, data):\n        self.net.eval()\n        return [self.run(x).tolist() for x in data]\n"
    )
    text = f"{HEAD}{calls}{trainer}"
    main = "from trainer import Trainer\n\ndef main(data):\n    Trainer().predict(data)\n"
    assert found({"trainer.py": text, "main.py": main}) == {("trainer.py", text.count("\n"), "TML201")}


JUDGING = """
def judge(net, data):
    right = 0
    for x, y in data:
        right += (net(x).argmax() == y).sum().item()
    return right
"""


@pytest.mark.parametrize(
    ("net", "guard", "expected"),
    [
        ("torch.nn.Linear(300, 300)", "", {("judging.py", 5, "TML201")}),
        ("Net()", "", {("judging.py", 5, "TML201")}),
        ("torch.nn.DataParallel(Net()) if wide else Net()", "", {("judging.py", 5, "TML201")}),
        ("Net()", "with torch.no_grad(): ", set()),
        ("len", "", set()),
    ],
)
def test_the_networks_that_a_run_gives_which_is_too_long(
    net: str, guard: str, expected: set[tuple[str, int, str]]
) -> None:
    """What it calls is run by itself, in another file, too, with the networks and in the mode of the call."""
    calls = _doubling(22).rpartition("Calls()")[0]
    nets = (
        "import torch\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layer = torch.nn.Linear(300, 300)\n\n    def forward(self, x):\n        return self.layer(x)\n"
    )
    main = (
        f"import torch\nfrom nets import Net\nfrom judging import judge\n\n{calls}\n"
        f"def main(data, wide):\n    net = {net}\n    Calls().m21(data)\n    {guard}print(judge(net, data))\n"
    )
    assert found({"nets.py": nets, "judging.py": f"import torch{JUDGING}", "main.py": main}) == expected


@pytest.mark.parametrize(("name", "expected"), [("grad_mode", {"TML201"}), ("grad", set())])
def test_a_run_that_is_too_long_shows_no_waste_where_its_files_differentiate(name: str, expected: set[str]) -> None:
    factors = f"from torch.autograd import {name}\n\ndef factors(x, w):\n    return {name}(x, w)\n\n"
    judge = "for _ in range(9):\n    print(model(x).sum().item())\n"
    assert {case.code for case in cases({"main.py": f"{HEAD}{factors}{_doubling(22)}{judge}"})} == expected


def test_what_a_run_called_that_was_too_long_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "BUDGET", 40)
    calls = _doubling(6).rpartition("Calls()")[0]
    steps = "".join(f"def step{n}(data):\n    Calls().m5(data)\n    print(data)\n\n" for n in range(3))
    judge = "def judge(loss):\n    loss.backward()\n\ndef unknown(it):\n    it.judge([])\n"
    run = "def main(data):\n    step0(data)\n    step1(data)\n    step2(data)\n\nmain([])\n\n"
    path, root = Path("/main.py"), Path("/")
    texts = {path: f"{HEAD}{calls}{steps}{run}{judge}"}
    index = Index(Sources(root, InMemory(root, texts).place, lambda pattern, path: [], texts.get))
    unit = index.sources.unit(path)
    assert unit is not None
    index.add(unit)
    engine = machine.Engine(index)
    engine.begin((), {}, {}, 10_000)
    names = [run.entry.name for run in runs(engine, [unit], lambda names: False, lambda name: False)]
    assert set(names) > {"judge", "step0", "step1"}
    assert names.index("judge") < names.index("step0")


NESTED_SETTINGS = """
class Config:
    def __init__(self, values, defaults, types=False):
        self.values = self._parse(values, defaults, types)

    def _parse(self, values, defaults, types):
        found = {}
        for name, default in defaults.items():
            value = values.get(name, default)
            if name not in values and isinstance(default, dict):
                found[name] = Config(default, default)
            elif isinstance(value, Config):
                found[name] = Config(value.values, default, types)
            elif isinstance(default, dict) and name == "options":
                found[name] = Config(value, value, True)
            elif isinstance(default, dict):
                found[name] = Config(value, default, types)
            elif types and not isinstance(value, type(default)):
                found[name] = type(default)(value)
            else:
                found[name] = value
        for name, value in values.items():
            if name not in defaults:
                found[name] = Config(value, value) if isinstance(value, dict) else value
        return found

    def __getattr__(self, name):
        return self.values[name]


class Texts:
    def __init__(self, values, defaults):
        self.config = Config(values, defaults)
        self.source = Config(self.config.source, defaults["source"])
        self.target = Config(self.config.target, defaults["target"])
"""

TRAINED_WITH_SETTINGS = """
import torch
from configs import Config, Texts


def main(settings, defaults):
    texts = [Texts(settings["train"], defaults), Texts(settings["valid"], defaults), Texts(settings["test"], defaults)]
    model = torch.nn.Linear(4, Config(settings["model"], defaults).width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    total = 0
    for x in torch.utils.data.DataLoader(texts[0]):
        loss = model(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    print(total)


main(dict(train={}), {})
"""


def test_objects_that_are_made_of_their_own_kind() -> None:
    """What an object makes of its own kind is made like it: it is not followed again."""
    assert found({"configs.py": NESTED_SETTINGS, "train.py": TRAINED_WITH_SETTINGS}) == {("train.py", 16, "TML101")}
