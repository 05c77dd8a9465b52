"""Programs whose training would stop if a line or function of them ran with gradients off: the safe fixes let it go on.

Each program runs under torch as it is and as `--fix` leaves it, and has to print the same.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Applicability, Finding
from torchmemlint.fixes.apply import fix_text
from torchmemlint.rules.registry import all_rules

CODES = frozenset(rule.code for rule in all_rules() if rule.on and rule.code.startswith("TML2"))

AGENT = """
import copy
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.last = None

    def forward(self, s):
        self.last = self.layer(s)
        return self.last


class Agent:
    def __init__(self, given):
        self.encoder = Encoder()
        self.given = given
        self.q = nn.Linear(4, 3)
        self.target = copy.deepcopy(self.q)
        self.cache = {}

    def encode(self, s):
        self.h = self.encoder(s)
        return self.h

    def memo(self, s):
        if "h" not in self.cache:
            self.cache["h"] = self.encoder(s)
        return self.cache["h"]

    def remember(self, s):
        h = self.encoder(s)
        self.cache.setdefault("all", []).append(h)
        return h

    @property
    def embedded(self):
        return self.memo(torch.ones(2, 4))

    def learn(self, s):
BODY


torch.manual_seed(0)
agent = Agent(Encoder())
loss = agent.learn(torch.ones(2, 4))
loss.backward()
weights = [*agent.q.parameters(), *agent.encoder.parameters(), *agent.given.parameters()]
print(loss.item(), [None if p.grad is None else p.grad.tolist() for p in weights])
"""
STATEMENTS = {
    "another statement in the line": """
        nxt = self.target(s).detach(); pred = self.q(s)
        return (pred - nxt - 1).square().mean()
    """,
    "another statement behind a string": """
        nxt = self.target(s).detach() * len("; #"); pred = self.q(s)
        return (pred - nxt - 1).square().mean()
    """,
    "what was computed before is changed in the line": """
        z = self.q(s)
        nxt = self.target(s).detach(); z = z * 2
        return (z - nxt - 1).square().mean() + 0 * self.q.bias.sum()
    """,
    "another statement in the first of two lines": """
        a = self.target(s).detach(); z = self.q(s)
        b = self.target(s + 1).detach()
        return (z - a - b).square().mean()
    """,
    "another statement in the second of two lines": """
        a = self.target(s).detach()
        b = self.target(s + a.mean()).detach(); z = self.q(s)
        return (z - a - b).square().mean()
    """,
    "a return in the line": """
        nxt = self.target(s).detach(); return (self.q(s) - nxt - 1).square().mean()
    """,
    "a name assigned within": """
        nxt = self.target(h := self.encoder(s)).detach()
        return (self.q(h) - nxt - 1).square().mean()
    """,
    "a module that keeps its output": """
        nxt = self.target(self.encoder(s)).detach()
        return (self.q(self.encoder.last) - nxt - 1).square().mean()
    """,
    "a module of unknown class that keeps its output": """
        nxt = self.target(self.given(s)).detach()
        return (self.q(self.given.last) - nxt - 1).square().mean()
    """,
    "the module itself keeps its output": """
        nxt = self.encoder(s).detach().mean(1, keepdim=True)
        return (self.q(self.encoder.last) - nxt - 1).square().mean()
    """,
    "a method that keeps its result": """
        nxt = self.target(self.encode(s)).detach()
        return (self.q(self.h) - nxt - 1).square().mean()
    """,
    "a memo": """
        nxt = self.target(self.memo(s)).detach()
        return (self.q(self.memo(s)) - nxt - 1).square().mean()
    """,
    "a list of an object": """
        nxt = self.target(self.remember(s)).detach()
        return (self.q(self.cache["all"][0]) - nxt - 1).square().mean()
    """,
    "a property that fills a memo": """
        nxt = self.target(self.embedded).detach()
        return (self.q(self.embedded) - nxt - 1).square().mean()
    """,
    "a lambda beside a pass": """
        nxt = self.q(s) - (lambda t: self.target(t))(s).detach()
        return (nxt - 1).square().mean()
    """,
    "a target that is computed": """
        d = {}
        d[self.q(s)] = self.target(s).detach()
        return (next(iter(d)) - 1).square().mean()
    """,
}

EVALUATION = """
import functools
import torch
from torch import nn

torch.manual_seed(0)
encoder, net, head = nn.Linear(4, 4), nn.Linear(4, 3), nn.Linear(4, 1)
data = [torch.ones(2, 4), torch.zeros(2, 4)]


def trained(*graphs):
    for p in encoder.parameters():
        p.grad = None
    try:
        sum(head(h).mean() for h in graphs).backward()
    except RuntimeError as error:
        print(error)
    print([None if p.grad is None else p.grad.tolist() for p in encoder.parameters()])


