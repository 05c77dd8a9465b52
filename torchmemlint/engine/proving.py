"""Fixes on trial: a command runs on a copy of the project with them, and those that make it fail are not made.

The copy lies in a temporary folder. What Python imports comes from there: the folder, and its `src`, stand in front of
`PYTHONPATH`. It holds all files of the project but those of git, of virtual environments and of caches.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from torchmemlint.engine.one_file import Fixing
from torchmemlint.engine.run import RunReport
from torchmemlint.engine.runner import Request, run
from torchmemlint.findings import Finding
from torchmemlint.fingerprints import subject
from torchmemlint.fixes.write import write_atomically
from torchmemlint.immutable import immutable
from torchmemlint.source.decoding import read
from torchmemlint.source.loading import load

_LEFT_OUT = (
    ".git .hg .svn .venv venv .tox .nox node_modules __pycache__ .mypy_cache .ruff_cache .pytest_cache "
    ".torchmemlint_cache *.torchmemlint-tmp"
).split()
_TELLING = re.compile(r"(FAILED|ERROR|FAIL:|ERROR:) ")  # of pytest and unittest: which test it is
_SHOWN = 120  # characters of what a command printed

# A file, and the `fingerprints.subject` of findings there: those that look the same go together.
Fixed = tuple[Path, str]
Held = dict[Path, tuple[tuple[str, str], ...]]  # fixes that must not be made: see `Request.held`


class ProofError(Exception):
    """Nothing can be proven: why, in a sentence."""


@immutable()
class Proof:
    """What came of a trial."""

    held: Held
    tried: int  # fixes
    runs: int  # of the command


class _Trial:
    """Runs a command on copies of a project with some of its fixes."""

    def __init__(self, request: Request, command: str, folder: Path, root: Path, copy: Path) -> None:
        self._request = replace(request, fixing=Fixing.PREVIEW, use_cache=False)
        self._command, self._root, self._copy = command, root, copy
        self._within = copy / folder.relative_to(root)
        self._written: set[Path] = set()
        self.runs = 0

    def preview(self, held: Iterable[Fixed] = ()) -> RunReport:
        """What all fixes but some would do."""
        return run(replace(self._request, held=_held(dict.fromkeys(held, ""))))

    def failure(self, report: RunReport | None = None) -> str | None:
        """Why the command fails with what fixes would do; None if it does not."""
        self._write({} if report is None else {one.filename: one.after for one in report.fixed})
        self.runs += 1
        paths = [str(self._copy), str(self._copy / "src"), os.environ.get("PYTHONPATH", "")]
        known = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            self._command,
            shell=True,
            cwd=self._within,
            env={**os.environ, **known},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        return None if done.returncode == 0 else _told(done)

    def _write(self, texts: dict[Path, str]) -> None:
        for path in self._written | texts.keys():
            data = read(path)
            if path in texts:
                data = load(data, path).encode(texts[path])
            write_atomically(self._copy / path.relative_to(self._root), data)
        self._written = set(texts)


def prove(request: Request, command: str, folder: Path, tell: Callable[[str], None] = lambda line: None) -> Proof:
    """Find which fixes of a request make a command fail that passes without them; `folder` is where it runs.

    `tell` hears how it goes. Raises ProofError where the command fails without any, or a file lies elsewhere.
    """
    root = _project(folder)
    outside = next((path for path in request.files if not path.is_relative_to(root)), None)
    if outside is not None:
        raise ProofError(f"{outside} is not in {root}, of which a copy is made")
    with tempfile.TemporaryDirectory(prefix="torchmemlint-") as place:
        copy = Path(place).resolve() / root.name
        shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        trial = _Trial(request, command, folder, root, copy)
        report = trial.preview()
        fixes = _fixes(report)
        if not fixes:
            return Proof({}, 0, 0)
        why = trial.failure()
        if why is not None:
            raise ProofError(f"it fails without any fix: {why}")
        bad: dict[Fixed, str] = {}
        _kept(trial, [], list(fixes), fixes, bad, tell)
    held = _held({fixed: f"the command fails with it: {why}" for fixed, why in bad.items()})
    return Proof(held, sum(map(len, fixes.values())), trial.runs)


def _kept(
    trial: _Trial,
    accepted: list[Fixed],
    group: list[Fixed],
    fixes: dict[Fixed, list[Finding]],
    bad: dict[Fixed, str],
    tell: Callable[[str], None],
) -> list[Fixed]:
    """`accepted`, and as many of `group` as the command passes with; the others are put into `bad`.

    All at once first, then by halves: one bad fix among n takes about log n runs.
    """
    if not group:
        return accepted
    wanted = {*accepted, *group}
    why = trial.failure(trial.preview(one for one in fixes if one not in wanted))
    tell(f"{sum(len(fixes[one]) for one in wanted)} fixes: {'the command passes' if why is None else why}")
    if why is None:
        return [*accepted, *group]
    if len(group) == 1:
        bad[group[0]] = why
        return accepted
    half = len(group) // 2
    accepted = _kept(trial, accepted, group[:half], fixes, bad, tell)
    return _kept(trial, accepted, group[half:], fixes, bad, tell)


def _held(reasons: dict[Fixed, str]) -> Held:
    found: Held = {}
    for (path, mark), why in reasons.items():
        found[path] = (*found.get(path, ()), (mark, why))
    return found


def _fixes(report: RunReport) -> dict[Fixed, list[Finding]]:
    found: dict[Fixed, list[Finding]] = {}
    for one in report.fixed:
        for finding in one.applied:
            found.setdefault((one.filename, subject(finding.fingerprint)), []).append(finding)
    return found


def _project(folder: Path) -> Path:
    """The folder to copy: of the repository that the command runs in, or else where it runs."""
    return next((one for one in (folder, *folder.parents) if (one / ".git").exists()), folder)


def _told(done: subprocess.CompletedProcess[str]) -> str:
    """The line that says most of what a command printed, and its exit code."""
    lines: Sequence[str] = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()]
    telling = next((line for line in lines if _TELLING.match(line)), lines[-1] if lines else "it printed nothing")
    return f"{telling[:_SHOWN]} (exit code {done.returncode})"
