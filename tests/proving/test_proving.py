"""What fixes change in what programs do: nothing, or what the rule is there to change."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

pytest.importorskip("torch")

from tests.tools import tool
from torchmemlint.rules import detaching

from .grammar import script
from .observing import observe, same
from .proving import difference, prove

ROOT = Path(__file__).resolve().parents[2]


def program(body: str) -> dict[str, str]:
    head = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    net, target = nn.Linear(3, 3), nn.Linear(3, 3)
    opt = torch.optim.SGD([*net.parameters(), *target.parameters()], lr=0.1)
    data = [torch.ones(2, 3)] * 3
    """
    return {"main.py": dedent(head) + dedent(body)}


STEP = """
for x in data:
    wanted = target(x)MORE
    loss = (net(x) - wanted).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
"""


def test_a_run_shows_losses_gradients_and_prints() -> None:
    seen = observe(program(STEP.replace("MORE", "")))
    assert seen.error == ""
    assert len(seen.losses) == len(seen.gradients) == 3
    assert all(gradient is not None for step in seen.gradients for gradient in step)
    assert seen.passes == ["Linear"] * 6
    assert len(seen.left) == len(seen.weights) == 4
    assert float(seen.output) > 0


def test_gradients_are_those_that_a_closure_leaves() -> None:
    closure = """
    def closure():
        opt.zero_grad()
        loss = net(data[0]).square().mean()
        loss.backward()
        return loss
    opt.step(closure)
    """
    seen = observe(program(closure))
    assert (seen.error, len(seen.gradients)) == ("", 1)
    assert seen.gradients[0][0] is not None


def test_what_differs_is_named() -> None:
    one, other = (observe(program(STEP.replace("MORE", more))) for more in ("", ".detach()"))
    assert difference(one, one) == ""
    assert difference(one, other).startswith("losses: number 1")
    raising = observe(program("raise ValueError('no')"))
    assert difference(one, raising) == "error: '' became 'ValueError: no'"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("loss 0.123456", "loss 0.123457", True),
        ("loss 0.12", "loss 0.13", False),
        ([(1.0, None)], [(1.0, None)], True),
        ([(1.0, None)], [(1.0, 0.0)], False),
        ([(float("nan"),)], [(float("nan"),)], True),
    ],
)
def test_numbers_may_be_rounded_otherwise(one: object, other: object, alike: bool) -> None:
    assert same(one, other) is alike


def test_a_fix_that_does_no_harm_differs_in_nothing() -> None:
    proof = prove(program(STEP.replace("MORE", ".detach()")))
    assert (proof.raised, proof.safe, proof.differences) == ("", 1, [])


@pytest.fixture
def harmful(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A program whose fix detaches the tuple that a tensor is written in."""
    monkeypatch.setattr(detaching, "_put_in", lambda target, value: value)
    monkeypatch.setattr(detaching, "_pairs", lambda target, value: iter([(target, value)]))
    return program("""
    totals = [0.0]
    for x in torch.utils.data.DataLoader(torch.ones(6, 3)):
        loss = net(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        totals[0], n = totals[0] + loss, 1
    print(float(totals[0]))
    """)


def test_a_harmful_fix_is_found(harmful: dict[str, str]) -> None:
    proof = prove(harmful)
    assert [(one.safe, one.codes) for one in proof.differences] == [(True, ("TML101",))]
    assert "'tuple' object has no attribute 'detach'" in proof.differences[0].what


def test_scripts_are_drawn_by_seed_and_compile() -> None:
    for number in range(300):
        made = script(f"9/{number}")
        assert made == script(f"9/{number}")
        compile(made.text, "main.py", "exec", dont_inherit=True)
        unseen = script(f"9/{number}", unseen=True)
        compile(unseen.text, "main.py", "exec", dont_inherit=True)
        compile(unseen.drive, "drive.py", "exec", dont_inherit=True)


@pytest.mark.parametrize(
    ("arguments", "least"),
    [
        (["--programs", "grammar", "--count", "4"], 4),
        (["--programs", "truth", "--count", "12"], 4),
        pytest.param(["--programs", "grammar", "--count", "150"], 150, marks=pytest.mark.slow),
        pytest.param(["--programs", "truth", "--count", "300"], 80, marks=pytest.mark.slow),
    ],
)
def test_safe_fixes_change_nothing(
    arguments: list[str], least: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "figures.json"
    code = tool("prove_fixes").main(
        ["--seed", "11", *arguments, "--json", str(figures), "--keep", str(tmp_path / "kept")]
    )
    assert code == 0, capsys.readouterr().out
    counts = json.loads(figures.read_text())["counts"]
    assert counts["programs"] == int(arguments[-1])
    assert counts["fixes safe"] >= least


def test_a_difference_by_a_safe_fix_fails_the_run(
    harmful: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, kept = tool("prove_fixes"), tmp_path / "kept"
    monkeypatch.setattr(made, "scripts", lambda seed, *, unseen: iter([("1-0", harmful, "")]))
    assert made.main(["--count", "1", "--keep", str(kept)]) == 1
    assert "1-0: safe TML101: error" in capsys.readouterr().out
    (folder,) = kept.iterdir()
    assert folder.name == "safe-TML101-1-0-0"
    assert {path.name for path in folder.iterdir()} == {"before", "after", "why.txt"}
