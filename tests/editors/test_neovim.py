"""Neovim, headless, with its own client and the files of `editors/neovim`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from editors.setting import EDITORS, FIXED, FIXED_ALL, HERE, editor, environment, make_project, needs_server, version_of

MODERN = (0, 11)  # the first with `vim.lsp.config`
OLDEST = (0, 7)


@pytest.fixture
def neovim() -> str:
    return editor("nvim", "neovim")


@needs_server
def test_it_shows_the_problems_and_fixes_them(neovim: str, tmp_path: Path) -> None:
    version = version_of(neovim)
    if version < OLDEST:
        pytest.skip(f"Neovim {version} has no autocommands in Lua")
    program = make_project(tmp_path / "project")
    configured = (
        ["--cmd", f"set runtimepath^={EDITORS / 'neovim'}", "--cmd", 'lua vim.lsp.enable("torchmemlint")']
        if version >= MODERN
        else ["--cmd", f"source {EDITORS / 'neovim' / 'torchmemlint.lua'}"]
    )
    result = tmp_path / "result.json"
    done = subprocess.run(
        [neovim, "--clean", "--headless", "-n", *configured, str(program), "-c", f"luafile {HERE / 'drive.lua'}"],
        env=environment(tmp_path, RESULT=str(result)),
        cwd=program.parent,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert result.exists(), done.stdout + done.stderr
    seen = json.loads(result.read_text())
    assert seen.get("problem") is None, seen["problem"]

    found = [(one["code"], one["line"], one["column"], one["severity"]) for one in seen["diagnostics"]]
    assert found == [("TML105", 16, 12, 2), ("TML101", 18, 12, 1), ("TML201", 26, 17, 2), ("TML301", 34, 62, 3)]
    assert {one["source"] for one in seen["diagnostics"]} == {"torchmemlint"}
    assert seen["hover"].startswith("**TML101** graph-accumulation")

    fix, *others = (title for title in seen["titles"] if "TML101" in title)
    assert fix == "Fix TML101: Detach `loss` from its graph"
    assert others == ["Ignore TML101 on this line", "Ignore TML101 in this file", "Explain TML101"]
    assert FIXED in seen["fixed"]
    assert FIXED_ALL not in seen["fixed"]
    assert sorted(one["code"] for one in seen["after"]) == ["TML105", "TML201", "TML301"]
    assert FIXED_ALL in seen["fixed_all"]
    assert sorted(one["code"] for one in seen["left"]) == ["TML105", "TML301"]
    assert program.read_text() == (EDITORS / "example" / "train.py").read_text(), "a buffer was changed, not its file"


@needs_server
def test_the_file_for_newer_ones_is_a_configuration(neovim: str, tmp_path: Path) -> None:
    """Every Neovim can tell that the file is what `vim.lsp.config` takes, and that its command is there."""
    code = (
        f"local c = dofile('{EDITORS / 'neovim' / 'lsp' / 'torchmemlint.lua'}') "
        "print(vim.fn.json_encode({c, vim.fn.executable(c.cmd[1])})) vim.cmd('qall!')"
    )
    done = subprocess.run(
        [neovim, "--clean", "--headless", "-c", f"lua {code}"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    configuration, executable = json.loads(done.stdout + done.stderr)
    assert executable == 1
    assert configuration["cmd"] == ["torchmemlint", "server"]
    assert configuration["filetypes"] == ["python"]
    assert set(configuration) == {"cmd", "filetypes", "root_markers", "init_options"}
