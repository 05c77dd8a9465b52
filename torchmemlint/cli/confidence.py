"""`--confidence`: how sure a finding must be to be reported."""

from __future__ import annotations

import click

confidence_option = click.option(
    "--confidence",
    type=click.Choice(["certain", "likely", "possible"]),
    help="Report findings with at least this confidence.  [default: likely]",
)
