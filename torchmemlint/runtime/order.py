"""What a child process is told to run, and how: plain data that goes to it as a file. Knows nothing of torch."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any

from torchmemlint.immutable import immutable
from torchmemlint.runtime.libraries import FOLDERS, library_folders
from torchmemlint.runtime.torchrun import environment_of
from torchmemlint.source.projects import project_above

STEPS = 12
"""Steps that a loop is given: two to warm up, and ten for a line through the bytes held after each."""
SECONDS = 600.0
"""Wall time of one run, the import of torch included."""

PLAIN = ("cpu", "cuda")
"""Backends that measure what is there, and on which a program also runs without the tracker."""


@immutable()
class Program:
    """A Python program: `SCRIPT arguments…`, or with `module` what `python -m` runs."""

    target: str  # the script's path as given, or the module's dotted name
    arguments: tuple[str, ...] = ()
    module: bool = False
    directory: str = "."  # where it is called from: what the target is relative to
    elsewhere: str | None = None  # the working directory, where that is another one
    processes: int = 0  # that torchrun starts; 0: it is not for torchrun

    @property
    def script(self) -> Path | None:
        """The script's absolute path; None for a module."""
        return None if self.module else Path(self.directory).absolute() / self.target

    @property
    def words(self) -> str:
        """The program as its user would call it."""
        many = ("--nproc-per-node", str(self.processes)) if self.processes > 1 else ()
        by = (*(("torchrun", *many) if self.processes else ()), *(("-m",) if self.module else ()))
        return " ".join([*by, self.target, *self.arguments])

    def roots(self) -> tuple[Path, ...]:
        """The folders whose files are the project's own: the script's, and the project's that it lies in.

        A module's project is the working directory, from where `python -m` imports.
        """
        script = self.script
        nearest = (script.parent if script is not None else Path(self.directory).absolute()).resolve()
        around = project_above(nearest)
        return (nearest,) if around in (None, nearest) else (nearest, around)


@immutable()
class Order:
    """One run of a program in a fresh process.

    `overlay` maps the paths of project files to the texts that stand in for theirs; `probes` maps them to the rows
    of which the run shall count how often they were reached. `analysis` names a function (`package.module:name`)
    that is given the `Run` before the program starts and returns a `script.Analysis`.
    """

    program: Program
    folder: str  # private to this run: what it writes goes here
    roots: tuple[str, ...]
    backend: str = "auto"
    fake: bool = False  # compute shapes only
    card: str | None = None  # the GPU to simulate
    memory: int | None = None  # its bytes, if not its own
    limit: int | None = None  # the bytes at which it runs out of them, if not those
    devices: int | None = None  # GPUs to simulate
    steps: int = STEPS
    seconds: float = SECONDS
    seed: int = 0
    tracked: bool = True  # False: without the tracker, for time and for the host's heap
    values: bool = False  # keep losses and parameters for a comparison
    overlay: dict[str, str] = field(default_factory=dict)
    probes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    analysis: str | None = None
    options: dict[str, Any] = field(default_factory=dict)  # for the analysis
    observed: bool = False  # tell what it needs of the machine
    rank: int | None = None  # of several processes, which one
    environment: dict[str, str] = field(default_factory=dict)  # that torchrun would give it

    def of_rank(self, rank: int, port: int) -> Order:
        """The order for one of several processes, with a folder in this one's."""
        return replace(self.of_process(rank), environment=environment_of(rank, self.program.processes, port))

    def of_process(self, number: int) -> Order:
        """The order for one of the processes that the program begins itself."""
        return replace(self, folder=str(Path(self.folder, f"rank-{number}")), rank=number)

    @property
    def file(self) -> Path:
        """Where it stands itself."""
        return Path(self.folder, "order.json")

    @property
    def result_file(self) -> Path:
        """Where the child writes its result, whole or not at all."""
        return Path(self.folder, "result.json")

    @property
    def values_file(self) -> Path:
        """Where it writes losses and parameters."""
        return Path(self.folder, "values.pt")

    @property
    def values_files(self) -> dict[str, Path]:
        """The same of each of its processes, by their names; there is one that is not named where there is but one."""
        found = {path.parent.name: path for path in sorted(Path(self.folder).glob("rank-*/values.pt"))}
        return found or {"": self.values_file}

    @property
    def leave_file(self) -> Path:
        """Is there when it shall end at once, because another rank has ended badly."""
        return Path(self.folder, "leave")

    @property
    def progress_file(self) -> Path:
        """Where it writes, now and then, how many steps it has made."""
        return Path(self.folder, "progress")

    @property
    def made_file(self) -> Path:
        """Where it lists the checkpoints that it made and that are to be removed."""
        return Path(self.folder, "made")

    @property
    def writes_file(self) -> Path:
        """Where it lists the files that it writes, with `observed`."""
        return Path(self.folder, "writes")

    def write(self, path: Path) -> None:
        """To a file, for `read`."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Order:
        """From a file that `write` wrote."""
        values = json.loads(path.read_text(encoding="utf-8"))
        program = values.pop("program")
        program["arguments"] = tuple(program["arguments"])
        values["roots"] = tuple(values["roots"])
        values["probes"] = {name: tuple(rows) for name, rows in values["probes"].items()}
        return cls(Program(**program), **values)


class ProjectFiles:
    """Tells the project's own files from those of installed libraries."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = tuple(Path(root).resolve() for root in roots)
        own = (Path(__file__).parents[1], Path(sys.prefix, "lib"))
        self._foreign = tuple({path.resolve() for path in (*library_folders(), *own)})

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str | Path):
            return False
        real = Path(path).resolve()
        if not FOLDERS.isdisjoint(real.parts) or not any(real.is_relative_to(root) for root in self._roots):
            return False
        return not any(real.is_relative_to(foreign) for foreign in self._foreign)
