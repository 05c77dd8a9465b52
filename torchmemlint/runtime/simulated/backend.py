"""The backend `simulated`: everything of this package, put together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.backends import Backend
from torchmemlint.runtime.simulated import cards, driver, functions, sharing
from torchmemlint.runtime.simulated.allocator import (
    ROUND,
    Allocations,
    CachingAllocator,
    OutOfMemory,
)
from torchmemlint.runtime.simulated.execution import Tagged
from torchmemlint.runtime.simulated.expandable import ExpandableAllocator
from torchmemlint.runtime.simulated.hollow import Hollow
from torchmemlint.runtime.simulated.mapping import Mapping, mapped
from torchmemlint.runtime.simulated.placement import Placement
from torchmemlint.runtime.simulated.replacing import Replacements
from torchmemlint.runtime.simulated.settings import expands_by_environment, max_split_of_environment
from torchmemlint.runtime.simulated.workspaces import Workspaces
from torchmemlint.runtime.threads import following_threads
from torchmemlint.runtime.tracker import StorageTracker


class SimulatedTracker(StorageTracker):
    """The tracker, with torch's functions in it going past the mapping."""

    def __torch_dispatch__(
        self, operation: Any, types: Any, arguments: tuple[Any, ...] = (), keywords: dict[str, Any] | None = None
    ) -> Any:
        """One operation. What distributed tensors and others of their own kind are made of comes here without them."""
        if internals.works_out_shapes():
            return operation(*arguments, **(keywords or {}))
        if types and isinstance(self.execution, Hollow) and internals.have_operations_of_their_own(types):
            return NotImplemented
        with internals.without_function_modes():
            return super().__torch_dispatch__(operation, types, arguments, keywords)


class _Allocations(Allocations):
    """Blocks for storages; running out of memory raises torch's own error."""

    def allocated(self, index: int, nbytes: int, device: str) -> None:
        """A storage was made."""
        try:
            super().allocated(index, nbytes, device)
        except OutOfMemory as error:
            raise torch.cuda.OutOfMemoryError(str(error)) from None


class Simulated(Backend):
    """GPUs that are not there: the program's tensors on the host, a model of the allocator for the bytes of each."""

    name = "simulated"

    def __init__(
        self,
        card: str | None = None,
        *,
        memory: int | None = None,
        fake: bool = False,
        workspace: bool = True,
        devices: int = 1,
        limit: int | None = None,
    ) -> None:
        self.card = cards.card(card, memory)
        self.fake = fake
        split = max_split_of_environment()
        kind = ExpandableAllocator if expands_by_environment() else CachingAllocator
        self.allocators = {f"cuda:{number}": kind(self.card.total, split, number) for number in range(devices)}
        for allocator in self.allocators.values():
            allocator.limit = self.card.total if limit is None else limit
        self.tracker = SimulatedTracker(listener=_Allocations(self.allocators))
        self.placement = Placement(self.tracker, devices)
        workspaces = Workspaces(self.allocators, self.card.workspace if workspace else 0)
        self.execution = (Hollow if fake else Tagged)(self.placement, workspaces)
        self.tracker.execution = self.execution
        self.mapping = Mapping(self.placement)

    @property
    def allocator(self) -> CachingAllocator:
        """That of the first GPU."""
        return self.allocators["cuda:0"]

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Replace what asks for CUDA, then enter the tracker and the mapping."""
        with Replacements() as replacements:
            driver.replace_torch(replacements, list(self.allocators.values()), self.card, self.mapping)
            functions.replace_functions(replacements, self.mapping)
            sharing.replace_sharing(replacements, self.placement)
            if self.fake:
                functions.replace_for_hollow(replacements, self.mapping)
            with following_threads(self.entering), self.entering():
                yield

    @contextlib.contextmanager
    def entering(self) -> Iterator[None]:
        """The tracker and the mapping."""
        with self.tracker, mapped(self.mapping):
            yield

    def peak_allocated(self, device: str) -> int:
        """The most bytes in the allocator's blocks at once, the matrix products' workspace among them."""
        allocator = self.allocators.get(device)
        return super().peak_allocated(device) if allocator is None else allocator.highest_allocated

    def peak_reserved(self, device: str) -> int | None:
        """The most bytes that the allocator would have taken from the device."""
        allocator = self.allocators.get(device)
        return None if allocator is None else allocator.highest_reserved

    def block_size(self, device: str) -> int:
        """As the model of the allocator rounds."""
        return ROUND if device in self.allocators else 1

    def capacity(self, device: str) -> int | None:
        """As many as the card has."""
        return self.card.total if device in self.allocators else None

    @property
    def card_name(self) -> str:
        """The card whose allocator is modelled."""
        return cards.short_name(self.card)

    def describe(self) -> str:
        """That it is a model, and of which card."""
        how = "shapes only, " if self.fake else ""
        if len(self.allocators) > 1:
            how += f"{len(self.allocators)} GPUs, "
        return f"simulated ({how}allocator model of {cards.title(self.card)}; no GPU was used)"
