"""Measure what each rule's pattern costs, and keep the figures for the documentation.

    python tools/impact.py                        # on the host, and on simulated CUDA
    python tools/impact.py --backend cuda         # on a machine with a GPU
    python tools/impact.py --missing              # only the experiments that have no figures yet
    python tools/documents.py                     # put the table into docs/impact.md

A backend's figures replace those of its last run; the others stay, with their machine and date.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from datetime import date
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "docs" / "impact.json"
WITHOUT_GPU = ("cpu", "simulated")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", action="append", choices=[*WITHOUT_GPU, "cuda"], help="may be given again")
    parser.add_argument("--missing", action="store_true", help="keep the figures that there are, and their date")
    choices = parser.parse_args()
    import torch

    from torchmemlint.runtime.experiments import catalogue
    from torchmemlint.runtime.experiments.base import measure

    torch.set_num_threads(1)
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for backend in choices.backend or WITHOUT_GPU:
        before = {one["title"]: one for one in kept[backend]["outcomes"]} if choices.missing else {}
        outcomes = []
        for experiment in catalogue.of_backend(backend):
            if experiment.title not in before:
                before[experiment.title] = measure(experiment, backend).to_json()
                print(f"{backend}: {experiment.code} {experiment.title}", file=sys.stderr)
            outcomes.append(before[experiment.title])
        if choices.missing:
            kept[backend]["outcomes"] = outcomes
            continue
        kept[backend] = {
            "backend": outcomes[0]["backend"],
            "torch": torch.__version__,
            "machine": f"{platform.system()} {platform.machine()}",
            "date": date.today().isoformat(),
            "outcomes": outcomes,
        }
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
