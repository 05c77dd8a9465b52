"""Which layer of a model made a storage: the innermost module whose forward was running."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from torch import nn

from torchmemlint.immutable import immutable
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.ledger import Ledger, Record


@immutable()
class LayerUse:
    """A layer's own bytes, without those of the layers inside it: its parameters, and what its forward saved."""

    name: str
    type: str
    parameters: int
    saved: int


class Layers:
    """Watches which module's forward runs, in the ledger's own time."""

    def __init__(self, model: nn.Module, ledger: Ledger) -> None:
        self._model = model
        self._ledger = ledger
        self._names = {id(module): name for name, module in model.named_modules()}
        self._moments: list[int] = []
        self._running: list[str | None] = []
        self._stack: list[str] = []
        for module in model.modules():
            module.register_forward_pre_hook(self._enter)
            module.register_forward_hook(self._leave, always_call=True)

    def _enter(self, module: nn.Module, arguments: Any) -> None:
        self._stack.append(self._names[id(module)])
        self._note()

    def _leave(self, module: nn.Module, arguments: Any, output: Any) -> None:
        self._stack.pop()
        self._note()

    def _note(self) -> None:
        self._moments.append(self._ledger.now)
        self._running.append(self._stack[-1] if self._stack else None)

    def of(self, record: Record) -> str | None:
        """The layer in whose forward a storage was made; None outside the model."""
        place = bisect_right(self._moments, record.born) - 1
        return self._running[place] if place >= 0 else None

    def uses(self, records: Iterable[Record]) -> list[LayerUse]:
        """Each layer that has parameters or saved something, in the model's order."""
        saved: dict[str, int] = defaultdict(int)
        for record in records:
            layer = self.of(record)
            if record.kind is Kind.SAVED and layer is not None:
                saved[layer] += record.nbytes
        found = []
        for name, module in self._model.named_modules():
            parameters = sum(one.numel() * one.element_size() for one in module.parameters(recurse=False))
            if parameters or saved[name]:
                found.append(LayerUse(name or "(model)", type(module).__name__, parameters, saved[name]))
        return found
