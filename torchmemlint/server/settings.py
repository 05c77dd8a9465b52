"""What the editor's settings say: `torchmemlint.*` there, `initializationOptions` in the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torchmemlint.codes import digits_of, is_own
from torchmemlint.config.errors import ConfigError, did_you_mean
from torchmemlint.config.selection import expand
from torchmemlint.doubts import Confidence
from torchmemlint.immutable import immutable

SECTION = "torchmemlint"  # of the client's settings
RUN = ("onType", "onSave")
WORKSPACE = ("open", "all")
LOG_LEVELS = ("error", "warning", "info", "debug")
CONFIDENCES = tuple(confidence.value for confidence in Confidence)
_CHOICES = {"run": RUN, "workspace_diagnostics": WORKSPACE, "log_level": LOG_LEVELS, "confidence": CONFIDENCES}


@immutable()
class ClientSettings:
    """The settings of one workspace folder."""

    enable: bool = True
    configuration: Path | None = None  # a file to use instead of those that are found
    select: tuple[str, ...] | None = None  # rules instead of the configured ones
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    confidence: str | None = None  # the least that is reported, instead of the configured one
    run: str = "onType"
    fix_all: bool = True  # offer `source.fixAll`
    show_syntax_errors: bool = True
    code_lens: bool = True  # show what findings cost above their lines
    workspace_diagnostics: str = "open"  # of open files, or of all
    log_level: str = "info"


_KEYS = {field.name.split("_")[0] + "".join(p.title() for p in field.name.split("_")[1:]): field.name
         for field in fields(ClientSettings)}  # fmt: skip
# Settings that the client keeps for itself: it starts the server.
_CLIENTS_OWN = frozenset({"path", "interpreter", "importStrategy", "trace", "args", "showNotifications", "workspace"})


def read_settings(given: object, below: ClientSettings, folder: Path | None) -> tuple[ClientSettings, list[str]]:
    """The settings after what the client says, and what is wrong with it; what is wrong leaves the setting as it was.

    Paths are relative to `folder`.
    """
    if not isinstance(given, Mapping):
        # Lua has one empty table for lists and objects, and Neovim sends a list.
        return below, [] if given is None or given == [] else ["the settings are not an object"]
    problems: list[str] = []
    said: dict[str, Any] = {}
    for key, value in given.items():
        name = _KEYS.get(key)
        if name is None:
            if key not in _CLIENTS_OWN:
                problems.append(f"unknown setting `torchmemlint.{key}`.{did_you_mean(str(key), _KEYS)}")
            continue
        if value is None:
            said[name] = getattr(ClientSettings(), name)
            continue
        try:
            said[name] = _read(name, value, folder)
        except ConfigError as error:
            problems.append(f"`torchmemlint.{key}`: {error}")
    return replace(below, **said), problems


def _read(name: str, value: object, folder: Path | None) -> object:
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise ConfigError(f"expected one of {', '.join(map(repr, _CHOICES[name]))}, got {value!r}")
        return value
    if name == "configuration":
        if not isinstance(value, str):
            raise ConfigError(f"expected a path, got {value!r}")
        path = Path(value).expanduser()
        return (path if folder is None else folder / path) if value else None
    if name in ("select", "extend_select", "ignore"):
        # An editor that knows a setting sends it whether or not anybody has set it, and a list is empty then.
        return _selectors(value) or getattr(ClientSettings(), name)
    if not isinstance(value, bool):
        raise ConfigError(f"expected true or false, got {value!r}")
    return value


def _selectors(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(f"expected a list of rule selectors, got {value!r}")
    found = tuple(str(one) for one in value)
    for selector in found:
        if is_own(selector) or digits_of(selector) is None:  # others may be of a folder's `plugins`
            expand(selector)
    return found
