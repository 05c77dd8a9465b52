"""Fixes as a maintainer would write them: what stands around stays as it is, and what they touch reads well."""

from __future__ import annotations

import io
import random
import subprocess
import sys
import tokenize
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest

from torchmemlint.config.formatting import USUAL, Formatting
from torchmemlint.doubts import Confidence
from torchmemlint.engine import context
from torchmemlint.engine.checking import check_text
from torchmemlint.engine.one_file import ABOUT_THE_RUN, Profile, Reported, report_of
from torchmemlint.findings import Applicability, Finding
from torchmemlint.fixes.apply import FixResult, fix_text
from torchmemlint.rules.registry import all_rules

CODES = frozenset(rule.code for rule in all_rules() if rule.on)

PROFILE = Profile(CODES - ABOUT_THE_RUN, confidence=Confidence.POSSIBLE)


def check(text: str) -> list[Finding]:
    return check_text(text, Path("program.py"), CODES)


def fixed(text: str, *, unsafe: bool = True, formatting: Formatting | None = None) -> FixResult:
    return fix_text(text, check(text), check, unsafe=unsafe, formatting=formatting or Formatting())


def compared(text: str) -> FixResult:
    """Fix a text, and compare where graphs go before and after."""

    @cache
    def reported(text: str) -> Reported:
        return report_of(text, Path("program.py"), PROFILE, comparing=True)

    return fix_text(
        text,
        reported(text).findings,
        lambda text: reported(text).findings,
        unsafe=True,
        arriving=lambda text: reported(text).arriving,
    )


