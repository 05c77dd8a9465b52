"""Every safe fix of the fixtures, proven: the program before and after it, run with the same seeds.

Losses, parameters, results, what is printed and kept, and the random numbers left: all are equal bit for bit. Programs
for a GPU run on the simulated one. Where a rule is about graphs, memory must not rise.
"""

from __future__ import annotations

import ast
import difflib
import multiprocessing
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

from tests.runtime.proving.images import difference
from tests.runtime.proving.plays import CANNOT_RUN, LOWER, NOT_REACHED, PLAYS, RAISES
from tests.runtime.proving.running import Play, Run, run

FIXTURES = Path(__file__).parents[2] / "fixtures"
FIXED = sorted(FIXTURES.glob("TML*/bad_*.fixed.py"))
SEEDS = (1, 2)
GRAPHS = ("TML1", "TML2")


def key(path: Path) -> str:
    return f"{path.parent.name[:6]}/{path.name.removesuffix('.fixed.py').removesuffix('.py')}"


def twin(path: Path) -> Path:
    return path.with_name(path.name.replace(".fixed.py", ".py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in FIXED if key(path) not in CANNOT_RUN], ids=key)
def test_a_safe_fix_changes_nothing_but_memory(path: Path, tmp_path: Path) -> None:
    name, play = key(path), PLAYS.get(key(path), Play())
    for seed in SEEDS:
        tracked = seed == SEEDS[0]
        runs = []
        for program in (twin(path), path):
            folder = tmp_path / f"{seed} {program.name}"
            folder.mkdir()
            runs.append(run(program, play, seed, folder, track=tracked, trace=not tracked and program == path))
        before, after = runs
        assert not after.error
        assert after.told, "nothing was computed that could be compared"
        if not tracked:
            assert _unreached(path, after.reached) == NOT_REACHED.get(name, [])
        if name in RAISES:
            assert before.error.startswith(RAISES[name])
            assert _agree_so_far(before, after)
            continue
        assert not before.error
        changed = [difference(before.seen[part], after.seen[part], part) for part in before.seen]
        assert not any(changed), changed
        if name.startswith(GRAPHS) and tracked:
            assert (after.peak < before.peak) is (name in LOWER)
            assert after.peak <= before.peak


def _agree_so_far(before: Run, after: Run) -> bool:
    """Whether a program that raised had computed the same losses, and printed the same, until then."""
    losses, printed = before.seen["losses"], before.seen["printed"]
    return after.seen["losses"][: len(losses)] == losses and after.seen["printed"].startswith(printed)


def _unreached(path: Path, reached: frozenset[int]) -> list[str]:
    """What the fix wrote, as far as the run did not come there."""
    old, new = (program.read_text().splitlines() for program in (twin(path), path))
    old = [line.split("  # expect:")[0] for line in old]
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    written = {line + 1 for tag, _, _, start, end in blocks if tag != "equal" for line in range(start, end)}
    spans = [
        range(node.lineno, (node.end_lineno or 0) + 1)
        for node in ast.walk(ast.parse("\n".join(new)))
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.For | ast.With)
    ]
    missing = []
    for line in sorted(line for line in written if not new[line - 1].lstrip().startswith("#")):
        around = min((span for span in spans if line in span), key=len, default=range(line, line + 1))
        if not reached.intersection(around):
            missing.append(new[line - 1].strip())
    return missing


def test_the_tables_are_about_fixtures_with_safe_fixes() -> None:
    fixed = set(map(key, FIXED))
    for table in (PLAYS, CANNOT_RUN, RAISES, NOT_REACHED, LOWER):
        assert set(table) - fixed == set()
    assert all(CANNOT_RUN.values())


PROGRAM = FIXTURES / "TML101-graph-accumulation" / "bad_batch_weighted.fixed.py"


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("losses", "pred = model(X)", "pred = model(X) * 1.01"),
        ("parameters", "optimizer.step()", "correct or optimizer.step()"),
        ("results", "(len(X) * loss).detach()", "(len(X) * loss).detach() * 1.000001"),
        ("printed", "correct +=", "print(correct); correct +="),
        ("given", "optimizer.step()", "optimizer.step(); model.head.bias.data[0] = 1"),
        ("random", "return train", "torch.rand(1); return train"),
    ],
)
def test_a_fix_that_changes_something_would_be_seen(part: str, old: str, new: str, tmp_path: Path) -> None:
    program = PROGRAM.read_text()
    assert old in program
    folder = tmp_path / PROGRAM.parent.name
    folder.mkdir()
    changed = folder / PROGRAM.name
    changed.write_text(program.replace(old, new))

    before, after = (run(path, Play(), 1, tmp_path, track=False) for path in (PROGRAM, changed))

    assert not after.error
    assert difference(before.seen[part], after.seen[part], part)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="workers are forked")
def test_why_persistent_workers_are_no_safe_fix() -> None:
    def random_after(*, persistent: bool) -> list[float]:
        torch.manual_seed(0)
        loader = DataLoader(
            torch.zeros(1), num_workers=1, persistent_workers=persistent, multiprocessing_context="fork"
        )
        drawn = []
        for _ in range(2):
            list(loader)
            drawn.append(torch.rand(()).item())
        return drawn

    with_new, with_old = random_after(persistent=False), random_after(persistent=True)

    assert with_new[0] == with_old[0]
    assert with_new[1] != with_old[1]
