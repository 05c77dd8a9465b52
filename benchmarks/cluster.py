"""What a Dask cluster costs and whether it tells the same: two workers on this machine against two processes of a run.

    python benchmarks/cluster.py path/to/projects/* --files 5000
    python benchmarks/cluster.py path/to/projects/* --kill              # and a worker is killed in the middle

Each folder is a project. Projects are taken in order until there are so many Python files. Local runs and runs on the
cluster take turns; of each the median counts. `seconds` is wall time, `cpu` the processor time of all processes, the
cluster's own included: what a busy machine leaves comparable. The exit code is 1 where the reports differ.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

PORT = 18789
_FAREWELL = 20  # seconds
_TICK = os.sysconf("SC_CLK_TCK")


def projects(folders: Sequence[Path], files: int) -> tuple[list[Path], int]:
    """The first folders with so many Python files in all, and how many these have."""
    chosen: list[Path] = []
    count = 0
    for folder in folders:
        if count < files:
            chosen.append(folder.resolve())
            count += sum(1 for _ in folder.rglob("*.py"))
    return chosen, count


@contextmanager
def cluster(scratch: Path) -> Iterator[list[int]]:
    """A scheduler and two workers of a thread each; gives their process ids, the workers' last."""
    dask = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": scratch}
    scheduler = [*dask, "scheduler", "--host", "127.0.0.1", "--port", str(PORT), "--no-dashboard"]
    worker = [*dask, "worker", f"tcp://127.0.0.1:{PORT}", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    started = [subprocess.Popen(command, **quiet) for command in (scheduler, worker, worker)]  # type: ignore[call-overload]
    try:
        yield [process.pid for process in started]
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            _await(process)


def _await(process: subprocess.Popen[bytes]) -> None:
    """A worker may wait for its scheduler, which has gone."""
    try:
        process.wait(_FAREWELL)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def spent(pids: Sequence[int]) -> float:
    """Seconds of processor time of some processes and all below them, those that ended included."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
        except OSError:
            continue
        below: list[int] = []
        for task in tasks:
            with suppress(OSError):  # a thread that has ended since
                below += map(int, (task / "children").read_text().split())
        total += sum(map(int, fields[11:15]))
        total += round(spent(below) * _TICK)
    return total / _TICK


def run(listed: Path, *options: str) -> tuple[bytes, float, float]:
    """The report of a run, its wall time, and its processor time."""
    command = [sys.executable, "-P", "-m", "torchmemlint", "--projects-from", str(listed), "--isolated", "--no-cache"]
    before, start = os.times(), time.perf_counter()
    done = subprocess.run([*command, "--output-format", "json", *options], capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr.decode())
    after = os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return done.stdout, time.perf_counter() - start, cpu


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kill", action="store_true", help="kill a worker in the middle of each run on the cluster")
    options = parser.parse_args()
    chosen, count = projects(options.folders, options.files)
    here: list[tuple[float, float]] = []
    there: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder, "projects.txt")
        listed.write_text("".join(f"{path}\n" for path in chosen), encoding="utf-8")
        print(f"{count} Python files in {len(chosen)} projects")
        for number in range(1, options.rounds + 1):
            report, seconds, cpu = run(listed, "--jobs", "2")
            here.append((seconds, cpu))
            with cluster(Path(folder)) as pids:
                time.sleep(5)  # starting is not what is measured
                before = spent(pids)
                if options.kill:
                    threading.Timer(seconds / 2, os.kill, (pids[-1], signal.SIGKILL)).start()
                same, seconds, cpu = run(listed, "--executor", f"dask://127.0.0.1:{PORT}")
                there.append((seconds, cpu + spent(pids) - before))
            print(f"round {number}: here {here[-1][0]:.1f} s ({here[-1][1]:.1f} cpu), there {seconds:.1f} s", end=" ")
            print(f"({there[-1][1]:.1f} cpu), {'the same report' if same == report else 'REPORTS DIFFER'}", flush=True)
            if same != report:
                return 1
    for place, name in enumerate(("seconds", "cpu")):
        ratio = median(one[place] for one in there) / median(one[place] for one in here)
        print(f"{name}: the cluster takes {ratio:.2f} times what two processes take")
    return 0


if __name__ == "__main__":
    sys.exit(main())
