"""The rules are what their pages say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.rules import docs, listed, registry
from torchmemlint.rules.base import Rule

METADATA = ("code", "name", "severity", "on", "fix", "tag", "why")
RULES = Path(listed.__file__).parent


@pytest.mark.parametrize("rule", registry.all_rules(), ids=lambda rule: rule.code)
def test_a_rule_itself_is_what_its_page_says(rule: Rule) -> None:
    whole = listed.whole(rule)
    assert [getattr(whole, name) for name in METADATA] == [getattr(rule, name) for name in METADATA]
    assert docs.page(rule) == docs.page(type(whole))
    assert rule.page is not None
    assert rule.page.stem == f"{rule.code.lower()}_{rule.name.replace('-', '_')}"
    assert (whole is not rule) is rule.page.with_suffix(".py").is_file()


def test_every_module_of_a_rule_has_a_page() -> None:
    modules = {path.with_suffix(".md") for path in RULES.glob("*/tml*.py")}
    assert modules <= {rule.page for rule in registry.all_rules()}


def test_a_listed_rule_checks() -> None:
    found = check_text("import torch\nwith torch.no_grad:\n    pass\n", Path("a.py"), frozenset({"TML202"}))
    assert [finding.code for finding in found] == ["TML202"]


def test_who_asks_for_metadata_imports_no_rule() -> None:
    program = (
        "import sys\nfrom torchmemlint.rules import registry\nregistry.all_rules()\n"
        "print([name for name in sys.modules if '.tml' in name or '.flow' in name])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"
