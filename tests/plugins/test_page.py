"""`docs/plugins.md` is executed: its rules find what it says, and what it shows of the package is there."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchmemlint import plugins
from torchmemlint.api import check_source

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/plugins.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def block(name: str) -> str:
    """The code below a comment that names it."""
    found = re.search(rf"<!-- {name}: [^\n]+ -->\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found[1]


def test_the_rule_that_asks_finds_what_the_page_says(tmp_path: Path) -> None:
    """In an interpreter of its own, with nothing but the page."""
    rule = block("asking")
    assert len(rule.splitlines()) < 40
    (tmp_path / "acme_rules.py").write_text(rule)
    (tmp_path / "train.py").write_text(block("asked"))
    command = [sys.executable, "-P"] if sys.version_info >= (3, 11) else [sys.executable]
    options = ["--isolated", "--no-cache", "--plugins", "acme_rules.py", "--select", "ACM", "--color", "never"]
    done = subprocess.run(
        [*command, "-m", "torchmemlint", "train.py", *options, "--fix", "--unsafe-fixes", "--diff"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    changed = [line for line in done.stdout.splitlines() if re.match(r"[-+] ", line)]
    assert [line.split("run.")[1] for line in changed] == ["log(loss)", "log(loss.detach())"], done.stdout + done.stderr
    assert "Would fix 1 problem." in done.stdout + done.stderr


def test_the_rule_of_the_scaffold_is_the_page_s(tmp_path: Path) -> None:
    rule = next(text for text in BLOCKS if "class UnboundedHistory(Rule)" in text)
    (tmp_path / "acme_rules.py").write_text(rule)
    fixture = next(text for text in BLOCKS if "# expect: ACM101" in text)
    found = check_source(f"import torch\n\n\n{fixture}", select=["ACM"], plugins=[tmp_path / "acme_rules.py"])
    lines = f"import torch\n\n\n{fixture}".splitlines()
    assert ["# expect" in lines[one.span.start.row - 1] for one in found] == [True]


def test_what_the_page_imports_is_exported() -> None:
    for text in BLOCKS:
        try:
            tree = ast.parse(text)
        except SyntaxError:  # a signature
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "torchmemlint.plugins":
                assert {one.name for one in node.names} <= set(plugins.__all__)


@pytest.mark.parametrize("name", ["in_loop", "argument"])
def test_a_property_is_shown_as_one(name: str) -> None:
    shown = next(text for text in BLOCKS if f"def {name}(" in text)
    assert shown.startswith("@property\n") == isinstance(inspect.getattr_static(plugins.Call, name), property)


def test_every_function_of_the_package_is_on_the_page() -> None:
    functions = {name for name in plugins.__all__ if inspect.isfunction(getattr(plugins, name))}
    assert functions == {name for name in functions if f"### `{name}`\n" in PAGE}
