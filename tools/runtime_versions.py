"""Run the verifier's tests with several releases of torch, and keep the result for the documentation.

    python tools/runtime_versions.py                       # 2.2, 2.6 and 2.13, each in an environment of its own
    python tools/runtime_versions.py 2.6.0 --environments ~/.cache/torchmemlint-versions
    python tools/documents.py                              # put the table into docs/simulated.md

The environments are kept and used again. An older torch comes with CUDA's libraries: some gigabytes each.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import venv
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "runtime-versions.json"
RELEASES = ("2.2.2", "2.6.0", "2.13.0")
SUMMARY = re.compile(r"(\d+) (passed|failed|skipped|errors?)")


def environment(folder: Path, release: str) -> Path:
    """The interpreter of an environment that has a release of torch and what the tests need."""
    place = folder / f"torch-{release}"
    interpreter = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not interpreter.exists():
        venv.create(place, with_pip=True)
    install = [str(interpreter), "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, f"torch=={release}"], check=True)
    subprocess.run([*install, "-e", f"{ROOT}[test,verify]", f"torch=={release}"], check=True)
    return interpreter


def tested(interpreter: Path, folder: str) -> dict[str, object]:
    """What the tests said."""
    version = "import torch, sys; print(torch.__version__, sys.version.split()[0])"
    torch, python = subprocess.check_output([str(interpreter), "-W", "ignore", "-c", version], text=True).split()
    command = [str(interpreter), "-m", "pytest", "-q", "-rs", folder, "-o", "addopts=", "-p", "no:cacheprovider"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    print(ran.stdout[-3000:], file=sys.stderr)
    counts = {what.rstrip("s") if what.startswith("error") else what: int(n) for n, what in SUMMARY.findall(ran.stdout)}
    counted = {what: counts.get(what, 0) for what in ("passed", "failed", "error", "skipped")}
    return {
        "torch": torch,
        "python": python,
        "machine": platform.machine(),
        "date": date.today().isoformat(),
        **counted,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", default=RELEASES, metavar="RELEASE")
    parser.add_argument("--environments", type=Path, default=Path.home() / ".cache" / "torchmemlint-versions")
    choices = parser.parse_args()
    failed = False
    for release in choices.releases:
        result = tested(environment(choices.environments, release), "tests/runtime")
        print(release, result)
        failed = failed or bool(result["failed"] or result["error"])
        kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
        FILE.write_text(json.dumps({**kept, release: result}, indent=1) + "\n", encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
