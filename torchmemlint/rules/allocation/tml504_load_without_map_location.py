"""TML504 load-without-map-location."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.flow.facts import CheckpointLoad, FileFacts, Use
from torchmemlint.knowledge import checkpoints
from torchmemlint.rules.allocation.saving import saves_from_devices
from torchmemlint.rules.arguments import adding, node_of, replacing
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import Link, is_test, report
from torchmemlint.syntax.text import shortened

_ON_HOST = 'map_location="cpu"'
_UNDERSTOOD = Use.COPIED | Use.COLLECTED | Use.READ | Use.ARRAY


_OF_RANKS = ("DistributedDataParallel", "torch.distributed", "local_rank", "LOCAL_RANK")


class LoadWithoutMapLocation(Rule):
    """A checkpoint is put back on the device that saved it.

    ## What it does
    Reports `torch.load`, `torch.hub.load_state_dict_from_url` and `torch.utils.model_zoo.load_url` without
    `map_location` where what they read is then copied into tensors that exist already (`load_state_dict`, or
    `from_pretrained(..., state_dict=...)`), or is a whole module. A warning where the file of code is for several
    processes (`torch.distributed`, `DistributedDataParallel`, `LOCAL_RANK`), else an advice; an advice, too, where it
    saves nothing itself, or only what it moved to the host, as what others publish mostly comes from there (always for
    the last two functions), where only an optimizer copies it, and for a whole module, which is no copy: what is loaded
    is what works.

    ## Why it costs memory
    `torch.load` puts every tensor back on the device that it was saved from. What a training saved on `cuda:0` needs
    room there again, beside the model and the optimizer that it is copied into, and in every process of a distributed
    run: all of them put their copy on the GPU that saved the file. A machine without that device cannot read the file
    at all.

    ## Example
    ```python
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    ```

    ## Use instead
    ```python
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    ```

    ## Fix safety
    Safe where all that is done with the file's contents is in view, and they are copied to where they belong or read
    as numbers. Unsafe where a part of them is kept, returned or handed on, or where a whole module is loaded: those
    stay on the host then, and the program may have to move them itself.

    ## When it stays silent
    `map_location` is given in any form, also in `**kwargs` that are not known, or is given where the same function
    loads the same file under another condition; the same function saved the file, from its own devices;
    `load_state_dict(..., assign=True)` makes the loaded tensors themselves the parameters; what is loaded has a state
    without tensors (a scheduler, a sampler); what becomes of the file's contents is not in view; the weights are
    torchvision's, which lie on the host; tests.

    ## References
    - [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
    - [Saving and loading models across devices](https://docs.pytorch.org/tutorials/recipes/recipes/save_load_across_devices.html)
    """

    code = "TML504"
    name = "load-without-map-location"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    why = "every tensor of the file is put back on the device that saved it, beside the copy that the program uses"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield loads whose result is copied, or is a module, and goes to the device it was saved from."""
        if is_test(facts):
            return
        settled = {(load.scope.function, load.file) for load in facts.checkpoint_loads if not load.as_saved}
        settled |= facts.saved_files
        for load in facts.checkpoint_loads:
            if not load.as_saved or (load.scope.function, load.file) in settled:
                continue
            if _is_quantized(load):
                continue
            published = load.qualified in checkpoints.PUBLISHED
            if published and checkpoints.PUBLISHED_ON_HOST in facts.source.text:
                continue
            uses = facts.use(frozenset({load.origin}))
            what = "the checkpoint" if Use.COPIED in uses else "the module" if Use.MODULE in uses else ""
            if not what:
                continue
            copied = Use.COPIED in uses
            safe = copied and uses in _UNDERSTOOD
            yield report(
                self,
                facts,
                load.site,
                f"`{load.callee}({shortened(load.file, 40)})` puts {what} back on the device that saved it",
                severity=Severity.ADVICE if published or not copied or _is_doubtful(facts, load) else None,
                evidence=[(load.site, "no `map_location` says where the tensors go"), *_after(facts, load)],
                fix=Fix(
                    "Load to the host",
                    Applicability.SAFE if safe else Applicability.UNSAFE,
                    _edits(facts, load),
                ),
            )


def _is_doubtful(facts: FileFacts, load: CheckpointLoad) -> bool:
    return not _saved_here(facts) or not _in_ranks(facts) or _is_optimizers(facts, load)


def _in_ranks(facts: FileFacts) -> bool:
    """Is it for several processes, each of which would load to the device of the one that saved?

    In a single one the copy is short-lived, and beside the first batch it is small.
    """
    qualified = facts.program.imported.values()
    return any(name.startswith("torch.distributed") for name in qualified) or any(
        word in facts.source.text for word in _OF_RANKS
    )


def _saved_here(facts: FileFacts) -> bool:
    """Does the file save, too? Where files come from elsewhere, their tensors are mostly published from the host."""
    return "torch.save(" in facts.source.text and saves_from_devices(facts.program)


def _is_optimizers(facts: FileFacts, load: CheckpointLoad) -> bool:
    """An optimizer takes what is on its parameters' device as it is: a copy only where the devices differ."""
    return load.origin in facts.copied_at and load.origin not in facts.copied_to_modules


def _is_quantized(load: CheckpointLoad) -> bool:
    """Dynamically quantized layers exist on the host only, and so do the files of their weights."""
    function = load.scope.function
    return function is not None and "quantize_dynamic" in function.outline.calls


def _after(facts: FileFacts, load: CheckpointLoad) -> Iterator[Link]:
    """Where the loaded value is copied from, or what shows that it is a module."""
    if load.origin in facts.copied_at:
        yield facts.copied_at[load.origin], "its tensors are copied here into those that exist already"
    if load.origin in facts.module_shown:
        shown = facts.module_shown[load.origin]
        yield shown.site, shown.text


def _edits(facts: FileFacts, load: CheckpointLoad) -> tuple[Edit, ...]:
    given: cst.BaseExpression | None = node_of(load.site, "map_location", checkpoints.LOADERS[load.qualified])
    if given is not None:
        return replacing(load.site, given, '"cpu"')
    return adding(facts, load.site, _ON_HOST)
