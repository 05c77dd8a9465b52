"""Files for services that are not here: each is held against the service's schema, and what it runs is run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from torchmemlint import __version__

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted([*(ROOT / ".github" / "workflows").glob("*.yml"), *(ROOT / "integrations" / "github").glob("*.yml")])
GITLAB = ROOT / "integrations" / "gitlab" / "torchmemlint.gitlab-ci.yml"
JENKINS = ROOT / "integrations" / "jenkins" / "Jenkinsfile"
BAD = "import torch\n\n\ndef f(model):\n    with torch.no_grad:\n        return model()\n"
SCHEMAS = {
    **dict.fromkeys(WORKFLOWS, "vendor.github-workflows"),
    ROOT / "action.yml": "vendor.github-actions",
    GITLAB: "vendor.gitlab-ci",
    ROOT / ".readthedocs.yaml": "vendor.readthedocs",
    ROOT / "CITATION.cff": "vendor.citation-file-format",
    **dict.fromkeys((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"), "vendor.github-issue-forms"),
}


def checked(file: Path, schema: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("file", SCHEMAS, ids=lambda file: file.name)
def test_each_file_fits_its_schema(file: Path) -> None:
    done = checked(file, SCHEMAS[file])
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        (ROOT / "action.yml", "using: composite", "using: compost"),
        (WORKFLOWS[0], "runs-on:", "runs-of:"),
        (GITLAB, "codequality:", "code-quality:"),
    ],
    ids=["action", "workflow", "gitlab"],
)
def test_the_schemas_notice_what_is_wrong(tmp_path: Path, file: Path, before: str, after: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert before in text
    (tmp_path / file.name).write_text(text.replace(before, after))
    assert checked(tmp_path / file.name, SCHEMAS[file]).returncode == 1


def test_the_version_to_cite_is_ours() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == __version__


def audited(*files: Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("zizmor", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("zizmor is not installed")
    command = [
        program,
        "--offline",
        "--no-progress",
        "--config",
        str(ROOT / ".github" / "zizmor.yml"),
        *map(str, files),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_audit_of_the_workflows_finds_nothing() -> None:
    done = audited(ROOT / "action.yml", *WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_audit_notices_an_injection(tmp_path: Path) -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    text = text.replace('exit "$EXIT_CODE"', "exit ${{ inputs.fail-on }}")
    (tmp_path / "action.yml").write_text(text)
    done = audited(tmp_path / "action.yml")
    assert done.returncode != 0
    assert "template-injection" in done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a finding, and a folder `bin` that stands in for installing anything."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "bad.py").write_text(BAD)
    (folder / "train.py").write_text("print()\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    linter = f'#!/bin/sh\nexec {sys.executable} -m torchmemlint "$@"\n'
    scripts = {
        "pip": "#!/bin/sh\n",
        "torchmemlint": linter,
        "python": '#!/bin/sh\nmkdir -p "$3/bin" && cp "$(dirname "$0")"/pip "$(dirname "$0")"/torchmemlint "$3/bin"\n',
    }
    for name, text in scripts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return folder


def shell(script: str, project: Path) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PATH": f"{project.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        ["sh", "-e", "-c", script], cwd=project, env=variables, capture_output=True, text=True, check=False
    )


def test_the_job_of_gitlab_fails_and_leaves_its_reports(project: Path) -> None:
    job: dict[str, Any] = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))["torchmemlint"]
    done = shell("\n".join(job["script"]), project)
    assert done.returncode == 1, done.stderr
    assert "TML202" in done.stdout
    report = json.loads((project / job["artifacts"]["reports"]["codequality"]).read_text())
    assert [one["check_name"] for one in report] == ["TML202 no-op-grad-mode"]
    assert report[0]["location"]["path"] == "src/bad.py"
    assert "TML202" in (project / job["artifacts"]["reports"]["junit"]).read_text()


def test_the_stage_of_jenkins_leaves_its_reports_and_lets_the_gate_decide(project: Path) -> None:
    text = JENKINS.read_text(encoding="utf-8")
    script = re.search(r"sh '''\n(.*?)'''", text, re.DOTALL)
    assert script is not None
    done = shell(script[1].replace("\\\\", "\\"), project)  # as Groovy reads it
    assert done.returncode == 0, done.stderr
    sarif = re.search(r"sarif\(pattern: '([^']+)'", text)
    junit = re.search(r"testResults: '([^']+)'", text)
    assert sarif is not None
    assert junit is not None
    results = json.loads((project / sarif[1]).read_text())["runs"][0]["results"]
    assert [one["ruleId"] for one in results] == ["TML202"]
    assert "TML202" in (project / junit[1]).read_text()


def has_errors(text: str) -> bool:
    """Whether a parser of Groovy stumbles."""
    groovy = pytest.importorskip("tree_sitter_groovy")
    tree_sitter = pytest.importorskip("tree_sitter")
    parser = tree_sitter.Parser(tree_sitter.Language(groovy.language()))
    return bool(parser.parse(text.encode()).root_node.has_error)


def test_the_pipeline_of_jenkins_is_groovy() -> None:
    text = JENKINS.read_text(encoding="utf-8")
    assert not has_errors(text)
    assert has_errors(text.replace("recordIssues(", "recordIssues((", 1))
    assert has_errors(text.replace("'''", "", 1))
