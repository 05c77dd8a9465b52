"""What several rules ask of a loader."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow.facts import FileFacts, Loader
from torchmemlint.flow.names.suites import tests_live_here
from torchmemlint.flow.program import Function
from torchmemlint.rules.arguments import known
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import text_of


def workers(loader: Loader) -> int | None:
    """The number of worker processes (0 where none is given); None where it is not known."""
    if loader.unknown_keywords:
        return None
    value = loader.get("num_workers")
    if value is None:
        return 0
    number = known(value)
    return number if isinstance(number, int) else None


def in_tests(facts: FileFacts, loader: Loader) -> bool:
    """Does it belong to a test?"""
    function = loader.scope.function
    if function is not None and function.name.startswith("test_") and not _is_hook(function):
        return True
    return facts.program.is_test or tests_live_here(facts.path)


def _is_hook(function: Function) -> bool:
    """Is it a method such as Lightning's `test_dataloader`, and not one of a test case?"""
    return function.cls is not None and not any(base.endswith("TestCase") for base in function.cls.base_names())


def name_of(site: Site) -> str:
    """How the class is called in the source: "DataLoader", "data.DataLoader"."""
    return text_of(site.node.func) if isinstance(site.node, cst.Call) else "DataLoader"
