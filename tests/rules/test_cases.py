"""What runs show, as it is told to people."""

from __future__ import annotations

from pathlib import Path

import pytest

import torchmemlint
from torchmemlint.doubts import Confidence
from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.flow.fact.cases import cases

HEAD = "import torch\n\nnet = torch.nn.Linear(3, 3)\noptimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
TRAIN = "def train(x):\n    loss = net(x).sum()\n    loss.backward()\n    optimizer.step()\n    return loss\n"
ACT = "for x in torch.rand(9, 2, 3):\n    train(x)\n    action = {act}\n    print(action)\n"


def checked(tmp_path: Path, **files: str) -> list[Finding]:
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return list(torchmemlint.check_paths([tmp_path]))


def test_a_pass_of_which_only_numbers_are_read(tmp_path: Path) -> None:
    (found,) = checked(tmp_path, main=HEAD + TRAIN + ACT.format(act="net(x).argmax().item()"))
    assert (found.code, found.span.start.row, found.severity) == ("TML201", 12, Severity.ADVICE)
    assert found.message == "only numbers are read from `net(x)`, but gradients are enabled"
    assert found.fix is not None
    assert found.fix.applicability is Applicability.SAFE


def test_a_script_that_uses_an_accelerator_wastes_its_memory(tmp_path: Path) -> None:
    layers = 'torch.nn.Sequential(torch.nn.Linear(3, 9), torch.nn.Linear(9, 3)).to("cuda")'
    text = HEAD.replace("torch.nn.Linear(3, 3)", layers) + TRAIN + ACT.format(act="net(x).argmax().item()")
    (found,) = checked(tmp_path, main=text)
    assert found.severity is Severity.WARNING


KEEP = (
    "kept = {start}\nfor x in torch.rand(9, 2, 3):\n    loss = net(x).sum()\n"
    "    loss.backward()\n    {store}\nprint(kept)\n"
)


@pytest.mark.parametrize(
    ("start", "store", "safe"),
    [
        ("0", "kept += loss", True),
        ("0", "kept = kept + loss", True),
        ("[]", "kept.append(loss)", True),
        ("[]", "kept += [loss]", True),
        ("[]", "kept.append(net(x) if x.sum() > 0 else x)", False),
        ("[]", "kept.append(loss if x.sum() > 0 else 0.0)", False),
        ("[]", "kept.append(x.sum() > 0 and loss)", False),
    ],
)
def test_only_what_is_a_tensor_on_all_paths_is_detached_safely(
    tmp_path: Path, start: str, store: str, safe: bool
) -> None:
    (found,) = checked(tmp_path, main=HEAD + KEEP.format(start=start, store=store))
    assert found.fix is not None
    assert found.fix.applicability is (Applicability.SAFE if safe else Applicability.UNSAFE)


def test_no_list_is_detached(tmp_path: Path) -> None:
    (found,) = checked(tmp_path, main=HEAD + KEEP.format(start="[]", store="kept.append([loss])"))
    assert found.fix is None


def test_a_pass_on_several_lines_is_named_on_one(tmp_path: Path) -> None:
    (found,) = checked(tmp_path, main=HEAD + TRAIN + ACT.format(act="net(\n        x\n    ).argmax().item()"))
    assert found.message == "only numbers are read from `net(x)`, but gradients are enabled"


def test_what_keeps_a_spent_graph_until_it_is_replaced(tmp_path: Path) -> None:
    loop = "class Log:\n    pass\n\n\nlog = Log()\nfor x in torch.rand(9, 2, 3):\n"
    loop += "    keep(train(x), log)\n    print(log.last)\n"
    keeping = "import torch\n\n\ndef keep(x, log):\n    log.last = x\n"
    (found,) = checked(tmp_path, main="from keeping import keep\n" + HEAD + TRAIN + loop, keeping=keeping)
    assert found.message == "`keep(train(x), log)` keeps graph nodes (CPU memory) until it is replaced"


@pytest.mark.parametrize("act", ["train(x)", "x.argmax().item()", "float(train(x))"])
def test_what_needs_its_gradients_or_has_none(tmp_path: Path, act: str) -> None:
    assert checked(tmp_path, main=HEAD + TRAIN + ACT.format(act=act)) == []


def test_what_another_file_runs(tmp_path: Path) -> None:
    training = HEAD + TRAIN.replace("(x)", "(x, kept)", 1).replace("    return loss\n", "    kept.append(loss)\n")
    main = "import torch\nfrom training import train\n\nkept = []\nfor x in torch.rand(9, 2, 3):\n    train(x, kept)\n"
    (found,) = checked(tmp_path, main=main, training=training)
    assert (found.code, found.filename.name, found.span.start.row) == ("TML102", "training.py", 9)
    assert found.message == "`kept.append(loss)` keeps every iteration's graph nodes (CPU memory)"
    links = [(link.message, link.filename and link.filename.name, link.span.start.row) for link in found.evidence]
    assert links == [
        ("`net(x)` builds the graph", None, 6),
        ("backward frees the activations, the graph's nodes stay", None, 7),
        ("stored here", None, 9),
        ("repeated by this loop", "main.py", 5),
        ("called from here", "main.py", 6),
    ]


