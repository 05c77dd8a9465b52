"""Options and settings that people know from ruff: each does what it says, and says what is wrong with its value."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchmemlint.cli import watching

from .conftest import Run

CODE = "import torch\nLEAK101\nLEAK201\n"
CONCISE = "--output-format=concise"


@pytest.fixture
def file(project: Path) -> Path:
    path = project / "a.py"
    path.write_text(CODE)
    return path


def codes(out: str) -> list[str]:
    return [line.split(": ")[1].split()[0] for line in out.splitlines() if ".py:" in line]


def settings(project: Path, text: str) -> None:
    (project / ".torchmemlint.toml").write_text(text)


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(project: Path) -> Path:
    for name in ("a.py", "gen/b.py", "old/c.py", "build/d.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(CODE)
    return project


def shown(run: Run, *arguments: str) -> list[str]:
    return [Path(line).name for line in run("--show-files", *arguments).out.splitlines()]


def test_exclude_and_extend_exclude(tree: Path, run: Run) -> None:
    settings(tree, 'extend-exclude = ["old/"]\n')
    assert shown(run) == ["a.py", "b.py"]
    assert shown(run, "--extend-exclude", "gen") == ["a.py"]
    assert shown(run, "--exclude", "gen,a.py") == ["d.py"]  # the default is replaced, `build` with it
    assert shown(run, "--exclude", "gen", "--extend-exclude", "a.py", "--extend-exclude", "build/") == []
    assert shown(run, "gen/b.py", "--exclude=gen") == ["b.py"]  # who names it wants it
    assert shown(run, "gen/b.py", "--exclude=gen", "--force-exclude") == []
    settings(tree, 'force-exclude = true\nextend-exclude = ["gen"]\n')
    assert shown(run, "gen/b.py") == []
    assert shown(run, "gen/b.py", "--no-force-exclude") == ["b.py"]


def test_patterns_of_the_command_line_are_relative_to_where_it_is(tree: Path, run: Run) -> None:
    (tree / "gen" / "torchmemlint.toml").write_text("")
    assert shown(run, "--extend-exclude", "gen/b.py") == ["a.py", "c.py"]
    assert shown(run, "--extend-exclude", "/b.py") == ["a.py", "b.py", "c.py"]


def test_respect_gitignore(tree: Path, run: Run) -> None:
    (tree / ".git").mkdir()
    (tree / ".gitignore").write_text("old\n")
    assert shown(run) == ["a.py", "b.py"]
    assert shown(run, "--no-respect-gitignore") == ["a.py", "b.py", "c.py"]


def test_per_file_ignores_are_replaced_or_extended(tree: Path, run: Run) -> None:
    settings(tree, '[per-file-ignores]\n"gen/**" = ["TML1"]\n[extend-per-file-ignores]\n"old/**" = ["TML2"]\n')
    found = ["TML101", "TML201", "TML201", "TML101"]
    assert codes(run(CONCISE).out) == found
    assert codes(run(CONCISE, "--extend-per-file-ignores", "a.py:TML1,TML2").out) == found[2:]
    assert codes(run(CONCISE, "--per-file-ignores", "a.py:TML1").out) == ["TML201", "TML101", "TML201", "TML101"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--exclude", "a\\b"), "Invalid value for --exclude: invalid file pattern `a\\b`"),
        (("--extend-exclude", "**/a/**/b/**/c/**/d"), "Invalid value for --extend-exclude: invalid file pattern"),
        (("--extend-per-file-ignores", "TML1"), "Invalid value for --extend-per-file-ignores: `TML1` is not of the"),
        (("--extend-per-file-ignores", "a:TML9"), "Invalid value for --extend-per-file-ignores: Unknown rule selector"),
        (("--fixable", "TML9"), "Invalid value for --fixable: Unknown rule selector `TML9`"),
        (("--extend-fixable", "TML9"), "Invalid value for --extend-fixable: Unknown rule selector `TML9`"),
        (("--unfixable", "graph-acumulation"), "Did you mean `graph-accumulation`?"),
        (("--target-torch", "two"), 'Invalid value for --target-torch: expected a torch version such as "2.4"'),
        (("--silent", "-v"), "--silent and --verbose contradict each other"),
        (("--fix-only", "--no-fix"), "--fix-only and --no-fix contradict each other"),
        (("--add-ignores", "--ignore-noqa"), "--add-ignores and --ignore-noqa contradict each other"),
        (("--exit-zero", "--exit-non-zero-on-fix"), "contradict each other"),
        (("--extend", "acme"), "named by --plugins: --plugins acme"),
        (("--watch", "-"), "--watch is for files, not for standard input"),
        (("--watch", "--show-files"), "--watch and --show-files cannot be combined"),
        (("--watch", "nowhere"), "nowhere: no such file or folder"),
        (("--config", "extend = 'x.toml'"), "only a file inherits from another"),
    ],
)
def test_what_is_wrong_is_said(file: Path, run: Run, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run("a.py" if "-" not in arguments else "-", *(one for one in arguments if one != "-"))
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


# -- fixes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "arguments", "fixed"),
    [
        ("", ("--fix",), ["TML101"]),
        ("", (), []),
        ("fix = true", (), ["TML101"]),
        ("fix = true", ("--no-fix",), []),
        ("fix-only = true", (), ["TML101"]),
        ("fix-only = true", ("--no-fix",), []),
        ("fix = true\nunsafe-fixes = true", (), ["TML101", "TML201"]),
        ("unsafe-fixes = true", ("--fix", "--no-unsafe-fixes"), ["TML101"]),
        ("", ("--fix", "--unsafe-fixes", "--fixable", "TML2"), ["TML201"]),
        ("", ("--fix", "--unsafe-fixes", "--unfixable", "TML2"), ["TML101"]),
        ("unfixable = ['ALL']", ("--fix",), []),
        ("unfixable = ['TML101']", ("--fix", "--fixable", "TML1"), ["TML101"]),  # the command line starts afresh
        ("unfixable = ['TML1']", ("--fix", "--extend-fixable", "TML101"), ["TML101"]),
        ("fixable = ['TML2']\nextend-fixable = ['graph-accumulation']", ("--fix",), ["TML101"]),
        ("extend-safe-fixes = ['TML201']", ("--fix",), ["TML101", "TML201"]),
        ("extend-unsafe-fixes = ['TML101']", ("--fix",), []),
        ("extend-unsafe-fixes = ['TML1']", ("--fix", "--unsafe-fixes"), ["TML101", "TML201"]),
        ("extend-safe-fixes = ['TML2']\nextend-unsafe-fixes = ['TML2', 'TML1']", ("--fix",), []),
        ("extend-safe-fixes = ['TML201']\nextend-unsafe-fixes = ['ALL']", ("--fix",), ["TML201"]),
    ],
)
def test_what_is_fixed(file: Path, run: Run, text: str, arguments: tuple[str, ...], fixed: list[str]) -> None:
    settings(file.parent, text)
    run("a.py", *arguments)
    now = file.read_text()
    assert [f"TML{word[4:]}" for word in ("LEAK101", "LEAK201") if word not in now] == fixed


def test_what_is_not_to_be_fixed_is_still_shown(file: Path, run: Run) -> None:
    told = run("a.py", "--unfixable=TML101").out
    assert "= help: Mend it" in told
    assert "fixable with --fix." not in told


def test_other_commands_do_not_fix_because_a_configuration_says_so(file: Path, run: Run) -> None:
    settings(file.parent, "fix = true\nfix-only = true\n")
    run("baseline", "create")
    assert file.read_text() == CODE
    assert run("a.py", "--add-ignores", "--no-baseline").code == 0
    assert "LEAK101  # torchmemlint: ignore[TML101]" in file.read_text()


def test_show_fixes(file: Path, run: Run) -> None:
    file.write_text("import torch\nLEAK101\nx = LEAK101\ny = LEAK201\n")
    done = run("a.py", "--fix", "--unsafe-fixes", "--show-fixes")
    listed = "- a.py:\n    2  TML101 graph-accumulation\n    1  TML201 eval-without-no-grad\n"
    assert f"Fixed 3 problems in 1 file:\n{listed}" in done.out
    file.write_text(CODE)
    settings(file.parent, "show-fixes = true\n")
    only = run("a.py", "--fix-only")
    assert only.err == "Fixed 1 problem.\n- a.py:\n    1  TML101 graph-accumulation\n"
    file.write_text(CODE)
    assert "- a.py:" not in run("a.py", "--fix", "--no-show-fixes").out
    assert "- a.py:" not in run("a.py", "--show-fixes").out


def test_exit_non_zero_on_fix(file: Path, run: Run) -> None:
    file.write_text("import torch\nLEAK101\n")
    assert run("a.py", "--fix", "--exit-non-zero-on-fix").code == 1
    assert run("a.py", "--fix", "--exit-non-zero-on-fix").code == 0
    file.write_text(CODE)
    assert run("a.py", "--fix-only", "--exit-non-zero-on-fix").code == 1
    assert run("a.py", "--fix-only", "--exit-non-zero-on-fix").code == 0
    file.write_text(CODE)
    assert run("a.py", "--fix-only").code == 0


# -- output ------------------------------------------------------------------------------------------------------------


def test_ignore_noqa(file: Path, run: Run) -> None:
    file.write_text(
        "import torch\nLEAK101  # torchmemlint: ignore[TML101]\nLEAK201  # noqa: TML201\nx = 1  # noqa: TML101\n"
    )
    assert codes(run("a.py", CONCISE).out) == ["TML001"]
    assert codes(run("a.py", CONCISE, "--ignore-noqa").out) == ["TML101", "TML201"]
    assert codes(run("a.py", CONCISE).out) == ["TML001"]  # not what was kept of the run before


def test_silent(file: Path, run: Run) -> None:
    assert run("a.py", "-s") == (1, "", "")
    assert run("a.py", "missing/..", "--silent", "--output-format=concise,json:found.json").code == 1
    assert "TML101" in (file.parent / "found.json").read_text()
    assert run("a.py", "--silent", "--fix", "--diff") == (1, "", "")
    assert run("empty", "-s").code == 2
    fixed = run("-", "--silent", "--fix", stdin=CODE.encode())
    assert fixed.out == CODE.replace("LEAK101", "mended")
    file.write_text("import torch\nCRASH\n")
    code, out, err = run("a.py", "--silent")
    assert (code, out) == (2, "")
    assert "divided by zero" in err


def test_the_output_format_is_a_setting(file: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(file.parent, 'output-format = "concise"\n')
    assert run("a.py", "-q").out.splitlines() == [
        "a.py:2:1: TML101 [*] a leak",
        "a.py:3:1: TML201 [-] a leak",
    ]
    assert run("a.py", "--output-format=json").out.startswith("[")
    monkeypatch.setenv("TORCHMEMLINT_OUTPUT_FORMAT", "github")
    assert run("a.py").out.startswith("::error")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("output-format = 'jsn'", "Did you mean `json`?"),
        ("output-format = 'json:x'", "a file can be named on the command line only"),
        ("fix = 1", "`fix`: expected true or false, found an integer"),
        ("preview = 'yes'", "`preview`: expected true or false, found a string"),
        ("fixable = ['TML9']", "`fixable`: Unknown rule selector `TML9`"),
        ("extend-safe-fixes = ['TML9']", "`extend-safe-fixes`: Unknown rule selector `TML9`"),
        ("extend-per-file-ignores = {'a' = ['TML9']}", "`extend-per-file-ignores`: Unknown rule selector `TML9`"),
    ],
)
def test_wrong_settings_are_said(file: Path, run: Run, text: str, message: str) -> None:
    settings(file.parent, text)
    code, out, err = run("a.py")
    assert (code, out) == (2, "")
    assert message in err


def test_help_has_groups(run: Run) -> None:
    told = run("check", "--help").out
    titles = [line for line in told.splitlines() if line.endswith(":") and not line.startswith((" ", "Usage"))]
    assert titles == [
        f"{title}:"
        for title in (
            "Rule selection", "Fixes", "Known findings", "File selection", "Output", "Exit code", "Configuration",
            "Running", "Options",
        )
    ]  # fmt: skip
    assert told.index("Fixes:") < told.index("--unfixable") < told.index("Known findings:")
    assert "--extend MODULE" not in told


# -- watching ----------------------------------------------------------------------------------------------------------


def test_it_is_said_what_watching_needs(file: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "find_spec", lambda name: None)
    code, _, err = run("a.py", "--watch")
    assert code == 2
    assert "pip install 'torchmemlint[watch]'" in err


def _until(process: subprocess.Popen[str], log: Path, words: str, after: int = 0) -> int:
    """Wait until a process has written some words behind a place of its log; where they end."""
    for _ in range(600):
        text = log.read_text()
        if (at := text.find(words, after)) >= 0:
            return at + len(words)
        assert process.poll() is None, text
        time.sleep(0.1)
    raise AssertionError(f"{words!r} is not in {log.read_text()[after:]!r}")


@pytest.mark.skipif(sys.platform == "win32", reason="sends Ctrl-C as a signal")
def test_watch_checks_again_and_ends_with_ctrl_c(project: Path) -> None:
    pytest.importorskip("watchfiles")
    folder, log = project / "src", project.parent / "log.txt"
    folder.mkdir()
    (folder / "a.py").write_text("import torch\n\nwith torch.no_grad:\n    pass\n")
    (project / "torchmemlint.toml").write_text("")
    (project / ".torchmemlint.toml").unlink()
    waiting = "watching for changes; Ctrl-C ends\n"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "torchmemlint", "src", "--watch", CONCISE, "--no-cache"],
            cwd=project, stdout=stream, stderr=stream, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
        )  # fmt: skip
        try:
            at = _until(process, log, waiting, _until(process, log, "a.py:3:6: TML202"))
            (folder / "new").write_text("import torch\n\nwith torch.no_grad():\n    pass\n")
            (folder / "new").replace(folder / "a.py")  # as editors write
            at = _until(process, log, waiting, _until(process, log, "All checks passed!", at))
            (folder / "a.py").write_text("import torch\n\nwith torch.enable_grad:\n    pass\n")
            at = _until(process, log, waiting, _until(process, log, "TML202", at))
            (project / "torchmemlint.toml").write_text("slect = []\n")
            at = _until(process, log, waiting, _until(process, log, "unknown configuration key `slect`", at))
            (project / "torchmemlint.toml").write_text("ignore = ['TML202']\n")
            at = _until(process, log, waiting, _until(process, log, "All checks passed!", at))
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()
    assert log.read_text()[at:] == ""
