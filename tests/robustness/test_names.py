"""Names of files that are meant to be something else: in every format, and beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import pytest

from tests.robustness.conftest import LEAK, MENDED, Run
from torchmemlint.report.formats import FORMATS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs names of any bytes")
NAMES = [
    *(b"a b.py", b"new\nline.py", b"return\r.py", b"bytes\xff\xfe.py", b"100%25%0A.py", b"@me #1.py", b"a:b,c;d.py"),
    *(b"::error::begin.py", b" ::error::blank.py", b"x\n::error::line.py", b"\x1b[31mred\x1b]0;title\x07.py"),
    *("u\u202eyp.py".encode(), "\u0085\u2028z.py".encode(), b"]]><![CDATA[.py", b"q\"'<&>|`*_\\.py", b"-rf.py"),
]


@pytest.fixture
def odd(project: Path) -> Path:
    (project / "a.py").unlink()
    for name in NAMES:
        Path(os.fsdecode(os.fsencode(project) + b"/" + name)).write_text(LEAK)
    return project


@pytest.mark.usefixtures("odd")
@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_a_name_is_a_name_in_every_format(run: Run, kind: str) -> None:
    done = run(f"--output-format={kind}", "--color=never")
    assert (done.returncode, done.stderr) == (1, "")
    if kind == "html":
        assert "<![CDATA[" not in done.stdout
        return
    tricks = {c for c in done.stdout if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl") and c not in "\n\t"}
    assert tricks <= ({"\r"} if kind == "junit" else set())
    begun = [line for line in done.stdout.split("\n") if line.lstrip().startswith("::")]
    assert all(line.startswith("::warning file=") for line in begun)
    assert len(begun) == (len(NAMES) if kind == "github" else 0)


def test_machines_read_the_names_as_they_are(odd: Path, run: Run) -> None:
    expected = sorted(NAMES)
    for each in json.loads(run("--output-format=sarif").stdout)["runs"]:
        uris = [found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for found in each["results"]]
        assert sorted(map(unquote_to_bytes, uris)) == expected
    listed = json.loads(run("--output-format=json").stdout)
    names = [Path(found["filename"]) for found in listed]
    assert sorted(os.fsencode(name.relative_to(odd)) for name in names) == expected
    assert len(ElementTree.fromstring(run("--output-format=junit").stdout)) == len(NAMES)


def test_a_diff_of_them_can_be_applied(odd: Path, run: Run) -> None:
    (odd / "patch").write_text(run("--diff").stdout)
    subprocess.run(["git", "init", "-q"], cwd=odd, check=True)
    subprocess.run(["git", "apply", "-p0", "patch"], cwd=odd, check=True)
    assert {path.read_text() for path in odd.glob("*.py")} == {MENDED}


def test_notices_are_of_one_line(odd: Path, run: Run) -> None:
    (odd / "to\n::error::\x1b[31m.py").symlink_to("/etc/hostname")
    done = run()
    (line,) = done.stderr.splitlines()
    assert line.startswith("notice: ")
    assert "\x1b" not in line
