"""What the call that a script ends with gives its functions and objects."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from tests.flow.shown import check_text
from torchmemlint.rules.registry import by_code

CODES = frozenset(code for code in by_code() if not code.startswith("TML0"))


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
