"""Streams and events of the simulated GPU: one queue that has always finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

_FIRST = torch.device("cuda", 0)


class Event:
    """A moment on the host's clock."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = _FIRST
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        """It is now."""
        self._time = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """The host's milliseconds from here to there."""
        if self._time is None or end._time is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end._time - self._time) * 1000

    def query(self) -> bool:
        """Everything is finished."""
        return True

    def wait(self, stream: Any = None) -> None:
        """There is nothing to wait for."""

    def synchronize(self) -> None:
        """There is nothing to wait for."""


class Stream:
    """A queue; entering it changes nothing."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device = device if isinstance(device, torch.device) else _FIRST
        self.device_index = self.device.index or 0
        self.priority = priority
        self.cuda_stream = self.stream_id = 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def query(self) -> bool:
        """Everything is finished."""
        return True

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def is_capturing(self) -> bool:
        """CUDA graphs are not simulated."""
        return False

    def wait_stream(self, stream: Any) -> None:
        """There is nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """There is nothing to wait for."""

    def record_event(self, event: Any = None) -> Any:
        """An event that is now."""
        event = event if event is not None else Event()
        event.record(self)
        return event


def standing_in(original: type, simulated: type) -> type:
    """A subclass of torch's own class (others check for that) whose calls make the simulated one's objects."""

    class Meta(type(original)):  # type: ignore[misc]
        def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
            return simulated(*arguments, **keywords)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, simulated)

    return Meta(original.__name__, (original,), {"__module__": original.__module__})


class Generator(torch.Generator):
    """A generator of the host that says it is a GPU's."""

    gpu = _FIRST

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The simulated GPU."""
        return self.gpu


def generator_class(original: type, gpus: Mapping[str, torch.device], wanted: Callable[[Any], str]) -> type:
    """What replaces `torch.Generator`: `Generator(device="cuda")` gives one that computes on the host."""

    class Meta(type(original)):  # type: ignore[misc]
        def __call__(cls, device: Any = "cpu") -> Any:
            gpu = gpus.get(wanted(device))
            if gpu is None:
                return original(device)
            generator = Generator()
            generator.gpu = gpu
            return generator

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original)

    return Meta(original.__name__, (original,), {"__module__": original.__module__})