LOADING = """
import torch
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder


def main(path, model, optimizer):
    data = ImageFolder(path)
{loader}
    for x, _ in loader:
        loss = model(x.to("cuda", non_blocking=True)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    model = torch.nn.Linear(3, 4).cuda()
    main("images", model, torch.optim.SGD(model.parameters(), 0.1))
"""
ARGUMENTS = {
    "on one line": (
        "loader = DataLoader(data, num_workers=2)  # of the images",
        "loader = DataLoader(data, num_workers=2, pin_memory=True)  # of the images",
    ),
    "blanks around each sign": (
        "loader = DataLoader(data, num_workers = 2)",
        "loader = DataLoader(data, num_workers = 2, pin_memory = True)",
    ),
    "a comment on the last argument": (
        """
        loader = DataLoader(
            data,  # the images
            num_workers=2  # two are enough
        )
        """,
        """
        loader = DataLoader(
            data,  # the images
            num_workers=2,  # two are enough
            pin_memory=True
        )
        """,
    ),
    "a comment behind the last comma": (
        """
        loader = DataLoader(
            data,
            num_workers=2,  # two are enough
        )
        """,
        """
        loader = DataLoader(
            data,
            num_workers=2,  # two are enough
            pin_memory=True,
        )
        """,
    ),
    "a comment on a line of its own": (
        """
        loader = DataLoader(
            data,
            num_workers=2,
            # drop_last=True,
        )
        """,
        """
        loader = DataLoader(
            data,
            num_workers=2,
            pin_memory=True,
            # drop_last=True,
        )
        """,
    ),
    "a comment on the line of the bracket": (
        """
        loader = DataLoader(data, num_workers=2  # two are enough
                            )
        """,
        """
        loader = DataLoader(data, num_workers=2,  # two are enough
            pin_memory=True
                            )
        """,
    ),
    "rows of several arguments, the last of one": (
        """
        loader = DataLoader(data, batch_size=8, shuffle=True,
                            num_workers=2)
        """,
        """
        loader = DataLoader(data, batch_size=8, shuffle=True,
                            num_workers=2, pin_memory=True)
        """,
    ),
    "a row for each argument": (
        """
        loader = DataLoader(data,
                            num_workers=2)
        """,
        """
        loader = DataLoader(data,
                            num_workers=2,
                            pin_memory=True)
        """,
    ),
    "arguments that are collected first": (
        "given = dict(num_workers = 2, shuffle = True)\nloader = DataLoader(data, **given)",
        "given = dict(num_workers = 2, shuffle = True, pin_memory = True)\nloader = DataLoader(data, **given)",
    ),
    "arguments that are collected for others, too": (
        "given = dict(num_workers=2)\nprint(given)\nloader = DataLoader(data, **given)",
        "given = dict(num_workers=2)\nprint(given)\nloader = DataLoader(data, **given, pin_memory=True)",
    ),
    "arguments that are collected for several loaders": (
        "given = {'num_workers': 2, 'timeout': 9}\n"
        "loader = DataLoader(data, **given)\nothers = DataLoader(data, 8, **given)",
        "given = {'num_workers': 2, 'timeout': 9, 'pin_memory': True}\n"
        "loader = DataLoader(data, **given)\nothers = DataLoader(data, 8, **given)",
    ),
    "arguments that are collected in rows": (
        """
        given = {
            "num_workers": 2,
            "timeout": 9,
        }
        loader = DataLoader(data, **given)
        """,
        """
        given = {
            "num_workers": 2,
            "timeout": 9,
            "pin_memory": True,
        }
        loader = DataLoader(data, **given)
        """,
    ),
    "arguments that are collected for loaders of which one is given more": (
        "given = {'num_workers': 2}\nloader = DataLoader(data, **given)\n"
        "others = DataLoader(data, pin_memory=False, **given)",
        "given = {'num_workers': 2}\nloader = DataLoader(data, **given, pin_memory=True)\n"
        "others = DataLoader(data, pin_memory=False, **given)",
    ),
    "one of two that are made alike": (
        "loader = DataLoader(data, num_workers=2)\nothers = DataLoader(data, num_workers=4)\n"
        "more = DataLoader(data, 8, num_workers=4)",
        "loader = DataLoader(data, num_workers=2, pin_memory=True)\n"
        "others = DataLoader(data, num_workers=4, pin_memory=True)\nmore = DataLoader(data, 8, num_workers=4)",
    ),
    "a line that gets too long": (
        "loader = DataLoader(data, num_workers=2, shuffle=True, drop_last=True, timeout=9)",
        """
        loader = DataLoader(
            data, num_workers=2, shuffle=True, drop_last=True, timeout=9, pin_memory=True
        )
        """,
    ),
    "a line that gets too long, with blanks of its own": (
        "loader=DataLoader(data,num_workers = 2,shuffle = True,drop_last=True,timeout=9)",
        """
        loader=DataLoader(
            data,num_workers = 2,shuffle = True,drop_last=True,timeout=9, pin_memory=True
        )
        """,
    ),
    "a line that was too long": (
        f"loader = DataLoader(data, batch_size=16, num_workers=2)  # {'long ' * 20}".rstrip(),
        f"loader = DataLoader(data, batch_size=16, num_workers=2, pin_memory=True)  # {'long ' * 20}".rstrip(),
    ),
    "a line of several that gets too long": (
        """
        loader = DataLoader(data, batch_size=16,
                            num_workers=2, shuffle=True, drop_last=True, timeout=9)
        """,
        """
        loader = DataLoader(data, batch_size=16,
                            num_workers=2, shuffle=True, drop_last=True, timeout=9,
                            pin_memory=True)
        """,
    ),
    "a first line of several that gets too long": (
        """
        loader = DataLoader(dict(
            data=data), batch_size=16, num_workers=2, shuffle=True, drop_last=True)
        """,
        """
        loader = DataLoader(dict(
            data=data), batch_size=16, num_workers=2, shuffle=True, drop_last=True,
            pin_memory=True)
        """,
    ),
    "a last line of several that gets too long": (
        """
        loader = DataLoader(torch.utils.data.ConcatDataset(data, batch_size=16,
                                                           num_workers=2), num_workers=2)
        """,
        """
        loader = DataLoader(torch.utils.data.ConcatDataset(data, batch_size=16,
                                                           num_workers=2), num_workers=2,
                            pin_memory=True)
        """,
    ),
    "lines that a formatter has broken": (
        """
        loader = DataLoader(
            data, batch_size=16, num_workers=2, shuffle=True, drop_last=True, timeout=60
        )
        """,
        """
        loader = DataLoader(
            data,
            batch_size=16,
            num_workers=2,
            shuffle=True,
            drop_last=True,
            timeout=60,
            pin_memory=True,
        )
        """,
    ),
}


def indented(text: str, steps: int = 1) -> str:
    lines = dedent(text).strip().splitlines(keepends=True)
    return "".join(" " * 4 * steps + line if line.strip() else line for line in lines)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_is_added_as_the_call_is_written(name: str) -> None:
    before, after = (LOADING.format(loader=indented(text)) for text in ARGUMENTS[name])
    assert fixed(before).text == after
    assert fixed(before, unsafe=False).text == after