"""
FUNCTIONS = {
    "an attribute filled by a method": """
        class Task:
            def __init__(self):
                self.net = net
                self.position = None

            def positions(self, x):
                if self.position is None:
                    self.position = encoder(x)
                return self.position

            def validate(self):
                self.net.eval()
                return sum((self.net(x + self.positions(x)).argmax(1) == 0).sum().item() for x in data)

        task = Task()
        print(task.validate())
        trained(task.positions(data[0]))
    """,
    "an attribute filled by the function itself": """
        class Task:
            def __init__(self):
                self.net = net
                self.seen = []

            def validate(self):
                self.net.eval()
                hits = 0
                for x in data:
                    h = encoder(x)
                    self.seen.append(h)
                    hits += self.net(h).argmax(1).sum().item()
                return hits

        task = Task()
        print(task.validate())
        trained(*task.seen)
    """,
    "a container handed in": """
        def embed(i, x, store):
            if i not in store:
                store[i] = encoder(x)
            return store[i]

        def validate(store):
            net.eval()
            hits = 0
            for i, x in enumerate(data):
                hits += net(embed(i, x, store)).argmax(1).sum().item()
            return hits

        known = {}
        print(validate(known))
        trained(known[0], known[1])
    """,
    "a container closed over": """
        def make():
            memo = []

            def put(x):
                memo.append(encoder(x))
                return memo[-1]

            def validate():
                net.eval()
                hits = 0
                for x in data:
                    hits += net(put(x)).argmax(1).sum().item()
                return hits

            return memo, validate

        memo, validate = make()
        print(validate())
        trained(*memo)
    """,
    "a container under a second name": """
        class Task:
            def __init__(self):
                self.net = net
                self.known = {}

            def validate(self):
                self.net.eval()
                known = self.known
                hits = 0
                for i, x in enumerate(data):
                    known[i] = encoder(x)
                    hits += self.net(known[i]).argmax(1).sum().item()
                return hits

        task = Task()
        print(task.validate())
        trained(*task.known.values())
    """,
    "a cached property": """
        class Task:
            def __init__(self):
                self.net = net

            @functools.cached_property
            def position(self):
                return encoder(data[0])

            def validate(self):
                self.net.eval()
                return sum(self.net(x + self.position).argmax(1).sum().item() for x in data)

        task = Task()
        print(task.validate())
        trained(task.position)
    """,
    "a forward hook": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder, self.net, self.kept = encoder, net, []
                self.encoder.register_forward_hook(lambda module, given, out: self.kept.append(out))

            def forward(self, x):
                return self.net(self.encoder(x))

        def validate(model):
            model.eval()
            return sum(model(x).argmax(1).sum().item() for x in data)

        model = Model()
        print(validate(model))
        trained(*model.kept)
    """,
    "another result that the caller differentiates": """
        def validate(x):
            net.eval()
            hits = net(x).argmax(1).sum().item()
            return hits, encoder(x)

        hits, h = validate(data[0])
        print(hits)
        trained(h)
    """,
    "another result of a loop": """
        net.eval()
        hits = 0
        for x in data:
            hits += net(x).argmax(1).sum().item()
            h = encoder(x)
        print(hits)
        head(h).mean().backward()
        print([p.grad.tolist() for p in encoder.parameters()])
    """,
}
WAITING = """
import asyncio
import copy
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
target = copy.deepcopy(net)


async def fetch():
    await asyncio.sleep(0.01)
    return torch.ones(2, 4)


async def value():
    following = target(await fetch()).detach()
    return following.sum().item()


async def train():
    await asyncio.sleep(0)
    loss = net(torch.ones(2, 4)).mean()
    loss.backward()
    return net.weight.grad.abs().sum().item()


async def main():
    print(await asyncio.gather(value(), train()))


asyncio.run(main())
"""
YIELDING = """
import copy
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
target = copy.deepcopy(net)


def values():
    while True:
        following = target((yield)).detach()
        print(following.sum().item())


running = values()
next(running)
running.send(torch.ones(2, 4))
loss = net(torch.ones(2, 4)).mean()
print(loss.requires_grad)
"""
PROGRAMS = {
    **{name: AGENT.replace("BODY", indent(dedent(body).strip(), " " * 8)) for name, body in STATEMENTS.items()},
    **{name: EVALUATION + dedent(body).strip() + "\n" for name, body in FUNCTIONS.items()},
    "a coroutine that waits": WAITING,
    "a generator": YIELDING,
}


def check(text: str) -> list[Finding]:
    return check_text(text, Path("program.py"), CODES)


