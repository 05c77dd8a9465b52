"""The Python API, as a program uses it."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import torchmemlint
from torchmemlint import CheckError, ConfigError, Finding, Position, Severity, check_paths, check_source, fix_source
from torchmemlint.rules.registry import by_code

ROOT = Path(__file__).resolve().parents[2]
LEAKY = """\
import torch
from torch import nn


def train(model: nn.Module, loader, optimizer, criterion):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""
CLEAN = "import torch\n\nx = torch.zeros(3)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "torchmemlint.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_text_is_checked() -> None:
    (finding,) = check_source(LEAKY)
    assert (finding.code, finding.name, finding.severity) == ("TML101", "graph-accumulation", Severity.WARNING)
    assert finding.span.start == Position(11, 9)
    assert finding.filename == Path("<string>")
    assert finding.fix is not None
    assert finding.evidence
    assert check_source(CLEAN) == []


def test_nothing_is_read_for_text_that_lies_nowhere(folder: Path) -> None:
    (folder / "torchmemlint.toml").write_text("not toml")
    (folder / "pyproject.toml").write_text('[project]\ndependencies = ["torch>=2.0,<2.1"]\n')
    old = "import torch\n\nwith torch.backends.cuda.sdp_kernel():\n    pass\n"
    assert codes(check_source(LEAKY)) == ["TML101"]
    assert codes(check_source(old, select=["TML507"])) == ["TML507"]
    assert check_source(old, select=["TML507"], target_torch="2.0") == []


def test_the_path_brings_its_configuration_and_its_project(folder: Path) -> None:
    (folder / "torchmemlint.toml").write_text('ignore = ["TML101"]')
    assert check_source(LEAKY, path=folder / "new.py") == []
    assert codes(check_source(LEAKY, path="new.py", isolated=True)) == ["TML101"]
    (finding,) = check_source(LEAKY, path="src/new.py", select=["TML101"])
    assert finding.filename == folder / "src" / "new.py"
    other = folder / "other.toml"
    other.write_text('[severity]\nTML101 = "advice"')
    assert [one.severity for one in check_source(LEAKY, path="new.py", config=other)] == [Severity.ADVICE]
    assert [one.severity for one in check_source(LEAKY, config=other)] == [Severity.ADVICE]


def test_other_files_are_read_anew_by_each_call(folder: Path) -> None:
    helper = folder / "helper.py"
    text = LEAKY.replace("total = 0.0", "meter = Meter()").replace("total += loss", "meter.update(loss)")
    text = text.replace("return total", "return meter.total").replace(
        "import nn\n", "import nn\n\nfrom helper import Meter\n"
    )
    keeping = "class Meter:\n    def __init__(self):\n        self.total = 0\n\n"
    keeping += "    def update(self, x):\n        self.total += x\n"
    helper.write_text(keeping.replace("+= x", "+= x.item()"))
    assert check_source(text, path="new.py") == []
    helper.write_text(keeping)
    assert codes(check_source(text, path="new.py")) == ["TML101"]


def test_settings_are_those_of_the_configuration() -> None:
    (finding,) = check_source(LEAKY, settings={"severity": {"TML1": "error"}})
    assert finding.severity is Severity.ERROR
    assert check_source(LEAKY, settings={"ignore": ["TML1"]}) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"select": ["graph-acumulation"]}, "select: Unknown rule selector .* Did you mean `graph-accumulation`"),
        ({"ignore": "TML101"}, "ignore: expected a list of rule selectors, found the string 'TML101'"),
        ({"settings": {"slect": []}}, "settings: unknown configuration key `slect`. Did you mean `select`"),
        ({"target_torch": "two"}, "target_torch: .* expected a torch version"),
        ({"config": "there-is-none.toml"}, "there-is-none.toml: cannot be read"),
        ({"config": "x.toml", "isolated": True}, "contradict"),
    ],
)
def test_what_is_wrong_with_the_arguments_is_said(arguments: dict[str, object], message: str) -> None:
    for function in (check_source, fix_source, check_paths):
        with pytest.raises(ConfigError, match=message):
            function("x = 1\n" if function is not check_paths else str(ROOT / "LICENSE"), **arguments)


@pytest.mark.parametrize(
    "source", ["import torch\ndef f(:\n", b"import torch\nx = '\xff'\n", "import torch\nx = '\ud800'\n"]
)
def test_what_cannot_be_read_is_a_finding(source: str | bytes) -> None:
    assert codes(check_source(source)) == ["TML000"]
    fixed = fix_source(source)
    assert [one.code for one in fixed.remaining] == ["TML000"]
    assert (fixed.text == source) is isinstance(source, str)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff", "# coding: latin-1\n"])
def test_fixing_changes_nothing_else(newline: str, start: str) -> None:
    text = (start + LEAKY + "# größer\n").replace("\n", newline)
    fixed = fix_source(text)
    assert fixed.text == text.replace("total += loss", "total += loss.detach()")
    assert [finding.code for finding in fixed.applied] == ["TML101"]
    assert (fixed.remaining, fixed.rolled_back) == ((), ())
    assert fix_source(fixed.text).applied == ()
    if not start.startswith("#"):  # of bytes the declaration counts
        assert fix_source(text.encode()).text == fixed.text.lstrip("\ufeff")


def test_a_declared_encoding_is_no_obstacle_in_a_string() -> None:
    text = "# coding: ascii\nimport torch\n\nwith torch.no_grad:\n    x = 'größer'\n"
    assert fix_source(text).text == text.replace("no_grad:", "no_grad():")


