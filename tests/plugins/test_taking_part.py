"""Rules of plugins are rules like any other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchmemlint import CheckError, check_paths, check_source, fix_source
from torchmemlint.engine import pool
from torchmemlint.engine.cache import results, snapshot

from .conftest import PROGRAM, Run, forget, install, rule

CALL = "torch.cuda.memory._record_memory_history()"


@pytest.fixture
def acme(site: Path) -> Path:
    """Two rules, of which the second is off by default."""
    install(
        site,
        "acme-lint",
        "one = acme_lints\ntwo = acme_more",
        acme_lints=rule(),
        acme_more=rule("ACM201", "any-history", "AnyHistory").replace("    why = ", "    on = False\n    why = "),
    )
    return site


def found(run: Run, *arguments: str) -> list[str]:
    findings = json.loads(run("a.py", "--output-format=json", *arguments).out)
    return [finding["code"] for finding in findings]


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        ((), ["ACM101"]),
        (("--select", "ACM"), ["ACM101", "ACM201"]),
        (("--select", "ACM2"), ["ACM201"]),
        (("--select", "any-history"), ["ACM201"]),
        (("--select", "ALL", "--ignore", "TML"), ["ACM101", "ACM201"]),
        (("--extend-select", "ACM201"), ["ACM101", "ACM201"]),
        (("--ignore", "ACM1"), []),
        (("--ignore", "ACM", "--extend-select", "ACM201"), ["ACM201"]),
        (("--select", "TML"), []),
        (("--per-file-ignores", "a.py:ACM101"), []),
        (("--per-file-ignores", "b.py:ACM101"), ["ACM101"]),
        (("--config", "select = ['ACM201']"), ["ACM201"]),
        (("--config", "severity.ACM101 = 'off'"), []),
    ],
)
def test_selection(acme: Path, run: Run, arguments: tuple[str, ...], codes: list[str]) -> None:
    assert found(run, *arguments) == codes


@pytest.mark.parametrize("selector", ["AC", "ACMX", "ACM3", "ACM1011", "acm101", "A"])
def test_selectors_that_name_nothing(acme: Path, run: Run, selector: str) -> None:
    code, _, err = run("a.py", "--select", selector)
    assert code == 2
    assert f"Unknown rule selector `{selector}`" in err


def test_severities_and_exit_codes(acme: Path, run: Run, project: Path) -> None:
    assert run("a.py").code == 1
    assert run("a.py", "--fail-on", "error").code == 0
    (project / "torchmemlint.toml").write_text('fail-on = "error"\n[severity]\nACM = "error"\n')
    assert run("a.py").code == 1


@pytest.mark.parametrize(
    ("comment", "codes"),
    [
        ("# noqa: ACM101", []),
        ("# noqa: E501, ACM101", []),
        ("# noqa: ACM1", []),
        ("# noqa", []),
        ("# torchmemlint: ignore[ACM101]", []),
        ("# torchmemlint: ignore[ACM]", []),
        ("# torchmemlint: ignore[unbounded-history]", []),
        ("# torchmemlint: ignore-file[ACM101]", []),
        ("# noqa: ACM999", ["ACM101"]),  # perhaps another tool's
        ("# noqa: ACMX101", ["ACM101"]),
        ("# torchmemlint: ignore[ACM999]", ["ACM101", "TML002"]),
        ("# torchmemlint: ignore[ACM201]", ["ACM101"]),  # which did not run
        ("# torchmemlint: ignore[TML101]", ["ACM101", "TML001"]),
    ],
)
def test_suppressions(acme: Path, run: Run, project: Path, comment: str, codes: list[str]) -> None:
    (project / "a.py").write_text(PROGRAM.replace(CALL, f"{CALL}  {comment}"))
    assert sorted(found(run)) == codes


def test_unused_suppressions(acme: Path, run: Run, project: Path) -> None:
    (project / "a.py").write_text("import torch\n\nx = 1  # noqa: ACM101\n")
    assert found(run) == ["TML001"]
    assert run("a.py", "--fix").code == 0
    assert (project / "a.py").read_text() == "import torch\n\nx = 1\n"
    (project / "a.py").write_text("import torch\n\nx = 1  # noqa: ACM101\n")
    assert found(run, "--ignore", "ACM101") == []


def test_fixes_are_checked_as_ours(acme: Path, run: Run, project: Path) -> None:
    assert run("a.py", "--fix").code == 0
    assert (project / "a.py").read_text() == PROGRAM.replace("history()", "history(max_entries=100_000)")


def test_a_fix_that_does_harm_is_taken_back(site: Path, project: Path, run: Run) -> None:
    harm = rule().replace('"max_entries=100_000"', '"max_entries="')
    install(site, "acme-lint", "acme = acme_lints", acme_lints=harm)
    outcome = run("a.py", "--fix")
    assert outcome.code == 1
    assert (project / "a.py").read_text() == PROGRAM


def test_the_rule_has_its_page(acme: Path, run: Run) -> None:
    page = run("rule", "ACM101").out
    assert page.startswith("# unbounded-history (ACM101)")
    assert "## Why it costs memory" in page
    assert "## References" not in page
    assert json.loads(run("rule", "any-history", "--output-format=json").out)["default"] is False
    assert "# any-history (ACM201)" in run("rule", "--all").out


def test_the_rule_of_an_extension_has_its_page(site: Path, project: Path, run: Run) -> None:
    (site / "acme_lints.py").write_text(rule())
    assert run("rule", "ACM101").code == 2
    (project / "torchmemlint.toml").write_text('plugins = ["acme_lints"]\n')
    assert run("rule", "ACM101").code == 0


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_worker_processes(acme: Path, run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, jobs: str) -> None:
    monkeypatch.setattr(pool, "_BYTES_PER_WORKER", 1)
    monkeypatch.setattr(pool, "cpus", lambda: 3)
    for number in range(6):
        (project / f"b{number}.py").write_text(PROGRAM)
    outcome = run(".", "--jobs", jobs, "--output-format=concise", "--select", "ACM101")
    assert outcome.out.count("ACM101") == 7


def test_results_of_earlier_runs_hold_until_a_plugin_changes(
    project: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TORCHMEMLINT_NO_CACHE", raising=False)
    monkeypatch.setattr(snapshot, "SETTLED", -60.0)  # else what has just been written is not kept
    lint = tmp_path / "acme.py"
    cache = ("--cache-dir", str(tmp_path / "kept"))

    def look(text: str, when: int) -> tuple[bool, bool]:
        lint.write_text(text)
        os.utime(lint, (when, when))
        forget()
        results._circumstances.cache_clear()
        outcome = run("a.py", "--plugins", str(lint), "--output-format=concise", "-v", *cache)
        return "Not bounded" in outcome.out, "still holds" in outcome.err

    assert look(rule(), 1_700_000_000) == (False, False)
    assert look(rule(), 1_700_000_000) == (False, True)
    assert look(rule().replace("No bound", "Not bounded"), 1_700_000_100) == (True, False)
    assert run("a.py", *cache).code == 0


def test_configurations_of_one_run_may_differ(site: Path, project: Path, run: Run) -> None:
    for name, code in (("acme_lints", "ACM101"), ("zeta_rules", "ZET101")):
        folder = project / name
        folder.mkdir()
        (site / f"{name}.py").write_text(rule(code, name.replace("_", "-"), "Some"))
        (folder / "torchmemlint.toml").write_text(f'plugins = ["{name}"]\n')
        (folder / "a.py").write_text(PROGRAM)
    outcome = run(".", "--output-format=concise")
    lines = [line for line in outcome.out.splitlines() if "No bound" in line]
    assert [line.split(":")[0] + line.split(":")[3][:7] for line in lines] == [
        "acme_lints/a.py ACM101",
        "zeta_rules/a.py ZET101",
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ZeroDivisionError('by zero')", "raised ZeroDivisionError at {line}: by zero"),
        ("raise SystemExit(0)", "raised SystemExit at {line}: 0"),
        ("return self.check(facts)", "raised RecursionError at {line}: "),
        ("return [3]", ", at {check}, gave int instead of `Finding`"),
        ("return None", "raised TypeError at {check}: "),
        ("yield report(type('Other', (), dict(code='TML101', name='x', severity=Severity.ERROR, why=''))(), facts, "
         "Span(Position(1, 1), Position(1, 2)), '')", ", at {check}, gave a finding of TML101 x"),
        ("yield report(self, facts, Span(Position(0, 1), Position(1, 2)), '')",
         ", at {check}, gave a place that is none"),
    ],
)  # fmt: skip
def test_a_rule_that_fails_is_named(site: Path, project: Path, run: Run, body: str, message: str) -> None:
    text = rule()
    text = text[: text.index("        for call in")] + f"        {body}\n"
    install(site, "acme-lint", "acme = acme_lints", acme_lints=text)
    (project / "b.py").write_text("import torch\n\nwith torch.no_grad:\n    pass\n")
    (project / "c.py").write_text("print('never mentions it')\n")
    outcome = run(".", "--output-format=concise")
    assert outcome.code == 2
    assert outcome.err.count(": plugin error: ACM101 of plugin `acme-lint 1.0` (entry point `acme = acme_lints`)") == 2
    last, file = text.count("\n"), site / "acme_lints.py"
    check = text[: text.index("    def check(")].count("\n") + 1
    assert message.format(line=f"{file}:{last}", check=f"{file}:{check}") in outcome.err
    assert "internal error" not in outcome.err
    for formatted in ("full", "markdown", "html"):
        assert "All checks passed" not in run("c.py", "a.py", f"--output-format={formatted}", "--select=ACM").out
    assert run(".", "--ignore", "ACM").code == 1
    with pytest.raises(CheckError, match="acme-lint"):
        check_source(PROGRAM)


def test_the_api_brings_rules(tmp_path: Path, project: Path) -> None:
    (tmp_path / "acme.py").write_text(rule())
    plugins = [tmp_path / "acme.py"]
    assert [finding.code for finding in check_source(PROGRAM, plugins=plugins)] == ["ACM101"]
    assert [finding.code for finding in check_paths(project, plugins=plugins, select=["ACM"])] == ["ACM101"]
    assert fix_source(PROGRAM, plugins=plugins).applied
    assert check_source(PROGRAM) == []


def test_calls_go_by_what_names_were_imported_as(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(rule())
    program = '''
import torch
import torch.cuda.memory as tm
from torch.cuda.memory import _record_memory_history as record

@record()
def f(x=record()):
    """Ünïcode."""
    from torch.cuda import memory
    y = "ü", memory._record_memory_history()
    return [tm._record_memory_history() for _ in range(3)]

def g(record_memory_history, torch2):
    record_memory_history()
    torch2.cuda.memory._record_memory_history()
    tm._record_memory_history(max_entries=3)
    "torch.cuda.memory._record_memory_history()"
    memory._record_memory_history()
'''
    findings = check_source(program, plugins=[tmp_path / "acme.py"], select=["ACM"])
    assert [(one.span.start.row, one.span.start.column) for one in findings] == [(6, 2), (7, 9), (10, 14), (11, 13)]
    fixed = fix_source(program, plugins=[tmp_path / "acme.py"], select=["ACM"])
    assert fixed.text.count("max_entries=100_000") == 4
    assert fixed.remaining == ()


FORMATS = "full concise grouped json json-lines sarif github gitlab junit pylint rdjson markdown html".split()


@pytest.mark.parametrize("output_format", FORMATS)
def test_every_format_shows_it(acme: Path, run: Run, output_format: str) -> None:
    if output_format == "html":
        pytest.importorskip("jinja2")
    outcome = run("a.py", "--output-format", output_format)
    assert outcome.code == 1
    assert "ACM101" in outcome.out
    assert "rules/ACM101" not in outcome.out  # our documentation has no page of it


def test_worker_processes_that_are_spawned(project: Path, tmp_path: Path) -> None:
    """As on macOS and Windows: they have nothing of what this process has loaded."""
    (tmp_path / "acme.py").write_text(rule())
    (project / "b.py").write_text(PROGRAM)
    arguments = [".", "--plugins", str(tmp_path / "acme.py"), "--jobs=2", "--output-format=concise", "--isolated"]
    script = f"""
