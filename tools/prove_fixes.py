"""Run programs before and after their fixes: what they compute must not change (`docs/proving.md`).

    python tools/prove_fixes.py --seed 1 --count 1000                  # scripts of a grammar
    python tools/prove_fixes.py --seed 1 --count 500 --programs truth  # those of tools/truth.py

Each program is run as it is, after each of its safe fixes alone, and after all; some also after the unsafe ones, and
through the linter's re-check. Compared are what is differentiated, every gradient at every step of an optimizer and in
the end, the weights, prints, exceptions, and the networks that are called. A difference by a safe fix is a fault: it is
printed, and the exit code is 1. Needs torch.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the programs are made by what lies in tests

from tests.proving.grammar import script  # noqa: E402
from tests.proving.proving import Difference, prove  # noqa: E402
from tests.truth.choice import ImpossibleError  # noqa: E402
from tests.truth.sample import first_of, plans  # noqa: E402

Program = tuple[str, dict[str, str], str]  # name, files, a caller that is not seen


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what the programs are drawn by")
    parser.add_argument("--count", type=int, default=200, metavar="K", help="how many programs that run")
    parser.add_argument("--programs", choices=["grammar", "truth"], default="grammar", help="where they come from")
    parser.add_argument("--unsafe-every", type=int, default=10, metavar="N", help="unsafe fixes of every Nth program")
    parser.add_argument("--unseen", action="store_true", help="scripts whose caller is in no file that is checked")
    parser.add_argument("--only", metavar="NAME", help="only this program, and print it")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write what differs here: before, after and why")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    return parser.parse_args(given)


def scripts(seed: int, *, unseen: bool) -> Iterator[Program]:
    """Yield the scripts of a seed, without end."""
    number = 0
    while True:
        made = script(f"{seed}/{number}", unseen=unseen)
        yield f"{seed}-{number}", {"main.py": made.text}, made.drive
        number += 1


def truths(seed: int, count: int) -> Iterator[Program]:
    """Yield the programs of `tools/truth.py`."""
    for plan in plans(seed, 2 * count):
        try:
            program = first_of(seed, plan)
        except ImpossibleError:
            continue
        yield f"{seed}-{plan.pair}", dict(program.files), program.drive


def keep(folder: Path, name: str, before: dict[str, str], drive: str, differences: list[Difference]) -> None:
    """Write down what differs."""
    for number, one in enumerate(differences):
        place = folder / f"{'safe' if one.safe else 'unsafe'}-{'+'.join(one.codes)}-{name}-{number}"
        for state, files in (("before", before), ("after", one.after)):
            (place / state).mkdir(parents=True, exist_ok=True)
            for file, text in {**files, **({"drive.py": drive} if drive else {})}.items():
                (place / state / file).write_text(text, encoding="utf-8")
        (place / "why.txt").write_text("\n".join([one.what, *one.messages]) + "\n", encoding="utf-8")


def main(given: list[str] | None = None) -> int:
    options = arguments(given)
    drawn = (
        scripts(options.seed, unseen=options.unseen)
        if options.programs == "grammar"
        else truths(options.seed, options.count)
    )
    if options.only:
        number = int(options.only.rpartition("-")[2])
        drawn = islice(drawn, number, number + 1) if options.programs == "grammar" else drawn
        drawn = (one for one in drawn if one[0] == options.only)
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    began, used = time.monotonic(), time.process_time()
    gc.collect()
    gc.freeze()  # what torch and the linter consist of is not looked at again and again
    for drawn_number, (name, files, drive) in enumerate(drawn):
        if counts["programs"] >= options.count:
            break
        proof = prove(files, drive, unsafe=drawn_number % options.unsafe_every == 0)
        if proof.raised:
            counts["left out: they raise"] += 1
            continue
        counts["programs"] += 1
        counts["programs with fixes"] += bool(proof.safe + proof.unsafe)
        for what in ("safe", "unsafe", "mended"):
            counts[f"fixes {what}"] += getattr(proof, what)
        counts["fixes that would differ, and are refused"] += len(proof.withheld)
        if options.only:
            print(*files.values(), drive, sep="\n\n")
        if options.keep:
            keep(options.keep, name, files, drive, proof.differences)
        for one in proof.differences:
            kind = f"{'safe' if one.safe else 'unsafe'} {'+'.join(one.codes)}: {one.what.partition(':')[0]}"
            kinds[kind] += 1
            counts["safe differences"] += one.safe
            if one.safe or options.only:
                print(f"{name}: {kind}: {one.what}", *one.messages, sep="\n    ", flush=True)
    counts["seconds"], counts["CPU seconds"] = round(time.monotonic() - began), round(time.process_time() - used)
    print(*(f"{number:7d}  {what}" for what, number in counts.items()), sep="\n")
    print(*(f"{number:7d}  {kind}" for kind, number in kinds.most_common()), sep="\n")
    if options.json:
        options.json.write_text(json.dumps({"counts": counts, "differences": kinds}, indent=1) + "\n", encoding="utf-8")
    return int(counts["safe differences"] > 0)


if __name__ == "__main__":
    sys.exit(main())
