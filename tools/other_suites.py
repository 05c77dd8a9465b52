"""Run other people's tests before and after fixes (`docs/proving.md`).

    python tools/other_suites.py --python venv/bin/python --folder suites     # all of tools/other_suites.toml
    python tools/other_suites.py --python venv/bin/python --folder suites --only zuko

Each project's source distribution is unpacked below the folder. Two copies are fixed: with `--fix`, and with `--fix
--unsafe-fixes`. Then the tests run as they are, and those that run what was changed run again, with each copy. Where a
test fails that passed, `--prove` finds the fix. The other Python has torch, pytest and what the projects need
(`--install` installs that). The result goes to `docs/suites.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import suite_places  # noqa: E402

INSIDE = ROOT / "tools" / "inside"  # what runs in the projects' Python
LIST = ROOT / "tools" / "other_suites.toml"
KEPT = ROOT / "docs" / "suites.json"
CHECK = (sys.executable, "-m", "torchmemlint", "check", "--isolated", "--no-cache", "--confidence", "possible")
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--rootdir=.")
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
SETTINGS = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MPLBACKEND": "Agg",
    "OMP_NUM_THREADS": "1",
}
SHOWN = 30  # tests that a bisection runs at most


@dataclass(frozen=True)
class Suite:
    """A project, by its name and version on the package index, and what of its tests is run."""

    name: str
    version: str
    pytest: str = ""  # arguments
    examples: tuple[str, ...] = ()  # scripts that are tests: each must end without an exception
    needs: tuple[str, ...] = ()  # packages

    @classmethod
    def of(cls, table: dict[str, Any]) -> Suite:
        """A project of the list."""
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})


@dataclass
class Fixed:
    """What came of a way of fixing."""

    fixes: int
    files: int
    places: int = 0  # stretches of files that were changed
    run: int = 0  # of these, by the tests
    tests: int = 0  # that passed before, and run them
    broken: list[str] = field(default_factory=list)  # tests that passed before
    unsteady: list[str] = field(default_factory=list)  # that pass when they run again, or fail without fixes, too
    causes: list[str] = field(default_factory=list)  # fixes that broke them, as `--prove` says


@dataclass
class Result:
    """What came of a project."""

    name: str
    version: str
    kind: str
    passed: int
    failed: list[str]  # before any fix
    skipped: int
    seconds: int
    safe: Fixed
    unsafe: Fixed


@dataclass
class Ran:
    """What a run of tests came to."""

    outcomes: dict[str, str] = field(default_factory=dict)
    ran: dict[str, dict[int, set[str]]] = field(default_factory=dict)  # for each file and line, the tests that run it

    def by(self, place: suite_places.Place) -> set[str]:
        """The tests that run what was changed."""
        lines = self.ran.get(place.file, {})
        return set().union(*(lines.get(line, ()) for line in place.lines))


class Runner:
    """Runs the tests of projects with another Python."""

    def __init__(self, python: Path, folder: Path, seconds: int) -> None:
        self.python, self.folder, self.seconds = python.absolute(), folder.resolve(), seconds

    def result(self, suite: Suite) -> Result:
        """Fix a project, run its tests, and those that run what was changed once more."""
        began = time.monotonic()
        source = self._unpacked(suite)
        ways = {"safe": ("--fix",), "unsafe": ("--fix", "--unsafe-fixes")}
        fixed = {way: self._fixed(suite, source, way, how) for way, how in ways.items()}
        changes = {way: suite_places.changed(source, self._copy(way)) for way in ways}
        watched = sorted({place.file for all_of in changes.values() for place in all_of})
        before = self.outcomes(suite, source, watched=watched)
        for way, how in ways.items():
            self._compare(suite, source, before, fixed[way], changes[way], self._copy(way), how)
        counts = [sum(one == kind for one in before.outcomes.values()) for kind in (PASSED, SKIPPED)]
        failed = sorted(test for test, one in before.outcomes.items() if one == FAILED)
        kind = " and ".join(filter(None, ("tests" * bool(suite.pytest), "examples" * bool(suite.examples))))
        seconds = round(time.monotonic() - began)
        return Result(suite.name, suite.version, kind, counts[0], failed, counts[1], seconds, **fixed)

    def install(self, suite: Suite) -> None:
        """Install what a project needs."""
        if suite.needs:
            subprocess.run([self.python, "-m", "pip", "install", "-q", *suite.needs], check=True)

    def outcomes(
        self, suite: Suite, place: Path, only: list[str] | None = None, *, watched: list[str] | None = None
    ) -> Ran:
        """What becomes of all tests, or of `only` some, and which lines of the `watched` files each runs."""
        found = Ran()
        files = os.pathsep.join(str(place / file) for file in watched or ())
        commands = [
            [str(INSIDE / "suite_watch.py"), *shlex.split(script)]
            for script in suite.examples
            if only is None or script in only
        ]
        tests = shlex.split(suite.pytest) if only is None else [one for one in only if one not in suite.examples]
        if tests:
            commands.append([*PYTEST, "-p", "suite_watch", *tests])
        for command in commands:
            report = self.folder / "report.json"
            report.unlink(missing_ok=True)
            self._run(place, self.python, *command, SUITE_REPORT=str(report), SUITE_FILES=files)
            if not report.exists():
                raise SystemExit(f"{suite.name}: no report of {shlex.join(command)}: see {self.folder / 'log.txt'}")
            told = json.loads(report.read_text(encoding="utf-8"))
            found.outcomes |= told["outcomes"]
            for file, lines in told["ran"].items():
                held = found.ran.setdefault(str(Path(file).relative_to(place)), {})
                for line, by in lines.items():
                    held.setdefault(int(line), set()).update(by)
        return found

    def _unpacked(self, suite: Suite) -> Path:
        place = self.folder / f"{suite.name}-{suite.version}"
        if not place.exists():
            downloads = self.folder / "downloads" / place.name
            wanted = [f"{suite.name}=={suite.version}", "-d", str(downloads)]
            options = ["-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
            subprocess.run([self.python, "-m", "pip", "download", *options, *wanted], check=True)
            (archive,) = downloads.iterdir()
            with tarfile.open(archive) as packed:
                packed.extractall(downloads, filter="data")
            archive.unlink()
            (unpacked,) = downloads.iterdir()
            unpacked.rename(place)
        return place

    def _copy(self, way: str) -> Path:
        return self.folder / f"copy-{way}"

    def _fresh(self, source: Path, way: str) -> Path:
        copy = self._copy(way)
        shutil.rmtree(copy, ignore_errors=True)
        return shutil.copytree(source, copy, symlinks=True)

    def _fixed(self, suite: Suite, source: Path, way: str, how: tuple[str, ...]) -> Fixed:
        copy = self._fresh(source, way)
        told = subprocess.run([*CHECK, *how, "."], cwd=copy, env=_linting(), capture_output=True, text=True)
        made = re.search(r"^Fixed (\d+) problems? in (\d+) files?", told.stdout, re.MULTILINE)
        if told.returncode not in (0, 1):
            raise SystemExit(f"{suite.name}: the linter failed: {told.stderr}")
        return Fixed(int(made[1]), int(made[2])) if made else Fixed(0, 0)

    def _compare(
        self,
        suite: Suite,
        source: Path,
        before: Ran,
        fixed: Fixed,
        changes: list[suite_places.Place],
        copy: Path,
        how: tuple[str, ...],
    ) -> None:
        """Run the tests that run what was changed."""
        ran = [by for place in changes if (by := before.by(place))]
        fixed.places, fixed.run = len(changes), len(ran)
        tests = {test for test, one in before.outcomes.items() if one == PASSED}
        if not any("" in by for by in ran):  # else it runs when a module is imported, or in a fixture
            tests &= set().union(*ran)
        fixed.tests = len(tests)
        if not tests:
            return
        broken = gone(tests, self.outcomes(suite, copy, sorted(tests)))
        again = set(gone(broken, self.outcomes(suite, copy, broken))) if broken else set()
        if again:
            again -= set(gone(again, self.outcomes(suite, source, sorted(again))))
        fixed.broken, fixed.unsteady = sorted(again), sorted({*broken} - again)
        if fixed.broken:
            fixed.causes = self._causes(suite, source, fixed.broken[:SHOWN], *how)

    def _causes(self, suite: Suite, source: Path, broken: list[str], *how: str) -> list[str]:
        """The fixes without which the tests pass."""
        parts = [f"{shlex.quote(str(self.python))} {one}" for one in broken if one in suite.examples]
        tests = [one for one in broken if one not in suite.examples]
        if tests:
            parts.append(shlex.join([str(self.python), *PYTEST, *tests]))
        copy = self._fresh(source, "proved")
        proving = [*CHECK, *how, "--prove", " && ".join(parts), "."]
        told = subprocess.run(proving, cwd=copy, env=_linting(), capture_output=True, text=True)
        if told.returncode == 2:
            return [told.stderr.strip().splitlines()[-1]]
        return re.findall(r"^Not fixed (.*?): the command fails with it", told.stdout, re.MULTILINE)

    def _run(self, place: Path, *command: str | Path, **settings: str) -> None:
        paths = os.pathsep.join([str(place), str(place / "src"), str(INSIDE)])
        environment = os.environ | SETTINGS | settings | {"PYTHONPATH": paths}
        log = self.folder / "log.txt"
        with log.open("ab") as told, suppress(subprocess.TimeoutExpired):  # then there is no report
            subprocess.run(
                command,
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                timeout=self.seconds,
            )


def _linting() -> dict[str, str]:
    return os.environ | SETTINGS | {"PYTHONPATH": str(ROOT)}


def gone(tests: Iterable[str], after: Ran) -> list[str]:
    """Those of the tests that do not pass."""
    return sorted(test for test in tests if after.outcomes.get(test) != PASSED)


def suites() -> list[Suite]:
    """The projects of the list."""
    return [Suite.of(table) for table in tomllib.loads(LIST.read_text(encoding="utf-8"))["suite"]]


def _versions(python: Path) -> dict[str, str]:
    told = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    linter = subprocess.run([*CHECK[:3], "--version"], env=_linting(), capture_output=True, text=True)
    return {"torchmemlint": linter.stdout.split()[-1], "torch": told.stdout.strip()}


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True, help="the Python that has torch and pytest")
    parser.add_argument("--folder", type=Path, required=True, help="where projects are unpacked")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this project; may be repeated")
    parser.add_argument("--install", action="store_true", help="install what the projects need")
    parser.add_argument("--seconds", type=int, default=1800, metavar="N", help="the time of one run of tests")
    parser.add_argument("--json", type=Path, default=KEPT, metavar="FILE", help="where the result is kept")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    options = arguments(given)
    options.folder.mkdir(parents=True, exist_ok=True)
    runner = Runner(options.python, options.folder, options.seconds)
    known = json.loads(options.json.read_text(encoding="utf-8"))["suites"] if options.json.exists() else []
    results = {one["name"]: one for one in known}
    listed = suites()
    for suite in listed:
        if options.only and suite.name not in options.only:
            continue
        if options.install:
            runner.install(suite)
        result = runner.result(suite)
        print(json.dumps(asdict(result)), flush=True)
        results[suite.name] = asdict(result)
        kept = {
            "machine": f"{os.cpu_count()} CPUs, Python {platform.python_version()}",
            "date": time.strftime("%Y-%m-%d"),
            "versions": _versions(options.python),
            "listed": len(listed),
            "suites": [results[one.name] for one in listed if one.name in results],
        }
        options.json.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(any(results[one.name]["safe"]["broken"] for one in listed if one.name in results))


if __name__ == "__main__":
    sys.exit(main())
