"""`torchmemlint new-rule`: the files that a new rule begins with."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("new-rule", short_help="Create a rule of your own.")
@click.argument("code")
@click.argument("name")
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
def new_rule(code: str, name: str, folder: Path | None) -> int:
    """Create a plugin package with a working rule, or add a rule to such a package.

    Replace the rule by your own. CODE is letters of your own with three digits (ACM101), and NAME is some words
    (unbounded-history). The package has fixtures that say what is found in them, and a test that runs them. FOLDER is
    the package's folder. By default it is the working directory if that is such a package, else torchmemlint-LETTERS.
    In a checkout of torchmemlint itself, a code TMLnnn begins one of its own rules.
    """
    from torchmemlint import scaffold
    from torchmemlint.codes import is_own
    from torchmemlint.rules import registry

    code = code.upper()
    try:
        known = registry.by_code().get(code) or registry.by_name().get(name)
        if known is not None:
            raise scaffold.ScaffoldError(f"{known.code} {known.name} is a rule of torchmemlint")
        root = folder or Path()
        if is_own(code) and scaffold.is_checkout(root):
            made, then = scaffold.here(code, name, root), ["fill in what says TODO", ".ci/run"]
        else:
            made = scaffold.plugin(code, name, folder)
            place = made.folder if made.folder.is_absolute() or made.folder == Path() else f"./{made.folder}"
            then = [f"pip install -e '{place}[test]'", f"pytest {place}"]
        made.write()
    except (scaffold.ScaffoldError, OSError) as error:
        raise click.UsageError(str(error)) from None
    for path in made.files:
        click.echo(str(path))
    click.echo("Next:", err=True)
    for line in then:
        click.echo(f"  {line}", err=True)
    return 0
