"""The options of `ruff check`, with ours of the same meaning or the reason why there is none."""

from __future__ import annotations

import re

RUFF = {  # what is to be said of each; "" where ours is the same
    "fix": "",
    "unsafe-fixes": "",
    "show-fixes": "",
    "diff": "",
    "watch": "needs the extra `watch`",
    "fix-only": "",
    "ignore-noqa": "also our own comments",
    "output-format": "several at once, each to its own file: `sarif:report.sarif,full`",
    "output-file": "",
    "target-version": "the same findings hold for every Python; `--target-torch` names the oldest torch",
    "preview": "on unless you say otherwise ([why](configuration.md#rules-in-preview))",
    "extension": "files are known by `.py`, `.pyi` and `.ipynb`; nobody has asked for others",
    "statistics": "",
    "add-noqa": "writes our own comments, with `--reason`",
    "add-ignore": "with `--reason`",
    "show-files": "",
    "show-settings": "also `torchmemlint config show`, with where each comes from",
    "help": "",
    "select": "codes, prefixes, names or `ALL`",
    "ignore": "",
    "extend-select": "",
    "per-file-ignores": "",
    "extend-per-file-ignores": "",
    "fixable": "",
    "unfixable": "",
    "extend-fixable": "",
    "exclude": "",
    "extend-exclude": "",
    "respect-gitignore": "",
    "force-exclude": "",
    "no-cache": "",
    "cache-dir": "",
    "stdin-filename": "",
    "exit-zero": "",
    "exit-non-zero-on-fix": "",
    "verbose": "twice for more",
    "quiet": "",
    "silent": "",
    "config": "",
    "isolated": "",
    "color": "",
}
OTHERWISE = {  # options of ruff that have another name here, or none
    "target-version": "",
    "extension": "",
    "add-noqa": "add-ignores",
    "add-ignore": "add-ignores",
}
OURS = {  # what ruff has nothing like
    "preset": "a set of rules for a purpose: `leaks-only`, `training`, `inference`",
    "confidence": "the least confidence that is shown",
    "plugins": "modules with rules of your own",
    "prove": "only fixes with which a command of yours still passes",
    "baseline": "known findings in a file",
    "no-baseline": "as if there were none",
    "new-since": "only what is new since a commit",
    "add-ignores": "ignore what is found, by comments",
    "reason": "what these comments say",
    "projects-from": "many projects in one run",
    "no-fold": "all places of an advice",
    "fail-on": "the least severity that fails the run",
    "project-root": "whose files are context",
    "target-torch": "the oldest torch that the code supports",
    "limit": "what checking a file may take",
    "jobs": "how many processes",
    "executor": "on a cluster",
}
_OPTION = re.compile(r"^ +(?:-\w, )?--(?P<name>[a-z][a-z-]*)", re.MULTILINE)


def named(usage: str) -> list[str]:
    """The long options that a `--help` text lists, in its order."""
    return list(dict.fromkeys(option["name"] for option in _OPTION.finditer(usage)))


def counterpart(theirs: str) -> str:
    """Ours of the same meaning; "" where there is none."""
    return OTHERWISE.get(theirs, theirs)


def table() -> str:
    """Both tables, as Markdown."""
    lines = ["| `ruff check` | `torchmemlint check` | |", "|---|---|---|"]
    for theirs, remark in RUFF.items():
        ours = counterpart(theirs)
        lines.append(f"| `--{theirs}` | {f'`--{ours}`' if ours else '-'} | {remark} |")
    lines += ["", "Options that ruff has nothing like:", "", "| `torchmemlint check` | |", "|---|---|"]
    taken = set(map(counterpart, RUFF))
    lines += [f"| `--{name}` | {meaning} |" for name, meaning in OURS.items() if name not in taken]
    return "\n" + "\n".join(lines) + "\n\n"


MAKERS = {"options-of-ruff": table}
