"""Rules that others bring: from entry points of installed packages, and from what `plugins` names.

What runs whose code is decided here, and described in `docs/plugins.md`. Installed packages that declare an entry
point in the group `torchmemlint.rules` are trusted as whoever installed them trusts them. A configuration may come with
the tree that is checked, so all it can name are modules that are installed, and of these only such as speak of
torchmemlint. Files and folders are taken from the command line alone.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from torchmemlint.codes import is_own
from torchmemlint.config.errors import ConfigError
from torchmemlint.findings import Applicability, Severity
from torchmemlint.immutable import immutable
from torchmemlint.rules.base import Rule, Stage, Tag

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "torchmemlint.rules"
SWITCHED_OFF = "TORCHMEMLINT_NO_PLUGINS"  # in the environment: leave entry points alone

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")  # its dotted name
_CODE = re.compile(r"(?P<letters>[A-Z]+)[0-9]{3}")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_EXTENSIONS: dict[str, Plugin] = {}  # by their word in `plugins`
_OUR_WORD = b"torchmemlint"  # no module has rules for us without it


class PluginError(ConfigError):
    """A plugin that cannot be used; the message names it and says why."""


@immutable()
class Plugin:
    """Rules with where they come from."""

    title: str  # as messages name it
    rules: tuple[Rule, ...]


@cache
def installed() -> tuple[Plugin, ...]:
    """The plugins of installed packages, by name."""
    if os.environ.get(SWITCHED_OFF, "0") not in ("", "0"):
        return ()
    return tuple(_of_entry_point(point, package) for package, point in sorted(_entry_points(), key=lambda one: one[0]))


def extension(name: str) -> Plugin:
    """What one word of `plugins` names: a module, or the absolute path of a file or folder."""
    if name not in _EXTENSIONS:
        at = Path(name).is_absolute()
        title = f"`{name}` (by --plugins)" if at else f"module `{name}` (by `plugins`)"
        with _blaming(title), _without_working_directory():
            kinds = _rules_at(Path(name)) if at else _rules_in(_module_named(name))
        _EXTENSIONS[name] = _plugin(title, kinds)
    return _EXTENSIONS[name]


def extension_of(given: str | os.PathLike[str]) -> str:
    """The word for what somebody names on the command line or in a program: a module, or an absolute path."""
    word = os.fspath(given)
    is_name = isinstance(given, str) and _MODULE.fullmatch(word) and not word.endswith(".py")
    if is_name and not os.path.exists(word):  # noqa: PTH110
        return word
    return os.path.abspath(word)  # noqa: PTH100 (links in the path are kept)


def loaded() -> Iterator[Plugin]:
    """All plugins that this process has come to know."""
    yield from installed()
    yield from _EXTENSIONS.values()


def stamps(plugins: Iterable[str]) -> tuple[object, ...]:
    """What tells one state of the plugins from another: their names with versions, and when their files changed."""
    found = (*installed(), *(extension(name) for name in plugins))
    return tuple((plugin.title, [rule.code for rule in plugin.rules], _changes(plugin)) for plugin in found)


def _changes(plugin: Plugin) -> list[tuple[str, int, int]]:
    """(path, when it changed, size) of a plugin's modules."""
    return [(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files_of(plugin)]


def files_of(plugin: Plugin) -> list[Path]:
    """The modules in the packages that a plugin's rules stand in."""
    tops = {sys.modules[type(rule).__module__.partition(".")[0]] for rule in plugin.rules}
    files = {Path(top.__file__) for top in tops if top.__file__ is not None}
    files |= {file for top in tops for folder in getattr(top, "__path__", ()) for file in Path(folder).rglob("*.py")}
    return sorted(files)


def folders_of(rule: Rule) -> set[Path]:
    """The file or folders in which the package of a plugin's rule lies."""
    top = sys.modules[type(rule).__module__.partition(".")[0]]
    folders = {Path(folder) for folder in getattr(top, "__path__", ())}
    return folders or ({Path(top.__file__)} if top.__file__ is not None else set())


def _entry_points() -> Iterator[tuple[str, EntryPoint]]:
    """(package with its version, entry point) of our group."""
    path = search_path()
    if not _may_have_entry_points(path):
        return
    from importlib import metadata

    seen: set[str] = set()
    for distribution in metadata.distributions(path=path):
        try:
            text = distribution.read_text("entry_points.txt")
        except UnicodeDecodeError:  # some package is damaged: not for us to say
            continue
        if text is None or GROUP not in text:
            continue
        name = distribution.metadata["Name"]
        if name in seen:  # an older one, further down the path
            continue
        seen.add(name)
        for point in distribution.entry_points:
            if point.group == GROUP:
                yield f"{name} {distribution.version}", point


def _may_have_entry_points(path: Iterable[str]) -> bool:
    """Whether `importlib.metadata` might find one of our group there. To import it takes longer than to ask this."""
    if any(finder is not PathFinder and hasattr(finder, "find_distributions") for finder in sys.meta_path):
        return True
    return any(GROUP.encode() in _declared(folder) for folder in path)


def _declared(folder: str) -> bytes:
    """The entry points of all packages in a folder of the search path; of what is no folder, an archive: ours."""
    found = b""
    try:
        for name in os.listdir(folder or "."):  # noqa: PTH208
            if name.lower().endswith((".dist-info", "egg-info")):
                with suppress(FileNotFoundError, NotADirectoryError):
                    found += Path(folder, name, "entry_points.txt").read_bytes()
    except FileNotFoundError:
        pass
    except OSError:
        return GROUP.encode()
    return found


def search_path() -> list[str]:
    """Where Python looks for modules, without the working directory that `python -m` puts in front by itself.

    Whatever lies there was perhaps never installed, and may be the very tree that is checked.
    """
    path = list(sys.path)
    if path and not getattr(sys.flags, "safe_path", False) and path[0] in ("", os.getcwd()):  # noqa: PTH109
        del path[0]
    return path


def _of_entry_point(point: EntryPoint, package: str) -> Plugin:
    title = f"plugin `{package}` (entry point `{point.name} = {point.value}`)"
    with _blaming(title), _without_working_directory():
        found = _rules_in(point.load())
    return _plugin(title, found)


def _plugin(title: str, kinds: Iterable[object]) -> Plugin:
    rules = [_made(kind, title) for kind in kinds]
    if not rules:
        raise PluginError(f"{title} brings no rules: it has no subclasses of `torchmemlint.plugins.Rule`")
    return Plugin(title, tuple(sorted(rules, key=lambda rule: rule.code)))


def _rules_in(loaded: Any) -> list[object]:
    """The rule classes of a class, a module, a package with its modules, or an iterable of these."""
    if isinstance(loaded, type):
        return [loaded]
    if isinstance(loaded, ModuleType):
        modules = [loaded, *(importlib.import_module(name) for name in _modules_below(loaded))]
        return list(dict.fromkeys(kind for module in modules for kind in _defined_in(module)))
    if isinstance(loaded, Iterable) and not isinstance(loaded, str | bytes):
        return [kind for one in loaded for kind in _rules_in(one)]
    return [loaded]


def _defined_in(module: ModuleType) -> Iterator[type]:
    below = module.__name__ + "."
    for kind in vars(module).values():
        # What has no code is a base of rules, and what was defined elsewhere belongs to somebody else.
        is_rule = isinstance(kind, type) and Rule in kind.__mro__ and hasattr(kind, "code")
        if is_rule and (kind.__module__ + ".").startswith(below):
            yield kind


def _modules_below(package: ModuleType) -> Iterator[str]:
    """The modules of a package that may have rules: those that speak of us, but for tests and what is private."""
    for folder in map(Path, getattr(package, "__path__", ())):
        for file in sorted(folder.rglob("*.py")):
            parts = file.relative_to(folder).with_suffix("").parts
            passed_over = any(part.startswith(("_", "test_")) or part in ("tests", "conftest") for part in parts)
            if not passed_over and all(map(str.isidentifier, parts)) and _OUR_WORD in file.read_bytes():
                yield ".".join((package.__name__, *parts))


def _made(found: object, title: str) -> Rule:
    """The rule, if it has all that a rule must have."""
    if not (isinstance(found, type) and Rule in found.__mro__):
        raise PluginError(f"{title}: `{_shown(found)}` is no subclass of `torchmemlint.plugins.Rule`")
    kind: type[Rule] = found
    who = f"{title}: rule `{kind.__qualname__}`"
    for attribute, expected, example in _ATTRIBUTES:
        value = getattr(kind, attribute, None)
        if not isinstance(value, expected):
            raise PluginError(f"{who}: `{attribute}` is {_shown(value)}; expected {example}")
    code = _CODE.fullmatch(kind.code)
    if code is None:
        raise PluginError(f"{who}: the code `{kind.code}` is not of the form ABC123: letters and three digits")
    if is_own(kind.code) or code["letters"] == "ALL":
        raise PluginError(f"{who}: the code `{kind.code}` begins with `{code['letters']}`; take letters of your own")
    if not _NAME.fullmatch(kind.name):
        raise PluginError(f"{who}: the name `{kind.name}` is not of the form `some-words`")
    from torchmemlint.rules import docs

    made: list[Rule] = []
    with _blaming(who):
        docs.page(kind)
        made.append(kind())
    return made[0]


_ATTRIBUTES: tuple[tuple[str, Any, str], ...] = (
    ("code", str, "a code such as `ABC101`"),
    ("name", str, "a name such as `pickled-tensor`"),
    ("severity", Severity, "a `Severity`"),
    ("why", str, "a sentence"),
    ("on", bool, "`True` or `False`"),
    ("fix", Applicability | None, "an `Applicability` or `None`"),
    ("tag", Tag | None, "a `Tag` or `None`"),
    ("url", str, "an address, or an empty string"),
    ("stage", Stage, "a `Stage`"),
    ("instead", str, "the code of a rule, or an empty string"),
    ("version", str, "a release such as `0.1`, or an empty string"),
)


def _module_named(name: str) -> ModuleType:
    """The installed module of a dotted name, if it may be one of rules. Nothing is run before that is known."""
    if name.partition(".")[0] == "torchmemlint":
        raise PluginError("our own rules are there without it")
    specification = _located(name)
    if specification is None:
        raise PluginError(
            "there is no such module among what is installed beside torchmemlint (the working directory does not count)"
        )
    if not _speaks_of_us(specification):
        raise PluginError("it is no module of rules: the word torchmemlint does not occur in it")
    return importlib.import_module(name)


def _located(name: str) -> ModuleSpec | None:
    """Where a module lies; looking for it as Python does would run the packages around it."""
    where: Sequence[str] | None = search_path()
    found: ModuleSpec | None = None
    begun = ""
    for part in name.split("."):
        if where is None:
            return None
        begun = f"{begun}.{part}" if begun else part
        found = PathFinder.find_spec(begun, where) or _by_other_finders(begun, None if "." not in begun else where)
        if found is None:
            return None
        where = found.submodule_search_locations
    return found


def _by_other_finders(name: str, where: Sequence[str] | None) -> ModuleSpec | None:
    """Editable installs may come with a finder of their own."""
    for finder in sys.meta_path:
        if finder is not PathFinder and (found := finder.find_spec(name, where)) is not None:
            return found
    return None


def _speaks_of_us(specification: ModuleSpec) -> bool:
    if not specification.has_location or specification.origin is None:
        return False
    file = Path(specification.origin)
    files: Iterable[Path] = (file,)
    if specification.submodule_search_locations is not None:  # a package may only gather what its modules have
        files = (file, *sorted(file.parent.rglob("*.py")))
    return any(_OUR_WORD in one.read_bytes() for one in files if one.is_file())


def _rules_at(path: Path) -> list[object]:
    """The rules of a file, or of the files of a folder, run as modules under a name of their own."""
    name = _private_name(path)
    if path.is_file() and path.suffix == ".py":
        return _rules_in(_run(name, path, None))
    if not path.is_dir():
        raise PluginError("there is no such folder, and no such file that ends in .py")
    init = path / "__init__.py"
    return _rules_in(_run(name, init if init.is_file() else None, path))


def _run(name: str, file: Path | None, folder: Path | None) -> ModuleType:
    """A module from a file, a package from a folder (with the file that makes it one, if there is one)."""
    locations = None if folder is None else [str(folder)]
    if file is None:
        found: ModuleSpec | None = ModuleSpec(name, None, is_package=True)
        assert found is not None
        found.submodule_search_locations = locations
    else:
        found = importlib.util.spec_from_file_location(name, file, submodule_search_locations=locations)
        assert found is not None
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    if file is not None and found.loader is not None:
        try:
            found.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return module


def _private_name(path: Path) -> str:
    stem = re.sub(r"\W", "_", path.stem)
    return f"_torchmemlint_{stem}_{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}"


@contextmanager
def _without_working_directory() -> Iterator[None]:
    """Import from the search path alone."""
    front = sys.path[: len(sys.path) - len(search_path())]
    del sys.path[: len(front)]
    try:
        yield
    finally:
        sys.path[:0] = front


@contextmanager
def _blaming(title: str) -> Iterator[None]:
    """Whatever is raised within is this plugin's fault."""
    try:
        yield
    except PluginError as error:
        raise PluginError(f"{title}: {error}") from None
    except (Exception, SystemExit) as error:
        words = " ".join(str(error).split())[:300]
        raise PluginError(f"{title} cannot be loaded: {type(error).__name__}: {words}") from error


def _shown(value: object) -> str:
    return value.__qualname__ if isinstance(value, type) else repr(value)[:60]
