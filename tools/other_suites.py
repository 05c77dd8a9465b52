"""Run other people's tests before and after fixes (`docs/proving.md`).

    python tools/other_suites.py --python venv/bin/python --folder suites     # all of tools/other_suites.toml
    python tools/other_suites.py --python venv/bin/python --folder suites --only zuko

Each project's source distribution is unpacked below the folder. Its tests run as they are, after `--fix`, and after
`--fix --unsafe-fixes`. Where a test fails that passed, `--prove` finds the fix. The other Python has torch, pytest and
what the projects need (`--install` installs that). The result goes to `docs/suites.json`.
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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tools" / "other_suites.toml"
KEPT = ROOT / "docs" / "suites.json"
CHECK = (sys.executable, "-m", "torchmemlint", "check", "--isolated", "--no-cache", "--confidence", "possible")
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=")
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
    broken: list[str] = field(default_factory=list)  # tests that passed before
    unsteady: list[str] = field(default_factory=list)  # that pass when they run again
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


class Runner:
    """Runs the tests of projects with another Python."""

    def __init__(self, python: Path, folder: Path, seconds: int) -> None:
        self.python, self.folder, self.seconds = python.absolute(), folder.resolve(), seconds

    def result(self, suite: Suite) -> Result:
        """Run a project's tests, fix, and run them again."""
        began = time.monotonic()
        source = self._unpacked(suite)
        before = self.outcomes(suite, source)
        safe = self._fixed(suite, source, before, "--fix")
        unsafe = self._fixed(suite, source, before, "--fix", "--unsafe-fixes")
        counts = [sum(one == kind for one in before.values()) for kind in (PASSED, SKIPPED)]
        failed = sorted(test for test, one in before.items() if one == FAILED)
        kind = " and ".join(filter(None, ("tests" * bool(suite.pytest), "examples" * bool(suite.examples))))
        seconds = round(time.monotonic() - began)
        return Result(suite.name, suite.version, kind, counts[0], failed, counts[1], seconds, safe, unsafe)

    def install(self, suite: Suite) -> None:
        """Install what a project needs."""
        if suite.needs:
            subprocess.run([self.python, "-m", "pip", "install", "-q", *suite.needs], check=True)

    def outcomes(self, suite: Suite, place: Path, only: list[str] | None = None) -> dict[str, str]:
        """What becomes of each test; `only` of these."""
        found: dict[str, str] = {}
        for script in suite.examples if only is None else [one for one in only if one in suite.examples]:
            done = self._run(place, self.python, *shlex.split(script))
            found[script] = PASSED if done == 0 else FAILED
        tests = shlex.split(suite.pytest) if only is None else [one for one in only if one not in suite.examples]
        if tests:
            report = self.folder / "report.xml"
            report.unlink(missing_ok=True)
            self._run(place, self.python, *PYTEST, "-o", "junit_family=xunit1", f"--junitxml={report}", *tests)
            if report.exists():
                found |= {identity(case): outcome(case) for case in ElementTree.parse(report).iter("testcase")}
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

    def _fixed(self, suite: Suite, source: Path, before: dict[str, str], *how: str) -> Fixed:
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy, symlinks=True)
        told = subprocess.run([*CHECK, *how, "."], cwd=copy, env=_linting(), capture_output=True, text=True)
        made = re.search(r"^Fixed (\d+) problems? in (\d+) files?", told.stdout, re.MULTILINE)
        if told.returncode not in (0, 1):
            raise SystemExit(f"{suite.name}: the linter failed: {told.stderr}")
        fixed = Fixed(*map(int, made.groups())) if made else Fixed(0, 0)
        if fixed.fixes:
            broken = gone(before, self.outcomes(suite, copy))
            fixed.broken = gone(dict.fromkeys(broken, PASSED), self.outcomes(suite, copy, broken)) if broken else []
            fixed.unsteady = sorted({*broken} - {*fixed.broken})
            if fixed.broken:
                fixed.causes = self._causes(suite, source, fixed.broken[:SHOWN], *how)
        return fixed

    def _causes(self, suite: Suite, source: Path, broken: list[str], *how: str) -> list[str]:
        """The fixes without which the tests pass."""
        parts = [f"{shlex.quote(str(self.python))} {one}" for one in broken if one in suite.examples]
        tests = [one for one in broken if one not in suite.examples]
        if tests:
            parts.append(shlex.join([str(self.python), *PYTEST, *tests]))
        copy = self.folder / "copy"
        shutil.rmtree(copy)
        shutil.copytree(source, copy, symlinks=True)
        told = subprocess.run(
            [*CHECK, *how, "--prove", " && ".join(parts), "."], cwd=copy, env=_linting(), capture_output=True, text=True
        )
        if told.returncode == 2:
            return [told.stderr.strip().splitlines()[-1]]
        return re.findall(r"^Not fixed (.*?): the command fails with it", told.stdout, re.MULTILINE)

    def _run(self, place: Path, *command: str | Path) -> int:
        paths = os.pathsep.join([str(place), str(place / "src")])
        with (self.folder / "log.txt").open("ab") as log:
            try:
                done = subprocess.run(
                    command,
                    cwd=place,
                    env=os.environ | SETTINGS | {"PYTHONPATH": paths},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    timeout=self.seconds,
                )
            except subprocess.TimeoutExpired:
                return 124
        return done.returncode


def _linting() -> dict[str, str]:
    return os.environ | SETTINGS | {"PYTHONPATH": str(ROOT)}


def identity(case: ElementTree.Element) -> str:
    """A test as pytest takes it as an argument."""
    file, named = case.get("file"), case.get("classname", "")
    if file is None:
        return f"{named}::{case.get('name')}" if named else str(case.get("name"))
    module = file.removesuffix(".py").replace("/", ".")
    inside = named.removeprefix(module).strip(".").split(".") if named != module else []
    return "::".join([file, *filter(None, inside), str(case.get("name"))])


def outcome(case: ElementTree.Element) -> str:
    """What became of a test."""
    kinds = {child.tag for child in case}
    return FAILED if kinds & {"failure", "error"} else SKIPPED if "skipped" in kinds else PASSED


def gone(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The tests that passed before, and do not after."""
    return sorted(test for test, one in before.items() if one == PASSED and after.get(test) != PASSED)


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
