"""Run public programs unedited under `trace` and `verify`, and keep what was said (`docs/programs.md`).

    python tools/programs.py CHECKOUTS                       # all of tools/programs.toml
    python tools/programs.py CHECKOUTS --only PyG --stages trace
    python tools/documents.py                                # put the table into the page

CHECKOUTS holds a folder for each repository of the list, with a checkout of it; `--commits FILE` says of which commit
where it is no git checkout (lines of `folder commit`). Made-up data are written into it. Programs run one after the
other, each stage in a process of its own, without network. The interpreter must have what the programs import.

The stages: `plain` is the program with its loops cut as `trace` cuts them, on the CPU, without anything that looks
(`tools/cut_short.py`). So its time and that of `trace` are of the same steps.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from program_data import MAKERS

ROOT = Path(__file__).resolve().parent.parent
LIST = Path(__file__).with_name("programs.toml")
CUT_SHORT = Path(__file__).with_name("cut_short.py")
RESULT = ROOT / "docs" / "programs.json"
STAGES = ("plain", "trace", "verify")
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "MPLBACKEND": "agg",
    "OMP_NUM_THREADS": "1",
}
"""No network, no window, and one thread: other work on the machine then counts least."""
LAST = 400  # characters of an error


def command(program: dict[str, Any], stage: str, told: Path) -> list[str]:
    """Return what runs a program at a stage; a report goes to `told`."""
    target = ["-m", program["module"]] if "module" in program else [program["script"]]
    given = [*target, *program.get("arguments", [])]
    if stage == "plain":
        return [sys.executable, str(CUT_SHORT), *given, *program.get("on_cpu", [])]
    ranks = ["--nproc-per-node", str(program["ranks"])] if "ranks" in program else []
    own = ["--isolated", "--backend", "simulated", "--output-format", "json", "--output-file", str(told), *ranks]
    return [sys.executable, "-m", "torchmemlint", stage, *own, *given]


def places(leaks: list[dict[str, Any]]) -> list[str]:
    """Return the file and line of each leak."""
    return [f"{Path(one['line']['path']).name}:{one['line']['line']}" for one in leaks]


def summary(stage: str, report: dict[str, Any]) -> dict[str, Any]:
    """Return what a report says, in short."""
    if stage == "trace":
        return {
            "growing": report["growing"],
            "leaks": places(report["leaks"]),
            "gathered": places(report["gathered"]),
            "notes": report["notes"],
        }
    verdicts = [(one["finding"]["code"], one["verdict"]) for one in report["findings"]]
    return {"findings": verdicts, "notes": report["notes"]}


def processor_seconds() -> float:
    """Return the processor time of all processes that have ended: unlike wall time, it leaves out other work."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def run(program: dict[str, Any], stage: str, checkouts: Path, limit: float) -> dict[str, Any]:
    """Run one stage of a program, and return its exit code, its seconds and what it said."""
    where = checkouts / program["where"]
    with tempfile.TemporaryDirectory() as folder:
        for hidden in program.get("without", []):
            (Path(folder) / f"{hidden}.py").write_text("raise ImportError('hidden')\n", encoding="utf-8")
        paths = os.pathsep.join([folder, str(ROOT), str(where)])
        told = Path(folder) / "report.json"
        began, used = time.monotonic(), processor_seconds()
        try:
            ended = subprocess.run(
                command(program, stage, told),
                cwd=where,
                env={**os.environ, **ENVIRONMENT, "PYTHONPATH": paths},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            return {"exit": None, "seconds": limit, "error": f"not finished after {limit:.0f} s"}
        result: dict[str, Any] = {
            "exit": ended.returncode,
            "seconds": round(time.monotonic() - began, 1),
            "processor": round(processor_seconds() - used, 1),
        }
        if told.is_file() and told.stat().st_size:
            result.update(summary(stage, json.loads(told.read_text(encoding="utf-8"))))
        elif ended.returncode:
            result["error"] = ended.stderr.strip()[-LAST:]
        return result


def commits(checkouts: Path, folders: list[str], file: Path | None) -> dict[str, str]:
    """Return the commit of each checkout."""
    given = dict(line.split() for line in file.read_text(encoding="utf-8").splitlines()) if file else {}
    for folder in folders:
        if folder not in given:
            ask = ["git", "-C", str(checkouts / folder), "rev-parse", "HEAD"]
            given[folder] = subprocess.check_output(ask, text=True).strip()
    return given


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path, help="the folder with the repositories' checkouts")
    parser.add_argument("--only", default="", metavar="TEXT", help="programs whose title contains it")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES)
    parser.add_argument("--commits", type=Path, metavar="FILE")
    parser.add_argument("--result", type=Path, default=RESULT, metavar="FILE", help="where the results are kept")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="for each stage of a program")
    choices = parser.parse_args()
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))
    kept = json.loads(choices.result.read_text(encoding="utf-8")) if choices.result.is_file() else {"programs": {}}
    import torch

    kept.update(
        date=date.today().isoformat(),
        torch=torch.__version__,
        python=platform.python_version(),
        cores=os.cpu_count(),
        commits=commits(choices.checkouts, list(listed["repositories"]), choices.commits),
    )
    for program in listed["programs"]:
        if choices.only.lower() not in program["title"].lower():
            continue
        for name, place in program.get("data", {}).items():
            MAKERS[name](choices.checkouts / place)
        entry = kept["programs"].setdefault(program["title"], {})
        for stage in choices.stages:
            if stage == "plain" and not program.get("plain", True):
                continue
            entry[stage] = run(program, stage, choices.checkouts, choices.limit)
            print(program["title"], stage, json.dumps(entry[stage])[:600], flush=True)
            choices.result.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
