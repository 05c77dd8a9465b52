"""What a release needs: one version in all files, and a part of the changelog that is its own.

    python tools/release.py prepare 0.2.0   # write the version everywhere, and date its part of the changelog
    python tools/release.py check v0.2.0    # exit 1 if something does not agree with that tag
    python tools/release.py notes 0.2.0     # that part of the changelog, for the page of the release

CONTRIBUTING.md has the steps of a release.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
PLACES = (  # where the version is written, and how
    ("torchmemlint/__init__.py", r'(?m)^__version__ = "(.*)"$'),
    ("CITATION.cff", r"(?m)^version: (.*)$"),
    ("editors/vscode/package.json", r'(?m)^  "version": "(.*)",$'),
    ("editors/vscode/package-lock.json", r'(?m)^  "version": "(.*)",$'),
    ("editors/vscode/package-lock.json", r'    "": \{\n      "name": "torchmemlint",\n      "version": "(.*)",'),
    ("integrations/conda/recipe.yaml", r'(?m)^  version: "(.*)"$'),
)
SITE = "https://torchmemlint.readthedocs.io/"
UNRELEASED = "Unreleased"
PART = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>[^\n]*))?\n(?P<text>.*?)(?=^## \[|\Z)", re.M | re.S)


def parts(changelog: str) -> dict[str, re.Match[str]]:
    """The parts of the changelog by version, `Unreleased` among them."""
    return {part["name"]: part for part in PART.finditer(changelog)}


def written(root: Path) -> Iterator[tuple[str, str]]:
    """Each file that names the version, and the version that it names ("" if none)."""
    for name, pattern in PLACES:
        found = re.search(pattern, (root / name).read_text(encoding="utf-8"))
        yield name, found[1] if found else ""


def problems(root: Path, version: str) -> Iterator[str]:
    """What keeps this version from being released."""
    if VERSION.fullmatch(version) is None:
        yield f"{version} is no version such as 0.2.0 or 1.0.0rc1"
    for name, said in written(root):
        if said != version:
            yield f"{name} says {said or 'no version'}, not {version}"
    found = parts((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if UNRELEASED in found and found[UNRELEASED]["text"].strip():
        yield f"CHANGELOG.md: lines under {UNRELEASED} belong to {version}, or to no release"
    if version not in found or not found[version]["text"].strip():
        yield f"CHANGELOG.md says nothing of {version}"
    elif not re.fullmatch(r"\d{4}-\d\d-\d\d", found[version]["date"] or ""):
        yield f"CHANGELOG.md does not date {version}"


def prepare(root: Path, version: str, today: str) -> None:
    """Write the version into all files, and date its part of the changelog: what was unreleased, if it has none."""
    for name, pattern in PLACES:
        path = root / name
        text = path.read_text(encoding="utf-8")
        path.write_text(_with(text, pattern, version), encoding="utf-8")
    path = root / "CHANGELOG.md"
    text = path.read_text(encoding="utf-8")
    found = parts(text)
    if version in found:
        text = text.replace(found[version][0].partition("\n")[0], f"## [{version}] - {today}", 1)
    else:
        text = text.replace(f"## [{UNRELEASED}]", f"## [{UNRELEASED}]\n\n## [{version}] - {today}", 1)
    path.write_text(text, encoding="utf-8")


def _with(text: str, pattern: str, version: str) -> str:
    """A file's text with another version in the one place that the pattern names."""
    found = re.search(pattern, text)
    if found is None:
        raise SystemExit(f"no version where {pattern!r} looks for it")
    return text[: found.start(1)] + version + text[found.end(1) :]


def notes(root: Path, version: str) -> str:
    """What the changelog says of a version, with links that hold outside of the repository."""
    found = parts((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if version not in found:
        raise SystemExit(f"CHANGELOG.md says nothing of {version}")
    return (
        re.sub(r"\]\(docs/([\w-]+)\.md", r"](https://torchmemlint.readthedocs.io/\1/", found[version]["text"].strip())
        + "\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("prepare", "check", "notes"))
    parser.add_argument("version", help="such as 0.2.0, or its tag v0.2.0")
    choices = parser.parse_args()
    version = choices.version.removeprefix("v")
    if choices.step == "notes":
        sys.stdout.write(notes(ROOT, version))
        return 0
    if choices.step == "prepare":
        if VERSION.fullmatch(version) is None:
            parser.error(f"{version} is no version such as 0.2.0 or 1.0.0rc1")
        prepare(ROOT, version, datetime.datetime.now(datetime.timezone.utc).date().isoformat())
    found = list(problems(ROOT, version))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
