"""`python -m torchmemlint`."""

from __future__ import annotations

import os.path
import sys

if not getattr(sys.flags, "safe_path", False):
    # `-m` has Python look for modules in the working directory first, which may be the very tree that is checked.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 (import nothing)

from torchmemlint.cli.main import main

sys.exit(main())