def printed(text: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(text, "program.py", "exec", dont_inherit=True), {"__name__": "__main__"})
    return out.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_safe_fix_does_not_stop_training(name: str) -> None:
    pytest.importorskip("torch")
    before = PROGRAMS[name]
    after = fix_text(before, check(before), check, unsafe=False).text
    assert printed(after) == printed(before)


NEEDED = {"the module itself keeps its output", "a forward hook"}  # by what differentiates what is kept
ALONE = {"another result that the caller differentiates"}  # the statement's fix is safe, the function's would not be


SEPARATED = {  # gets a line of its own, so that its fix is safe
    "another statement in the line",
    "what was computed before is changed in the line",
    "another statement in the first of two lines",
    "another statement in the second of two lines",
    "a return in the line",
}


@pytest.mark.parametrize("name", sorted(SEPARATED))
def test_what_shares_the_line_stays_out(name: str) -> None:
    found = check(PROGRAMS[name])
    assert all(one.fix is not None and one.fix.applicability is Applicability.SAFE for one in found)
    fixed = fix_text(PROGRAMS[name], found, check, unsafe=False)
    assert len(fixed.applied) == len(found) > 0
    assert ";" not in fixed.text


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - NEEDED - ALONE - SEPARATED))
def test_the_finding_stays_and_its_fix_is_not_safe(name: str) -> None:
    found = check(PROGRAMS[name])
    safe = [finding for finding in found if finding.fix and finding.fix.applicability is Applicability.SAFE]
    assert len(found) > len(safe)
    assert not safe


def test_no_fix_takes_in_what_a_lambda_stands_in() -> None:
    fixes = [finding.fix for finding in check(PROGRAMS["a lambda beside a pass"]) if finding.code == "TML203"]
    assert [fix.applicability for fix in fixes if fix is not None] == [Applicability.HINT]
    assert fixes[0] is not None
    assert fixes[0].message.endswith("a `lambda` runs it, wherever that is called")


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_what_is_needed_is_no_finding(name: str) -> None:
    assert check(PROGRAMS[name]) == []


@pytest.mark.parametrize("name", sorted(ALONE))
def test_only_the_statement_is_fixed(name: str) -> None:
    fixed = fix_text(PROGRAMS[name], check(PROGRAMS[name]), check, unsafe=False).text
    assert "    with torch.no_grad():\n        hits = net(x)" in fixed
    assert "@torch.no_grad()" not in fixed


def _detached(body: str) -> str:
    return AGENT.replace("BODY", indent(dedent(body).strip(), " " * 8))


KEPT: dict[str, tuple[str, Callable[[str], Any]]] = {
    "a comment behind it": ("nxt = self.target(s).detach()  # a; b\nreturn (self.q(s) - nxt).mean()", _detached),
    "a semicolon in a string": (
        'nxt = self.target(s).detach()[:, len(";") - 1 :]\nreturn (self.q(s) - nxt).mean()',
        _detached,
    ),
    "a line of its own below": ("nxt = self.target(s).detach()\nz = self.q(s); return (z - nxt).mean()", _detached),
    "numbers, and what nobody reads, kept by the function": (
        EVALUATION
        + dedent("""
            class Task:
                def __init__(self):
                    self.net = net
                    self.best, self.history, self.norms = 0.0, [], []

                def accuracy(self, hits):
                    self.asked = hits
                    return hits / len(data)

                def validate(self):
                    self.net.eval()
                    hits, kept = 0, []
                    for x in data:
                        out = self.net(x)
                        kept.append(out.detach())
                        hits += out.argmax(1).sum().item()
                    accuracy = hits / len(data)
                    self.best = max(self.best, accuracy)
                    self.history.append(accuracy)
                    self.norms.append(net.weight.norm())
                    return self.best

            print(Task().validate())
        """),
        str,
    ),
    "what others may not reach": (
        EVALUATION
        + dedent("""
            def put(kept, x):
                kept.append(x * 2)

            def validate():
                net.eval()
                kept = []
                for x in data:
                    put(kept, x)
                return sum(net(h).argmax(1).sum().item() for h in kept)

            print(validate())
        """),
        str,
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_other_fixes_are_still_safe(name: str) -> None:
    text, put = KEPT[name]
    before = put(text)
    safe = [one for one in check(before) if one.code in ("TML201", "TML203") and one.fix is not None]
    assert safe
    assert all(one.fix is not None and one.fix.applicability is Applicability.SAFE for one in safe)
    after = fix_text(before, check(before), check, unsafe=False).text
    assert "no_grad" in after
    pytest.importorskip("torch")
    assert printed(after) == printed(before)
