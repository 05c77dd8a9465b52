"""Measurements, of programs whose truth is known because they are written for it."""

from __future__ import annotations

import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")

from tests.truth import tables  # noqa: E402
from tests.truth.crosscheck import saved_series  # noqa: E402
from tests.truth.examples import Label  # noqa: E402
from tests.truth.grid import grid  # noqa: E402
from tests.truth.measure import Measured, confirmed, growth, labelled, run, tensors_in  # noqa: E402
from tests.truth.pairs import Tally, pairs  # noqa: E402
from tests.truth.sample import first_of, plans  # noqa: E402

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randn(24, 2)), batch_size=2)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
"""


def program(text: str) -> dict[str, str]:
    return {"main.py": HEAD + textwrap.dedent(text)}


def label_of(text: str, differentiates: bool = False) -> Label:
    measured = run(program(text))
    assert measured.error == ""
    assert len(measured.nodes) >= 12
    return labelled(measured, differentiates, unseen=False)


def test_a_leak_of_live_graphs() -> None:
    label = label_of("""
        total = 0.0
        for x, y in loader:
            total += F.mse_loss(model(x), y)
        print(float(total))
        """)
    assert (label.truth, label.live, label.passes, label.recorded, label.used) == ("leak", True, 12, 12, 0)
    assert label.nodes_per_iteration >= 4
    assert label.bytes_per_iteration > 0


def test_a_leak_of_spent_graphs() -> None:
    label = label_of("""
        kept = []
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            kept.append(loss)
        """)
    assert (label.truth, label.live, label.used) == ("leak", False, 12)


def test_a_deferred_backward() -> None:
    text = """
        total = 0.0
        for x, y in loader:
            total = total + F.mse_loss(model(x), y)
        total.backward()
        """
    assert label_of(text, differentiates=True).truth == "deferred"
    assert label_of(text, differentiates=True).used == 12
    assert label_of(text.replace("total.backward()", "float(total)"), differentiates=True).truth == "leak"


def test_waste() -> None:
    label = label_of("""
        model.eval()
        total = 0.0
        for x, y in loader:
            total += F.mse_loss(model(x), y).item()
        """)
    assert (label.truth, label.grows, label.recorded, label.used) == ("waste", False, 12, 0)


@pytest.mark.parametrize(
    "text",
    [
        "with torch.no_grad():\n    total = sum(F.mse_loss(model(x), y) for x, y in loader)",
        """
        total = 0.0
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            loss.backward()
            opt.step()
            opt.zero_grad()
            total += loss.item()
        """,
        """
        class Keeper:
            last = None

        for x, y in loader:
            Keeper.last = F.mse_loss(model(x), y)
            Keeper.last.backward()
            opt.step()
        """,
    ],
    ids=["no_grad", "item", "replaced"],
)
def test_clean(text: str) -> None:
    label = label_of(text)
    assert (label.truth, label.grows) == ("clean", False)


@pytest.mark.parametrize(
    ("returned", "used"),
    [
        ("(out, x)", "out[0]"),
        ('{"logits": out}', 'out["logits"]'),
        ("[(x, out)]", "out[0][1]"),
        ("Output(out, 1)", "out.logits"),
        ("SimpleNamespace(logits=out)", "out.logits"),
    ],
    ids=["tuple", "dict", "nested", "dataclass", "namespace"],
)
def test_passes_that_return_other_than_tensors(returned: str, used: str) -> None:
    text = f"""
        from dataclasses import dataclass
        from types import SimpleNamespace

        @dataclass
        class Output:
            logits: torch.Tensor
            n: int

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.out = nn.Linear(4, 2)

            def forward(self, x):
                out = self.out(x)
                return {returned}

        net = Net()
        for x, y in loader:
            out = net(x)
            F.mse_loss({used}, y).backward()
        """
    label = label_of(text)
    assert (label.truth, label.passes, label.recorded, label.used) == ("clean", 12, 12, 12)
    label = label_of(text.replace(".backward()", ".item()"))
    assert (label.truth, label.recorded, label.used) == ("waste", 12, 0)


def test_gradient_mode_is_per_thread() -> None:
    text = """
        from concurrent.futures import ThreadPoolExecutor
        kept = []

        def one(x):
            kept.append(model(x))

        with torch.no_grad(), ThreadPoolExecutor(max_workers=1) as pool:
            for x, y in loader:
                pool.submit(one, x).result()
        """
    assert label_of(text).truth == "leak"
    assert label_of(text.replace("pool.submit(one, x).result()", "one(x)")).truth == "clean"


def test_a_hidden_state() -> None:
    text = """
        cells = nn.LSTM(4, 8)
        state = None
        for x, y in loader:
            out, state = cells(x.unsqueeze(0), state)
        """
    assert label_of(text).truth == "leak"
    cut = text.replace(
        "(x.unsqueeze(0), state)", "(x.unsqueeze(0), state)\n            state = [s.detach() for s in state]"
    )
    assert label_of(cut).truth == "waste"


def test_what_a_hook_keeps() -> None:
    text = """
        seen = []
        model.register_forward_hook(lambda module, args, out: seen.append(out))
        for x, y in loader:
            F.mse_loss(model(x), y).backward()
        """
    assert label_of(text).truth == "leak"
    assert label_of(text.replace("append(out)", "append(out.detach())")).truth == "clean"


def test_the_marked_line_is_confirmed_as_the_cause() -> None:
    files = program("""
        kept, others = [], []
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            kept.append(loss)
            others.append(loss.item())
        """)
    rows = files["main.py"].split("\n")
    cause, innocent = (
        next(i for i, row in enumerate(rows, 1) if word in row) for word in ("kept.append", "others.app")
    )
    assert confirmed(files, "", [("main.py", cause)]) is True
    assert confirmed(files, "", [("main.py", innocent)]) is False
    loop = next(i for i, row in enumerate(rows, 1) if row.startswith("loader"))
    assert confirmed(files, "", [("main.py", loop)]) is None


def test_a_program_that_raises_leaves_nothing_behind() -> None:
    before = sys.modules.get("helper")
    files = {"main.py": "import torch\nimport helper\ntorch.set_grad_enabled(False)\nhelper.fail()\n"}
    measured = run({**files, "helper.py": "def fail():\n    raise KeyError('x')\n"})
    assert measured.error == "KeyError: 'x'"
    assert not measured.complete
    assert torch.is_grad_enabled()
    assert sys.modules.get("helper") is before
    assert not any(name == "main" for name in sys.modules)


def test_a_thread_that_raises_is_an_error() -> None:
    text = "import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()\n"
    assert "ZeroDivisionError" in run({"main.py": text}).error


def test_a_thread_that_raises_keeps_nothing() -> None:
    measured = run(
        program("""
        import threading

        def one(x):
            loss = model(x).sum()
            raise KeyError("x")

        for x, y in loader:
            worker = threading.Thread(target=one, args=(x,))
            worker.start()
            worker.join()
        """)
    )
    assert measured.error == "KeyError: 'x'"
    assert growth(measured.nodes) == 0


def test_a_program_that_does_not_end_is_stopped() -> None:
    assert "too slow" in run({"main.py": "while True:\n    pass\n"}, seconds=1).error


def test_sizes_are_small_when_it_runs() -> None:
    assert run({"main.py": "print(4096, 51200, 40960)"}).output == "8 24 40960\n"


def test_an_unseen_caller_imports_the_program() -> None:
    measured = run({"main.py": "def double(x):\n    return 2 * x\n"}, "from main import *\nprint(double(4))")
    assert (measured.output, measured.error) == ("8\n", "")


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (range(12), 1.0),
        ([5] * 12, 0.0),
        ([0, 3, 6] * 4, 0.0),
        ([0, 90, *([90] * 10)], 0.0),
        ([*range(0, 24, 2), 3], 2.0),
        (range(5), 0.0),
    ],
    ids=["steady", "flat", "emptied", "once", "until the end", "short"],
)
def test_growth(series: list[int], expected: float) -> None:
    assert growth(list(series)) == expected


def test_tensors_are_found_in_what_is_returned() -> None:
    tensor = torch.zeros(2)
    assert len(list(tensors_in({"a": [tensor, (tensor, 1)], "b": None}))) == 2
    assert list(tensors_in("text")) == []


def test_waste_needs_passes_that_recorded() -> None:
    measured = Measured(nodes=[0] * 13, saved=[0] * 13, bytes=[0] * 13, passes=12, recorded=7, used=0)
    assert labelled(measured, differentiates=False, unseen=False).truth == "clean"


@pytest.mark.slow
def test_every_value_of_every_table_runs() -> None:
    for plan in grid(0, 1):
        drawn = first_of(0, plan)
        measured = run(drawn.files, drawn.drive)
        assert measured.complete, (plan.strange, measured.error, drawn.files)


def test_an_independent_count_says_the_same() -> None:
    compared = 0
    for pair in pairs(17, plans(17, 16), Tally()):
        for example in (pair.first, pair.second):
            if example is not None and not tables.LOOP[example.program.values["loop"]].threaded:
                series = saved_series(example.program.files, example.program.drive)
                assert (growth(series) > 0) == example.label.live, (example.program.values, series)
                compared += 1
    assert compared > 20


def test_the_marked_lines_are_the_cause() -> None:
    tally = Tally()
    found = list(pairs(18, plans(18, 16), tally))
    assert tally.failures == []
    assert tally.confirmed.keys() <= {"True", "None"}
    assert tally.confirmed["True"] > 8
    assert len(found) > 10
