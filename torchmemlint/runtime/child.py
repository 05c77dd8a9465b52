"""The file that a child process begins with: `python child.py ORDER`.

It is run by its path, so that neither the working directory nor this folder decides what `import` finds.
"""

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    _package = Path(__file__).resolve().parents[2]
    sys.path.pop(0)  # this folder
    try:
        import torchmemlint.runtime  # noqa: F401
    except ImportError:  # of a checkout that is not installed
        sys.path.append(str(_package))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(_package))))
    from torchmemlint.runtime.launch import import_torch

    import_torch()  # before anything else does, whose remarks would be taken for the program's
    from torchmemlint.runtime.script import main

    sys.exit(main(sys.argv[1]))