def test_what_another_file_keeps(tmp_path: Path) -> None:
    """It is told where it is handed over, once."""
    loop = "history = []\nfor x in torch.rand(9, 2, 3):\n    keep(train(x), history)\nprint(len(history))\n"
    main = "from keeping import keep\n" + HEAD + TRAIN + loop
    (found,) = checked(tmp_path, main=main, keeping="import torch\n\n\ndef keep(x, kept):\n    kept.append(x)\n")
    assert (found.code, found.filename.name, found.span.start.row) == ("TML102", "main.py", 13)


def test_one_cause_is_one_finding(tmp_path: Path) -> None:
    """What the rules' own analysis finds as well is told once."""
    loop = "total = 0\nfor x in torch.rand(9, 2, 3):\n    total += train(x)\nprint(total)\n"
    found = checked(tmp_path, main=HEAD + TRAIN + loop)
    assert [(one.code, one.span.start.row) for one in found] == [("TML101", 12)]


def test_what_only_one_rule_is_asked_for(tmp_path: Path) -> None:
    main = HEAD + TRAIN + ACT.format(act="net(x).argmax().item()")
    (tmp_path / "main.py").write_text(main, encoding="utf-8")
    assert list(torchmemlint.check_paths([tmp_path], select=["TML101"])) == []


NET = (
    "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, encoder):\n"
    "        super().__init__()\n        self.encoder = encoder\n\n"
    "    def forward(self, x):\n        return self.encoder(x)\n\n"
    "    def {name}(self, x):\n        {mode}\n        y = self.encoder(x)\n        return y.argmax(1)\n"
)


def test_a_class_that_nobody_makes(tmp_path: Path) -> None:
    """What a method does agrees with its name: whoever uses it wants no gradients."""
    (found,) = checked(tmp_path, main=NET.format(name="predict", mode="x = x + 1"))
    assert (found.code, found.span.start.row) == ("TML201", 15)


@pytest.mark.parametrize(
    ("name", "mode"), [("chosen", "x = x + 1"), ("forward", "x = x + 1"), ("predict", "torch.set_grad_enabled(False)")]
)
def test_a_class_that_nobody_makes_says_less(tmp_path: Path, name: str, mode: str) -> None:
    assert checked(tmp_path, main=NET.format(name=name, mode=mode)) == []


RUNS = (
    "import torch\n\n\nclass Runner:\n    def __init__(self, net):\n        self.net = net.cuda()\n\n"
    "    def {name}(self, batches):\n        for x in batches:\n            y = self.net(x)\n"
    "            print(y.argmax().item())\n"
)


@pytest.mark.parametrize(("name", "count"), [("evaluate", 1), ("generate_words", 1), ("run", 0)])
def test_a_runner_that_nobody_makes(tmp_path: Path, name: str, count: int) -> None:
    assert len(checked(tmp_path, main=RUNS.format(name=name))) == count


ACTS = "import torch\n\nnet = torch.nn.LSTM(4, 2)\n\n\ndef act({given}):\n    print(net({x})[0].argmax())\n"


@pytest.mark.parametrize("given", ["x", "x, *more"])
def test_a_function_of_a_library_is_run_for_each_input(tmp_path: Path, given: str) -> None:
    files = {"library": ACTS.format(given=given, x="x"), "main": "import library\n\nprint(library.net)\n"}
    (found,) = checked(tmp_path, **files)
    assert (found.code, found.filename.name, found.severity) == ("TML201", "library.py", Severity.WARNING)


@pytest.mark.parametrize("given", ["", "n=3"])
def test_a_function_of_a_library_that_shows_what_comes_out(tmp_path: Path, given: str) -> None:
    files = {
        "library": ACTS.format(given=given, x="torch.rand(2, 4)"),
        "main": "import library\n\nprint(library.net)\n",
    }
    assert checked(tmp_path, **files) == []


@pytest.mark.parametrize(("mode", "count"), [("eval", 1), ("train", 0)])
def test_a_file_that_only_runs_networks(tmp_path: Path, mode: str, count: int) -> None:
    """It names no torch, but puts what it is given into evaluation mode."""
    main = f"def scores(model, batches):\n    model.{mode}()\n    return [model(x).argmax().item() for x in batches]\n"
    assert len(checked(tmp_path, main=main)) == count


def test_a_projects_own_contract(tmp_path: Path) -> None:
    contract = '[tool.torchmemlint.contracts.acme]\npackages = ["acme"]\n'
    main = HEAD + "import acme\nrnn = torch.nn.GRU(3, 3)\nstate = torch.zeros(1, 3)\nfor x in torch.rand(9, 2, 3):\n"
    main += "    out, state = rnn(x, state)\n    acme.descend(out.sum())\n"
    (tmp_path / "pyproject.toml").write_text(contract, encoding="utf-8")
    assert "TML104" not in {found.code for found in checked(tmp_path, main=main)}
    (tmp_path / "pyproject.toml").write_text(contract + 'differentiates = ["acme.descend"]\n', encoding="utf-8")
    (found,) = checked(tmp_path, main=main)
    assert found.code == "TML104"


