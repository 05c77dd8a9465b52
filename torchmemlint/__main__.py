"""`python -m torchmemlint`."""

from __future__ import annotations

import sys

from torchmemlint.cli.main import main

sys.exit(main())
