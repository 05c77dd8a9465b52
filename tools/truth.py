"""Score the linter on programs whose labels come from running them (`docs/truth.md`).

    python tools/truth.py --seed 1 --count 500          # 500 programs, drawn by seed, and a twin of each
    python tools/truth.py --seed 1 --grid 8             # plain programs with one strange value, 8 for each value
    python tools/truth.py --seed 1 --count 200 --rewrite 100   # and spellings of the first 100 that must not matter
    python tools/truth.py --fixtures                    # and the fixtures in which something is found, in all spellings
    python tools/truth.py --seed 1 --count 500 --checker package.module:function   # another analysis

The function gets the files of a program (name to text), and returns tuples: file, line, code, confidence. A report
whose confidence is `advice`, `possible`, `doubt` or `hint` counts only with `--quiet-too`. Needs torch: the programs
are run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections import Counter
from dataclasses import asdict
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the programs are made by what lies in tests/truth

import torch  # noqa: E402

from tests.truth.equivalence import Trials, variants  # noqa: E402
from tests.truth.examples import Example  # noqa: E402
from tests.truth.fixtures import bad_fixtures  # noqa: E402
from tests.truth.grid import grid  # noqa: E402
from tests.truth.pairs import Pair, Tally, pairs  # noqa: E402
from tests.truth.private import private_values  # noqa: E402
from tests.truth.sample import Plan, plans  # noqa: E402
from tests.truth.score import (  # noqa: E402
    QUIET,
    Changes,
    Checker,
    Reports,
    as_json,
    as_text,
    by_function,
    changes,
    changes_as_text,
    in_process,
    scored,
    verdict_on,
    written,
)
from tests.truth.spellings import differences  # noqa: E402
from tests.truth.stored import store  # noqa: E402


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what the programs are drawn by")
    parser.add_argument("--count", type=int, default=200, metavar="K", help="how many programs, each with a twin")
    parser.add_argument("--grid", type=int, default=0, metavar="N", help="instead: N plain programs for every value")
    parser.add_argument("--rewrite", type=int, default=0, metavar="COUNT", help="rewrite so many of the programs, too")
    parser.add_argument("--fixtures", action="store_true", help="instead: rewrite the fixtures of graphs and passes")
    parser.add_argument("--checker", metavar="MODULE:FUNCTION", help="what is scored (default: the linter)")
    parser.add_argument("--quiet-too", action="store_true", help="count advice and what is only possible as findings")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures and every verdict here")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the programs and their labels here")
    parser.add_argument("--store", type=Path, metavar="FILE", help="only write the labels here, as the tests read them")
    parser.add_argument("--private", type=Path, metavar="FILE", help="a file of further values; each program takes one")
    parser.add_argument("--verbose", action="store_true", help="print what was said wrongly, and programs that raise")
    return parser.parse_args(given)


def checker_named(name: str) -> Checker:
    """The function that `module:function` names."""
    module, _, function = name.partition(":")
    if not function:
        raise SystemExit(f"{name}: a module and a function are needed, as in package.module:function")
    sys.path.insert(0, str(Path.cwd()))
    found: Checker = getattr(importlib.import_module(module), function)
    return found


def drawn(options: argparse.Namespace) -> list[Plan]:
    """What the options ask for."""
    private = private_values(options.private) if options.private else {}
    if options.grid:
        return list(grid(options.seed, options.grid, private or None))
    required = [(name, value) for name, values in private.items() for value in values]
    return list(plans(options.seed, 2 * options.count, required))  # some have no twin


def made(options: argparse.Namespace, tally: Tally) -> list[Pair]:
    """The programs, run."""
    found = pairs(options.seed, drawn(options), tally, alone=bool(options.grid))
    return list(found if options.grid else islice(found, options.count))


def kept(examples: list[Example], folder: Path) -> None:
    """Write the programs, and `labels.json`."""
    written(examples, folder)
    labels = {
        example.name: {
            **asdict(example.label),
            "pair": example.pair,
            "strange": example.strange,
            "form": example.program.form,
            "values": example.program.values,
            "marks": example.program.marks,
            "drive": example.program.drive,
        }
        for example in examples
    }
    (folder / "labels.json").write_text(json.dumps(labels, indent=1) + "\n", encoding="utf-8")


def said_of(examples: list[Example], options: argparse.Namespace) -> Reports:
    """What the checker reports; where it fails is printed, and counts as silence."""
    if not options.checker:
        return in_process(examples)
    failed: dict[str, str] = {}
    reports = by_function(checker_named(options.checker), examples, failed)
    for why, count in Counter(failed.values()).most_common():
        names = [name for name, reason in failed.items() if reason == why]
        print(f"the checker failed on {count} programs ({', '.join(names[:3])}): {why}")
    return reports


def respelt(examples: list[Example], reports: Reports, options: argparse.Namespace) -> dict[str, Changes]:
    """How the reports change with the spelling of the programs."""
    trials = Trials()
    found = list(variants(examples, trials))
    after = said_of([variant.example for variant in found], options)
    quiet = () if options.quiet_too else QUIET
    if options.keep:
        written((variant.example for variant in found), options.keep / "rewritten")
    if options.verbose:
        for name, problem, new in trials.broken:
            print(f"\n# {name}: {problem}", *new.files.values(), sep="\n")
    print("\n".join(f"{name:22s} {dict(counts)}" for name, counts in trials.counts.items()))
    return changes(
        (
            variant.rewriting,
            verdict_on(variant.original, reports.get(variant.original.name, []), quiet),
            verdict_on(variant.example, after.get(variant.example.name, []), quiet),
        )
        for variant in found
    )


def fixtures_respelt() -> int:
    """Print what the spelling of the fixtures changes; 1 if it changes anything."""
    paths = bad_fixtures()
    spellings, changed = differences(paths)
    print(*changed, sep="\n", end="\n" if changed else "")
    lost = sum(one.lost is not None for one in changed)
    print(f"{len(paths)} fixtures in {spellings} spellings: {lost} lost, {len(changed) - lost} new")
    return int(bool(changed))


def main(given: list[str] | None = None) -> int:
    options = arguments(given)
    if options.fixtures:
        return fixtures_respelt()
    tally = Tally()
    started = time.perf_counter()
    found = made(options, tally)
    if options.store:
        store(options.store, options.seed, torch.__version__, found)
        return 0
    examples = [example for pair in found for example in (pair.first, pair.second) if example is not None]
    ran = time.perf_counter()
    if options.keep:
        kept(examples, options.keep)
    reports = said_of(examples, options)
    checked = time.perf_counter()
    score = scored(examples, reports, () if options.quiet_too else QUIET)
    truths = Counter(example.label.truth for example in examples)
    print(f"{len(examples)} programs ({', '.join(f'{n} {truth}' for truth, n in sorted(truths.items()))})")
    print(f"made and run in {ran - started:.1f} s, checked in {checked - ran:.1f} s")
    print(f"nothing grows without the marked line: {dict(tally.confirmed)}")
    print(f"left out: {tally.raised} that raise, {tally.alike} whose twin does not differ")
    if options.verbose:
        for why, n in tally.dropped.most_common(20):
            print(f"  {n:4d}  {why}")
        for truth in ("leak", "waste", "clean", "deferred"):
            wrong = [v.example.name for v in score.verdicts if v.example.label.truth == truth and not v.right]
            print(f"{truth}, said otherwise: {' '.join(wrong)}")
        for why, program in tally.failures:
            print(f"\n# {why}\n# {program.values}", *program.files.values(), sep="\n")
    print()
    print(as_text(score))
    figures = as_json(score)
    if options.rewrite:
        spellings = respelt(examples[: options.rewrite], reports, options)
        print(f"\n{changes_as_text(spellings)}")
        figures["rewritings"] = {name: asdict(one) for name, one in spellings.items()}
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
