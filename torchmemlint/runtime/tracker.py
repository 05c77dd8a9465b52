"""Watches every tensor storage that a program makes, resizes and drops.

The method, and what it was checked against: a dispatch mode sees each operation below autograd; a weak reference to
each new untyped storage says when it goes. Bytes are the same from run to run, and the peak is exact but for
temporaries inside one operation (a test compares it with the allocator's own reports).
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.nn.parameter import Parameter

from torchmemlint.runtime import internals
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.ledger import Ledger
from torchmemlint.runtime.sites import Sites
from torchmemlint.runtime.threads import Standstill

_LIFT = torch.ops.aten.lift_fresh.default
"""Tells of a tensor that `torch.tensor` just made: an argument, but a new storage."""


class Execution(Protocol):
    """How an operation runs, and on which device its new storages are."""

    def device_of(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str | None:
        """The device on which an operation makes its storages; None: that of each tensor itself."""

    def run(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], device: str | None) -> Any:
        """Carry the operation out."""


class Listener(Protocol):
    """Is told of every storage's making and freeing, as they happen."""

    def allocated(self, index: int, nbytes: int, device: str) -> None:
        """A storage was made; raises where the device has no memory left for it."""

    def freed(self, index: int, nbytes: int, device: str) -> None:
        """A storage is gone."""


class Directly:
    """The ordinary execution: each operation runs where its tensors are."""

    def device_of(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str | None:
        """Each tensor's own."""
        return None

    def run(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], device: str | None) -> Any:
        """Call it."""
        return operation(*arguments, **keywords)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors of an operation's arguments or results, also inside lists, tuples and dictionaries."""
    found: list[torch.Tensor] = []
    _collect(value, found)
    return found


def _collect(value: Any, found: list[torch.Tensor]) -> None:
    # Asked several times for each operation of a program: most values are tensors, numbers or flat tuples of them.
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, tuple | list):
        for one in value:
            if isinstance(one, torch.Tensor):
                found.append(one)
            elif isinstance(one, tuple | list | dict):
                _collect(one, found)
    elif isinstance(value, dict):
        for one in value.values():
            _collect(one, found)


