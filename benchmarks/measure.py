"""Measuring one command: wall seconds and peak memory, its child processes included. Linux only."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

INTERVAL = 0.05  # seconds between two looks at the processes
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one run took."""

    seconds: float  # wall time from start to end
    cpu: float  # seconds of processor time, of all its processes: what a busy machine leaves comparable
    process_peak: int  # bytes resident in the largest of its processes: exact, from the kernel
    total_peak: int  # bytes resident in all of them together, sampled; pages that they share count for each


def measure(
    command: Sequence[str], statuses: Collection[int], environment: Mapping[str, str] | None = None
) -> Measurement:
    """Run a command with its output thrown away; RuntimeError for an exit status not in `statuses`.

    Python keeps what it has compiled of modules, as it does where a package was installed, whatever the environment
    says: a checkout would else be compiled again in each run, and other linters would not.
    """
    environment = {**(os.environ if environment is None else environment)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)
        sampler = _Sampler(process.pid)
        sampler.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)  # it is waited for: Popen must not try
        total = sampler.finish()
        if process.returncode not in statuses:
            errors.seek(0)
            message = errors.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"{' '.join(command)} gave {process.returncode}:\n{message}")
    peak = usage.ru_maxrss * 1024
    return Measurement(seconds, usage.ru_utime + usage.ru_stime, peak, max(total, peak))


def machine() -> dict[str, Any]:
    """Where and when the figures were taken."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": model,
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


class _Sampler(threading.Thread):
    """Adds up the resident memory of a process and all below it, again and again."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.peak = 0
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(INTERVAL):
            self.peak = max(self.peak, resident(self.pid))

    def finish(self) -> int:
        """Stop; the highest sum seen, in bytes."""
        self._done.set()
        self.join()
        return self.peak


def resident(pid: int) -> int:
    """Bytes resident now in a process and its descendants; 0 for those that have ended."""
    children: dict[int, list[int]] = defaultdict(list)
    for name in os.listdir("/proc"):  # noqa: PTH208 (this shares the processors with what it measures: it must be short)
        if name.isdigit() and (told := _read(f"/proc/{name}/stat")):
            children[int(told.rpartition(b")")[2].split(None, 2)[1])].append(int(name))
    total = 0
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        waiting += children[one]
        if told := _read(f"/proc/{one}/statm"):
            total += int(told.split(None, 2)[1]) * _PAGE
    return total


def _read(path: str) -> bytes:
    """What stands in a small file of the kernel's; nothing where the process has ended."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (likewise)
            return file.read()
    except OSError:
        return b""
