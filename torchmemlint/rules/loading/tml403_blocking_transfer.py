"""TML403 blocking-transfer."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts, Loader, Transfer
from torchmemlint.flow.values import Device
from torchmemlint.rules.arguments import adding
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report
from torchmemlint.rules.loading.loaders import in_tests, name_of, own_batches, pins
from torchmemlint.rules.loading.tml402_loader_unpinned import unpinned
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import shortened


class BlockingTransfer(Rule):
    """A pinned batch is copied to the accelerator while the program waits.

    ## What it does
    Reports `.to(device)` and `.cuda()` without `non_blocking=True` on a batch, or a part of one, that comes from a
    loader which pins its batches (or which TML402 asks to), and goes to an accelerator.

    ## Why it costs memory
    It costs time: the program waits for the copy although the device could make it beside the computation, in the same
    stream and so before anything that uses it. It does not change how much memory is needed. How much time depends on
    the batch: with 16 KiB none was saved on a GPU.

    ## Example
    ```python
    loader = DataLoader(dataset, num_workers=4, pin_memory=True)
    for images, targets in loader:
        images, targets = images.cuda(), targets.cuda()
    ```

    ## Use instead
    ```python
    loader = DataLoader(dataset, num_workers=4, pin_memory=True)
    for images, targets in loader:
        images, targets = images.cuda(non_blocking=True), targets.cuda(non_blocking=True)
    ```

    ## Fix safety
    Safe towards the accelerator: whatever uses the copy is queued behind it. It is offered in that direction only;
    towards the host a copy that does not wait is a data race.

    ## When it stays silent
    The batch does not come straight from a loader in view, the loader does not pin or is not known to, what is moved
    was computed on the host (and is pageable), the device is not known or may be the host, `non_blocking` is given in
    any form, the batch is an object of the project's own, whose `to` may not take the argument, or a part of one that a
    tokenizer may have made, or a `break` ends the loop with its first batch; tests.

    ## References
    - [CUDA semantics: use pinned memory buffers](https://docs.pytorch.org/docs/stable/notes/cuda.html)
    - [A guide on pin_memory and non_blocking](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """

    code = "TML403"
    name = "blocking-transfer"
    severity = Severity.ADVICE
    fix = Applicability.SAFE
    why = "the program waits for a copy that the device could make beside the computation"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield transfers that wait though they need not."""
        by_site: dict[Site, list[Transfer]] = {}
        for transfer in facts.transfers:
            if transfer.site.piece.path != facts.path:
                continue  # in a helper of another file, whose callers may have other loaders
            by_site.setdefault(transfer.site, []).append(transfer)
        loaders = {loader.site: loader for loader in facts.loaders}
        for site, transfers in by_site.items():
            found = [loaders.get(t.loader) for t in transfers if t.loader is not None]
            known = [loader for loader in found if loader is not None and not in_tests(facts, loader)]
            if not known or len(known) < len(found) or not all(_may_be_asynchronous(t) for t in transfers):
                continue
            if all(map(_in_loop_of_one_turn, transfers)):
                continue
            if any(own_batches(loader) and (t.whole or _may_be_encoded(facts)) for t in transfers for loader in known):
                continue
            if not all(_pinned(facts, loader) for loader in known):
                continue
            loader = known[0]
            yield report(
                self,
                facts,
                site,
                f"`{shortened(transfers[0].text, 50)}` waits for the copy of "
                + ("a pinned batch" if pins(loader) else "its batch, and would if that were pinned (TML402)"),
                evidence=[
                    (loader.site, f"the batch comes from this {name_of(loader.site)}, {_memory(loader)}"),
                    (site, "it is copied to an accelerator without `non_blocking=True`"),
                ],
                fix=Fix("Do not wait for the copy", Applicability.SAFE, adding(facts, site, "non_blocking=True")),
            )


def _may_be_asynchronous(transfer: Transfer) -> bool:
    return transfer.device is Device.ACCELERATOR and transfer.blocking and transfer.simple


def _may_be_encoded(facts: FileFacts) -> bool:
    """May a part of a batch be what a tokenizer gives, whose `to` takes no such argument?

    Source: transformers 4.48 added it (`BatchEncoding.to`, `BatchFeature.to`); before, it raises TypeError.
    """
    return any(word in facts.source.text for word in ("tokenizer", "processor"))


def _in_loop_of_one_turn(transfer: Transfer) -> bool:
    """`for batch in loader: ...; break`: one copy, which nothing waits beside."""
    for mark in reversed(transfer.scope.loops):
        if isinstance(mark.node, cst.For):
            last = mark.node.body.body[-1] if mark.node.body.body else None
            return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Break)
    return False


def _pinned(facts: FileFacts, loader: Loader) -> bool:
    return pins(loader) is True or unpinned(facts, loader) is not None


def _memory(loader: Loader) -> str:
    return "which pins its memory" if pins(loader) else "which should pin its memory (TML402)"