def test_a_state_is_detached_as_it_is_given(tmp_path: Path) -> None:
    main = HEAD + "rnn = torch.nn.GRU(3, 3)\nstate = None\nfor x in torch.rand(9, 2, 3):\n"
    main += "    out, state = rnn(x, state)\n    out.sum().backward()\n"
    (found,) = checked(tmp_path, main=main)
    assert (found.code, found.severity) == ("TML104", Severity.ERROR)
    assert found.fix is not None
    assert (found.fix.message, found.fix.applicability) == ("Detach `state` from its graph", Applicability.UNSAFE)


def test_what_a_call_keeps_is_detached(tmp_path: Path) -> None:
    main = HEAD + "kept = []\nnet.register_forward_hook(lambda module, inputs, output: kept.append(output * 2))\n"
    (found,) = checked(tmp_path, main=main + "for x in torch.rand(9, 2, 3):\n    net(x).sum().backward()\n")
    assert found.code == "TML106"
    assert found.fix is not None
    assert [edit.content for edit in found.fix.edits] == ["(", ").detach()"]


@pytest.mark.parametrize(
    "kept", ["append((output, 1))", 'append({"o": output})', "append(dict(o=output))", "extend([output])"]
)
def test_what_only_holds_a_tensor_is_not_detached(tmp_path: Path, kept: str) -> None:
    main = HEAD + f"kept = []\nnet.register_forward_hook(lambda module, inputs, output: kept.{kept})\n"
    (found,) = checked(tmp_path, main=main + "for x in torch.rand(9, 2, 3):\n    net(x).sum().backward()\n")
    assert found.code == "TML106"
    assert found.fix is None


WASTES = """
def validate(batches):
    net.eval()
    {before}
    total = 0
    for x in batches:
        {run}
        total += out
    print(total)
    net.train()


validate(torch.rand(9, 2, 3))
"""
BACKWARD = "net(torch.rand(2, 3)).sum().backward()"


def test_a_wasted_pass_whose_graphs_are_kept(tmp_path: Path) -> None:
    """One cause: no sum is reported beside it."""
    (found,) = checked(tmp_path, main=HEAD + WASTES.format(before="pass", run="out = net(x).sum()"))
    assert (found.code, found.span.start.row, found.severity) == ("TML201", 11, Severity.ERROR)
    links = [(link.message, link.span.start.row) for link in found.evidence]
    assert ("eval mode is set here", 7) in links
    assert ("keeps its graph across iterations", 12) in links


@pytest.mark.parametrize(
    ("before", "run", "fix"),
    [
        ("pass", "out = net(x).sum()", (Applicability.SAFE, "@torch.no_grad()\n")),
        (BACKWARD, "out = net(x).sum()", (Applicability.SAFE, "        with torch.no_grad():\n    ")),
        (BACKWARD, "out = net(x).sum() * 2", (Applicability.SAFE, "        with torch.no_grad():\n    ")),
        (BACKWARD, "out = net(x).detach() + net(x).detach()", (Applicability.UNSAFE, None)),
        (BACKWARD, "out = float(net(x).sum()) * scale", (Applicability.UNSAFE, None)),
    ],
)
def test_what_is_run_without_gradients(
    tmp_path: Path, before: str, run: str, fix: tuple[Applicability, str | None]
) -> None:
    text = HEAD + "scale = torch.ones(1, requires_grad=True)\n" + WASTES.format(before=before, run=run)
    found = next(one for one in checked(tmp_path, main=text) if one.span.start.row == 12)
    assert found.fix is not None
    assert found.fix.applicability is fix[0]
    assert fix[1] is None or found.fix.edits[0].content == fix[1]


def test_a_pass_as_an_object_is_made(tmp_path: Path) -> None:
    text = HEAD.replace("torch.nn.Linear(3, 3)", 'torch.nn.Conv2d(3, 3, 3).to("cuda")')
    text += "class Scale:\n    def __init__(self, x):\n        self.by = net(x).detach().mean()\n\n\n"
    text += "for x in torch.rand(9, 2, 3):\n    {before}\n    print({after})\n"
    checked(tmp_path, main=text.format(before="pass", after="x") + "print(Scale(x).by)\n")
    once = torchmemlint.check_paths([tmp_path], settings={"confidence": "possible"})
    assert [(one.code, one.severity) for one in once] == [("TML203", Severity.ADVICE)]
    often = checked(tmp_path, main=text.format(before="scale = Scale(x)", after="scale.by"))
    assert [(one.code, one.severity) for one in often] == [("TML203", Severity.WARNING)]


def test_a_guess_is_not_told(tmp_path: Path) -> None:
    """An unseen program may need the graphs that are in a list, and nothing else looks at them."""
    keep = "def collect(program, xs):\n    kept = []\n    for x in xs:\n        kept.append(net(x).sum())\n"
    text = HEAD + keep + "    program.add(kept)\n"
    case, *_ = cases({"main.py": text})
    assert case.confidence is Confidence.POSSIBLE
    checked(tmp_path, main=text)
    assert torchmemlint.check_paths([tmp_path], settings={"confidence": "possible"}) == []
