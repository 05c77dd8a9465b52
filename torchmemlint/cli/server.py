"""`torchmemlint server`: the language server for editors."""

from __future__ import annotations

import click


@click.command(short_help="Run the language server (for editors).")
@click.option("--stdio", is_flag=True, help="Speak over standard input and output, which is the only way there is.")
def server(stdio: bool) -> int:
    """Run the language server: editors start it and speak with it over standard input and output."""
    try:
        import pygls  # noqa: F401
    except ImportError:
        raise click.UsageError("The language server needs pygls: pip install 'torchmemlint[lsp]'") from None
    from torchmemlint.server.app import serve

    serve()
    return 0
