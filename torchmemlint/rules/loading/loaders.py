"""What several rules ask of a loader."""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow.facts import FileFacts, Loader
from torchmemlint.flow.names.suites import tests_live_here
from torchmemlint.flow.program import Function
from torchmemlint.flow.values import Constant
from torchmemlint.rules.arguments import known, node_of, shown
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


def in_order(loader: Loader) -> bool:
    """Does it give the samples in the order of the data set, as without `shuffle` and a sampler?"""
    if loader.unknown_keywords or loader.get("batch_sampler") is not None:
        return False
    drawn = loader.get("shuffle")
    shuffles = drawn is not None and not (isinstance(drawn, Constant) and drawn.known and not drawn.value)
    sampler = shown(node_of(loader.site, "sampler", 3))
    return not shuffles and (loader.get("sampler") is None or "SequentialSampler(" in sampler)


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