import sys
from torchmemlint.engine import pool
if __name__ == "__main__":
    pool._can_fork, pool._BYTES_PER_WORKER, pool.cpus = (lambda: False), 1, (lambda: 2)
    from torchmemlint.cli.main import main
    sys.exit(main({arguments!r}))
"""
    (tmp_path / "start.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "start.py")],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.count("ACM101")) == (1, 2), done.stderr


HELPER = """
import torch


def step(model, x, device):
    loss = model(x.to(device)).sum()
    loss.backward()
    return loss
"""
USER = """
from torch import nn

from helper import step


def train(model: nn.Module, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        step(model, x, 'cuda')
        optimizer.step()
"""


def test_facts_of_other_files_are_reported_there(project: Path, tmp_path: Path) -> None:
    """Each finding once, in its own file, though the analysis of one follows calls into the other."""
    (tmp_path / "acme.py").write_text(telling("*facts.passes(), *facts.backwards()", "'seen'"))
    (project / "helper.py").write_text(HELPER)
    (project / "a.py").write_text(USER)
    found = check_paths(project, plugins=[tmp_path / "acme.py"], select=["ACM"])
    assert [(one.filename.name, one.span.start.row) for one in found] == [("helper.py", 6), ("helper.py", 7)]


def telling(facts: str, message: str) -> str:
    """A rule that reports some facts."""
    text = rule()
    body = f"        for one in ({facts}):\n            yield report(self, facts, one.span, {message})\n"
    return text[: text.index("        for call in")] + body


PASSES = """
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.layers(x))


