"""The GitHub Action: its shell steps are taken out of action.yml and run, as the runner would, in bash.

GitHub itself is played by a few folders and files. What the steps may not do with inputs is tried with inputs that
would do harm in a shell or on a command line.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"]}
MATCHERS = {
    matcher["owner"]: matcher
    for matcher in json.loads((ROOT / "integrations/github/problem-matcher.json").read_text())["problemMatcher"]
}
BAD = "import torch\n\n\ndef f(model):\n    with torch.no_grad:\n        return model()\n"
GOOD = BAD.replace("no_grad", "no_grad()")

REAL = {"python": str(Path(sys.executable))}  # beside it stands the linter that is tested

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the steps are bash")


@dataclass(frozen=True)
class Runner:
    """What a step sees of GitHub."""

    folder: Path

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH", "LANG") if name in os.environ}
        return {
            **kept,
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            "RUNNER_TEMP": str(self.folder / "temp"),
        }

    def outputs(self) -> dict[str, str]:
        lines = (self.folder / "output").read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def run(self, name: str, inputs: dict[str, str], known: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """One step, with the inputs that are given, the defaults of others, and the outputs of steps before it."""
        step = STEPS[name]
        values = {**{key: one.get("default", "") for key, one in ACTION["inputs"].items()}, **inputs}
        (self.folder / "output").write_text("")
        folder = self.workspace / value_of(step.get("working-directory", "."), values, known)
        environment = {key: value_of(text, values, known) for key, text in step["env"].items()}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=folder,
            env={**self.variables(), **environment},
            capture_output=True,
            text=True,
            check=False,
        )


def value_of(text: str, inputs: dict[str, str], known: dict[str, str]) -> str:
    """A value of a step, with its expressions replaced; each is an input or an output."""

    def replaced(expression: re.Match[str]) -> str:
        words = expression[1].split(".")
        return inputs[words[1]] if words[0] == "inputs" else known[words[-1]]

    return re.sub(r"\$\{\{ (\S+) \}\}", replaced, text)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    made = Runner(tmp_path)
    for folder in (made.workspace, tmp_path / "temp"):
        folder.mkdir()
    (tmp_path / "output").touch()
    (made.workspace / "bad.py").write_text(BAD)
    (made.workspace / "good.py").write_text(GOOD)
    return made


@pytest.fixture
def recorder(tmp_path: Path) -> Path:
    """An interpreter beside which stands a linter that only writes down how it was called."""
    folder = tmp_path / "recorder"
    folder.mkdir()
    (folder / "python").symlink_to(sys.executable)
    program = folder / "torchmemlint"
    calls = tmp_path / "calls.json"
    program.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"json.dump([sys.argv[1:], os.getcwd()], open({str(calls)!r}, 'w'))\n"
        "for word in sys.argv:\n"
        "    kind, _, file = word.partition(':')\n"
        "    if kind in ('sarif', 'markdown'):\n"
        "        open(file, 'w').write(kind + '\\n')\n"
        f"sys.exit(int(open({str(tmp_path / 'status')!r}).read()))\n"
    )
    program.chmod(0o755)
    (tmp_path / "status").write_text("1")
    return folder / "python"


def called(runner: Runner) -> list[str]:
    arguments: list[str] = json.loads((runner.folder / "calls.json").read_text())[0]
    return arguments


def test_no_expression_reaches_a_shell() -> None:
    for step in STEPS.values():
        assert "${{" not in step.get("run", "")


def test_every_input_is_used_and_every_one_that_is_used_is_declared() -> None:
    used = set(re.findall(r"inputs\.([a-z-]+)", json.dumps(ACTION["runs"])))
    assert used == set(ACTION["inputs"])


def test_every_action_is_pinned_to_a_commit() -> None:
    for file in (
        ROOT / "action.yml",
        *(ROOT / ".github").rglob("*.yml"),
        *(ROOT / "integrations/github").glob("*.yml"),
    ):
        for used in re.findall(r"uses: (\S+)", file.read_text(encoding="utf-8")):
            assert used in ("./", "OWNER/torchmemlint@COMMIT") or re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", used), used


@pytest.mark.slow
def test_the_linter_is_installed_from_the_revision_of_the_action_and_run(runner: Runner) -> None:
    done = runner.run("Install torchmemlint", {"python": sys.executable}, {})
    assert done.returncode == 0, done.stdout + done.stderr
    python = Path(runner.outputs()["python"])
    assert python.is_relative_to(runner.folder / "temp")
    done = subprocess.run(
        [str(python.with_name("torchmemlint")), "--version"], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("torchmemlint ")


@pytest.mark.parametrize(
    "version", ["--index-url=http://evil.example/", "1.0 @ file:///tmp/x", "1.0; touch pwned", "$(id)"]
)
def test_what_is_no_version_is_refused(runner: Runner, version: str) -> None:
    done = runner.run("Install torchmemlint", {"python": sys.executable, "version": version}, {})
    assert done.returncode == 2
    assert "is no version, such as 0.1.0" in done.stdout
    assert list((runner.folder / "temp").iterdir()) == []


def test_inputs_become_options(runner: Runner, recorder: Path) -> None:
    inputs = {
        "paths": "src 'a folder'\ntrain.py",
        "args": "--select TML1,TML2 --no-fold",
        "config": "lint.toml",
        "fail-on": "error",
        "confidence": "certain",
        "baseline": "baseline.json",
        "new-since": "abc123",
    }
    done = runner.run("Check", inputs, {"python": str(recorder)})
    assert done.returncode == 0, done.stdout + done.stderr
    temporary = runner.folder / "temp"
    assert called(runner) == [
        "check", "--output-format", "full", "--output-format", f"sarif:{temporary / 'torchmemlint.sarif'}",
        "--output-format", f"markdown:{temporary / 'torchmemlint.md'}", "--project-root", str(runner.workspace),
        "--config=lint.toml", "--confidence=certain", "--baseline=baseline.json", "--new-since=abc123",
        "--fail-on=error",
        "--select", "TML1,TML2", "--no-fold", "--", "src", "a folder", "train.py",
    ]  # fmt: skip
    assert runner.outputs() == {"exit-code": "1", "sarif-file": str(temporary / "torchmemlint.sarif")}
    assert (runner.folder / "summary").read_text() == "markdown\n"


def test_without_inputs_the_folder_is_checked(runner: Runner, recorder: Path) -> None:
    (runner.workspace / "part").mkdir()
    runner.run("Check", {"working-directory": "part", "summary": "false"}, {"python": str(recorder)})
    assert called(runner)[-2:] == ["--", "."]
    assert not any(word.startswith("markdown") for word in called(runner))
    assert json.loads((runner.folder / "calls.json").read_text())[1] == str(runner.workspace / "part")
    assert not (runner.folder / "summary").exists()


def test_findings_need_not_fail_a_job(runner: Runner, recorder: Path) -> None:
    runner.run("Check", {"fail-on": "never"}, {"python": str(recorder)})
    assert "--exit-zero" in called(runner)
    assert not any(word.startswith("--fail-on") for word in called(runner))


HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "x; touch pwned",
    "x\ntouch pwned",
    "x' && touch pwned && '",
    '"; touch pwned; "',
    "| tee pwned",
    "> pwned",
    "${HOME}",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", ["config", "confidence", "baseline", "new-since", "fail-on"])
def test_an_input_is_one_argument_whatever_it_says(runner: Runner, recorder: Path, name: str, text: str) -> None:
    runner.run("Check", {name: text}, {"python": str(recorder)})
    assert f"--{name}={text}" in called(runner)
    assert not list(runner.folder.rglob("pwned"))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", ["paths", "args"])
def test_lists_are_words_and_nothing_is_run(runner: Runner, recorder: Path, name: str, text: str) -> None:
    done = runner.run("Check", {name: text}, {"python": str(recorder)})
    assert not list(runner.folder.rglob("pwned"))
    assert done.returncode == (0 if (runner.folder / "calls.json").exists() else 2)
    if name == "paths" and done.returncode == 0:
        assert called(runner)[called(runner).index("--") + 1 :] == shlex.split(text)


def test_a_path_is_no_option(runner: Runner, recorder: Path) -> None:
    runner.run("Check", {"paths": "--exit-zero"}, {"python": str(recorder)})
    assert called(runner)[-2:] == ["--", "--exit-zero"]


@pytest.mark.parametrize(
    ("inputs", "complaint"),
    [
        ({"annotations": "maybe"}, "annotations: 'maybe' is neither true nor false."),
        ({"paths": "'open"}, "paths: No closing quotation"),
    ],
)
def test_wrong_inputs_are_told(runner: Runner, recorder: Path, inputs: dict[str, str], complaint: str) -> None:
    done = runner.run("Check", inputs, {"python": str(recorder)})
    assert done.returncode == 2
    assert complaint in done.stdout
    assert done.stdout.startswith("::error title=torchmemlint::")


@pytest.mark.parametrize(("status", "code"), [("0", 0), ("1", 0), ("2", 2), ("130", 2)])
def test_only_a_run_that_failed_fails_the_check(runner: Runner, recorder: Path, status: str, code: int) -> None:
    (runner.folder / "status").write_text(status)
    done = runner.run("Check", {}, {"python": str(recorder)})
    assert done.returncode == code
    assert runner.outputs()["exit-code"] == status
    assert ("::error" in done.stdout) == bool(code)


@pytest.mark.parametrize("status", ["0", "1"])
def test_the_verdict_is_that_of_the_linter(runner: Runner, status: str) -> None:
    assert runner.run("Verdict", {}, {"exit-code": status}).returncode == int(status)


def test_the_runner_is_told_of_the_matchers_and_takes_nothing_of_the_report_for_a_command(
    runner: Runner, recorder: Path
) -> None:
    done = runner.run("Check", {}, {"python": str(recorder)})
    added, stopped, resumed, *removed = done.stdout.splitlines()
    matcher = added.removeprefix("::add-matcher::")
    assert json.loads(Path(matcher).read_text())["problemMatcher"]
    token = stopped.removeprefix("::stop-commands::")
    assert re.fullmatch(r"[0-9a-f]{32}", token)
    assert resumed == f"::{token}::"
    assert removed == [f"::remove-matcher owner={owner}::" for owner in MATCHERS]


def test_annotations_can_be_left_out(runner: Runner, recorder: Path) -> None:
    done = runner.run("Check", {"annotations": "false"}, {"python": str(recorder)})
    assert "matcher" not in done.stdout
    assert "::stop-commands::" in done.stdout


def matched(owner: str, output: str) -> list[dict[str, str]]:
    """What the runner would make of an output: the patterns of a matcher hold for lines that follow each other."""
    patterns = MATCHERS[owner]["pattern"]
    lines = output.splitlines()
    found = []
    for start in range(len(lines) - len(patterns) + 1):
        parts = [re.search(one["regexp"], line) for one, line in zip(patterns, lines[start:], strict=False)]
        if all(parts):
            groups: dict[str, str] = {}
            for one, part in zip(patterns, parts, strict=True):
                assert part is not None
                groups |= {key: part[number] for key, number in one.items() if key != "regexp"}
            found.append(groups)
    return found


def reported(*arguments: str) -> str:
    command = [sys.executable, "-m", "torchmemlint", *arguments, "--isolated", "--color=never"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


EXAMPLE = "fixtures/TML201-eval-without-no-grad/bad_diffusion.py"


@pytest.mark.parametrize(("owner", "style"), [("torchmemlint", "full"), ("torchmemlint-concise", "concise")])
def test_the_matchers_know_every_finding(owner: str, style: str) -> None:
    arguments = (EXAMPLE, "fixtures/TML202-no-op-grad-mode", "fixtures/TML501-host-then-device", "--no-fold")
    expected = json.loads(reported(*arguments, "--output-format", "json"))
    assert len(expected) > 10
    found = matched(owner, reported(*arguments, "--output-format", style))
    key = ("file", "line", "column", "code")
    assert sorted(tuple(one[part] for part in key) for one in found) == sorted(
        (
            Path(one["filename"]).relative_to(ROOT).as_posix(),
            str(one["location"]["row"]),
            str(one["location"]["column"]),
            one["code"],
        )
        for one in expected
    )
    messages = {(one["file"], one["line"], one["code"]): one["message"] for one in found}
    assert "is missing `()`" in messages[("fixtures/TML202-no-op-grad-mode/bad_uncalled.py", "5", "TML202")]
    if style == "full":
        severities = {one["severity"] for one in expected}
        assert {one["severity"] for one in found} == severities


@pytest.mark.parametrize(("owner", "style"), [("torchmemlint", "full"), ("torchmemlint-concise", "concise")])
def test_rows_of_cells_are_not_taken_for_rows_of_files(owner: str, style: str) -> None:
    text = reported("examples/leaky_notebook.ipynb", "--output-format", style)
    assert "leaky_notebook.ipynb:cell " in text
    assert matched(owner, text) == []


@pytest.mark.parametrize("owner", MATCHERS)
def test_the_matchers_leave_other_lines_alone(owner: str) -> None:
    text = (
        "train.py:5:10: E501 line too long\nTML101 is a rule\n  --> train.py:5:10\nError in x.py:3: TML101\n"
        "Found 2 problems (2 errors) in 1 file.\n"
        + reported(EXAMPLE, "--statistics")
        + (ROOT / "docs" / "rules" / "TML101.md").read_text(encoding="utf-8")
    )
    assert matched(owner, text) == []
