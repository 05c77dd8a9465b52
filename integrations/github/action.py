"""What `action.yml` runs: `install` makes an environment with the linter in it, `check` runs the linter.

Inputs come by the environment (`INPUT_...`). Nothing of them reaches a shell. Only the standard library is used, since
it runs before anything is installed.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = re.compile(r"[0-9][0-9A-Za-z.!+]*")
OWNERS = ("torchmemlint", "torchmemlint-concise")  # as in problem-matcher.json
SUMMARY_LIMIT = 1_000_000  # GitHub takes 1 MiB for a step
OLDEST = (3, 10)


class ActionError(Exception):
    """Something is wrong with the inputs or the machine."""


def given(name: str) -> str:
    """An input; empty where it was not given."""
    return os.environ.get(f"INPUT_{name}", "").strip()


def is_on(name: str) -> bool:
    """An input that is a switch."""
    word = given(name).lower()
    if word not in ("true", "false", ""):
        raise ActionError(f"{name.lower()}: {word!r} is neither true nor false.")
    return word == "true"


def words(name: str) -> list[str]:
    """An input that is a list, quoted as in a shell."""
    try:
        return shlex.split(given(name))
    except ValueError as error:
        raise ActionError(f"{name.lower()}: {error}: {given(name)!r}") from None


def tell(name: str, value: str) -> None:
    """Give an output to the workflow. No value has line breaks: each is a path of the runner's or a number."""
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as stream:
        stream.write(f"{name}={value}\n")


def complain(text: str) -> None:
    """An error, shown on the page of the job."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::error title=torchmemlint::{escaped}", flush=True)


def install() -> int:
    """Make an environment with the linter; its interpreter is the output `python`."""
    if sys.version_info < OLDEST:
        raise ActionError(
            f"Python {sys.version.split()[0]} is too old: run actions/setup-python before, with Python 3.10 or newer."
        )
    version = given("VERSION")
    if version and not VERSION.fullmatch(version):
        raise ActionError(f"version: {version!r} is no version, such as 0.1.0.")
    requirement = f"torchmemlint=={version}" if version else os.environ["GITHUB_ACTION_PATH"]
    folder = Path(os.environ["RUNNER_TEMP"], "torchmemlint")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
    for command in ([sys.executable, "-m", "venv", "--clear", str(folder)], pip):
        if subprocess.run(command, check=False).returncode != 0:
            raise ActionError(f"Installing torchmemlint failed: {shlex.join(command)}")
    tell("python", str(python))
    return 0


def options(sarif: Path, summary: Path | None) -> list[str]:
    """The options of the linter that the inputs ask for."""
    found = ["--output-format", "full", "--output-format", f"sarif:{sarif}"]
    if summary is not None:
        found += ["--output-format", f"markdown:{summary}"]
    if "GITHUB_WORKSPACE" in os.environ:  # annotations name files as seen from there
        found += ["--project-root", os.environ["GITHUB_WORKSPACE"]]
    for name in ("CONFIG", "CONFIDENCE", "BASELINE", "NEW_SINCE"):
        if given(name):
            found.append(f"--{name.lower().replace('_', '-')}={given(name)}")
    if given("FAIL_ON") == "never":
        found.append("--exit-zero")
    elif given("FAIL_ON"):
        found.append(f"--fail-on={given('FAIL_ON')}")
    return found


def check() -> int:
    """Run the linter. Findings are told by the output `exit-code`; the step fails only if the linter cannot run."""
    temporary = Path(os.environ["RUNNER_TEMP"])
    sarif = temporary / "torchmemlint.sarif"
    summary = temporary / "torchmemlint.md" if is_on("SUMMARY") and "GITHUB_STEP_SUMMARY" in os.environ else None
    for file in filter(None, (sarif, summary)):
        file.unlink(missing_ok=True)
    annotate = is_on("ANNOTATIONS")
    program = Path(sys.executable).with_name("torchmemlint.exe" if os.name == "nt" else "torchmemlint")
    command = [str(program), "check", *options(sarif, summary), *words("ARGS"), "--", *(words("PATHS") or ["."])]
    if annotate:
        print(f"::add-matcher::{HERE / 'problem-matcher.json'}", flush=True)
    # Reports show lines of the code, which may be a stranger's: none of them is to be taken for a command.
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", flush=True)
    status = subprocess.run(command, check=False).returncode
    print(f"::{token}::", flush=True)
    if annotate:
        for owner in OWNERS:
            print(f"::remove-matcher owner={owner}::", flush=True)
    tell("exit-code", str(status))
    if sarif.is_file():
        tell("sarif-file", str(sarif))
    if summary is not None and summary.is_file():
        append_summary(summary.read_bytes())
    if status not in (0, 1):
        raise ActionError(f"torchmemlint could not run (exit code {status}); the log of this step says why.")
    return 0


def append_summary(text: bytes) -> None:
    """Put a report on the page of the job; what is too long for it is cut off at the end of a line."""
    if len(text) > SUMMARY_LIMIT:
        text = text[:SUMMARY_LIMIT].rpartition(b"\n")[0] + b"\n\nThe rest is too long for this page; the log has it.\n"
    with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("ab") as stream:
        stream.write(text)


def main() -> int:
    """Run the step that the first argument names."""
    try:
        return {"install": install, "check": check}[sys.argv[1]]()
    except ActionError as error:
        complain(str(error))
        return 2


if __name__ == "__main__":
    sys.exit(main())
