"""Run torchmemlint: this interpreter's, or with `--libs` the copy in `libs` beside this file.

    python run.py [--libs] server

Unlike `python -m torchmemlint` it never looks for modules in the folder that it was started in, which is the user's
project and may hold a `click.py` of its own.
"""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != HERE]
    if sys.argv[1:2] == ["--libs"]:
        del sys.argv[1]
        sys.path.insert(0, str(HERE / "libs"))
    runpy.run_module("torchmemlint", run_name="__main__", alter_sys=True)
