"""Run a program as `trace` cuts it short, but plainly: on the CPU, without a tracker. The yardstick of its overhead.

    python tools/cut_short.py SCRIPT ARGUMENTS…
    python tools/cut_short.py -m MODULE ARGUMENTS…

It exits with 0 if the program made the steps, else with 1 and the reason.
"""

from __future__ import annotations

import argparse
import sys

from torchmemlint.runtime.launch import launch, order_for, workspace
from torchmemlint.runtime.order import Program
from torchmemlint.runtime.results import End
from torchmemlint.runtime.trace import STEPS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS")
    parser.add_argument("target")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    program = Program(given.target, tuple(given.arguments), given.module)
    with workspace() as folder:
        order = order_for(program, folder, backend="cpu", tracked=False, steps=STEPS, seconds=given.limit)
        result = launch(order)
    if result.usable and result.end is not End.FAILED:
        print(f"{result.steps} steps of {result.series or 'nothing'}")
        return 0
    print(result.error, result.traceback, sep="\n", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