def test_only_safe_fixes_unless_asked() -> None:
    text = "import torch\n\nwith torch.no_grad():\n    y = torch.ones(3) * 2\n"
    kept = fix_source(text, select=["TML204"])
    assert (kept.text, kept.applied) == (text, ())
    loop = textwrap.dedent(
        """
        import torch

        def step(model, x):
            optimizer = torch.optim.SGD(model.parameters())
            loss = model(x).sum()
            loss.backward(retain_graph=True)
            optimizer.step()
        """
    )
    assert codes(check_source(loop, select=["TML105"])) == ["TML105"]
    assert fix_source(loop, select=["TML105"]).text == loop
    assert "retain_graph" not in fix_source(loop, select=["TML105"], unsafe=True).text


def test_files_are_checked_as_on_the_command_line(folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "b.py").write_text(LEAKY)
    (folder / "src" / "a.py").write_text(LEAKY)
    (folder / "build").mkdir()
    (folder / "build" / "c.py").write_text(LEAKY)
    names = [finding.filename for finding in check_paths(folder)]
    assert names == [folder / "src" / "a.py", folder / "src" / "b.py"]
    assert check_paths("src") == check_paths(["src/b.py", Path("src", "a.py")])
    assert check_paths([]) == []
    assert (folder / "src" / "a.py").read_text() == LEAKY


def test_paths_that_cannot_be_checked(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.py"):
        check_paths("nothing.py")
    (folder / "notes.txt").write_text("torch")
    with pytest.warns(UserWarning, match=r"notes\.txt"):
        assert check_paths(folder / "notes.txt") == []
    with pytest.raises(ValueError, match="jobs"):
        check_paths(".", jobs=0)


def test_a_failure_of_the_linter_is_an_exception(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, facts: object) -> object:
        raise ZeroDivisionError("by zero")

    (folder / "a.py").write_text(LEAKY)
    monkeypatch.setattr(type(by_code()["TML101"]), "check", fail)
    for call in (lambda: check_source(LEAKY), lambda: fix_source(LEAKY), lambda: check_paths(folder)):
        with pytest.raises(CheckError, match="internal error: ZeroDivisionError: by zero") as caught:
            call()
        assert len(caught.value.problems) == 1
        again = pickle.loads(pickle.dumps(caught.value))
        assert (again.problems, again.findings) == (caught.value.problems, caught.value.findings)


def test_threads_may_call_at_once() -> None:
    found: dict[int, list[str]] = {}
    threads = [threading.Thread(target=lambda n=n: found.update({n: codes(check_source(LEAKY))})) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: ["TML101"] for n in range(4)}


def test_findings_are_values() -> None:
    assert check_source(LEAKY) == check_source(LEAKY)
    assert len({*check_source(LEAKY), *check_source(LEAKY)}) == 1
    assert pickle.loads(pickle.dumps(check_source(LEAKY))) == check_source(LEAKY)


def test_every_public_name_is_there() -> None:
    assert set(torchmemlint.__all__) <= set(dir(torchmemlint))
    for name in torchmemlint.__all__:
        assert getattr(torchmemlint, name) is not None
    with pytest.raises(AttributeError, match="check_sauce"):
        _ = torchmemlint.check_sauce  # type: ignore[attr-defined]


def test_importing_is_cheap() -> None:
    unwanted = ("libcst", "click", "torchmemlint.")
    script = f"import sys, torchmemlint; sys.exit(any(name.startswith({unwanted}) for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0
    script = "import sys, torchmemlint; torchmemlint.check_source('import torch'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0


GOOD_PROGRAM = """
from pathlib import Path
from torchmemlint import Applicability, CheckError, ConfigError, Finding, check_paths, check_source, fix_source

def report(source: str) -> list[str]:
    findings: list[Finding] = check_source(source, path=Path("a.py"), select=["TML1"], settings={"ignore": []})
    return [f"{f.filename}:{f.span.start.row} {f.code}" for f in findings if f.fix is not None
            and f.fix.applicability is Applicability.SAFE]

def fixed(source: bytes) -> str:
    try:
        return fix_source(source, unsafe=True).text
    except (ConfigError, CheckError) as error:
        return str(error)

print(report(""), fixed(b""), len(check_paths(["a.py", Path("b.py")], jobs=None)))
"""
BAD_PROGRAM = """
from torchmemlint import Finding, check_paths, check_source, fix_source
check_source(3)
names: list[str] = check_source("")
fix_source("").appplied
check_paths("a.py", jobs="two")
from torchmemlint import check_file
"""


def test_programs_that_use_it_are_type_checked(tmp_path: Path) -> None:
    """As mypy sees it: from the `site-packages` of another environment, where `py.typed` decides."""
    environment = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (site,) = (
        environment.glob("lib/python*/site-packages") if os.name != "nt" else environment.glob("Lib/site-packages")
    )
    (site / "torchmemlint").symlink_to(ROOT / "torchmemlint")
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    (tmp_path / "good.py").write_text(GOOD_PROGRAM)
    (tmp_path / "bad.py").write_text(BAD_PROGRAM)

    def mypy(name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(python), name]
        variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MYPYPATH")}
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)

    good, bad = mypy("good.py"), mypy("bad.py")
    assert good.returncode == 0, good.stdout
    assert bad.returncode == 1
    rows = re.findall(r"^bad\.py:(\d+): error", bad.stdout, re.MULTILINE)
    assert [int(row) for row in rows] == [3, 4, 5, 6, 7], bad.stdout