def train(net, loader, optimizer):
    net.train()
    for x, y in loader:
        F.cross_entropy(net(x), y).backward(retain_graph=True)
        optimizer.step()


@torch.no_grad()
def test(net, loader):
    net.eval()
    criterion = nn.CrossEntropyLoss()
    for x, y in loader:
        print(criterion(net(x), y))


def either(net, x):
    return net(x)


def main(loader):
    net = Net()
    train(net, loader, torch.optim.SGD(net.parameters()))
    test(net, loader)
    either(net, torch.zeros(4))
    with torch.no_grad():
        either(net, torch.zeros(4))


def given(model, x):
    model.eval()
    return model(x)


def unknown(model, x):
    return torch.autograd.grad(model.to(x.device)(x).sum(), x, create_graph=True)
"""


def test_passes_are_told_as_runs_show_them(project: Path, tmp_path: Path) -> None:
    switched = "one.switched and one.switched.start.row"
    message = f"f'{{one.callee}} {{one.gradients}} {{one.evaluating}} {{{switched}}} {{one.differentiated}}'"
    (tmp_path / "passes.py").write_text(telling("*facts.passes(),", message))
    message = "f'{one.text} {one.retains} {one.creates}'"
    (tmp_path / "backwards.py").write_text(
        telling("*facts.backwards(),", message).replace("ACM101", "ACM102").replace("unbounded-history", "other")
    )
    (project / "a.py").write_text(PASSES)
    found = check_paths(project, plugins=[tmp_path / "passes.py", tmp_path / "backwards.py"], select=["ACM"])
    assert [(one.span.start.row, one.message) for one in found if one.code == "ACM101"] == [
        (20, "net True False None True"),
        (29, "net False True 26 False"),
        (33, "net None True 26 False"),
        (47, "model True True 46 False"),
        (51, "model.to(x.device) True None None True"),
    ]
    assert [(one.span.start.row, one.message) for one in found if one.code == "ACM102"] == [
        (20, "F.cross_entropy(net(x), y).backward(retain_graph=True) True False"),
        (51, "torch.autograd.grad(model.to(x.device)(x).sum(), x, create_graph=True) True True"),
    ]
