"""The options of `torchmemlint check`, in the groups of its `--help`.

A switch with a `--no-…` is a setting, too: where neither is given, the configuration decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from torchmemlint.cli.confidence import confidence_option
from torchmemlint.cli.corpora import projects_option
from torchmemlint.cli.executors import executor_option
from torchmemlint.cli.grouped import Group
from torchmemlint.cli.outputs import FormatType
from torchmemlint.report.formats import FORMATS

_SELECTOR = "RULE_SELECTOR"
_IGNORES = "PATTERN:CODE"
_PATTERN = "PATTERN"


def _moved(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> None:
    if given:
        raise click.UsageError(f"Modules and files with rules are named by --plugins: --plugins {given[0]}.", context)


def _switch(name: str, help_: str) -> Any:
    """A setting that can be turned on and off."""
    return click.option(f"--{name}/--no-{name}", default=None, help=help_)


GROUPS = (
    Group(
        "Rule selection",
        (
            click.option(
                "--preset",
                type=click.Choice(["default", "strict", "leaks-only", "training", "inference"]),
                help="Rules for an occasion, instead of the configured ones.",
            ),
            click.option(
                "--select",
                multiple=True,
                metavar=_SELECTOR,
                help="Rules to check instead of the configured ones: codes, prefixes, names or ALL.",
            ),
            click.option(
                "--extend-select", multiple=True, metavar=_SELECTOR, help="Rules to check besides the selected ones."
            ),
            click.option("--ignore", multiple=True, metavar=_SELECTOR, help="Rules not to check."),
            click.option(
                "--per-file-ignores",
                multiple=True,
                metavar=_IGNORES,
                help="Rules not to check in some files, instead of the configured ones.",
            ),
            click.option(
                "--extend-per-file-ignores",
                multiple=True,
                metavar=_IGNORES,
                help="Rules not to check in some files, besides the configured ones.",
            ),
            _switch("preview", "Check rules in preview, too, or leave them out.  [default: check them]"),
            confidence_option,
            click.option(
                "--plugins",
                multiple=True,
                metavar="MODULE|PATH",
                help="Rules of your own: a module, a file or a folder of files.",
            ),
            click.option("--extend", multiple=True, hidden=True, expose_value=False, callback=_moved),
        ),
    ),
    Group(
        "Fixes",
        (
            _switch("fix", "Apply the safe fixes."),
            _switch("unsafe-fixes", "With --fix or --diff: also the fixes that may change results."),
            click.option(
                "--fixable",
                multiple=True,
                metavar=_SELECTOR,
                help="Apply fixes of these rules instead of the configured ones.",
            ),
            click.option(
                "--extend-fixable",
                multiple=True,
                metavar=_SELECTOR,
                help="Apply fixes of these rules besides the fixable ones.",
            ),
            click.option("--unfixable", multiple=True, metavar=_SELECTOR, help="Apply no fixes of these rules."),
            click.option(
                "--prove",
                metavar="COMMAND",
                help="With --fix or --diff: keep only fixes with which COMMAND passes, in a copy.",
            ),
            click.option(
                "--diff", is_flag=True, help="Show what --fix (or --add-ignores) would change, and change nothing."
            ),
            _switch("fix-only", "Apply fixes without reporting what is left. Implies --fix."),
            _switch("show-fixes", "List what was fixed, by file and rule."),
        ),
    ),
    Group(
        "Known findings",
        (
            click.option(
                "--baseline",
                type=click.Path(path_type=Path, dir_okay=False),
                metavar="FILE",
                help="Report only what is not in this baseline file.  [default: the configured one, if it is there]",
            ),
            click.option("--no-baseline", is_flag=True, help="Also report what is in a baseline."),
            click.option(
                "--new-since",
                metavar="REV",
                help="Report only what is new since this branch left REV (by git).",
            ),
            click.option(
                "--add-ignores",
                is_flag=True,
                help="Silence the findings with comments: `# torchmemlint: ignore[CODE]`.",
            ),
            click.option("--reason", metavar="TEXT", help="With --add-ignores: the reason to put into the comments."),
            click.option(
                "--ignore-noqa",
                is_flag=True,
                help="Also report what comments silence: `# torchmemlint: ignore`, `# noqa`.",
            ),
        ),
    ),
    Group(
        "File selection",
        (
            click.option(
                "--exclude",
                multiple=True,
                metavar=_PATTERN,
                help="Files and folders to leave out instead of the configured ones.",
            ),
            click.option(
                "--extend-exclude",
                multiple=True,
                metavar=_PATTERN,
                help="Files and folders to leave out besides the excluded ones.",
            ),
            _switch("respect-gitignore", "Leave out what `.gitignore` files leave out."),
            _switch("force-exclude", "Apply the exclusions to named files, too."),
            click.option(
                "--stdin-filename",
                type=click.Path(path_type=Path),
                help="The name of the file that comes by standard input (`-`).",
            ),
            projects_option,
            click.option("--show-files", is_flag=True, help="List the files that would be checked."),
        ),
    ),
    Group(
        "Output",
        (
            click.option(
                "--output-format",
                type=FormatType(),
                multiple=True,
                metavar="FORMAT[:FILE]",
                help=f"How to report, and to which file. Separate several with commas. Formats: {', '.join(FORMATS)}."
                "  [default: the configured one, or full]",
            ),
            click.option(
                "--output-file",
                "-o",
                type=click.Path(path_type=Path),
                help="The file for the format that names none.",
            ),
            click.option("--statistics", is_flag=True, help="Show a count for each rule instead of the findings."),
            click.option(
                "--no-fold",
                is_flag=True,
                help="Show all findings in full, including advice and repetitions.",
            ),
            click.option(
                "--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Use colours."
            ),
            click.option("--quiet", "-q", is_flag=True, help="Show findings and nothing else."),
            click.option(
                "--silent",
                "-s",
                is_flag=True,
                help="Show only errors of the run. The exit code says if there are findings.",
            ),
            click.option(
                "--verbose",
                "-v",
                count=True,
                help="Say on the error stream what was read, and why. Give it twice for everything.",
            ),
        ),
    ),
    Group(
        "Exit code",
        (
            click.option("--exit-zero", "-e", is_flag=True, help="Exit with 0 even if there are findings."),
            click.option("--exit-non-zero-on-fix", is_flag=True, help="Exit with 1 if files were fixed, too."),
            click.option(
                "--fail-on",
                type=click.Choice(["error", "warning", "advice"]),
                help="The least severity that makes the exit code 1.  [default: warning]",
            ),
        ),
    ),
    Group(
        "Configuration",
        (
            click.option(
                "--config",
                multiple=True,
                metavar="FILE|KEY=VALUE",
                help="A configuration file, or one setting as TOML.",
            ),
            click.option("--isolated", is_flag=True, help="Ignore all configuration files."),
            click.option(
                "--project-root",
                type=click.Path(path_type=Path, exists=True, file_okay=False),
                help="Look for configuration up to this folder, and give paths relative to it."
                "  [default: the working directory]",
            ),
            click.option("--target-torch", metavar="VERSION", help="The oldest torch release that the code supports."),
            click.option(
                "--limit",
                multiple=True,
                metavar="NAME=NUMBER",
                help="Limits for one file: time (seconds), memory (MB), nesting (levels), size (MB). 0 means no limit.",
            ),
            click.option("--show-settings", is_flag=True, help="Show the settings for the (first) file."),
        ),
    ),
    Group(
        "Running",
        (
            click.option("--watch", "-w", is_flag=True, help="Check again whenever files change, until Ctrl-C."),
            click.option("--jobs", "-j", type=click.IntRange(min=1), help="Use at most this many processes."),
            executor_option,
            click.option(
                "--no-cache", "-n", is_flag=True, help="Neither use results of earlier runs nor keep new ones."
            ),
            click.option(
                "--cache-dir",
                type=click.Path(path_type=Path, file_okay=False),
                help="Keep results here.  [default: the user's cache directory]",
            ),
        ),
    ),
)