def is_parameter(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a parameter of a module."""
    kind = type(tensor)
    if kind is torch.Tensor:  # the usual case, without Parameter's own slow `isinstance`
        return False
    return kind is Parameter or isinstance(tensor, Parameter)


class StorageTracker(internals.DispatchMode):  # type: ignore[misc]
    """The dispatch mode that fills a ledger. Enter it to watch; leave it to stop."""

    def __init__(self, execution: Execution | None = None, listener: Listener | None = None) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.sites = Sites()
        self.execution: Execution = execution if execution is not None else Directly()
        self.listener = listener
        self.operations = 0
        self.addresses: array[int] | None = None  # by record; where a history of the allocator is read
        self._index_of: dict[int, int] = {}
        self._watches: dict[int, Any] = {}
        self._gone: deque[int] = deque()  # storages that are to be written off
        self._composite: dict[Any, bool] = {}
        self.standstill = Standstill()  # the program's threads take turns to write into the ledger

    # --- what is known of a storage

    def note_shared(self, tensor: torch.Tensor) -> None:
        """Write down that a tensor goes to another process, or came from one."""
        index = self.index_of(tensor)
        if index is not None:
            self.ledger.shared.add(index)

    def index_of(self, tensor: torch.Tensor) -> int | None:
        """The living record of a tensor's storage; None where it was never seen."""
        storage = internals.storage_of(tensor)
        return None if storage is None else self._index_of.get(internals.storage_key(storage))

    def device_of(self, tensor: torch.Tensor) -> str | None:
        """The device on which a tensor's storage is counted; None where it was never seen."""
        index = self.index_of(tensor)
        return None if index is None else self.ledger.device(index)

    def device_of_storage(self, storage: torch.UntypedStorage) -> str | None:
        """The device on which a storage is counted; None where it was never seen."""
        index = self._index_of.get(internals.storage_key(storage))
        return None if index is None else self.ledger.device(index)

    def place(self, tensor: torch.Tensor, device: str) -> None:
        """Note that a tensor's storage, seen before or not, is counted on a device from now on."""
        storage = internals.storage_of(tensor)
        if storage is not None:
            self.place_storage(storage, device)

    def place_storage(self, storage: torch.UntypedStorage, device: str) -> None:
        """The same for a storage that has no tensor yet."""
        key = internals.storage_key(storage)
        site, loading = self.sites.current(2)
        with self.standstill.turn:
            self._end(key)
            self._begin(storage, key, device, "place", lambda: (site, False, loading), given=False)

    def resized(self, storage: torch.UntypedStorage) -> None:
        """Note that a storage, if it was seen before, has other bytes now."""
        key = internals.storage_key(storage)
        with self.standstill.turn:
            index = self._index_of.get(key)
            if index is None or internals.bytes_of(storage) == self.ledger.nbytes(index):
                return
            device, kind = self.ledger.device(index), self.ledger.claimed(index)
            self._end(key)
            site, loading = self.sites.current(3)
            self.ledger.claim(
                self._begin(storage, key, device, "resize", lambda: (site, False, loading), given=False), kind
            )

    def claim(self, tensor: torch.Tensor, kind: Kind) -> None:
        """Note what a tensor's storage is for."""
        index = self.index_of(tensor)
        if index is not None:
            self.ledger.claim(index, kind)

    # --- the mode

    def __torch_dispatch__(
        self, operation: Any, types: Any, arguments: tuple[Any, ...] = (), keywords: dict[str, Any] | None = None
    ) -> Any:
        """See one operation: what it is given, then what it makes."""
        keywords = keywords or {}
        if torch.is_inference_mode_enabled() and self._is_composite(operation):
            # Under inference mode composite operations arrive whole; taken apart, their temporaries are seen.
            with internals.callers_autocast(operation), self:
                result = operation.decompose(*arguments, **keywords)
            if result is not NotImplemented:
                return result
        self.operations += 1
        device = self.execution.device_of(operation, arguments, keywords)
        site_of = self._site_finder()
        with self.standstill.turn:
            self.write_off()
            for tensor in tensors_in(arguments):
                self._see(tensor, device, operation, site_of, given=True)
            if keywords:
                for tensor in tensors_in(keywords):
                    self._see(tensor, device, operation, site_of, given=True)
        result = self.execution.run(operation, arguments, keywords, device)
        with self.standstill.turn:
            self.write_off()
            for tensor in tensors_in(result):
                self._see(tensor, device, operation, site_of, given=False)
        return result

    def _is_composite(self, operation: Any) -> bool:
        known = self._composite.get(operation)
        if known is None:
            known = self._composite[operation] = internals.is_composite(operation)
        return known

    def _site_finder(self) -> Callable[[], tuple[Any, bool, bool]]:
        """A function that gives (line, in backward, in a loader), and looks only once, when first asked.

        In a forward that records a graph, the line must be found at once, for backward to find it again.
        """
        node = internals.backward_node()
        found: tuple[Any, bool, bool] | None = None
        if node is None and torch.is_grad_enabled():
            site, loading = self.sites.current(3)
            self.sites.remember(site)
            found = site, False, loading

        def find() -> tuple[Any, bool, bool]:
            nonlocal found
            if found is None:
                forward = None if node is None else self.sites.of_node(node)
                site, loading = (forward, False) if forward is not None else self.sites.current(4)
                found = site, node is not None, loading
            return found

        return find

    def _see(
        self,
        tensor: torch.Tensor,
        device: str | None,
        operation: Any,
        site_of: Callable[[], tuple[Any, bool, bool]],
        *,
        given: bool,
    ) -> None:
        storage = internals.storage_of(tensor)
        if storage is None:
            for part in internals.parts_of(tensor):
                self._see(part, device, operation, site_of, given=given)
            return
        key = internals.storage_key(storage)
        index = self._index_of.get(key)
        if index is None:
            if device is None or (given and operation is not _LIFT):  # what comes from outside is where it says it is
                device = str(tensor.device)
            index = self._begin(storage, key, device, operation, site_of, given)
        elif internals.bytes_of(storage) != self.ledger.nbytes(index):
            where = self.ledger.device(index)
            self._end(key)
            index = self._begin(storage, key, where, operation, site_of, given)
        self.ledger.use(index)
        if given and is_parameter(tensor):
            self.ledger.claim(index, Kind.PARAMETER)

    def _begin(
        self,
        storage: torch.UntypedStorage,
        key: int,
        device: str,
        operation: Any,
        site_of: Callable[[], tuple[Any, bool, bool]],
        given: bool,
    ) -> int:
        site, in_backward, loading = site_of()
        nbytes = internals.bytes_of(storage)
        if self.listener is not None:  # asked first, because it may have no memory left
            self.listener.allocated(len(self.ledger), nbytes, device)
        index = self.ledger.allocate(nbytes, device, site, str(operation), in_backward)
        if self.addresses is not None:
            self.addresses.append(storage.data_ptr())
        if loading or given:  # what the program is handed ready-made: a loader's batch, a tensor from before
            self.ledger.claim(index, Kind.INPUT)
        self._index_of[key] = index
        self._watches[key] = internals.watched(storage, lambda: self._end(key))
        return index

    def _end(self, key: int) -> None:
        """A storage is gone, or begins again with other bytes. Never waits: torch may still be dropping it."""
        self._gone.append(key)
        while self._gone and self.standstill.turn.acquire(blocking=False):
            try:
                self.write_off()
            finally:
                self.standstill.turn.release()

    def write_off(self) -> None:
        """Write down what has gone, also while another thread had its turn. Ask it with the turn."""
        while self._gone:
            key = self._gone.popleft()
            index = self._index_of.pop(key, None)
            self._watches.pop(key, None)
            if index is not None:
                self.ledger.free(index)
                if self.listener is not None:
                    self.listener.freed(index, self.ledger.nbytes(index), self.ledger.device(index))
