"""What frameworks promise: the linter's own data (`contracts.toml` beside this module) and what users add to it.

A name is written as it is imported. In it, a part that is `*` stands for any number of parts, also none
(`lightning.*.LightningModule`), a `*` within a part for any characters; a name that begins with `!` is an exception to
the others of its term; `*.generate` alone means the method of that name of any object, and `*.Task` the class of that
name from anywhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.resources import files

from torchmemlint.config.contracts import TERMS, Framework, NamedOperation, read_frameworks
from torchmemlint.knowledge import modules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ANYONE = "*."
# Terms whose names may be methods of objects that a program makes.
_OF_CALLS = ("differentiates", "keeps", "reads", "runs-without-gradients", "passes", "wrappers", "parts", "neutral")


class Names:
    """The names of one term."""

    def __init__(self, given: Iterable[str]) -> None:
        patterns = tuple(given)
        exact: set[str] = set()
        ends: dict[str, list[str]] = {}  # by the last part
        loose: list[str] = []
        exceptions: list[str] = []
        methods: set[str] = set()
        for pattern in patterns:
            last = pattern.rpartition(".")[2]
            if pattern.startswith("!"):
                exceptions.append(_expression(pattern[1:]))
            elif (
                pattern.startswith(_ANYONE)
                and pattern.count(".") == 1
                and not _is_loose(last)
                and not last[:1].isupper()
            ):
                methods.add(last)
            elif not _is_loose(pattern):
                exact.add(pattern)
            elif not _is_loose(last):
                ends.setdefault(last, []).append(_expression(pattern))
            else:
                loose.append(_expression(pattern))
        self.plain = frozenset(exact)
        self.methods = frozenset(methods)  # of any object
        self.last_parts = frozenset({*(name.rpartition(".")[2] for name in exact), *ends, *methods})
        self.shown_by = frozenset(  # the names in a program that show one of them: for `__call__`, the class's
            (name.split(".")[-2] if name.endswith(".__call__") else name.rpartition(".")[2]) for name in patterns
        )
        self.owners = frozenset(p.split(".")[-2].lstrip("*") for p in patterns if p.count(".") > 1)
        self._ends = {last: "|".join(found) for last, found in ends.items()}  # compiled when they are needed
        self._loose = re.compile("|".join(loose)) if loose else None
        self._exceptions = re.compile("|".join(exceptions)) if exceptions else None
        self._known: dict[str, bool] = {}

    def excepts(self, qualified: str) -> bool:
        """Is this qualified name said to be none of them?"""
        return self._exceptions is not None and self._exceptions.fullmatch(qualified) is not None

    def __contains__(self, qualified: str) -> bool:
        """Is this qualified name one of them?"""
        found = self._known.get(qualified)
        if found is None:
            found = self._known[qualified] = self._matches(qualified)
        return found

    def has_method(self, name: str, owners: Iterable[str] = ()) -> bool:
        """Is the method of this name one of them, for an object of these classes (qualified names)?"""
        if name in self.methods:
            return True
        return name in self.last_parts and any(f"{owner}.{name}" in self for owner in owners)

    def _matches(self, qualified: str) -> bool:
        if qualified in self.plain:
            return True
        end = self._ends.get(qualified.rpartition(".")[2])
        if (end is None or not re.fullmatch(end, qualified)) and (
            self._loose is None or not self._loose.fullmatch(qualified)
        ):
            return False
        return not self.excepts(qualified)


def _is_loose(text: str) -> bool:
    return "*" in text or "[" in text


def _expression(pattern: str) -> str:
    """A regular expression that matches the same names."""
    found = ""
    parts = pattern.split(".")
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "*":  # with the dot that stands before or after it
            found = found.removesuffix(r"\.") + r"(?:\.[\w.]+)?" if last else found + r"(?:[\w.]+\.)?"
        else:
            found += re.sub(r"\\?\*", r"\\w*", part.replace("-", r"\-") if "[" not in part else part)
            found += "" if last else r"\."
    return f"(?:{found})"


@dataclass(frozen=True, eq=False)
class Contracts:
    """All that is known of frameworks in one run; what it has looked up is kept beside it."""

    frameworks: tuple[Framework, ...]
    _terms: dict[str, Names] = field(default_factory=dict, repr=False)

    def names(self, term: str) -> Names:
        """The names of a term, over all frameworks."""
        found = self._terms.get(term)
        if found is None:
            assert term in TERMS, term
            found = self._terms[term] = Names([name for one in self.frameworks for name in one.of(term)])
        return found

    @cached_property
    def packages(self) -> tuple[str, ...]:
        """Words of which one must stand in a file for it to matter."""
        return tuple(dict.fromkeys(word for one in self.frameworks for word in one.of("packages")))

    # -- gradient modes --------------------------------------------------------------------------------------------

    @cached_property
    def off(self) -> Names:
        """What turns gradients off."""
        return self.names("no-grad")

    @cached_property
    def on(self) -> Names:
        """What turns gradients on."""
        return self.names("enable-grad")

    @cached_property
    def setters(self) -> Names:
        """What sets the mode that its argument says."""
        return self.names("set-grad")

    @cached_property
    def neutral(self) -> Names:
        """Context managers and decorators that leave the mode alone."""
        return self.names("neutral")

    # -- modules ---------------------------------------------------------------------------------------------------

    def is_module_class(self, qualified: str) -> bool:
        """Is this the qualified name of an `nn.Module` class?"""
        return modules.is_layer(qualified) or qualified in self.names("modules")

    def is_module_factory(self, qualified: str) -> bool:
        """Does calling this library function or class method return a module with parameters?"""
        return qualified in self.names("factories")

    def is_no_module(self, qualified: str) -> bool:
        """Does calling this return an object that is known to be no module, such as a tokenizer?"""
        return self.names("modules").excepts(qualified) or self.names("factories").excepts(qualified)

    def is_wrapper(self, qualified: str) -> bool:
        """Does calling this return the module that it is given?"""
        return qualified in self.names("wrappers")

    def is_optimizer(self, qualified: str) -> bool:
        """Is this the qualified name of an optimizer class?"""
        return qualified in self.names("optimizers")

    def is_pipeline(self, qualified: str) -> bool:
        """Do the objects of this class hold modules in evaluation mode?"""
        return qualified in self.names("pipelines")

    @cached_property
    def pipeline_methods(self) -> frozenset[str]:
        """Methods that only pipelines have."""
        return self.names("pipeline-methods").plain

    # -- calls -----------------------------------------------------------------------------------------------------

    @cached_property
    def methods(self) -> frozenset[str]:
        """Methods whose calls contracts speak of, by name."""
        found = frozenset().union(*(self.names(term).last_parts for term in _OF_CALLS))
        return found | {name.removeprefix(_ANYONE) for name in self._operations if name.startswith(_ANYONE)}

    @cached_property
    def owners(self) -> Names:
        """Classes (and functions that make objects) whose objects have such methods."""
        named = (name.rpartition(".") for one in self.frameworks for term in _OF_CALLS for name in one.of(term))
        return Names(
            owner for owner, _, last in named if not owner.endswith("*") and owner.strip("!") and not _is_loose(last)
        )

    def overrides(self, term: str, method: str, bases: Iterable[str]) -> bool:
        """Has a class of these bases this method from a contract of the term?"""
        return self.names(term).has_method(method, bases)

    @cached_property
    def _operations(self) -> dict[str, NamedOperation]:
        return {operation.name: operation for one in self.frameworks for operation in one.operations}

    def operation(self, qualified: str) -> NamedOperation | None:
        """A function of a framework that computes on tensors; `*.name` asks for a method of tensors."""
        return self._operations.get(qualified)


@lru_cache(maxsize=1)
def shipped_frameworks() -> tuple[Framework, ...]:
    """The frameworks of the linter's own data."""
    text = (files("torchmemlint.knowledge") / "contracts.toml").read_text(encoding="utf-8")
    return read_frameworks(tomllib.loads(text))


@lru_cache(maxsize=16)
def contracts(additions: tuple[Framework, ...] = ()) -> Contracts:
    """The linter's own contracts and the given ones."""
    return Contracts((*shipped_frameworks(), *additions))
