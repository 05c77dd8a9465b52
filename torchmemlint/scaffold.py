"""The files of a new rule: a plugin package that works as it is made, or what a rule of this repository begins with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from torchmemlint.codes import is_own, letters_of

_CODE = re.compile(r"[A-Z]+[0-9]{3}")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

RULE = '''\
"""{code} {name}."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.plugins import (
    Applicability,
    FileFacts,
    Finding,
    Fix,
    Rule,
    Severity,
    add_argument,
    calls,
    report,
)


class {kind}(Rule):
    """The allocator's history is recorded without a bound.

    ## What it does
    Reports `torch.cuda.memory._record_memory_history()` without `max_entries`.

    ## Why it costs memory
    Every allocation is recorded with its stack, in CPU memory, for as long as the program runs.

    ## Example
    ```python
    torch.cuda.memory._record_memory_history()
    ```

    ## Use instead
    ```python
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    ```

    ## Fix safety
    Unsafe: the snapshot then has the last 100,000 entries only.

    ## When it stays silent
    `max_entries` is given, or the recording is being stopped (`enabled=None`).
    """

    code = "{code}"
    name = "{name}"
    severity = Severity.WARNING
    fix = Applicability.UNSAFE
    why = "every allocation is recorded with its stack, for as long as the program runs"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield recordings that nothing bounds."""
        for call in calls(facts, "torch.cuda.memory._record_memory_history"):
            if call.node.args or call.node.keywords:
                continue
            edits = add_argument(facts, call, "max_entries=100_000")
            yield report(
                self,
                facts,
                call,
                "`_record_memory_history()` records every allocation, without a bound",
                evidence=[(call, "`max_entries` is not given")],
                fix=Fix("Pass `max_entries=100_000`", Applicability.UNSAFE, edits),
            )
'''

_BAD = '''\
"""A recording that nothing bounds."""

import torch
from torch.cuda.memory import _record_memory_history


def start(recording):
    if recording:
        torch.cuda.memory._record_memory_history()  # expect: {code} warning
        _record_memory_history()  # expect: {code}
'''
_FIXED = '''\
"""A recording that nothing bounds."""

import torch
from torch.cuda.memory import _record_memory_history


def start(recording):
    if recording:
        torch.cuda.memory._record_memory_history(max_entries=100_000)
        _record_memory_history(max_entries=100_000)
'''
_GOOD = '''\
"""Recordings with a bound, and others that only look alike."""

import torch


def start(recording):
    if recording:
        torch.cuda.memory._record_memory_history(max_entries=100_000)
    else:
        torch.cuda.memory._record_memory_history(enabled=None)


class Recorder:
    def _record_memory_history(self):
        return "torch.cuda.memory._record_memory_history()"


def stop(recorder: Recorder):
    return recorder._record_memory_history()
'''
_TEST = '''\
"""Each fixture says itself what is found in it."""

from pathlib import Path

import pytest
from torchmemlint.testing import check_fixture, fixtures_in

FIXTURES = Path(__file__).parent.parent / "fixtures"


@pytest.mark.parametrize("path", fixtures_in(FIXTURES), ids=lambda path: f"{{path.parent.name}}/{{path.stem}}")
def test_fixture(path):
    check_fixture(path, select=[path.parent.name.partition("-")[0]], unsafe=True)
'''
_PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{distribution}"
version = "0.1.0"
description = "Rules for torchmemlint"
readme = "README.md"
requires-python = ">=3.10"
dependencies = ["torchmemlint"]

[project.optional-dependencies]
test = ["pytest"]

# This is how torchmemlint finds the rules: all modules of the package are looked through.
[project.entry-points."torchmemlint.rules"]
{letters_small} = "{package}"

[tool.hatch.build.targets.wheel]
packages = ["src/{package}"]
"""
_README = """\
# {distribution}

Rules for [torchmemlint](https://torchmemlint.readthedocs.io/plugins/).

```bash
pip install -e '.[test]'
pytest
torchmemlint PATHS --select {letters}
```

A rule is a module in `src/{package}`. Programs in `fixtures/CODE-name`, which the tests run, show what it finds:
`bad_*.py`, with a comment `# expect: CODE` on each line where something is found, at least as many `good_*.py` that
look alike, and `bad_*.fixed.py` where there is a fix. `torchmemlint new-rule CODE NAME .` adds a rule.
"""


class ScaffoldError(Exception):
    """A rule that cannot be made like this; the message says why."""