TRAINING = """
import torch


def main(model, batches, optimizer):
    for x in batches:
        loss = model(x).mean()
        optimizer.zero_grad()
{body}
        optimizer.step()


net = torch.nn.Linear(3, 3)
main(net, [torch.ones(3)], torch.optim.SGD(net.parameters(), 0.1))
"""
REMOVALS: dict[str, tuple[str, str]] = {
    "the only argument": ("loss.backward(retain_graph=True)", "loss.backward()"),
    "the only argument, on a line": ("loss.backward(\n    retain_graph=True,\n)", "loss.backward()"),
    "one with a comment": ("loss.backward(\n    retain_graph=True,  # why?\n)", "loss.backward()"),
    "another one has a comment": (
        "loss.backward(\n    None,  # a scalar\n    retain_graph=True,\n)",
        "loss.backward(\n    None,  # a scalar\n)",
    ),
    "the one before has a comment": (
        "loss.backward(None,  # a scalar\n              retain_graph=True)",
        "loss.backward(None  # a scalar\n              )",
    ),
    "one between others": (
        "loss.backward(\n    None,\n    retain_graph=True,\n    inputs=None\n)",
        "loss.backward(\n    None,\n    inputs=None\n)",
    ),
    "the last, without a comma": (
        "loss.backward(\n    gradient=None,  # a scalar\n    retain_graph=True\n)",
        "loss.backward(\n    gradient=None  # a scalar\n)",
    ),
}


def test_what_stands_in_a_tuple_is_moved_alike() -> None:
    loader = "    loader = DataLoader(data, num_workers=2, pin_memory=True)"
    loss = 'loss = model(x.to("cuda", non_blocking=True)).mean()'
    before = LOADING.replace("x, _ in", "x, y in").replace(
        loss, "x, y = x.cuda(), (y + 1).cuda()\n        loss = model(x).mean()"
    )
    after = before.replace(".cuda(), ", ".cuda(non_blocking=True), ").replace("1).cuda()", "1).cuda(non_blocking=True)")
    assert fixed(before.format(loader=loader)).text == after.format(loader=loader)


def test_loaders_keep_their_workers_alike_unless_they_have_none() -> None:
    before = LOADING.replace("    for x, _ in loader:", "    while True:\n      for x, _ in loader:").replace(
        "\n        ", "\n          "
    )
    loaders = "    loader = DataLoader(data, num_workers=2{0})\n    others = DataLoader(data, num_workers={1})"
    kept = ", pin_memory=True, persistent_workers=True"
    for count in "20":
        after = f"{count}{kept}" if count == "2" else f"{count}, pin_memory=True"
        assert fixed(before.format(loader=loaders.format("", count))).text == before.format(
            loader=loaders.format(kept, after)
        )


def test_workers_stay_if_the_caller_asks_for_any() -> None:
    before = dedent("""
        import torch
        from torch.utils.data import DataLoader

        def train(data, net, optimizer, n):
            loader = DataLoader(data, num_workers=n, pin_memory=True{0})
            for _ in range(10):
                for x, _ in loader:
                    loss = net(x.float()).mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()

        def main(data):
            net = torch.nn.Linear(512, 10)
            train(data, net, torch.optim.SGD(net.parameters(), lr=0.1), 4)
        """)
    assert fixed(before.format("")).text == before.format(", persistent_workers=n > 0")


@pytest.mark.parametrize("name", REMOVALS)
def test_an_argument_goes_with_its_own_comment_only(name: str) -> None:
    body, after = REMOVALS[name]
    before, after = (TRAINING.format(body=indented(text, 2)) for text in (body, after))
    assert fixed(before).text == after


def test_workers_come_with_all_that_makes_them_worth_it() -> None:
    before = LOADING.format(loader="    loader = DataLoader(data)").replace(", non_blocking=True", "")
    assert fixed(before).text == LOADING.format(loader="    loader = DataLoader(data, num_workers=4, pin_memory=True)")


def test_what_is_made_of_loaders_is_given_no_argument_of_theirs() -> None:
    before = """
import torch
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder


def main(model, optimizer, steps):
    some = iter(DataLoader(ImageFolder("a"), num_workers=4))
    others = iter(DataLoader(ImageFolder("b"), num_workers=4))
    for step in range(steps):
        x, y = next(some)
        z, _ = next(others)
        optimizer.zero_grad()
        loss = (model(x.cuda(non_blocking=True)) - model(z.cuda(non_blocking=True))).mean()
        loss.backward()
        optimizer.step()
"""
    assert fixed(before).text == before.replace("num_workers=4", "num_workers=4, pin_memory=True")


def test_a_loader_gets_as_many_workers_as_those_beside_it() -> None:
    beside = "    other = DataLoader(ImageFolder(path), num_workers={})\n    loader = DataLoader(data{})"
    for number, wanted in (("2", "2"), ("path.workers", "path.workers"), ("len(path)", "4"), ("0", "4")):
        before = LOADING.format(loader=beside.format(number, ""))
        found = [
            one
            for one in check(before)
            if one.code == "TML401" and "DataLoader(data" in one.statement.text(before.splitlines())
        ]
        assert [edit.content for one in found for edit in one.fix.edits] == [f", num_workers={wanted}"]


