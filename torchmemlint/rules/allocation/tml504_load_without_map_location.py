"""TML504 load-without-map-location."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Severity
from torchmemlint.flow.fact.details import Loading
from torchmemlint.flow.facts import FileFacts
from torchmemlint.knowledge import checkpoints
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.told import Told
from torchmemlint.syntax.text import shortened, text_of

_ON_HOST = 'map_location="cpu"'
_OF_RANKS = ("DistributedDataParallel", "torch.distributed", "local_rank", "LOCAL_RANK")


class LoadWithoutMapLocation(TellingRule):
    """A checkpoint is put back on the device that saved it."""

    def tell(self, told: Told) -> Finding:
        """Say that a file's tensors go back to the device that saved them."""
        loading = told.about(Loading)
        what = "the module" if loading.copied is None and loading.module is not None else "the checkpoint"
        safe = loading.copied is not None and loading.alone
        is_used = loading.copied is None and loading.module is not None  # as it is, where it was put
        is_brief = _is_doubtful(told.facts, loading)
        return told.finding(
            self,
            f"`{_call(told)}` without `map_location` loads {what} to the device it was saved from",
            [told.here("no `map_location` says where the tensors go"), *_after(told, loading)],
            severity=Severity.ADVICE if is_brief else None,
            doubts=[Doubt.SIZE] if is_brief and loading.small else [],
            fix=offered(
                'Pass `map_location="cpu"`',
                Applicability.SAFE if safe else Applicability.UNSAFE,
                () if is_used or loading.mixed else _edits(told, loading.name),
            ),
        )


def _call(told: Told) -> str:
    call = told.call
    if call is None:
        return told.brief
    file = text_of(call.node.args[0].value) if call.node.args else ""
    return f"{call.callee}({shortened(file, 40)})"


def _is_doubtful(facts: FileFacts, loading: Loading) -> bool:
    """Is it doubtful that the file was saved from a device, or that there are others that read it?

    An optimizer takes what is on its parameters' device as it is: a copy only where the devices differ.
    """
    if loading.name in checkpoints.PUBLISHED or loading.copied is None or not loading.to_modules:
        return True
    return loading.from_host or "torch.save(" not in facts.source.text or not _in_ranks(facts)


def _in_ranks(facts: FileFacts) -> bool:
    """Is it for several processes, each of which would load to the device of the one that saved?

    In a single one the copy is short-lived, and beside the first batch it is small.
    """
    qualified = facts.program.imported.values()
    return any(name.startswith("torch.distributed") for name in qualified) or any(
        word in facts.source.text for word in _OF_RANKS
    )


def _after(told: Told, loading: Loading) -> Iterator[Evidence]:
    """Where the loaded value is copied from, what shows that the file holds a module, or where it is saved again."""
    if loading.copied is not None:
        yield told.link(loading.copied, "its tensors are copied into existing ones here")
    if loading.module is not None:
        yield told.link(loading.module, f"`{told.text_of(loading.module)}` shows that the file holds a module")
    if loading.saved is not None:
        yield told.link(loading.saved, "it is only saved again here, which needs no GPU")


def _edits(told: Told, name: str) -> tuple[Edit, ...]:
    if told.call is None:
        return ()
    given = told.call.argument("map_location", checkpoints.LOADERS[name])
    return told.call.replacing(given, '"cpu"') if given is not None else told.call.adding(_ON_HOST)
