import json
import os
import sys
from pathlib import Path
from typing import Any

import fakes
import pytest

from torchmemlint.findings import Finding

from .conftest import Run

LEAK = "import torch\nLEAK101\n"
CLEAN = "import torch\nx = 1\n"


def codes(out: str) -> list[str]:
    return [finding["code"] for finding in json.loads(out)]


def test_clean_file_is_exit_0(run: Run, project: Path) -> None:
    (project / "a.py").write_text(CLEAN)
    code, out, err = run("a.py")
    assert (code, err) == (0, "")
    assert "All checks passed" in out


def test_finding_is_exit_1_with_its_place(run: Run, project: Path) -> None:
    (project / "a.py").write_text(LEAK)
    code, out, _ = run("--output-format", "concise", "a.py")
    assert code == 1
    assert "a.py:2:1" in out
    assert "TML101" in out


def test_check_is_the_default_command_and_dot_the_default_path(run: Run, project: Path) -> None:
    (project / "a.py").write_text(LEAK)
    first = run("check", ".", "--output-format=json")
    assert first.code == 1
    assert run("--output-format=json") == first
    assert run(".", "--output-format=json") == first
    assert run("check", "--output-format=json") == first


def test_exit_zero(run: Run, project: Path) -> None:
    (project / "a.py").write_text(LEAK)
    code, out, _ = run("--exit-zero", "a.py")
    assert code == 0
    assert "TML101" in out


@pytest.mark.parametrize(
    ("word", "level", "code"),
    [
        ("LEAK101", "error", 1),
        ("LEAK401", "error", 0),
        ("LEAK401", "warning", 1),
        ("LEAK301", "warning", 0),
        ("LEAK301", "advice", 1),
    ],
)
def test_fail_on(run: Run, project: Path, word: str, level: str, code: int) -> None:
    (project / "a.py").write_text(f"import torch\n{word}\n")
    assert run("--fail-on", level, "a.py").code == code


def test_advice_is_printed_but_does_not_fail_by_default(run: Run, project: Path) -> None:
    (project / "a.py").write_text("import torch\nLEAK301\n")
    code, out, _ = run("--output-format=json", "a.py")
    assert (code, codes(out)) == (0, ["TML301"])


