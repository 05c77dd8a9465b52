from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .commands import commands, repository, script

DOCUMENT = """\
# A title

```bash
pip install torchmemlint   # the linter
# only a comment

torchmemlint fixtures/ \\
    --exit-zero
for file in *.py; do
    echo "$file"
done
```

```python
not_a_command()
```

<!-- not run: needs an account -->
```bash
twine upload dist/*
```

```console
$ torchmemlint rule TML101
graph-accumulation
$ echo done
done
```
"""


def test_commands_are_found_whole_and_in_order() -> None:
    assert list(commands(DOCUMENT)) == [
        "pip install torchmemlint   # the linter",
        "torchmemlint fixtures/ \\\n    --exit-zero",
        'for file in *.py; do\n    echo "$file"\ndone',
        "torchmemlint rule TML101",
        "echo done",
    ]


def test_a_command_that_does_not_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not end: for x in y; do"):
        list(commands("```bash\nfor x in y; do\n```\n"))


def run(*found: str) -> tuple[int, str]:
    done = subprocess.run(["bash", "-c", script(list(found))], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_one_shell_runs_them_all_and_stops_at_a_failure() -> None:
    assert run("x=it\\'s", 'echo "$x"')[0] == 0
    status, output = run("echo before", "(exit 3)", "echo after")
    assert status == 1
    assert "README command failed with 3: (exit 3)" in output
    assert "before\n" in output
    assert "after" not in output


def test_findings_are_no_failure() -> None:
    assert run("torchmemlint() { return 1; }", "torchmemlint fixtures")[0] == 0
    assert run("torchmemlint() { return 2; }", "torchmemlint fixtures")[0] == 1
    assert run("false")[0] == 1


def test_a_document_of_a_folder_is_read_from_the_repository(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "pyproject.toml").touch()
    assert repository(tmp_path / "README.md") == tmp_path.resolve()
    assert repository(tmp_path / "docs" / "README.md") == tmp_path.resolve()
