"""What baselines and ignore comments look like: old code is taken in, moved, and goes on; each command really runs."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
OLD = {
    "train.py": "TML101-graph-accumulation/bad_epoch_total.py",
    "predict.py": "TML202-no-op-grad-mode/bad_uncalled.py",
}


def baseline() -> str:
    """From the first baseline to a new finding in a file that was renamed."""
    with _project() as folder:
        steps = [_said("baseline", "create"), _said()]
        (folder / "train.py").rename(folder / "fit.py")
        path = folder / "fit.py"
        path.write_text(
            path.read_text().replace("optimizer.step()", "optimizer.step()\n        torch.cuda.empty_cache()")
        )
        steps += [
            "$ git mv train.py fit.py  # and a line is added to it",
            _said("--output-format", "concise"),
            _said("baseline", "update"),
            _said("baseline", "show"),
        ]
    return _block(steps)


def ignores() -> str:
    """Comments for what is found."""
    with _project() as folder:
        (folder / "train.py").unlink()
        return _block([_said("--add-ignores", "--reason", "old code", "--diff")])


MAKERS = {"baseline": baseline, "ignores": ignores}


@contextlib.contextmanager
def _project() -> Iterator[Path]:
    """A folder with old code, and a configuration, so that no other one counts."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "torchmemlint.toml").write_text("")
        for path, fixture in OLD.items():
            lines = (FIXTURES / fixture).read_text().splitlines()
            (folder / path).write_text("".join(line.split("  # expect:")[0] + "\n" for line in lines))
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def _said(*arguments: str) -> str:
    from torchmemlint.cli.main import main

    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        main(arguments)
    words = [f'"{word}"' if " " in word else word for word in arguments]
    return " ".join(("$ torchmemlint", *words)) + "\n" + output.getvalue().rstrip()


def _block(steps: list[str]) -> str:
    return "```text\n" + "\n".join(steps) + "\n```\n"
