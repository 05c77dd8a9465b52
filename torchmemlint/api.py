"""The Python API: check and fix source text and files from a program.

Import it from the package: `from torchmemlint import check_source, check_paths, fix_source, Finding`. What these names
are, take and return changes only with a new minor version, and is listed in the change log then; everything else in
the package may change at any time, except `torchmemlint.plugins` and `torchmemlint.testing`.

Nothing here imports torch, runs the code that is checked, or prints. The functions may be called from several threads:
calls that overlap run one after the other.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from torchmemlint.config.errors import ConfigError
from torchmemlint.findings import Finding
from torchmemlint.immutable import immutable

if TYPE_CHECKING:
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.engine.one_file import FileResult, Fixing
    from torchmemlint.source.decoding import SourceText

PathLike: TypeAlias = "str | os.PathLike[str]"

_NOWHERE = Path("<string>")  # what a text without a path is called
_MARK = "\ufeff"  # the byte order mark, which is no part of a text as positions count it
_TURN = threading.RLock()  # the analysis keeps what it knows of a project for the next file of it


class CheckError(Exception):
    """The linter, or a plugin's rule, failed on one or more files.

    `problems` has a line for each such file, and `findings` what was found in all others.
    """

    def __init__(self, problems: tuple[str, ...], findings: list[Finding]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
        self.findings = findings

    def __reduce__(self) -> tuple[type[CheckError], tuple[tuple[str, ...], list[Finding]]]:
        return CheckError, (self.problems, self.findings)


@immutable(frozen=True)
class RolledBack:
    """A fix that was tried and taken back."""

    finding: Finding
    reason: str


@immutable(frozen=True)
class FixedSource:
    """What `fix_source` made of a text."""

    text: str  # the same text where nothing was fixed
    applied: tuple[Finding, ...]  # what was fixed; the places are those before that fix
    remaining: tuple[Finding, ...]  # what is left to report, with its places in `text`
    rolled_back: tuple[RolledBack, ...]  # those of the remaining findings whose fix did harm


def check_source(
    source: str | bytes,
    *,
    path: PathLike | None = None,
    select: Iterable[str] | None = None,
    extend_select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    plugins: Iterable[PathLike] = (),
    target_torch: str | None = None,
    settings: Mapping[str, object] | None = None,
    config: PathLike | None = None,
    isolated: bool = False,
) -> list[Finding]:
    """Check the text of one file, and return what is found in it, in the order of the text.

    `path` says which file the text is. It need not exist, and is not read. The nearest configuration above it counts,
    and the other files of its project are read as context. Without `path`, nothing on the disk is read, and the
    default settings count. `config` names a configuration file to use instead. `isolated` leaves all configuration
    files out.

    `select`, `extend_select` and `ignore` hold rule selectors: codes, prefixes, names or `"ALL"`. They win over the
    configuration. `plugins` brings rules of your own: names of modules, and paths of files or folders. Installed
    plugins need no mention. `target_torch` is the oldest release of torch that the code supports, such as `"2.4"`.
    `settings` is a table with any other keys of `[tool.torchmemlint]`.

    If `path` ends in `.ipynb`, the text is a notebook's JSON. Findings are about the program that its cells make, and
    `finding.cells` gives the cell of a line.

    Bytes are decoded as Python decodes a source file. In a string, an encoding declaration has no effect. A text that
    cannot be read or parsed gives a finding (TML000), not an exception. Findings that comments suppress are left out.

    Raises `ConfigError` for settings, selectors or configuration files that cannot be used. Raises `CheckError` if
    the linter itself or a plugin fails on the text.
    """
    with _their_turn():
        resolver = _resolver(
            select, extend_select, ignore, plugins, target_torch, settings, config, isolated, alone=path is None
        )
        return list(_result(source, path, resolver).findings)


def fix_source(
    source: str | bytes,
    *,
    path: PathLike | None = None,
    unsafe: bool = False,
    select: Iterable[str] | None = None,
    extend_select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    plugins: Iterable[PathLike] = (),
    target_torch: str | None = None,
    settings: Mapping[str, object] | None = None,
    config: PathLike | None = None,
    isolated: bool = False,
) -> FixedSource:
    """Check the text of one file, apply the fixes, and return the new text with what was fixed and what remains.

    Only safe fixes are applied. With `unsafe`, fixes that may change numbers, timing or types are applied, too. A fix
    is kept only if the text still compiles, its finding is gone and no other has appeared. Nothing is written to the
    disk. Fixing the new text again changes nothing.

    The other arguments, and what is raised, are those of `check_source`. If the text is bytes, the returned text is
    the decoded one, without a byte order mark. Its newlines are those of the source.
    """
    from torchmemlint.engine.one_file import Fixing

    with _their_turn():
        resolver = _resolver(
            select, extend_select, ignore, plugins, target_torch, settings, config, isolated, alone=path is None
        )
        result = _result(source, path, resolver, Fixing.PREVIEW, unsafe=unsafe)
        fixed = result.fixed
        if fixed is None or not fixed.applied:
            text = _text_of(source)
        elif fixed.cells is not None:
            text = _notebook(source, result.path, fixed.after)
        else:
            text = (_MARK if isinstance(source, str) and source.startswith(_MARK) else "") + fixed.after
        applied = () if fixed is None else fixed.applied
        rolled_back = () if fixed is None else tuple(RolledBack(*one) for one in fixed.rolled_back)
        return FixedSource(text, applied, result.findings, rolled_back)


def check_paths(
    paths: PathLike | Iterable[PathLike],
    *,
    select: Iterable[str] | None = None,
    extend_select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    plugins: Iterable[PathLike] = (),
    target_torch: str | None = None,
    settings: Mapping[str, object] | None = None,
    config: PathLike | None = None,
    isolated: bool = False,
    jobs: int | None = 1,
) -> list[Finding]:
    """Check files and directories, and return what is found, by file and in the order of each file.

    It finds what `torchmemlint check PATHS` finds, with the same configuration files and exclusions. The arguments
    from `select` to `isolated` are those of `check_source`. A named file that is not Python source is left out with a
    `UserWarning`.

    `jobs` is the number of processes; None means one for each processor. With 1, the files are checked in this
    process. On Linux the others are forked from this one, so do not ask for them in a program that runs threads.
    Elsewhere they are spawned, so that the program needs its `if __name__ == "__main__":`.

    Raises `FileNotFoundError` for a path that does not exist, `ValueError` for fewer `jobs` than 1, and `ConfigError`
    as `check_source` does. Raises `CheckError`, after all other files were checked, if the linter itself or a plugin
    fails on a file.
    """
    from torchmemlint.engine.runner import Request, run
    from torchmemlint.source.discovery import discover

    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs: expected a number from 1 on, or None, found {jobs}")
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    with _their_turn():
        resolver = _resolver(select, extend_select, ignore, plugins, target_torch, settings, config, isolated)
        found = discover([Path(path) for path in given], resolver.settings_for)
        if not found.files:
            resolver.settings_for(Path.cwd())  # says what is wrong with the arguments, which nobody else has read
        report = run(Request(found.files, resolver, jobs=jobs))
    for notice in (*found.notices, *report.notices):
        warnings.warn(notice, stacklevel=2)
    if report.errors:
        raise CheckError(report.errors, list(report.findings))
    return list(report.findings)


@contextmanager
def _their_turn() -> Iterator[None]:
    """One call after the other, each with the files as they are now."""
    from torchmemlint.engine import context

    with _TURN:
        context.forget()
        yield


def _resolver(
    select: Iterable[str] | None,
    extend_select: Iterable[str],
    ignore: Iterable[str],
    plugins: Iterable[PathLike],
    target_torch: str | None,
    settings: Mapping[str, object] | None,
    config: PathLike | None,
    isolated: bool,
    *,
    alone: bool = False,
) -> Resolver:
    """The settings that the arguments of the API ask for; `alone`: of a text that lies nowhere."""
    from torchmemlint.config.layers import Layer, override, read_layer
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.config.selection import Selection
    from torchmemlint.rules.extensions import extension_of

    if isinstance(plugins, str | os.PathLike):
        raise ConfigError(f"plugins: expected a list of modules and paths, found {plugins!r}")
    words = tuple(extension_of(word) for word in plugins)
    layer = override(Layer(plugins=words), read_layer(settings or {}, "settings", words))
    if target_torch is not None:
        layer = override(layer, read_layer({"target-torch": target_torch}, "target_torch"))
    selection = Selection(
        None if select is None else _listed("select", select),
        _listed("extend_select", extend_select),
        _listed("ignore", ignore),
    )
    file = None if config is None else Path(config)
    if file is not None and isolated:
        raise ConfigError("config: a configuration file and `isolated` contradict each other")
    root = _NOWHERE if alone else Path.cwd()
    return Resolver(root, config=file, isolated=isolated or alone, layer=layer, selection=selection)


def _listed(argument: str, given: Iterable[str]) -> tuple[str, ...]:
    """The selectors as a tuple; whether there are such rules depends on what the configuration brings."""
    if isinstance(given, str):
        raise ConfigError(f"{argument}: expected a list of rule selectors, found the string {given!r}")
    return tuple(given)


def _result(
    source: str | bytes,
    path: PathLike | None,
    resolver: Resolver,
    fixing: Fixing | None = None,
    *,
    unsafe: bool = False,
) -> FileResult:
    from torchmemlint.engine.one_file import Fixing, check_bytes, check_decoded, failed
    from torchmemlint.engine.runner import profile_for
    from torchmemlint.source.loading import is_notebook

    name = _NOWHERE if path is None else Path(os.path.abspath(path))  # noqa: PTH100 (links in the path are kept)
    settings = resolver.fallback() if path is None else resolver.settings_for(name.parent)
    profile = profile_for(settings, name, fixing or Fixing.NONE, unsafe)
    if path is None:
        profile = replace(profile, root=None)  # it belongs to no project
    try:
        if isinstance(source, bytes) or is_notebook(name):
            result = check_bytes(_data(source), name, profile)
        else:
            result = check_decoded(_decoded(source), name, profile)
    except Exception as error:
        raise CheckError((failed(name, error).problem,), []) from error
    if result.error is not None:
        raise CheckError((result.problem,), list(result.findings))
    return result


def _data(source: str | bytes) -> bytes:
    return source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source


def _decoded(source: str) -> SourceText:
    """A string as a decoded file; a byte order mark in front is not part of its text."""
    from torchmemlint.source.decoding import SourceText

    return SourceText(source.removeprefix(_MARK), bom=source.startswith(_MARK))


def _notebook(source: str | bytes, path: Path, program: str) -> str:
    """The text of a notebook whose cells were fixed."""
    from torchmemlint.source.loading import load

    return load(_data(source), path).encode(program).decode()


def _text_of(source: str | bytes) -> str:
    from torchmemlint.source.decoding import UnreadableFile, decode

    if isinstance(source, str):
        return source
    try:
        return decode(source).text
    except UnreadableFile:  # which is what remains to be reported
        return source.decode("utf-8", "replace")
