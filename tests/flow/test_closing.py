"""The call that a script ends with is walked once, as the function's own analysis."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.flow.shown import check_text
from torchmemlint.flow import calls, closing
from torchmemlint.flow.program import Program
from torchmemlint.rules.registry import by_code
from torchmemlint.syntax.source_module import SourceModule

CODES = frozenset(code for code in by_code() if not code.startswith("TML0"))
MAIN = """
import torch

def main(args=None):
    model = torch.nn.Linear(2, 2)
    total = 0
    for x in torch.utils.data.DataLoader([], num_workers=2, pin_memory=True):
        total += model(x).sum()
    print(total)
"""
GUARDED = '\nif __name__ == "__main__":\n'


def called(text: str) -> str | None:
    program = Program(SourceModule(MAIN + dedent(text), Path("train.py")))
    functions = [f for name in ("main", "other") if (f := program.find_function(name)) is not None]
    node = closing.call(program, functions)
    return None if node is None else node.func.value  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize(
    "end",
    [
        "main()\n",
        GUARDED + "    main()\n",
        GUARDED + "    args = 3\n    main(args)\n",
        GUARDED.rstrip("\n") + " main()\n",
        GUARDED + "    if torch.cuda.is_available():\n        main()\n",
    ],
)
def test_is_the_last_thing_that_the_module_level_does(end: str) -> None:
    assert called(end) == "main"


@pytest.mark.parametrize(
    "end",
    [
        "",
        GUARDED + "    main()\n    print('done')\n",
        GUARDED + "    main()\nelse:\n    print('imported')\n",
        GUARDED + "    result = main()\n",
        GUARDED + "    print(main())\n",
        GUARDED + "    torch.load('a')\n",
        "async def other(): ...\n" + GUARDED + "    other()\n",
        "def other():\n    torch.set_grad_enabled(False)\n" + GUARDED + "    other()\n",
    ],
)
def test_is_no_other(end: str) -> None:
    assert called(end) is None


@pytest.mark.parametrize("decorator", ["torch.no_grad()", "hydra.main()", "click.command()"])
def test_may_be_decorated(decorator: str) -> None:
    assert called(f"@{decorator}\ndef other(): ...\n" + GUARDED + "    other()\n") == "other"


def test_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[str] = []
    walk = calls.walk

    def noting(it, node, callee, *rest):  # type: ignore[no-untyped-def]
        followed.append(callee.function.name)
        return walk(it, node, callee, *rest)

    monkeypatch.setattr(calls, "walk", noting)
    found = check_text(MAIN + GUARDED + "    main()\n", Path("train.py"), CODES)
    assert "TML201" in [finding.code for finding in found]
    assert followed == []


def test_tells_constructors_what_they_are_given() -> None:
    text = """
    import torch

    class Streamer:
        def __init__(self, network):
            self.network = network

        def feed(self, wave):
            chunks = []
            while wave.shape[1] > 0:
                out = self.network(wave)
                chunks.append(out)
            return torch.cat([chunk.detach() for chunk in chunks])

    def test():
        streamer = Streamer(torch.nn.Linear(2, 2))
        print(streamer.feed(torch.randn(2, 2)))

    if __name__ == "__main__":
        test()
    """
    found = check_text(dedent(text), Path("stream.py"), CODES)
    assert [finding.code for finding in found] == ["TML203"]


def test_what_it_leaves_on_the_objects_of_the_module_level_is_seen_by_others() -> None:
    text = """
    import torch

    model = torch.nn.Linear(2, 2)

    def evaluate(batch):
        print(model(batch).item())

    def main():
        model.eval()

    if __name__ == "__main__":
        main()
    """
    found = check_text(dedent(text), Path("evaluate.py"), CODES)
    assert [finding.code for finding in found] == ["TML201"]