VOLATILE = """
import torch
from torch.autograd import Variable


def work(model, optimizer, batches, show):
    for x, y in batches:
        optimizer.zero_grad()
        (model(x) - y).mean().backward()
        optimizer.step()
        other = Variable(y, volatile=True)
        inputs = Variable(x{asked})
        {body}
        show(other)
"""


def test_what_asks_in_vain_goes_with_the_fix_that_does_it() -> None:
    body = "show(model(inputs).argmax(1).tolist())"
    after = f"with torch.no_grad():\n            {body}"
    before = VOLATILE.format(asked=", volatile=True", body=body)
    assert fixed(before).text == VOLATILE.format(asked="", body=after)


def test_what_is_kept_is_not_detached_if_its_pass_records_no_graph() -> None:
    before = """
import torch
from torch import nn


class Maker:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 512)).cuda()

    def make(self, batches):
        self.net.eval()
        made = []
        for x in batches:
            made.append(self.net(x))
        self.made = torch.cat(made)


maker = Maker()
maker.make(torch.randn(100, 32, 512, device="cuda"))
print(maker.made.argmax(1).tolist())
"""
    after = fixed(before).text
    assert "no_grad" in after
    assert "detach" not in after


BUFFERS = """
import argparse

import torch

args = argparse.ArgumentParser().parse_args()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
{buffers}
for step in range(args.steps):
    obs[step] = rewards[step] = values[step] = 1.0
"""


def test_buffers_that_are_made_in_a_row_are_made_alike() -> None:
    rows = """
    other = torch.zeros(9).to(device)

    seen = torch.zeros(8).to(device)
    obs = torch.zeros((args.steps, args.envs) + args.shape).to(device)
    rewards = torch.zeros((8, 4), dtype=torch.float64).to(device)
    drawn = torch.rand(8, 4).to(device)
    values = torch.zeros(8, 4).to(device)
    """
    after = dedent(rows)
    for made in ("8", "(args.steps, args.envs) + args.shape", "(8, 4), dtype=torch.float64"):
        after = after.replace(f"({made}).to(device)", f"({made}, device=device)")
    assert fixed(BUFFERS.format(buffers=dedent(rows))).text == BUFFERS.format(buffers=after)


