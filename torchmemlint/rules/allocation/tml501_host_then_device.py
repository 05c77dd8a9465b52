"""TML501 host-then-device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity, Span
from torchmemlint.flow.facts import FileFacts, HostCreation
from torchmemlint.flow.values import LoopMark
from torchmemlint.rules.arguments import adding
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import is_test, report
from torchmemlint.rules.steps import in_a_script, now_and_then
from torchmemlint.syntax.text import shortened
from torchmemlint.syntax.walking import inside

SMALL = 1024  # numbers; less costs next to nothing
LARGE = 65_536  # numbers: 256 KiB of float32, which take longer to copy than a copy takes to begin
_RANDOM = frozenset({"rand", "randn", "randint", "randperm"})
_COUNTING = frozenset({"range", "trange", "count"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ALIKE = frozenset({"zeros", "ones", "empty", "full", "eye"})  # the same to the bit wherever they are made


class HostThenDevice(Rule):
    """A tensor is created on the host and copied to the device at once.

    ## What it does
    Reports `torch.zeros(...).to(device)`, `torch.randn(...).cuda()` and the like: a factory without `device=` whose
    result does nothing but move to an accelerator.

    ## Why it costs memory
    The tensor exists twice, once on the host, where nobody uses it, and the copy goes over the bus, mostly while the
    program waits. A kernel on the device fills the same tensor there without either.

    ## Example
    ```python
    mask = torch.zeros(batch, length, length).to(device)
    ```

    ## Use instead
    ```python
    mask = torch.zeros(batch, length, length, device=device)
    ```

    ## Fix safety
    Safe for factories that fill a tensor with one value or with whole numbers: the same numbers come out. Unsafe for
    random ones, for which another generator draws, and for fractional steps and windows, which a device may round
    differently. None for `cuda(gpu)` where `gpu` may be None: the current GPU there, the host as `device=`.

    ## When it stays silent
    The factory is given a device, an `out` or pinned memory; a default device is set in the file; where the tensor goes
    is not known to be a device, or is the host; the tensor is known to be small (less than 1024 numbers, also where an
    option of the command line says so by default), or has one number for each item of a batch (as many as the first
    axis of another tensor); a module of layers tries itself out, once, under `if __name__ == "__main__"`; random
    numbers are what a parameter starts from, so that a seed means the same on every machine; something else happens
    before the move; data comes from Python or numpy (`torch.tensor`, `from_numpy`), which starts on the host anyway;
    tests. An advice where it happens once, as in a constructor, or every so many steps, where a script makes up random
    data for each of its steps, and where the tensor is not seen to be large (65,536 numbers, or two axes of the data;
    axes of a tensor without its last one make a flag for each token, which is little beside the tokens' features).

    ## References
    - [Performance tuning guide: create tensors directly on the target device](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code = "TML501"
    name = "host-then-device"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    why = "the tensor is made on the host, where nobody uses it, and copied over the bus"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield tensors that are created on the host only to be moved."""
        if is_test(facts):
            return
        for creation in facts.host_creations:
            if creation.numbers is not None and creation.numbers < SMALL:
                continue
            if creation.per_item or _is_beside_samples(creation) or _is_self_check(facts, creation):
                continue
            if creation.factory in _RANDOM and creation.site in facts.initial:
                continue  # a start that is the same with and without a GPU
            yield report(
                self,
                facts,
                creation.site,
                f"`{creation.callee}(…)` makes a tensor on the host that goes to `{shortened(creation.device, 40)}`",
                severity=None if _is_large(creation) and _is_repeated(facts, creation) else Severity.ADVICE,
                evidence=[
                    (creation.created, "created on the host: no `device=` is given"),
                    (creation.site, "copied to the device at once"),
                ],
                fix=_fix(facts, creation),
            )


def _is_beside_samples(creation: HostCreation) -> bool:
    """In a data set, `x.device` is where the samples lie: the host, as a rule."""
    cls = creation.scope.function.cls if creation.scope.function is not None else None
    if cls is None or not creation.device.endswith(".device") or creation.device.startswith("self."):
        return False
    return any(base.rpartition(".")[2] in ("Dataset", "IterableDataset") for base in cls.external_bases())


def _is_self_check(facts: FileFacts, creation: HostCreation) -> bool:
    """Does a module of layers try itself out there, once, where it is run as a program?"""
    piece = creation.site.piece
    statement = piece.module.body[0] if creation.scope.function is None else None
    if not isinstance(statement, cst.If) or not in_a_script(statement.test, met=True):
        return False
    if piece.outline is None or any(isinstance(node, _LOOPS) for node in ast.walk(piece.outline)):
        return False
    classes = (facts.program.find_class(piece.name) for piece in facts.source.pieces if piece.kind == "class")
    return any(cls is not None and cls.is_module for cls in classes)


def _is_large(creation: HostCreation) -> bool:
    """Is it large, or does it grow with the data along more than one axis? What settings make of it, nobody knows."""
    return creation.axes_of_data > 1 if creation.numbers is None else creation.numbers >= LARGE


def _is_repeated(facts: FileFacts, creation: HostCreation) -> bool:
    """Is it made again and again? A loop in a constructor makes the parts of one object."""
    function = creation.scope.function
    if function is not None and function.name == "__init__":
        return False
    loops = [mark for mark in creation.scope.loops if mark.node is not None]
    if function is None and creation.factory in _RANDOM and all(map(_counts, loops)):
        return False  # a script that makes its data up, step for step, tries something out
    if now_and_then(facts.tests.get(creation.site, ()), creation.scope.loops):
        return False
    return creation.per_batch or bool(loops)


def _fix(facts: FileFacts, creation: HostCreation) -> Fix:
    exact = creation.factory in _ALIKE or (creation.factory == "arange" and not creation.fractional)
    written = creation.created.piece.written
    created = written(creation.created.node)
    rest = written(creation.site.node)[len(created) :]
    edits: tuple[Edit, ...] = ()
    if "#" not in rest and not created.startswith("(") and creation.same_place:
        after = Span(creation.created.span.end, creation.site.span.end)
        edits = (*adding(facts, creation.created, f"device={creation.device}"), Edit(after, ""))
    applicability = Applicability.SAFE if exact else Applicability.UNSAFE
    return Fix("Create it on the device", applicability if edits else Applicability.HINT, edits)


def _counts(loop: LoopMark) -> bool:
    """`for i in range(n)`, or over what is written down in place."""
    if not isinstance(loop.node, cst.For):
        return False
    iterated = loop.node.iter
    names = (node.value for node in inside(iterated) if isinstance(node, cst.Name))
    return isinstance(iterated, cst.List | cst.Tuple) or any(name in _COUNTING for name in names)