def test_fail_on_from_configuration_and_the_option_over_it(run: Run, project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.torchmemlint]\nfail-on = "error"\n')
    (project / ".torchmemlint.toml").unlink()
    (project / "a.py").write_text("import torch\nLEAK401\n")
    assert run("a.py").code == 0
    assert run("a.py", "--fail-on", "warning").code == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), ["TML101", "TML301", "TML401"]),
        (("--select", "TML1"), ["TML101"]),
        (("--select", "TML1,TML4"), ["TML101", "TML401"]),
        (("--select", "TML1", "--select", "serial-loader"), ["TML101", "TML401"]),
        (("--select", "ALL", "--ignore", "TML3"), ["TML101", "TML204", "TML401"]),
        (("--extend-select", "TML204"), ["TML101", "TML204", "TML301", "TML401"]),
        (("--ignore", "graph-accumulation"), ["TML301", "TML401"]),
        (("--per-file-ignores", "a.py:TML1,b.py:TML4"), ["TML301", "TML401"]),
        (("--per-file-ignores", "!b.py:ALL"), []),
        (("--config", "ignore = ['TML101']"), ["TML301", "TML401"]),
        (("--config", "severity = {TML101 = 'off'}", "--ignore=TML3"), ["TML401"]),
    ],
)
def test_selection(run: Run, project: Path, arguments: tuple[str, ...], expected: list[str]) -> None:
    (project / "a.py").write_text("import torch\nLEAK101\nLEAK204\nLEAK301\nLEAK401\n")
    assert codes(run(*arguments, "--output-format=json", "a.py").out) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--select", "TML110"), "Did you mean `TML10"),
        (("--ignore", "graph-acumulation"), "Did you mean `graph-accumulation`"),
        (("--per-file-ignores", "a.py"), "PATTERN:CODE"),
        (("--per-file-ignores", "a.py:TML999"), "Unknown rule selector `TML999`"),
        (("--selekt", "TML1"), "--select"),
        (("--config", "selekt = []"), "Did you mean `select`"),
        (("--config", "nothing.toml"), "nothing.toml: cannot be read"),
        (("--config", "what"), "neither a file"),
        (("--output-format", "ful"), "Did you mean `full`"),
        (("--jobs", "0"), "x>=1"),
        (("missing.py",), "missing.py: no such file"),
        (("chekc",), "command `check`"),
        (("-", "a.py"), "cannot be combined"),
    ],
)
def test_usage_errors_are_exit_2_and_name_the_nearest(
    run: Run, project: Path, arguments: tuple[str, ...], message: str
) -> None:
    (project / "a.py").write_text(LEAK)
    code, out, err = run(*arguments)
    assert code == 2
    assert message in err
    assert out == ""


def test_broken_configuration_is_exit_2_and_isolated_ignores_it(run: Run, project: Path) -> None:
    (project / ".torchmemlint.toml").write_text("slect = ['TML1']\n")
    (project / "a.py").write_text(LEAK)
    code, _, err = run("a.py")
    assert code == 2
    assert "slect" in err
    assert "`select`" in err
    assert ".torchmemlint.toml" in err
    assert run("--isolated", "a.py").code == 1


def test_environment_sets_options(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.py").write_text(LEAK)
    monkeypatch.setenv("TORCHMEMLINT_OUTPUT_FORMAT", "json")
    monkeypatch.setenv("TORCHMEMLINT_SELECT", "TML1,TML4")
    assert codes(run("a.py").out) == ["TML101"]
    assert "a.py:2:1" in run("a.py", "--output-format", "concise").out


def test_colour(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.py").write_text(LEAK)
    assert "\x1b[" not in run("a.py").out
    assert "\x1b[" in run("--color=always", "a.py").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run("a.py").out
    assert "\x1b[" not in run("--color=never", "a.py").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run("a.py").out


def test_quiet_shows_findings_only(run: Run, project: Path) -> None:
    (project / "a.py").write_text(LEAK)
    _, out, err = run("-q", "--output-format=concise", "a.py")
    assert (len(out.splitlines()), err) == (1, "")
    (project / "a.py").write_text(CLEAN)
    assert run("-q", "a.py") == (0, "", "")


def test_verbose_counts_files(run: Run, project: Path) -> None:
    (project / "a.py").write_text(CLEAN)
    (project / "b.py").write_text("x = 1\n")
    told = run("-v", ".").err.splitlines()
    assert told[0].startswith("notice: checked 1 file, 1 more never mention torch, in ")
    assert told[1:] == ["notice: read no other files for context"]


def test_verbose_leaves_standard_output_alone(run: Run, project: Path) -> None:
    (project / "a.py").write_text(LEAK)
    plain = run("--output-format=json", "a.py")
    told = run("-vv", "--output-format=json", "a.py")
    assert (told.code, told.out) == (plain.code, plain.out)
    assert "checked 1 file" in run("-v", "-", stdin=LEAK.encode()).err


def test_output_file(run: Run, project: Path) -> None:
    (project / "a.py").write_text(LEAK)
    code, out, _ = run("--output-format=json", "-o", "report.json", "a.py")
    assert (code, out) == (1, "")
    assert codes((project / "report.json").read_text()) == ["TML101"]
    assert run("-o", "no/such/place", "a.py").code == 2


def test_statistics(run: Run, project: Path) -> None:
    (project / "a.py").write_text("import torch\nLEAK101\nLEAK101\nLEAK401\n")
    code, out, _ = run("--statistics", "--output-format=json", "a.py")
    assert code == 1
    assert [(row["code"], row["count"]) for row in json.loads(out)] == [
        ("TML101", 2),
        ("TML401", 1),
    ]


def test_fix_changes_the_file_and_a_second_run_changes_nothing(run: Run, project: Path) -> None:
    file = project / "a.py"
    file.write_bytes(b"\xef\xbb\xbfimport torch\r\nLEAK101  # caf\xc3\xa9\r\nLEAK201\r\n")
    file.chmod(0o755)
    code, out, _ = run("--fix", "--output-format=json", "a.py")
    assert (code, codes(out)) == (1, ["TML201"])
    assert file.read_bytes() == b"\xef\xbb\xbfimport torch\r\nmended  # caf\xc3\xa9\r\nLEAK201\r\n"
    assert file.stat().st_mode & 0o777 == 0o755
    before = file.stat().st_mtime_ns
    run("--fix", "a.py")
    assert file.stat().st_mtime_ns == before
    assert run("--fix", "--unsafe-fixes", "a.py").code == 0
    assert b"LEAK" not in file.read_bytes()


def test_without_fix_nothing_is_written(run: Run, project: Path) -> None:
    file = project / "a.py"
    file.write_text(LEAK)
    run("a.py")
    run("--unsafe-fixes", "a.py")
    run("--diff", "a.py")
    assert file.read_text() == LEAK


def test_diff(run: Run, project: Path) -> None:
    file = project / "a.py"
    file.write_text(LEAK)
    code, out, err = run("--diff", "a.py")
    assert code == 1
    assert "--- a.py\n+++ a.py\n" in out
    assert "-LEAK101\n+mended\n" in out
    assert "Would fix 1 problem." in err
    file.write_text("import torch\nLEAK102\n")
    assert run("--diff", "a.py")[:2] == (0, "")


def test_fix_only_reports_nothing(run: Run, project: Path) -> None:
    file = project / "a.py"
    file.write_text(LEAK + "LEAK102\n")
    code, out, err = run("--fix-only", "a.py")
    assert (code, out, err) == (0, "", "Fixed 1 problem.\n")
    assert "mended" in file.read_text()


def test_fixes_keep_an_encoding_with_a_cookie(run: Run, project: Path) -> None:
    file = project / "a.py"
    file.write_bytes("# coding: latin-1\nimport torch\nLEAK101  # é\n".encode("latin-1"))
    assert run("--fix", "a.py").code == 0
    assert file.read_bytes() == "# coding: latin-1\nimport torch\nmended  # é\n".encode("latin-1")


def test_read_only_file_is_an_error_and_stays(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project / "a.py"
    file.write_text(LEAK)
    monkeypatch.setattr(os, "access", lambda *_: False)
    code, _, err = run("--fix", "a.py")
    assert code == 2
    assert "cannot be written" in err
    assert file.read_text() == LEAK


def test_standard_input(run: Run) -> None:
    code, out, _ = run("-", "--output-format=json", "--stdin-filename", "src/x.py", stdin=LEAK.encode())
    assert (code, codes(out)) == (1, ["TML101"])
    assert json.loads(out)[0]["filename"].endswith("src/x.py")
    assert run("-", stdin=CLEAN.encode()).code == 0
    assert run("-", stdin=b"").code == 0


def test_standard_input_with_fix_gives_the_fixed_text(run: Run) -> None:
    code, out, err = run("-", "--fix", "--output-format=concise", stdin=LEAK.encode())
    assert (code, out) == (0, "import torch\nmended\n")
    code, out, err = run("-", "--fix", "--output-format=concise", stdin=b"import torch\nLEAK102\n")
    assert (code, out) == (1, "import torch\nLEAK102\n")
    assert "TML102" in err
    assert run("-", "--fix", stdin=b"no = 1\n").out == "no = 1\n"


def test_standard_input_with_diff(run: Run) -> None:
    code, out, _ = run("-", "--diff", "--stdin-filename=a.py", stdin=LEAK.encode())
    assert code == 1
    assert "+mended" in out


def test_excluded_standard_input(run: Run) -> None:
    arguments = ("-", "--stdin-filename", "build/x.py", "--output-format=json")
    assert codes(run(*arguments, stdin=LEAK.encode()).out) == ["TML101"]
    assert codes(run(*arguments, "--force-exclude", stdin=LEAK.encode()).out) == []
    assert run(*arguments, "--force-exclude", "--fix", stdin=LEAK.encode()).out.startswith(LEAK)


def test_text_file_by_name_is_no_silent_success(run: Run, project: Path) -> None:
    (project / "notes.txt").write_text("torch")
    code, _, err = run("notes.txt")
    assert code == 2
    assert "notes.txt: not a Python file" in err
    (project / "a.py").write_text(CLEAN)
    code, _, err = run("notes.txt", "a.py")
    assert code == 0
    assert "notes.txt" in err


def test_directory_without_python_says_so(run: Run, project: Path) -> None:
    (project / "empty").mkdir()
    code, _, err = run("empty")
    assert code == 0
    assert "no Python files" in err


def test_show_files_and_settings(run: Run, project: Path) -> None:
    (project / "b.py").write_text(LEAK)
    (project / "a.py").write_text(CLEAN)
    assert run("--show-files", ".") == (0, f"{project / 'a.py'}\n{project / 'b.py'}\n", "")
    code, out, _ = run("--show-settings", "--select=TML1", "--fail-on=error", "--confidence=possible", ".")
    assert code == 0
    assert 'rules = ["TML000", "TML001", "TML002", "TML101", "TML102"]' in out
    assert 'fail-on = "error"' in out
    assert 'confidence = "possible"' in out


def test_project_root_bounds_configuration_and_shortens_paths(run: Run, project: Path) -> None:
    (project / ".torchmemlint.toml").write_text("ignore = ['TML101']")
    (project / "sub").mkdir()
    (project / "sub" / "a.py").write_text(LEAK)
    assert run("sub").code == 0
    code, out, _ = run("--project-root=sub", "--output-format=concise", "sub")
    assert code == 1
    assert out.startswith("a.py:2:1")


def test_crash_in_one_file_is_exit_2_and_the_rest_goes_on(run: Run, project: Path) -> None:
    (project / "a.py").write_text("import torch\nCRASH\n")
    (project / "b.py").write_text(LEAK)
    code, out, err = run("--output-format=json", ".")
    assert (code, codes(out)) == (2, ["TML101"])
    assert "a.py: internal error: ZeroDivisionError: a rule divided by zero" in err
    assert "Traceback" not in err
    assert "Traceback" in run("--verbose", ".").err


def test_interrupt_is_exit_130(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    (project / "a.py").write_text(LEAK)
    monkeypatch.setattr("torchmemlint.engine.runner.check_all", interrupted)
    code, out, err = run("a.py")
    assert (code, out, err.strip()) == (130, "", "error: interrupted")


def test_advice_is_folded_unless_it_is_asked_for(run: Run, project: Path) -> None:
    (project / "a.py").write_text("import torch\nLEAK301\n" * 5)
    folded = run("a.py").out
    assert "a.py:2  TML301" in folded
    assert "and 4 more: lines 4, 6, 8, 10" in folded
    assert "--> a.py" not in folded
    asked = ["--no-fold"], ["--select", "TML301"], ["--extend-select", "TML301"], ["--fail-on", "advice"]
    for arguments in asked:
        out = run("a.py", *arguments).out
        assert out.count("--> a.py") == 5, arguments
        assert "one example for each rule" not in out


def test_what_could_not_be_fixed_is_not_marked_as_fixable(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fix would bring a finding of a rule that was asked for, beside what it writes."""
    checking = sys.modules["torchmemlint.engine.checking"]

    def check_text(text: str, *given: Any, **more: Any) -> list[Finding]:
        return fakes.check_text(text.replace("mended\n", "mended\nLEAK204\n"), *given, **more)

    monkeypatch.setattr(checking, "check_text", check_text)
    (project / "a.py").write_text("import torch\nLEAK101\n")
    plain = run("check", "a.py", "--extend-select", "TML204", "--output-format", "concise")
    assert "TML101 [*] a leak" in plain.out
    shown = run("check", "a.py", "--diff", "--extend-select", "TML204")
    assert shown.out == ""
    assert "Not fixed a.py:2:1: TML101: it would bring TML204" in shown.err
    fixed = run("check", "a.py", "--fix", "--extend-select", "TML204", "--output-format", "concise")
    assert "TML101 a leak" in fixed.out
    assert "Not fixed a.py:2:1: TML101: it would bring TML204" in fixed.out
    assert "[*]" not in fixed.out