@dataclass(frozen=True, slots=True)
class Scaffold:
    """Files to be written, by their path."""

    files: dict[Path, str]
    folder: Path

    def write(self) -> None:
        """Write them. Raises `ScaffoldError` where one is there already, before any is written."""
        for path in self.files:
            if path.exists():
                raise ScaffoldError(f"{path} is there already")
        for path, text in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def plugin(code: str, name: str, folder: Path | None = None) -> Scaffold:
    """A package with one rule or, where `folder` holds such a package, one more rule in it."""
    _check(code, name)
    if is_own(code) or letters_of(code) == "ALL":
        raise ScaffoldError(f"{code}: rules of a plugin begin with letters of their own, not with {letters_of(code)}")
    letters = letters_of(code)
    folder = folder or (Path() if _is_plugin(Path()) else Path(f"torchmemlint-{letters.lower()}"))
    package = _package_in(folder)
    words = {
        "code": code,
        "name": name,
        "kind": "".join(word.capitalize() for word in name.split("-")),
        "letters": letters,
        "letters_small": letters.lower(),
        "distribution": f"torchmemlint-{letters.lower()}",
        "package": package or f"torchmemlint_{letters.lower()}",
    }
    source = folder / "src" / words["package"]
    fixtures = folder / "fixtures" / f"{code}-{name}"
    files = {
        source / f"{code.lower()}_{name.replace('-', '_')}.py": RULE,
        fixtures / "bad_unbounded.py": _BAD,
        fixtures / "bad_unbounded.fixed.py": _FIXED,
        fixtures / "good_bounded.py": _GOOD,
    }
    if package is None:
        files |= {
            folder / "pyproject.toml": _PROJECT,
            folder / "README.md": _README,
            folder / "tests" / "test_fixtures.py": _TEST,
            source / "__init__.py": '"""Rules for torchmemlint."""\n',
            source / "py.typed": "",
        }
    return Scaffold({path: text.format(**words) for path, text in files.items()}, folder)


def here(code: str, name: str, root: Path) -> Scaffold:
    """What a rule of torchmemlint itself begins with, in a checkout of it: no text that could be left as it is."""
    _check(code, name)
    family = _family_of(code, root)
    kind = "".join(word.capitalize() for word in name.split("-"))
    words = {"code": code, "name": name, "kind": kind}
    fixtures = root / "fixtures" / f"{code}-{name}"
    files = {
        family / f"{code.lower()}_{name.replace('-', '_')}.py": _OWN_RULE.format(**words),
        family / f"{code.lower()}_{name.replace('-', '_')}.md": _OWN_PAGE.format(**words),
        fixtures / "bad_first.py": f'"""TODO: code as people write it."""\n\nimport torch\n\ntorch  # expect: {code}\n',
        fixtures / "good_first.py": '"""TODO: the same, as it is right."""\n\nimport torch\n\ntorch\n',
    }
    return Scaffold(files, root)


def is_checkout(folder: Path) -> bool:
    """Is this a checkout of torchmemlint itself?"""
    return (folder / "torchmemlint/rules/base.py").is_file() and (folder / "fixtures").is_dir()


def _check(code: str, name: str) -> None:
    if not _CODE.fullmatch(code):
        raise ScaffoldError(f"{code}: a code is capital letters and three digits, such as ACM101")
    if not _NAME.fullmatch(name):
        raise ScaffoldError(f"{name}: a name is words in small letters with hyphens between, such as unbounded-history")


def _package_in(folder: Path) -> str | None:
    """The package of rules that lies in a folder; None where the folder is new."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    packages = sorted(path.parent.name for path in folder.glob("src/*/__init__.py"))
    if len(packages) != 1 or not _is_plugin(folder):
        raise ScaffoldError(f"{folder}: it holds other things than a plugin that this command has made")
    return packages[0]


def _is_plugin(folder: Path) -> bool:
    """Is this the folder of a package that declares rules?"""
    project = folder / "pyproject.toml"
    return project.is_file() and "torchmemlint.rules" in project.read_text(encoding="utf-8")


def _family_of(code: str, root: Path) -> Path:
    """The folder of the rules whose codes have the same first digit."""
    beginning = code[:4].lower()
    families = {path.parent for path in (root / "torchmemlint/rules").glob(f"*/{beginning}*.md")}
    if len(families) != 1:
        raise ScaffoldError(f"{code}: there is no family of rules {code[:4]}; make a folder for it, with a first rule")
    return families.pop()


_OWN_RULE = '''\
"""{code} {name}."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class {kind}(TellingRule):
    """TODO: one sentence."""

    def tell(self, told: Told) -> Finding:
        """TODO: word a case. It is made in `torchmemlint/flow/fact`, and told of by `torchmemlint/rules/cases.py`."""
        return told.finding(self, "TODO", [told.link(told.case.place, "TODO")])
'''
_OWN_PAGE = """\
---
code: {code}
name: {name}
severity: warning
why: TODO
class: {kind}
---

## What it does
TODO

## Why it costs memory
TODO: what was measured.

## Example
```python
```

## Use instead
```python
```

## Fix safety
TODO

## When it stays silent
TODO

## References
TODO
"""