EVALUATING = """
import torch
from torch import nn


class Agent:
    def __init__(self):
        self.q, self.target, self.low = nn.Linear(3, 3), nn.Linear(3, 3), -1.0
        self.optimizer = torch.optim.SGD(self.q.parameters(), 0.1)

    def learn(self, s, r, later=True):
{body}
        loss = (self.q(s) - y).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


Agent().learn(torch.ones(2, 3), torch.ones(2, 3))
"""
STATEMENTS = {
    "what is detached": (
        "y = self.target(s).detach()  # of the target",
        "with torch.no_grad():\n    y = self.target(s)  # of the target",
    ),
    "a method of what is detached": (
        "y = self.target(s).detach().clamp(0)",
        "with torch.no_grad():\n    y = self.target(s).clamp(0)",
    ),
    "brackets that only detaching needed": (
        "y = (self.target(s) * 2 + 1).detach()",
        "with torch.no_grad():\n    y = self.target(s) * 2 + 1",
    ),
    "brackets that are still needed": (
        "y = (self.target(s) * 2).detach().clamp(0)",
        "with torch.no_grad():\n    y = (self.target(s) * 2).clamp(0)",
    ),
    "detaching on a line of its own": (
        "y = (\n    self.target(s)\n    .clamp(0)\n    .detach()\n)",
        "with torch.no_grad():\n    y = (\n        self.target(s)\n        .clamp(0)\n    )",
    ),
    "detaching of what is joined": (
        "y = torch.stack([self.target(one) for one in s]).detach()",
        "with torch.no_grad():\n    y = torch.stack([self.target(one) for one in s])",
    ),
    "detaching of which a comment speaks": (
        "y = self.target(s)\n# not a step for the target, so detach it\ny = y.detach() + r",
        "with torch.no_grad():\n    y = self.target(s)\n# not a step for the target, so detach it\ny = y.detach() + r",
    ),
    "detaching behind it": (
        "y = self.target(s)\nz = y.detach().mean()\ny = y.detach() + z",
        "with torch.no_grad():\n    y = self.target(s)\nz = y.mean()\ny = y + z",
    ),
    "detaching of what the name holds later": (
        "y = self.target(s)\ny = y.detach() + r\ny = y + self.q(r)\ny = y.detach()",
        "with torch.no_grad():\n    y = self.target(s)\n    y = y + r\n    y = y + self.q(r)",
    ),
    "a statement that only detaches": (
        "y = self.target(s)[:1]\ny = y.detach()\ny = y * 2",
        "with torch.no_grad():\n    y = self.target(s)[:1]\ny = y * 2",
    ),
    "data of what is read": (
        "y = torch.tensor(self.target(s).cpu().data.numpy())",
        "with torch.no_grad():\n    y = torch.tensor(self.target(s).cpu().numpy())",
    ),
    "behind a block, and a blank line": (
        "with torch.no_grad():\n    y = self.target(s)\n\ny = y + self.target(r).detach()",
        "with torch.no_grad():\n    y = self.target(s)\n\n    y = y + self.target(r)",
    ),
    "before a block": (
        "y = self.target(s).detach()\nwith torch.no_grad():\n    y = y + self.target(r)",
        "with torch.no_grad():\n    y = self.target(s)\n    y = y + self.target(r)",
    ),
    "neighbours with what is computed in between": (
        "y = self.q(s.clamp(0))\ny = (y * 2).clamp(self.low)\n\n# then\nz = self.q(y)\ny = (r + z).detach()",
        "with torch.no_grad():\n    y = self.q(s.clamp(0))\n    y = (y * 2).clamp(self.low)\n\n    # then\n"
        "    z = self.q(y)\ny = r + z",
    ),
    "neighbours with another call in between": (
        "y = self.target(s)\nr = self.q(r).detach() + y.detach()\nz = self.target(s)\ny = (r + z).detach()",
        "with torch.no_grad():\n    y = self.target(s)\n    r = self.q(r) + y\n    z = self.target(s)\ny = r + z",
    ),
    "detaching of what is computed of it": (
        "t = self.target(s)\ny = r + (t * 0.5).detach()",
        "with torch.no_grad():\n    t = self.target(s)\ny = r + t * 0.5",
    ),
    "detaching of what still has a graph": (
        "p = self.q(s)\nt = self.target(s).detach()\ny = p + (p * t).detach()",
        "p = self.q(s)\nwith torch.no_grad():\n    t = self.target(s)\ny = p + (p * t).detach()",
    ),
    "detaching of what asks for gradients then": (
        "y = self.target(s)\nz = y.detach()\nz.requires_grad_()\ny = y.detach() * z",
        "with torch.no_grad():\n    y = self.target(s)\nz = y.detach()\nz.requires_grad_()\ny = y * z",
    ),
    "data beside such as stays": (
        "p = self.q(s)\nt = self.target(s)\ny = p + t.data * p.data",
        "p = self.q(s)\nwith torch.no_grad():\n    t = self.target(s)\ny = p + t.data * p.data",
    ),
    "data that was a number once": (
        "t = self.target(s)\nr = r + t.data[0]\ny = r + t.data.clamp(0)",
        "with torch.no_grad():\n    t = self.target(s)\nr = r + t.data[0]\ny = r + t.data.clamp(0)",
    ),
    "data by itself": (
        "t = self.target(s)\ny = r + t.data.clamp(0)",
        "with torch.no_grad():\n    t = self.target(s)\ny = r + t.clamp(0)",
    ),
    "the branches of an if": (
        "if len(s) > 1:\n    y = self.target(s).detach()\nelse:\n    y = self.target(r * 2).detach()",
        "with torch.no_grad():\n    if len(s) > 1:\n        y = self.target(s)\n"
        "    else:\n        y = self.target(r * 2)",
    ),
    "a branch that makes something first": (
        "if len(s) > 1:\n    f = nn.L1Loss(reduction='none')\n    y = f(self.target(s), r).detach()\n"
        "else:\n    y = self.target(r * 2).detach()",
        "with torch.no_grad():\n    if len(s) > 1:\n        f = nn.L1Loss(reduction='none')\n"
        "        y = f(self.target(s), r)\n    else:\n        y = self.target(r * 2)",
    ),
    "a branch that detaches what is no pass": (
        "if len(s) > 1:\n    y = self.target(s).detach()\nelse:\n    y = (self.q.weight * r).detach()",
        "with torch.no_grad():\n    if len(s) > 1:\n        y = self.target(s)\n"
        "    else:\n        y = self.q.weight * r",
    ),
    "the branches of an if, of which one trains": (
        "if later:\n    y = self.target(s).detach()\nelse:\n    y = self.q(r)",
        "if later:\n    with torch.no_grad():\n        y = self.target(s)\nelse:\n    y = self.q(r)",
    ),
    "an if without an else": (
        "y = r\nif later:\n    y = self.target(s).detach()",
        "y = r\nif later:\n    with torch.no_grad():\n        y = self.target(s)",
    ),
    "two neighbours": (
        "y = self.target(s).detach()\n# the second\nz = self.target(y).detach()\n\ny = y + z",
        "with torch.no_grad():\n    y = self.target(s)\n    # the second\n    z = self.target(y)\n\ny = y + z",
    ),
    "a neighbour on the line": (
        "y = self.target(s).detach(); r = r + 1  # both",
        "with torch.no_grad():\n    y = self.target(s)\nr = r + 1  # both",
    ),
    "neighbours on both sides": (
        "r = r + 1; y = self.target(s).detach(); r = r * 2;",
        "r = r + 1\nwith torch.no_grad():\n    y = self.target(s)\nr = r * 2;",
    ),
    "a semicolon at the end": (
        "y = self.target(s).detach();",
        "with torch.no_grad():\n    y = self.target(s)",
    ),
    "the line of a header": (
        "if later: y = self.target(s).detach(); r = r * 2\nelse: y = r",
        "if later:\n    with torch.no_grad():\n        y = self.target(s)\n    r = r * 2\nelse: y = r",
    ),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_runs_without_gradients_as_one_would_write_it(name: str) -> None:
    before, after = (EVALUATING.format(body=indented(text, 2)) for text in STATEMENTS[name])
    assert compared(before).text == after


@pytest.mark.parametrize("quote", ["'", '"'])
def test_strings_are_quoted_as_those_of_the_file(quote: str) -> None:
    before = """
        import torch

        def restore(model, path):
            state = torch.load(path)
            model.load_state_dict(state["model"], strict=state["strict"])
    """
    after = before.replace("load(path)", 'load(path, map_location="cpu")')
    assert fixed(dedent(before).replace('"', quote)).text == dedent(after).replace('"', quote)


def test_a_line_is_broken_by_the_steps_of_the_file() -> None:
    before = """
        import torch

        def restore(model, root, name_of_the_model):
          state = torch.load("%s/%s" % (root, "_".join(["weights", name_of_the_model, "pth"])))
          model.load_state_dict(state)
    """
    after = """
        import torch

        def restore(model, root, name_of_the_model):
          state = torch.load(
            "%s/%s" % (root, "_".join(["weights", name_of_the_model, "pth"])),
            map_location="cpu",
          )
          model.load_state_dict(state)
    """
    assert fixed(dedent(before), formatting=USUAL).text == dedent(after)


FOLLOWS = {  # a statement of a file, the length that the settings say, and what the file's own lines show instead
    "wider than black is told": (
        "names = model.state_dict(keep_vars=True, prefix='whatever.it.was.called.befor')",
        Formatting(70, is_black=True),
        'state = torch.load("/".join([root, name]), weights_only=True, map_location="cpu")',
    ),
    "as black is told": (
        "names = model.state_dict()",
        Formatting(70, is_black=True),
        """
        state = torch.load(
            "/".join([root, name]), weights_only=True, map_location="cpu"
        )
        """,
    ),
    "narrower than a linter allows": (
        """
        names = model.state_dict(
            keep_vars=True, prefix='whatever.it.was.called.before.it.got.its.name.of.today'
        )
        """,
        Formatting(120),
        """
        state = torch.load(
            "/".join([root, name, "of", "length"]), weights_only=True, map_location="cpu"
        )
        """,
    ),
    "as wide as a linter allows": (
        "names = model.state_dict(keep_vars=True, prefix='whatever.it.was.called.before.it.got.its.name.of.today')",
        Formatting(120),
        'state = torch.load("/".join([root, name, "of", "length"]), weights_only=True, map_location="cpu")',
    ),
}


@pytest.mark.parametrize("name", FOLLOWS)
def test_lines_are_as_long_as_the_file_shows(name: str) -> None:
    beside, formatting, after = FOLLOWS[name]
    text = "import torch\n\n\ndef restore(model, root, name):\n{}\n{}\n    model.load_state_dict(state)\n"
    flat = " ".join(dedent(after).split()).replace("( ", "(").replace(" )", ")")
    before = flat.replace(', map_location="cpu"', "")
    given, wanted = (text.format(indented(beside).rstrip(), indented(one).rstrip()) for one in (before, after))
    assert fixed(given, formatting=formatting).text == wanted


def test_a_line_that_a_person_has_broken_may_be_as_long_as_others_of_the_file() -> None:
    text = (
        "import torch\n\n\ndef restore(model, root, name):\n    {}\n"
        "    state = torch.load('/'.join([root, name]),\n"
        "      weights_only=True, mmap=True, encoding='utf-8', errors='strict'{})\n"
        "    model.load_state_dict(state)\n"
    )
    added = ", map_location='cpu'"
    long = "names = model.state_dict(keep_vars=True, prefix='whatever.it.was.called.before.it.got.its.name')"
    assert fixed(text.format(long, ""), formatting=USUAL).text == text.format(long, added)
    assert fixed(text.format("names = []", ""), formatting=USUAL).text != text.format("names = []", added)


def test_a_line_is_broken_as_others_of_the_file() -> None:
    text = (
        "import torch\n\n\ndef restore(model, root, name):\n    names = model.state_dict(\n"
        "        keep_vars=True{})\n    state = torch.load('/'.join([root, name]), weights_only=True, mmap=True{})\n"
        "    model.load_state_dict(state)\n"
    )
    aligned = ",\n                       map_location='cpu'"
    alone = text.replace("load('/'", "load(\n        '/'").replace(
        "mmap=True{})", "mmap=True, map_location='cpu'\n    )"
    )
    assert fixed(text.format("", ""), formatting=USUAL).text == text.format("", aligned)
    assert fixed(text.format("\n    ", ""), formatting=USUAL).text == alone.format("\n    ")


def test_a_block_is_indented_as_the_file_is() -> None:
    before, after = (EVALUATING.format(body=indented(text, 2)) for text in STATEMENTS["two neighbours"])
    for step in ("  ", "\t", "   "):
        wanted, given = (one.replace("    ", step) for one in (after, before))
        assert fixed(given).text == wanted


IMPORTS = {
    "from torch import nn": "import torch\nfrom torch import nn",
    "import numpy as np\nfrom torch import nn": "import numpy as np\nimport torch\nfrom torch import nn",
    "import numpy as np\nimport tqdm\nfrom torch import nn": (
        "import numpy as np\nimport torch\nimport tqdm\nfrom torch import nn"
    ),
    "import numpy as np\nimport torch.nn as nn\nimport tqdm": (
        "import numpy as np\nimport torch\nimport torch.nn as nn\nimport tqdm"
    ),
    "from tqdm import tqdm\nimport torch.nn as nn\nimport numpy": (
        "from tqdm import tqdm\nimport torch\nimport torch.nn as nn\nimport numpy"
    ),
    "import os\n\nfrom numpy import array\nfrom torch.nn import (\n    Linear,\n)": (
        "import os\n\nimport torch\nfrom numpy import array\nfrom torch.nn import (\n    Linear,\n)"
    ),
}


@pytest.mark.parametrize("imports", IMPORTS)
def test_an_import_goes_where_isort_puts_it(imports: str) -> None:
    program = dedent("""

        def evaluate(model, loader):
            model.eval()
            return sum(model(x).sum().item() for x in loader)
    """)
    after = fixed(imports + "\n" + program).text
    assert after.startswith(IMPORTS[imports] + "\n\n\n@torch.no_grad()\n")


WORKERS = """
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder


{}
"""


@pytest.mark.parametrize(
    ("body", "is_fixed"),
    [
        ('def loader():\n    return DataLoader(ImageFolder("images"))\n\n\nfor x in loader():\n    print(x)', False),
        ('loader = DataLoader(ImageFolder("images"))\nfor x in loader:\n    print(x)', False),
        (
            'def main(net):\n    for x in DataLoader(ImageFolder("images")):\n        net(x).backward()\n\n\n'
            'if __name__ == "__main__":\n    main(Net())',
            True,
        ),
        ('def main():\n    for x in DataLoader(ImageFolder("images")):\n        print(x)', True),
    ],
)
def test_workers_are_asked_for_where_nobody_has_decided_and_they_can_start(body: str, is_fixed: bool) -> None:
    found = [one for one in check(WORKERS.format(body)) if one.code == "TML401"]
    kind = Applicability.UNSAFE if is_fixed else Applicability.HINT
    assert [one.fix.applicability for one in found if one.fix] == [kind]


def test_no_workers_are_asked_for_by_what_a_script_calls_on_import(tmp_path: Path) -> None:
    text = WORKERS.format('def loader():\n    return DataLoader(ImageFolder("images"))')
    (tmp_path / "data.py").write_text(text)
    head = "from data import loader\nfrom torch import nn\n\nnet = nn.Linear(3, 3)\n"
    loop = "for x, _ in loader():\n    net(x).sum().backward()\n"
    guarded = f'if __name__ == "__main__":\n{indented(loop)}'
    kinds = []
    for body in (loop, guarded):
        (tmp_path / "train.py").write_text(head + body)
        context.forget()
        found = report_of(text, tmp_path / "data.py", Profile(frozenset({"TML401"}), root=tmp_path)).findings
        kinds += [one.fix.applicability for one in found if one.fix]
    context.forget()
    assert kinds == [Applicability.HINT, Applicability.UNSAFE]


CACHE = """
import torch


def main(model, batches, optimizer):
    for x in batches:
        loss = model(x.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{body}


main(torch.nn.Linear(3, 3).cuda(), [torch.ones(3)], None)
"""


@pytest.mark.parametrize(
    ("body", "after", "safe"),
    [
        ("torch.cuda.empty_cache()\nprint(1)", "print(1)", True),
        ("\ntorch.cuda.empty_cache()\n\nprint(1)", "\nprint(1)", True),
        ("\n# make room\ntorch.cuda.empty_cache()\n\nprint(1)", "\nprint(1)", False),
        ("# the next two\ntorch.cuda.empty_cache()\nprint(1)", "# the next two\nprint(1)", True),
        ("torch.cuda.empty_cache()  # room\nprint(1)", "print(1)", False),
    ],
)
def test_a_statement_goes_with_what_speaks_of_it_alone(body: str, after: str, safe: bool) -> None:
    before, wanted = (
        CACHE.format(body="\n".join(" " * 8 + line if line else "" for line in text.split("\n")))
        for text in (body, after)
    )
    found = [one for one in check(before) if one.code == "TML502"]
    assert [one.fix.applicability is Applicability.SAFE for one in found if one.fix] == [safe]
    assert fixed(before).text == wanted


def test_what_is_put_before_a_statement_stands_on_a_line_of_its_own() -> None:
    before = TRAINING.replace("{body}", "        if loss.isnan(): continue  # skip\n        loss.backward()")
    after = before.replace("(): continue", "():\n            del loss\n            continue")
    assert fixed(before, unsafe=False).text == after


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sorted(token.string for token in tokens if token.type == tokenize.COMMENT)


def program(seed: int) -> str:
    """One with comments everywhere."""
    chance = random.Random(seed)
    count = iter(range(10_000))

    def comment() -> str:
        return f"  # {next(count)}" if chance.random() < 0.4 else ""

    def arguments(*given: str) -> str:
        if chance.random() < 0.5:
            return f"({', '.join(given)})"
        last = chance.choice(["", ","])
        lines = [f"{one},{comment()}" for one in given[:-1]] + [f"{given[-1]}{last}{comment()}"]
        return "(\n" + "".join(f"            {line}\n" for line in lines) + "        )"

    body: list[str] = []
    for _ in range(6):
        body += [f"# {next(count)}"] if chance.random() < 0.3 else []
        statement = chance.choice(
            [
                f"y = target{arguments('x', 'x')}.detach()",
                f"y = target{arguments('x')}.clamp(0).detach(); z = net(x)",
                f"loader = DataLoader{arguments('data', 'num_workers=2')}",
                f"loss = net{arguments('x')}.mean(); loss.backward{arguments('None', 'retain_graph=True')}",
                f"total += net{arguments('x')}.mean()",
                "torch.cuda.empty_cache()",
                f"history.append{arguments('net(x)')}",
                f"x = x.to{arguments('device')}",
            ]
        )
        body.append(statement + comment())
    lines = "".join(f"        {line}\n" for line in body)
    return (
        "import torch\nfrom torch.utils.data import DataLoader\nfrom torchvision.datasets import ImageFolder\n\n\n"
        "def main(net, target, optimizer, data=ImageFolder('x'), device='cuda'):\n    total, history = 0, []\n"
        f"    loader = DataLoader(data, num_workers=2)\n    for x, _ in loader:\n{lines}        optimizer.step()\n"
        "    return float(total), torch.stack(history).cpu()\n"
    )


@pytest.mark.parametrize("seed", range(12))
def test_safe_fixes_keep_every_comment_and_formatting(seed: int) -> None:
    text = program(seed)
    result = fixed(text, unsafe=False)
    assert comments(result.text) == comments(text)
    tidy = formatted(text)
    after = fixed(tidy, unsafe=False).text
    assert comments(after) == comments(tidy)
    assert formatted(after) == after


def formatted(text: str) -> str:
    command = [str(Path(sys.executable).parent / "ruff"), "format", "--isolated", "--stdin-filename=program.py", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
