"""Run the verifier's tests of training frameworks with the frameworks installed, and keep the result.

    python tools/runtime_frameworks.py                     # Lightning and Hugging Face's Trainer, in an environment
    python tools/runtime_frameworks.py --environments ~/.cache/torchmemlint-versions
    python tools/documents.py                              # put the table into docs/verify.md

The ordinary run of the tests skips them: the frameworks are some hundred megabytes. The environment is used again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from datetime import date
from pathlib import Path

from runtime_versions import ROOT, environment, tested

FILE = ROOT / "docs" / "runtime-frameworks.json"
FRAMEWORKS = ("lightning", "transformers", "accelerate")
TESTS = "tests/runtime/test_frameworks.py"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", default="2.13.0", metavar="RELEASE")
    parser.add_argument("--environments", type=Path, default=Path.home() / ".cache" / "torchmemlint-versions")
    choices = parser.parse_args()
    interpreter = environment(choices.environments / "frameworks", choices.torch)
    install = [str(interpreter), "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, *FRAMEWORKS, f"torch=={choices.torch}"], check=True)
    told = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]))"
    versions = subprocess.check_output([str(interpreter), "-c", told, *FRAMEWORKS], text=True).split()
    result = {"frameworks": dict(zip(FRAMEWORKS, versions, strict=True)), **tested(interpreter, TESTS)}
    print(result)
    FILE.write_text(json.dumps({**result, "date": date.today().isoformat()}, indent=1) + "\n", encoding="utf-8")
    return int(bool(result["failed"] or result["error"]))


if __name__ == "__main__":
    sys.exit(main())
