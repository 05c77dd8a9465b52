"""The picture of the terminal on the site's front page: what the linter prints of an example, in colours, as SVG."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ("examples/leaky_training.py", "--select", "TML201")
WIDTH = 108
# As rich's own, without the font that it would ask of another server.
_FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img" \
aria-label="torchmemlint in a terminal">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; \
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def picture() -> str:
    """The picture as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(f"[bold]$[/bold] torchmemlint {' '.join(COMMAND)}", highlight=False)
    console.print(Text.from_ansi(_output()))
    drawn = console.export_svg(title="torchmemlint", theme=MONOKAI, code_format=_FORMAT, unique_id="terminal")
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


def _output() -> str:
    from torchmemlint.cli.main import main

    output, before, columns = io.StringIO(), Path.cwd(), os.environ.get("COLUMNS")
    os.chdir(ROOT)
    os.environ["COLUMNS"] = str(WIDTH)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            main((*COMMAND, "--isolated", "--color=always"))
    finally:
        os.chdir(before)
        os.environ.pop("COLUMNS")
        if columns is not None:
            os.environ["COLUMNS"] = columns
    return output.getvalue().rstrip()
