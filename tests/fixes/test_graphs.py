"""Fixes that would take a graph away from something that may need it are not made, and the reason says which."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from textwrap import dedent, indent

import pytest

from torchmemlint.engine import context
from torchmemlint.engine.one_file import Profile, Reported, report_of
from torchmemlint.findings import Applicability, Edit, Finding, Fix, Position, Severity, Span
from torchmemlint.fixes.apply import fix_text
from torchmemlint.fixes.edits import TextIndex

HEAD = dedent("""
    import torch
    from torch import nn
    net, enc, target = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
    x = torch.randn(3, 4)
""")
SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE


def reasons(
    body: str,
    applicability: Applicability = SAFE,
    root: Path | None = None,
    *,
    without: str = "\0",
    unsafe: bool | None = None,
) -> list[str]:
    """Why a fix is refused that runs the lines between `#(` and `#)` with gradients off; none if it is made."""
    text = HEAD + dedent(body)
    path = (root or Path()) / "program.py"
    profile = Profile(frozenset({"TML201"}), root=root)

    @cache
    def reported(text: str) -> Reported:
        return report_of(text, path, profile, comparing=True)

    def recheck(text: str) -> list[Finding]:
        reported(text)
        found = re.search(r" *#\(\n(?:.|\n)*?#\)\n", text)
        if found is None:
            return []
        lines = [line for line in found[0].split("\n") if "#(" not in line and "#)" not in line]
        before = re.match(" *", found[0])
        assert before is not None
        index = TextIndex.of(text)
        span = Span(index.position(found.start()), index.position(found.end()))
        wrapped = f"{before[0]}with torch.no_grad():\n{indent(chr(10).join(lines), '    ')}"
        fix = Fix("Run it with gradients off", applicability, (Edit(span, wrapped.replace(without, "")),))
        return [Finding("TML999", "wanted", Severity.WARNING, "it is marked", path, span, span, (), fix)]

    unsafe = applicability is UNSAFE if unsafe is None else unsafe
    result = fix_text(text, recheck(text), recheck, unsafe=unsafe, arriving=lambda text: reported(text).arriving)
    return [re.sub(r"line \d+", "line N", why) for _, why in result.rolled_back]


LOST = {
    "differentiated": (
        "the graph of `enc(x)` is differentiated at line N, and would be lost",
        """
        #(
        h = enc(x)
        #)
        net(h).mean().backward()
        """,
    ),
    "in another function": (
        "the graph of `enc(x)` is differentiated at line N, and would be lost",
        """
        class Agent:
            def encode(self, x):
                #(
                self.h = enc(x)
                #)

            def learn(self, x):
                self.encode(x)
                net(self.h).mean().backward()

        Agent().learn(x)
        """,
    ),
    "run once more": (  # though no optimizer trains it
        "the graph of `checkpoint(enc, x, use_reentrant=False)` makes a backward pass run its network once more "
        "at line N, and would be lost",
        """
        from torch.utils.checkpoint import checkpoint
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        #(
        h = checkpoint(enc, x, use_reentrant=False)
        #)
        net(h).mean().backward()
        optimizer.step()
        """,
    ),
    "kept by a cache": (
        "the graph of `enc(x)` is differentiated at line N, and would be lost",
        """
        from functools import lru_cache

        @lru_cache(maxsize=None)
        def encoded(number):
            return enc(x)

        def evaluate():
            #(
            h = encoded(0)
            #)
            print(h.argmax().item())

        def learn():
            net(encoded(0)).mean().backward()

        evaluate()
        learn()
        """,
    ),
    "returned": (
        "the graph of `enc(x)` is returned at line N, and would be lost",
        """
        def encode(x):
            print(net(x).argmax().item())
            #(
            h = enc(x)
            #)
            return h
        """,
    ),
    "returned by another method": (
        "the graph of `enc(x)` is returned at line N, and would be lost",
        """
        class Agent:
            def encode(self, x):
                print(net(x).argmax().item())
                #(
                self.h = enc(x)
                #)

            def penalty(self):
                return self.h.square().mean()
        """,
    ),
    "given": (
        "the graph of `enc(x)` is given to code that was not seen at line N, and would be lost",
        """
        def learn(x, learner):
            print(net(x).argmax().item())
            #(
            h = enc(x)
            #)
            learner.learn_from(h)
        """,
    ),
    "hooked": (
        "the graph of `enc(x)` is asked for a gradient at line N, and would be lost",
        """
        #(
        h = enc(x)
        #)
        h.register_hook(print)
        """,
    ),
    "trained": (
        "a network may be trained by code that was not seen at line N, which would run with gradients off",
        """
        def fit(x, trainer):
            print(net(x).argmax().item())
            #(
            trainer.fit(net, x)
            #)
        """,
    ),
}


TRAINS = ("differentiated", "in another function", "kept by a cache", "hooked", "trained")


@pytest.mark.parametrize("how", LOST)
def test_a_safe_fix_takes_no_graph_away(how: str) -> None:
    reason, body = LOST[how]
    assert reasons(body) == [reason if how in TRAINS else f"{reason} (made with `--unsafe-fixes`)"]


@pytest.mark.parametrize("how", LOST)
def test_an_unsafe_fix_stops_no_training(how: str) -> None:
    reason, body = LOST[how]
    assert reasons(body, UNSAFE) == ([reason] if how in TRAINS else [])


@pytest.mark.parametrize("how", LOST)
def test_what_is_refused_as_a_safe_fix_is_tried_as_an_unsafe_one(how: str) -> None:
    reason, body = LOST[how]
    assert reasons(body, unsafe=True) == ([reason] if how in TRAINS else [])


@pytest.mark.parametrize("applicability", [SAFE, UNSAFE])
def test_no_fix_brings_a_graph_to_a_backward(applicability: Applicability) -> None:
    body = """
    known = {}

    def keep(x):
        if 0 not in known:
            known[0] = enc(x)
        return known[0]

    print(keep(x).sum().item())
    #(
    h = keep(x).detach()
    #)
    net(h).mean().backward()
    """
    assert reasons(body, applicability) == []
    why = "the graph of `enc(x)` is differentiated at line N only with the fix"
    assert reasons(body, applicability, without=".detach()") == [why]


@pytest.mark.parametrize(
    "body",
    [
        """
        #(
        print(net(x).sum().item())
        #)
        """,
        """
        #(
        following = target(x).detach()
        #)
        (net(x) - following).square().mean().backward()
        """,
        """
        def embed(x):
            return enc(x)

        #(
        print(embed(x).sum().item())
        #)
        net(embed(x)).mean().backward()
        """,
        """
        from torch.utils.data import DataLoader
        from torchvision.datasets import ImageFolder

        class Pairs(ImageFolder):
            def __getitem__(self, index):
                one, other = self.loader(self.imgs[index][0]), self.loader(self.imgs[-index][0])
                if self.transform is not None:
                    one, other = self.transform(one), self.transform(other)
                return one, other

        class Shown:
            def __init__(self, path):
                self.loader = DataLoader(Pairs(path))
                net.eval()

            def show(self):
                #(
                image = self.loader.dataset.__getitem__(0)[1]
                image = image.to("cuda").unsqueeze(0)
                print(net(image).argmax().item())
                #)

        Shown("images").show()
        """,
    ],
)
def test_what_nobody_needs_may_go(body: str) -> None:
    assert reasons(body) == []


def test_other_files_are_asked_as_well(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "program.py").write_text("")
    (root / "main.py").write_text("from program import encode, net, x\n\n\nnet(encode(x)).mean().backward()\n")
    context.forget()
    body = """
    def encode(x):
        #(
        h = enc(x)
        #)
        return h
    """
    (root / "program.py").write_text(HEAD + dedent(body))
    assert reasons(body, UNSAFE, root) == [
        "the graph of `enc(x)` is differentiated at line N of main.py, and would be lost"
    ]
    context.forget()


def test_a_file_that_others_run_is_compared_with_them(tmp_path: Path) -> None:
    """Its functions are called in those, before the fix and after it: nothing is lost by a fix elsewhere in it."""
    model = HEAD + dedent("""
        large = nn.Linear(4, 4_000_000)

        class Agent:
            def train(self, y):
                net(y).sum().backward()

            def load(self, name):
                large.load_state_dict(torch.load(name))
    """)
    (tmp_path / "agent.py").write_text(model)
    (tmp_path / "main.py").write_text("import agent\n\none = agent.Agent()\none.load('net.pt')\none.train(agent.x)\n")
    context.forget()
    profile = Profile(frozenset({"TML504"}), root=tmp_path)

    @cache
    def reported(text: str) -> Reported:
        return report_of(text, tmp_path / "agent.py", profile, comparing=True)

    report_of(model, tmp_path / "agent.py", profile)  # as a run that looks at all files first
    result = fix_text(
        model,
        reported(model).findings,
        lambda text: reported(text).findings,
        unsafe=True,
        arriving=lambda text: reported(text).arriving,
    )
    context.forget()
    assert [why for _, why in result.rolled_back] == []
    assert 'map_location="cpu"' in result.text


def test_where_the_wide_fix_is_refused_the_narrower_one_is_made() -> None:
    text = HEAD + dedent("""
    def act(x):
        h = enc(x)
        best = target(x).argmax()
        return h, best

    h, best = act(x)
    net(h).mean().backward()
    """)
    lines = text.split("\n")
    row = lines.index("def act(x):") + 1
    narrow = lines.index("    best = target(x).argmax()") + 1

    def at(row: int, column: int) -> Span:
        return Span(Position(row, column), Position(row, column))

    inner = (Edit(at(narrow, 5), "with torch.no_grad():\n        "),)
    narrower = Fix("Wrap it", SAFE, inner)
    for unsafe, trust in ((False, SAFE), (True, SAFE), (True, UNSAFE)):
        fix = Fix("Decorate it", trust, (Edit(at(row, 1), "@torch.no_grad()\n"),), narrower)
        finding = Finding(
            "TML999", "wanted", Severity.WARNING, "it", Path("program.py"), at(row, 1), at(row, 1), (), fix
        )

        @cache
        def reported(text: str) -> Reported:
            return report_of(text, Path("program.py"), Profile(frozenset({"TML201"})), comparing=True)

        def recheck(text: str, finding: Finding = finding) -> list[Finding]:
            reported(text)
            return [] if "no_grad" in text else [finding]

        result = fix_text(text, [finding], recheck, unsafe=unsafe, arriving=lambda text: reported(text).arriving)
        assert "    with torch.no_grad():\n        best = target(x).argmax()\n    return" in result.text
        assert "@torch" not in result.text
        assert [one.fix.message for one in result.applied if one.fix is not None] == ["Wrap it"]
        assert [one.fix.applicability for one in result.applied if one.fix is not None] == [trust]
