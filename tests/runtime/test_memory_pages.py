"""The figures of the pages about memory are what the library works out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tools import tool

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
KEPT: dict[str, Any] = json.loads((ROOT / "docs" / "memory.json").read_text(encoding="utf-8"))
FIGURES = tool("memory_figures")
TABLES = tool("memory_tables")
same_torch = pytest.mark.skipif(
    torch.__version__.split("+")[0] != KEPT["torch"].split("+")[0], reason=f"the figures are torch {KEPT['torch']}'s"
)


def as_json(found: object) -> Any:
    return json.loads(json.dumps(found))


@same_torch
@pytest.mark.parametrize("part", ["activations", "attention", "allocator", "fixed"])
def test_parts_are_worked_out_again(part: str) -> None:
    assert as_json(getattr(FIGURES, part)()) == KEPT[part]


@same_torch
def test_the_step_is_worked_out_again() -> None:
    assert as_json(FIGURES.used(FIGURES.Language, FIGURES.plan())) == KEPT["batches"][str(FIGURES.BATCH)]
    assert FIGURES.pass_alone(gradients=False) == KEPT["pass"]["not recording"]


def test_the_arithmetic_of_the_pages_holds() -> None:
    step, model = KEPT["batches"][str(FIGURES.BATCH)], KEPT["model"]
    width, layers = model["width"], model["depth"]
    each = 12 * width**2 + 13 * width  # four products with their biases, two norms
    parameters = 2 * model["words"] * width + layers * each
    assert step["parameters"] == parameters
    assert step["kinds"]["parameter"] == pytest.approx(4 * parameters, rel=1e-3)  # blocks are rounded up
    assert step["kinds"]["optimizer state"] == pytest.approx(8 * parameters, rel=1e-3)
    one, many = KEPT["batches"]["1"], KEPT["batches"]["32"]
    assert many["saved"] == pytest.approx(32 * one["saved"], rel=0.01)
    assert one["phase"] == "optimizer step"
    assert many["phase"] == "backward"


@pytest.mark.parametrize("name", sorted(TABLES.MAKERS))
def test_each_place_is_in_a_page_and_has_figures(name: str) -> None:
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")]
    assert sum(f"<!-- {name}: written by tools/documents.py -->" in page for page in pages) == 1
    assert any(unit in TABLES.MAKERS[name]() for unit in (" B", "MiB", "GiB"))


FAMILY_PAGES = (
    "graphs",
    "gradient-mode",
    "activations",
    "loading",
    "allocation",
    "training-step",
    "frameworks",
    "owners",
)


@pytest.mark.parametrize("name", FAMILY_PAGES)
def test_nothing_is_typed_by_hand(name: str) -> None:
    """Sizes beside the allocator's own rule stand in places that the build fills."""
    import re

    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    written = re.sub(r"<!-- (.*?): written by .*?<!-- end of \1 -->", "", text, flags=re.DOTALL)
    found = set(re.findall(r"\d+(?:\.\d+)? (?:[KMG]i?B|bytes)", written))
    assert found <= ({"512 bytes", "1 MiB", "2 MiB", "10 MiB", "20 MiB"} if name == "allocation" else set())


def test_the_allocators_rule_is_the_models_own() -> None:
    from torchmemlint.runtime.simulated import allocator

    text = (ROOT / "docs" / "allocation.md").read_text(encoding="utf-8")
    mib = 1 << 20
    assert f"multiples of {allocator.ROUND} bytes" in text
    assert f"up to {allocator.SMALL // mib} MiB come from segments of {allocator.SMALL_SEGMENT // mib} MiB" in text
    below, segment = allocator.LARGE_REQUEST // mib, allocator.LARGE_SEGMENT // mib
    assert f"Blocks below {below} MiB come from segments of {segment} MiB" in text
    assert f"in steps of {allocator.ROUND_SEGMENT // mib} MiB" in text
