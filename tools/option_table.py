"""The options of `ruff check`, with ours of the same meaning or the reason why there is none."""

from __future__ import annotations

import re

SAME = "the same"
RUFF = {  # by ruff's option: ours where it has another name, and what is to be said of it
    "fix": ("fix", SAME),
    "unsafe-fixes": ("unsafe-fixes", SAME),
    "show-fixes": ("show-fixes", SAME),
    "diff": ("diff", SAME),
    "watch": ("watch", "needs the extra `watch`"),
    "fix-only": ("fix-only", SAME),
    "ignore-noqa": ("ignore-noqa", "also our own comments"),
    "output-format": ("output-format", "several at once, each to its own file: `sarif:report.sarif,full`"),
    "output-file": ("output-file", SAME),
    "target-version": ("", "the same findings hold for every Python; `--target-torch` names the oldest torch"),
    "preview": ("preview", "on unless you say otherwise ([why](configuration.md#rules-in-preview))"),
    "extension": ("", "`.py`, `.pyi` and `.ipynb` are told by their names; nobody has asked for others"),
    "statistics": ("statistics", SAME),
    "add-noqa": ("add-ignores", "writes our own comments, with `--reason`"),
    "add-ignore": ("add-ignores", "with `--reason`"),
    "show-files": ("show-files", SAME),
    "show-settings": ("show-settings", "also `torchmemlint config show`, with where each comes from"),
    "help": ("help", SAME),
    "select": ("select", "codes, prefixes, names or `ALL`"),
    "ignore": ("ignore", SAME),
    "extend-select": ("extend-select", SAME),
    "per-file-ignores": ("per-file-ignores", SAME),
    "extend-per-file-ignores": ("extend-per-file-ignores", SAME),
    "fixable": ("fixable", SAME),
    "unfixable": ("unfixable", SAME),
    "extend-fixable": ("extend-fixable", SAME),
    "exclude": ("exclude", SAME),
    "extend-exclude": ("extend-exclude", SAME),
    "respect-gitignore": ("respect-gitignore", SAME),
    "force-exclude": ("force-exclude", SAME),
    "no-cache": ("no-cache", SAME),
    "cache-dir": ("cache-dir", SAME),
    "stdin-filename": ("stdin-filename", SAME),
    "exit-zero": ("exit-zero", SAME),
    "exit-non-zero-on-fix": ("exit-non-zero-on-fix", SAME),
    "verbose": ("verbose", "twice for more"),
    "quiet": ("quiet", SAME),
    "silent": ("silent", SAME),
    "config": ("config", SAME),
    "isolated": ("isolated", SAME),
    "color": ("color", SAME),
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


def table() -> str:
    """Both tables, as Markdown."""
    lines = ["| `ruff check` | `torchmemlint check` | |", "|---|---|---|"]
    for theirs, (ours, remark) in RUFF.items():
        lines.append(f"| `--{theirs}` | {f'`--{ours}`' if ours else '-'} | {'' if remark == SAME else remark} |")
    lines += ["", "Options that ruff has nothing like:", "", "| `torchmemlint check` | |", "|---|---|"]
    taken = {ours for ours, _ in RUFF.values()}
    lines += [f"| `--{name}` | {meaning} |" for name, meaning in OURS.items() if name not in taken]
    return "\n" + "\n".join(lines) + "\n\n"


MAKERS = {"options-of-ruff": table}
