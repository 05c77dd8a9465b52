"""`torchmemlint server`: the language server for editors."""

from __future__ import annotations

from importlib import metadata

import click

from torchmemlint import __version__

MISSING = "The language server needs pygls: pip install 'torchmemlint[lsp]'"


def _versions(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if not asked:
        return
    try:
        pygls = metadata.version("pygls")
    except metadata.PackageNotFoundError:
        raise click.UsageError(MISSING) from None
    click.echo(f"torchmemlint {__version__} (pygls {pygls})")
    context.exit()


@click.command(short_help="Run the language server (for editors).")
@click.option("--stdio", is_flag=True, help="Use standard input and output, which is the only way.")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_versions,
    help="Show the versions of the linter and of pygls, which the server needs, and exit.",
)
def server(stdio: bool) -> int:
    """Run the language server. Editors start it, and talk to it over standard input and output."""
    try:
        import pygls  # noqa: F401
    except ImportError:
        raise click.UsageError(MISSING) from None
    from torchmemlint.server.app import serve

    serve()
    return 0
