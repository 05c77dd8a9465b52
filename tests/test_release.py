"""What a release needs agrees: versions, changelog, metadata, workflows and the recipe for conda-forge."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tools import tool
from torchmemlint import __version__
from torchmemlint.report.formats import FORMATS
from torchmemlint.rules.registry import own

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
TODAY = "2031-05-06"
TOOL = tool("release")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the files that name the version, with an empty part for what is unreleased."""
    for name in {name for name, _ in TOOL.PLACES}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    text = TOOL.PART.sub(lambda part: "## [Unreleased]\n\n" if part["name"] == "Unreleased" else part[0], CHANGELOG)
    (tmp_path / "CHANGELOG.md").write_text(text, encoding="utf-8")
    return tmp_path


def test_all_files_name_the_same_version() -> None:
    assert {said for _, said in TOOL.written(ROOT)} == {__version__}
    assert __version__ in TOOL.parts(CHANGELOG)


def test_a_prepared_version_is_ready(tree: Path) -> None:
    TOOL.prepare(tree, __version__, TODAY)
    assert list(TOOL.problems(tree, __version__)) == []
    assert f"## [{__version__}] - {TODAY}\n" in (tree / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_next_version_takes_what_was_unreleased(tree: Path) -> None:
    path = tree / "CHANGELOG.md"
    path.write_text(path.read_text().replace("## [Unreleased]\n", "## [Unreleased]\n\n- Something new.\n"))
    assert any("belong to" in problem for problem in TOOL.problems(tree, __version__))
    TOOL.prepare(tree, "7.8.9rc1", TODAY)
    assert list(TOOL.problems(tree, "7.8.9rc1")) == []
    assert TOOL.notes(tree, "7.8.9rc1") == "- Something new.\n"
    assert {said for _, said in TOOL.written(tree)} == {"7.8.9rc1"}
    untouched = (ROOT / "editors/vscode/package-lock.json").read_text().count('"version": "0.1.0"')
    after = (tree / "editors/vscode/package-lock.json").read_text()
    assert after.count('"version": "7.8.9rc1"') == 2
    assert after.count('"version": "0.1.0"') == untouched - 2


def test_what_does_not_agree_is_named(tree: Path) -> None:
    (tree / "CITATION.cff").write_text("version: 0.0.9\n")
    found = list(TOOL.problems(tree, "4.0.0"))
    assert "CITATION.cff says 0.0.9, not 4.0.0" in found
    assert "CHANGELOG.md says nothing of 4.0.0" in found
    assert "latest is no version such as 0.2.0 or 1.0.0rc1" in list(TOOL.problems(tree, "latest"))
    (tree / "CITATION.cff").write_text("nothing\n")
    with pytest.raises(SystemExit, match="no version where"):
        TOOL.prepare(tree, "4.0.0", TODAY)


def test_the_tag_is_checked_from_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "release.py", "check", "v4.0.0"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"CITATION.cff says {__version__}, not 4.0.0" in done.stdout


def test_notes_have_links_that_hold_elsewhere() -> None:
    notes = TOOL.notes(ROOT, "0.1.0")
    assert "(https://torchmemlint.readthedocs.io/precision/)" in notes
    assert "](docs/" not in notes


def test_the_changelog_counts_right() -> None:
    text = TOOL.parts(CHANGELOG)["0.1.0"]["text"]
    about_the_run = sum(code.startswith("TML0") for code in own().by_code)
    assert f"{len(own().by_code) - about_the_run} rules" in text
    assert f"{len(FORMATS)} output formats" in text


def workflow(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    return found


def test_pythons_are_the_same_everywhere() -> None:
    prefix = "Programming Language :: Python :: "
    told = [one.removeprefix(prefix) for one in PROJECT["classifiers"] if one.startswith(prefix)]
    assert [version for version in told if re.fullmatch(r"3\.\d+", version)] == PYTHONS
    assert workflow("ci.yml")["jobs"]["all"]["strategy"]["matrix"]["python"] == PYTHONS
    bundle = (ROOT / "editors" / "vscode" / "scripts" / "bundle.py").read_text(encoding="utf-8")
    assert "PYTHONS = (" + ", ".join(f'"{version}"' for version in PYTHONS) + ")" in bundle
    ends = [PYTHONS[0], PYTHONS[-1]]
    assert workflow("ci.yml")["jobs"]["systems"]["strategy"]["matrix"]["python"] == ends
    assert workflow("release.yml")["jobs"]["try"]["strategy"]["matrix"]["python"] == ends


def test_only_what_was_tried_is_published() -> None:
    jobs = workflow("release.yml")["jobs"]
    assert set(jobs["publish"]["needs"]) == {"build", "try"}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert not any("token" in str(step).lower() for step in jobs["publish"]["steps"])  # none is kept anywhere
    for name in ("publish", "marketplaces", "page"):
        assert jobs[name]["if"] == "github.ref_type == 'tag'"


def test_the_extension_is_made_for_every_platform() -> None:
    bundle = (ROOT / "editors" / "vscode" / "scripts" / "bundle.py").read_text(encoding="utf-8")
    platforms = re.findall(r'^    "([a-z0-9]+-[a-z0-9]+)": ', bundle, re.MULTILINE)
    assert workflow("release.yml")["jobs"]["extension"]["strategy"]["matrix"]["target"] == platforms


def recipe() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "integrations/conda/recipe.yaml").read_text(encoding="utf-8"))
    return found


def test_the_recipe_asks_for_what_the_package_asks_for() -> None:
    def plain(requirement: str) -> str:
        return requirement.partition(";")[0].replace(" ", "")

    run = [plain(one) for one in recipe()["requirements"]["run"] if not one.startswith("python ")]
    assert sorted(run) == sorted(plain(one) for one in PROJECT["dependencies"])
    extras = {plain(one) for extra in PROJECT["optional-dependencies"].values() for one in extra}
    assert {plain(one) for one in recipe()["requirements"]["run_constraints"]} <= extras
    assert recipe()["context"]["python_min"] == PROJECT["requires-python"].removeprefix(">=")
    [script] = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe()["build"]["python"]["entry_points"] == [script]


def test_the_recipe_tests_files_that_are_there() -> None:
    files = [name for test in recipe()["tests"] for name in test.get("files", {}).get("source", ())]
    assert files
    assert all((ROOT / name).is_file() for name in files)


def test_conda_can_read_the_recipe() -> None:
    builder = pytest.importorskip("rattler_build", reason="py-rattler-build is not installed")
    text = (ROOT / "integrations/conda/recipe.yaml").read_text(encoding="utf-8")
    [variant] = builder.Stage0Recipe.from_yaml(text).render(builder.VariantConfig.from_yaml("python_min: ['3.10']\n"))
    assert variant.recipe.to_dict()["package"] == {"name": "torchmemlint", "version": __version__}
    with pytest.raises(Exception, match="unknown top-level field"):
        builder.Stage0Recipe.from_yaml(text.replace("requirements:", "requirement:"))
