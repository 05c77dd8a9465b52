# ruff: noqa: E501 (tables of lines)
"""Training scripts by a grammar in which everything fits everything: networks, features and losses of one shape.

Any expression may stand where another does, so what people would not write beside each other stands beside each other,
too. Every program runs, unless it differentiates a graph twice.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

Lines = list[str]

PREAMBLE = """
import asyncio
import contextlib
import copy
import functools
from collections import defaultdict, deque

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed({seed})
N = 4
"""
MODELS = {
    "Net": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential({layers})

    def forward(self, x):
        return self.inner(x)
""",
    "Keeping": """
class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(N, N)
        self.last = None

    def forward(self, x):
        self.last = self.layer(x)
        return self.last.{activation}()
""",
    "Memo": """
class Memo(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(N, N)
        self.known = {{}}

    def forward(self, x):
        key = round(float(x.detach().sum()), 3)
        if key not in self.known:
            self.known[key] = self.layer(x)
        return self.known[key]
""",
    "Pair": """
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(N, N), nn.Linear(N, N)

    def forward(self, x):
        h = self.one(x).{activation}()
        return h{cut} + self.other(h{cut2})
""",
    "Hooked": """
class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(N, N), nn.Linear(N, N)
        self.seen = []
        self.layer.register_forward_hook(self.hook)

    def hook(self, module, given, out):
        self.seen.append(out{hooked})
        del self.seen[:-2]

    def forward(self, x):
        return self.head(self.layer(x).{activation}())
""",
    "Backward": """
class Backward(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.norms = nn.Linear(N, N), []
        self.layer.register_full_backward_hook(self.hook)

    def hook(self, module, given, out):
        self.norms.append(out[0].norm(){cut})
        del self.norms[:-2]

    def forward(self, x):
        return self.layer(x).{activation}()
""",
    "Recurrent": """
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(N, N)
        self.state = None

    def forward(self, x):
        state = self.state if self.state is not None else torch.zeros_like(x)
        out = self.cell(x, state)
        self.state = out{kept}
        return out
""",
}
LAYERS = (
    "nn.Linear(N, N)",
    "nn.Linear(N, N), nn.ReLU()",
    "nn.Linear(N, N), nn.ReLU(), nn.Linear(N, N)",
    "nn.Linear(N, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, N)",
    "nn.BatchNorm1d(N), nn.Linear(N, N), nn.LeakyReLU()",
    "nn.Linear(N, N), nn.LayerNorm(N), nn.GELU()",
)
NETS = ("net", "target", "enc", "teacher")
MAKERS = ("Net()", "Keeping()", "Memo()", "Pair()", "Hooked()", "Backward()", "Recurrent()")
MEMOS = {
    "encode": ["self.h = self.enc(s)", "return self.h"],
    "memo": ["if self.cached is None:", "    self.cached = self.enc(s)", "return self.cached"],
    "remember": ["out = self.net(s)", "self.kept.append(out)", "return out"],
    "scaled": ["return self.target(s) * self.scale"],
    "anchored": ["return self.fixed(0) + s"],
    "later": ["out = self.net(s)", "self.waiting.append(lambda: out.mean())", "return out * 2"],
    "noted": ["self.notes[len(self.notes)] = float(s.detach().mean())", "return self.enc(s) + s"],
}


@dataclass
class Scope:
    """What is written, and what may be named where it is written."""

    rng: random.Random
    tensors: list[str]
    depth: int = 0
    is_async: bool = False
    yields: bool = False
    made: int = 0
    losses: list[str] = field(default_factory=list)

    def name(self, kind: str = "v") -> str:
        """A new name."""
        self.made += 1
        return f"{kind}{self.made}"


@dataclass(frozen=True)
class Script:
    """A program, and a caller that the linter does not see; "": it runs itself."""

    text: str
    drive: str


def script(seed: str, *, unseen: bool = False) -> Script:
    """The program of a seed; with `unseen` its caller is in no file, and differentiates what it gives and keeps."""
    rng = random.Random(seed)
    lines = PREAMBLE.format(seed=rng.randrange(100)).strip().split("\n")
    makers = [rng.choice(MAKERS) if rng.random() < 0.5 else "Net()" for _ in NETS]
    for name in sorted({maker[:-2] for maker in makers}):
        lines += ["", *_filled(MODELS[name], rng).strip().split("\n")]
    main = _main(rng, unseen)
    lines += ["", "", *_agent(rng, makers, main)]
    if not unseen:
        return Script("\n".join(_spelled(rng, [*lines, *main])) + "\n", "")
    return Script("\n".join(_spelled(rng, lines)) + "\n", "\n".join(["from main import *", *main]) + "\n")


def _filled(text: str, rng: random.Random) -> str:
    return text.format(
        layers=rng.choice(LAYERS),
        activation=rng.choice(("relu", "tanh", "sigmoid")),
        cut=rng.choice(("", "", ".detach()")),
        cut2=rng.choice(("", "", ".detach()")),
        hooked=rng.choice(("", "", ".detach()", ".mean()")),
        kept=rng.choice((".detach()", ".detach()", "")),
    )


def _indented(lines: Lines, by: int = 1) -> Lines:
    return [f"{'    ' * by}{line}" if line else line for line in lines]


def _agent(rng: random.Random, makers: Lines, main: Lines) -> Lines:
    init = [f"self.{name} = {maker}" for name, maker in zip(NETS, makers, strict=True)]
    if rng.random() < 0.5:
        init[1] = "self.target = copy.deepcopy(self.net)"
    if rng.random() < 0.4:
        init.append(rng.choice(("self.teacher.eval()", "self.teacher.requires_grad_(False)")))
    trained = rng.choice(("net", "net enc", "net enc target", *["net enc target teacher"] * 7)).split()
    made = rng.choice(("torch.optim.SGD({}, lr=0.05)", "torch.optim.Adam({}, lr=0.01)"))
    init.append("self.opt = " + made.format("[" + ", ".join(f"*self.{one}.parameters()" for one in trained) + "]"))
    init.append("self.opt2 = torch.optim.SGD(self.target.parameters(), lr=0.1)")
    init += ["self.cached, self.h, self.last = None, None, None", "self.kept, self.logs = [], []"]
    init += ["self.waiting, self.anchor = [], torch.ones(3, N)"]
    init += ["self.cache, self.notes = {}, {}", "self.total, self.scale, self.steps = 0.0, 0.5, 0"]
    lines = ["class Agent:", "    def __init__(self):", *_indented(init, 2)]
    is_async = rng.random() < 0.12
    methods = [["@functools.lru_cache(maxsize=None)", "def fixed(self, n):", "    return self.enc(self.anchor) * 0.5"]]
    methods += [[f"def {name}(self, s):", *_indented(body)] for name, body in MEMOS.items()]
    if rng.random() < 0.1:
        methods[4].insert(0, "@torch.no_grad()")
    methods += [_validating(rng), _values(rng), _critic(rng), _learning(rng, is_async), _watching(rng)]
    methods.append(_fitting(rng, is_async))
    named = {re.findall(r"def (\w+)", "\n".join(method))[0]: method for method in methods}
    wanted, asked = set[str](), ["fit", *re.findall(r"(?:agent|super\(\))\.(\w+)", "\n".join(main))]
    while asked:
        name = asked.pop()
        if name in named and name not in wanted:
            wanted.add(name)
            asked += re.findall(r"self\.(\w+)\(", "\n".join(named[name]))
    needed = [method for name, method in named.items() if name in wanted]
    for method in needed:
        lines += ["", *_indented(method)]
    return lines


def _validating(rng: random.Random) -> Lines:
    scope = Scope(rng, ["x"])
    nets = rng.sample(NETS, rng.randint(0, 2))
    body = ["count = 0", *(f"self.{net}.eval()" for net in nets)]
    inner = [*_block(scope, rng.randint(0, 2)), f"count += {_number(scope)}"]
    if rng.random() < 0.2:
        inner.append(
            rng.choice(("self.last = x", f"self.last = {_tensor(scope)}", f"self.kept.append({_tensor(scope)})"))
        )
    body += ["for x, y in data:", *_indented(inner)]
    body += [f"self.{net}.train()" for net in nets]
    value = "count" if rng.random() < 0.8 else f"count, {_tensor(Scope(rng, ['x']))}"
    head = ["def validate(self, data):"]
    if rng.random() < 0.15:
        head = ["@torch.no_grad()", *head]
    return [*head, *_indented([*body, f"return {value}"])]


def _values(rng: random.Random) -> Lines:
    scope = Scope(rng, ["x"])
    if rng.random() < 0.4:
        scope.yields = True
        body = [*_block(scope, rng.randint(0, 2)), f"yield {_tensor(scope)}", *_block(scope, rng.randint(0, 1))]
        return ["def values(self, data):", "    for x, y in data:", *_indented(body, 2)]
    return ["def values(self, data):", f"    return [{_tensor(scope)} for x, y in data]"]


def _critic(rng: random.Random) -> Lines:
    scope = Scope(rng, ["s"])
    body = _block(scope, rng.randint(1, 3))
    return ["def critic(self, s):", *_indented([*body, f"return {_tensor(scope)}"])]


def _learning(rng: random.Random, is_async: bool) -> Lines:
    scope = Scope(rng, ["x"], is_async=is_async)
    body = _block(scope, rng.randint(1, 3))
    for number in range(rng.choice((1, 1, 1, 2))):
        body += _step(scope, number)
        body += _block(scope, rng.randint(0, 1))
    return [f"{'async ' if is_async else ''}def learn(self, x, y):", *_indented([*body, f"return {scope.losses[-1]}"])]


def _watching(rng: random.Random) -> Lines:
    """What runs while something else is trained."""
    scope = Scope(rng, ["x"], is_async=True)
    body = [*_block(scope, rng.randint(0, 2)), f"count = {_number(scope)}", "await asyncio.sleep(0)"]
    body += [*_block(scope, rng.randint(0, 1)), f"count += {_number(scope)}"]
    return ["async def watch(self, x):", *_indented([*body, "self.notes[self.steps] = count"])]


def _step(scope: Scope, number: int) -> Lines:
    """A loss, and the step that it leads to; what has a graph is used up then."""
    rng = scope.rng
    loss = scope.name("loss")
    trained = "" if rng.random() < 0.05 else f" + self.net({rng.choice(scope.tensors)}).mean()"
    lines = [f"{loss} = {_scalar(scope)}{_penalty(scope)}{trained}"]
    opt = "self.opt" if number == 0 or rng.random() < 0.5 else "self.opt2"
    lines += _block(scope, rng.choice((0, 0, 1)))
    if rng.random() < 0.08:
        lines = [
            "def closure():",
            f"    {opt}.zero_grad()",
            *_indented(lines),
            f"    {loss}.backward()",
            f"    return {loss}",
        ]
        lines += [f"{loss} = {opt}.step(closure)"]
    else:
        backward = f"{loss}.backward({'retain_graph=True' if rng.random() < 0.1 else ''})"
        if rng.random() < 0.1:
            backward = f"torch.autograd.backward([{loss}])"
        opts = ["self.opt", "self.opt2"] if rng.random() < 0.1 else [opt]
        steps = [*(f"{one}.zero_grad()" for one in opts), backward, *(f"{one}.step()" for one in opts)]
        lines += ["; ".join(steps)] if rng.random() < 0.15 else steps
    if rng.random() < 0.15:
        lines.append("for a, b in zip(self.target.parameters(), self.net.parameters()): a.data.lerp_(b.data, 0.1)")
    scope.losses.append(loss)
    if rng.random() > 0.1:
        scope.tensors[:] = [name for name in scope.tensors if name in ("x", "s")]
    return lines


def _penalty(scope: Scope) -> str:
    return f" + self.{scope.rng.choice(NETS)}({_tensor(scope, 1)}).pow(2).mean()" if scope.rng.random() < 0.3 else ""


def _fitting(rng: random.Random, is_async: bool) -> Lines:
    call = "self.learn(x, y)"
    if is_async:
        beside = "(await asyncio.gather(self.learn(x, y), self.watch(x)))[0]"
        call = beside if rng.random() < 0.5 else "await self.learn(x, y)"
    keeping = rng.choice((
        ["total += loss"], ["total += loss.item()"], ["total = total + loss"], ["self.total += loss"], ["self.logs.append(loss)"],
        ["total += loss", "print(round(float(loss), 4))"], ["self.notes[len(self.notes)] = loss"], ["total += float(loss)"],
    ))  # fmt: skip
    inner = [f"loss = {call}", *keeping, "self.steps += 1"]
    if rng.random() < 0.3:
        inner.append(rng.choice(("self.cached = None", "self.kept.clear()", "if self.steps % 2: self.cached = None")))
    if rng.random() < 0.2:
        inner.append(f"nxt = {_tensor(Scope(rng, ['x']))}; total += nxt.mean().item()")
    if rng.random() < 0.15:
        inner.append("while self.waiting: self.total += float(self.waiting.pop()())")
    loops = [
        "x, y in data",
        "_, (x, y) in enumerate(data)",
        "x, y in torch.utils.data.DataLoader(data, batch_size=None)",
    ]
    beside = "(x, y), v in zip(data, self.values(data))"
    loop = beside if rng.random() < 0.15 else rng.choice(loops)
    if loop is beside:
        inner.append(f"self.notes['v'] = {_number(Scope(rng, ['x', 'v']))}")
    outer = [f"for {loop}:", *_indented(inner)]
    if rng.random() < 0.6:
        outer.insert(0 if rng.random() < 0.4 else len(outer), "print(self.validate(data))")
    if rng.random() < 0.3:
        outer.append("print(round(sum(float(v.mean()) for v in self.values(data)), 4))")
    if rng.random() < 0.15:
        outer.append("for v in self.values(data): v.mean().backward() if v.requires_grad else None")
    body = ["total = 0.0", "for epoch in range(2):", *_indented(outer)]
    return [f"{'async ' if is_async else ''}def fit(self, data):", *_indented([*body, "return total"])]


def _main(rng: random.Random, unseen: bool) -> Lines:
    """What makes an agent and has it trained; sometimes it differentiates what the agent gives it or keeps."""
    make = "data = [(torch.randn(3, N), torch.randint(0, N, (3,))) for _ in range(2)]"
    heir = [
        "class Heir(Agent):",
        "    def critic(self, s):",
        f"        return super().critic(s){rng.choice(('', '.detach()'))}",
    ]
    lines = ["", "", make, "agent = Agent()", "result = agent.fit(data)"]
    if rng.random() < 0.1:
        lines[2:4] = [*heir, "", "", make, "agent = Heir()"]
    lines += ["if asyncio.iscoroutine(result):", "    result = asyncio.run(result)"]
    lines += ["print(round(float(result), 4), len(agent.notes), len(agent.logs))"]
    if rng.random() < 0.3:
        lines += ["if agent.logs:", "    print(sum(float(one.mean()) for one in map(torch.as_tensor, agent.logs)))"]
    if rng.random() < 0.5:
        lines.append("print(round(sum(float(torch.as_tensor(one)) for one in agent.notes.values()), 3))")
    outs = (
        "agent.critic(data[0][0])",
        "sum(agent.values(data))",
        "agent.memo(data[0][0])",
        "agent.encode(data[0][0])",
        "sum(torch.as_tensor(one).mean() for one in agent.logs)",
        "sum(one.mean() for one in agent.kept)",
        "sum(one() for one in agent.waiting)",
        "sum(one.mean() for one in agent.cache.values())",
        "agent.h",
        "agent.last",
        "agent.cached",
    )
    for _ in range(2 if unseen else rng.random() < 0.15):
        lines += [
            "try:",
            f"    ({rng.choice(outs)}).mean().backward()",
            "except Exception as error:",
            "    print(str(error)[:40])",
        ]
    return lines


# statements


def _block(scope: Scope, count: int) -> Lines:
    lines: Lines = []
    for _ in range(count):
        lines += _statement(scope)
    return lines


def _statement(scope: Scope) -> Lines:
    rng = scope.rng
    kinds = {
        "assign": 8, "cut": 6, "number": 4, "semicolon": 2, "log": 2, "sum": 2, "store": 2, "evaluation": 3, "if": 1, "off": 1,
        "for": 1, "attribute": 2, "tuple": 1, "await": 3 * scope.is_async, "closure": 1, "try": 1, "augmented": 1, "values": 1,
        "annotated": 1, "deep": 1, "chained": 1, "metric": 2, "comment": 1, "unused": 1, "gan": 1, "hook": 1, "penalty": 1,
        "default": 1, "both": 1, "finally": 1, "while": 1, "match": 1, "running": 1, "delete": 1, "starred": 1, "test": 1,
    }  # fmt: skip
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    if scope.depth > 2 and kind in (
        "if",
        "for",
        "try",
        "off",
        "closure",
        "evaluation",
        "both",
        "finally",
        "while",
        "match",
    ):
        kind = "cut"
    match kind:
        case "assign":
            return _assigned(scope, _tensor(scope))
        case "cut":
            return _assigned(scope, f"{_wasted(scope)}.detach()")
        case "number":
            name = scope.name("n")
            return [f"{name} = {_number(scope)}", f"print(round(float({name}), 4))"]
        case "semicolon":
            one, other = _assigned(scope, f"{_wasted(scope)}.detach()"), _assigned(scope, _tensor(scope))
            return ["; ".join([*one, *other] if rng.random() < 0.7 else [*other, *one])]
        case "log":
            kept = rng.choice((_tensor(scope), _scalar(scope), _number(scope), f"({_tensor(scope)}).detach()"))
            return (
                [f"self.{rng.choice(('logs', 'kept'))}.append({kept})"]
                if rng.random() < 0.8
                else [f"self.last = {kept}", "self.last = None"]
            )
        case "sum":
            return [f"self.total += {rng.choice((_number(scope), _scalar(scope)))}"]
        case "store":
            return [f"self.cache[{rng.choice(('self.steps', 'str(self.steps)', '0'))}] = {_tensor(scope)}"]
        case "evaluation":
            net = rng.choice(NETS)
            inner = _nested(scope, rng.randint(0, 1))
            name = scope.name("n")
            return [
                f"self.{net}.eval()",
                *inner,
                f"{name} = {_number(scope, net)}",
                f"self.{net}.train()",
                f"self.notes[{name!r}] = {name}",
            ]
        case "if":
            name = scope.name()
            test = rng.choice(
                (
                    "self.steps % 2",
                    "x.mean() > 0" if "x" in scope.tensors else "s.mean() > 0",
                    "self.scale",
                )
            )
            lines = [
                f"if {test}:",
                *_indented([f"{name} = {_tensor(scope)}"]),
                "else:",
                *_indented([f"{name} = {_tensor(scope)}"]),
            ]
            scope.tensors.append(name)
            return lines
        case "off":
            name = scope.name()
            lines = [
                "with torch.no_grad():",
                *_indented([*_nested(scope, rng.randint(0, 1)), f"{name} = {_tensor(scope)}"]),
            ]
            scope.tensors.append(name)
            return lines
        case "for":
            name = scope.name()
            start = f"{name} = {rng.choice(scope.tensors)}"
            scope.tensors.append(name)
            body = [*_nested(scope, rng.randint(0, 1)), f"{name} = {_tensor(scope)}"]
            return [start, "for _ in range(2):", *_indented(body)]
        case "attribute":
            name = rng.choice(("h", "last"))
            return [f"self.{name} = {rng.choice((_tensor(scope), _wasted(scope) + '.detach()'))}"]
        case "tuple":
            one, other = scope.name(), scope.name()
            line = f"{one}, {other} = {_tensor(scope)}, {_wasted(scope)}.detach()"
            scope.tensors += [one, other]
            return [line]
        case "await":
            return ["await asyncio.sleep(0)"]
        case "closure":
            name, made = scope.name("f"), scope.name()
            inner = Scope(rng, [*scope.tensors, "t"], scope.depth + 1, made=scope.made + 20)
            body = [*_block(inner, rng.randint(0, 1)), f"return {_tensor(inner)}"]
            lines = [f"def {name}(t):", *_indented(body), f"{made} = {name}({_tensor(scope, 1)})"]
            scope.tensors.append(made)
            return lines
        case "try":
            name = scope.name()
            lines = [
                "try:",
                *_indented([f"{name} = {_tensor(scope)}"]),
                "except ValueError:",
                f"    {name} = {rng.choice(scope.tensors)}",
            ]
            scope.tensors.append(name)
            return lines
        case "augmented":
            names = [name for name in scope.tensors if name not in ("x", "s", "t")]
            return (
                [f"{rng.choice(names)} {rng.choice('+-*')}= {_tensor(scope)}"]
                if names and not scope.depth
                else ["pass"]
            )
        case "values":
            inside = rng.choice(scope.tensors)
            return _assigned(scope, f"next(iter(self.values([({inside}, None)])))" if not scope.yields else inside)
        case "annotated":
            name = scope.name()
            line = f"{name}: torch.Tensor = {_wasted(scope)}.detach()"
            scope.tensors.append(name)
            return [line]
        case "deep":
            return (
                _assigned(scope, f"self.critic({_tensor(scope, 1)})" + rng.choice(("", ".detach()")))
                if "s" not in scope.tensors
                else ["pass"]
            )
        case "chained":
            one, other = scope.name(), scope.name()
            line = f"{one} = {other} = {_wasted(scope)}.detach()"
            scope.tensors += [one, other]
            return [line]
        case "metric":
            return [f"self.notes[{scope.name('m')!r}] = {_number(scope)}"]
        case "comment":
            return [f"# {scope.name('note')}: what follows", *_assigned(scope, f"{_wasted(scope)}.detach()")]
        case "unused":
            return [_wasted(scope)]
        case "hook":
            name = scope.name()
            hook = f"{name}.register_hook(lambda g: self.notes.update({{{name!r}: float(g.sum())}}))"
            lines = [f"{name} = {_tensor(scope)}", f"if {name}.requires_grad: {hook}" if rng.random() < 0.7 else hook]
            scope.tensors.append(name)
            return lines
        case "penalty":
            leaf, name = scope.name("z"), scope.name()
            lines = [f"{leaf} = ({_tensor(scope, 2)}).detach().requires_grad_(True)"]
            create = rng.choice(("", ", create_graph=True"))
            lines += [f"{name}, = torch.autograd.grad({_net(scope)}({leaf}).pow(2).sum(), {leaf}{create})"]
            scope.tensors.append(name)
            return lines
        case "default":
            name, made = scope.name("f"), scope.name()
            kept = f"kept={_tensor(scope, 1)}" if rng.random() < 0.5 else f"memo={{}}, kept={rng.choice(scope.tensors)}"
            lines = [
                f"def {name}(t, {kept}):",
                f"    return {_net(scope)}(t) + kept",
                f"{made} = {name}({_tensor(scope, 1)})",
            ]
            scope.tensors.append(made)
            return lines
        case "both":
            name = scope.name()
            heads = (
                "with torch.no_grad(), contextlib.nullcontext():",
                "with contextlib.nullcontext():",
                "with torch.set_grad_enabled(self.steps % 2 == 0):",
                "with torch.enable_grad():",
            )
            lines = [rng.choice(heads), *_indented([*_nested(scope, rng.randint(0, 1)), f"{name} = {_tensor(scope)}"])]
            scope.tensors.append(name)
            return lines
        case "finally":
            name = scope.name()
            inside = _nested(scope, rng.randint(0, 1))
            lines = ["try:", *_indented([*inside, f"{name} = {_tensor(scope)}"]), "finally:", "    self.steps += 1"]
            scope.tensors.append(name)
            return lines
        case "while":
            name, left = scope.name(), scope.name("n")
            start = [f"{name}, {left} = {rng.choice(scope.tensors)}, 2"]
            scope.tensors.append(name)
            body = [*_nested(scope, rng.randint(0, 1)), f"{name} = {_tensor(scope)}"]
            if rng.random() < 0.3:
                body.insert(0, f"if {left} == 1 and self.steps > 2: break")
            return [*start, f"while {left}:", f"    {left} -= 1", *_indented(body)]
        case "match":
            name = scope.name()
            lines = ["match self.steps % 3:", "    case 0:", f"        {name} = {_tensor(scope)}"]
            lines += ["    case _:", *_indented([*_nested(scope, rng.randint(0, 1)), f"{name} = {_tensor(scope)}"], 2)]
            scope.tensors.append(name)
            return lines
        case "running":
            key = repr(rng.choice("ab"))
            return [f"self.notes[{key}] = self.notes.get({key}, 0) + {rng.choice((_scalar(scope), _number(scope)))}"]
        case "delete":
            name = scope.name()
            return [f"{name} = {_wasted(scope)}", f"self.notes['d'] = {name}.shape[0]", f"del {name}"]
        case "starred":
            name, rest = scope.name(), scope.name("r")
            lines = [f"{name}, *{rest} = {_tensor(scope)}, {_wasted(scope)}.detach(), {_tensor(scope, 1)}"]
            scope.tensors += [name, f"{rest}[{rng.randrange(2)}]"]
            return lines
        case "test":
            if scope.yields or scope.depth:
                return ["pass"]
            name = scope.name("w")
            lines = [f"if ({name} := {_tensor(scope)}).mean() > {rng.choice((-9, 0))}:", f"    {_net(scope)}({name})"]
            scope.tensors.append(name)
            return lines
        case _:  # a step of a discriminator
            if scope.yields or scope.depth:
                return ["pass"]
            fake, loss = scope.name(), scope.name("d")
            first = f"{fake} = {_wasted(scope)}"
            lines = [
                first,
                f"{loss} = F.softplus(self.target({fake}.detach())).mean()",
                f"self.opt2.zero_grad(); {loss}.backward(); self.opt2.step()",
            ]
            scope.tensors.append(fake)
            return lines


def _nested(scope: Scope, count: int) -> Lines:
    """Statements of a block that may not be run: what they define is not known behind it."""
    inner = Scope(scope.rng, list(scope.tensors), scope.depth + 1, scope.is_async, scope.yields, scope.made + 50)
    return _block(inner, count)


def _assigned(scope: Scope, value: str) -> Lines:
    name = scope.name() if scope.rng.random() < 0.9 else scope.rng.choice([*scope.tensors[1:], scope.name()])
    scope.tensors.append(name)
    return [f"{name} = {value}"]


# expressions


def _net(scope: Scope) -> str:
    return f"self.{scope.rng.choice(NETS)}"


def _wasted(scope: Scope) -> str:
    """A pass, as what is cut off behind it."""
    rng = scope.rng
    inner = _tensor(scope, 1) if rng.random() < 0.5 else rng.choice(scope.tensors)
    return f"{_net(scope)}({inner})" if rng.random() < 0.8 else f"{_called(scope, inner)}"


def _called(scope: Scope, inner: str) -> str:
    return f"self.{scope.rng.choice(list(MEMOS))}({inner})"


def _tensor(scope: Scope, depth: int = 0) -> str:
    rng = scope.rng
    if depth > 3 or rng.random() < 0.15:
        return rng.choice(scope.tensors)
    weights = {
        "name": 4, "net": 9, "method": 3, "sum": 4, "scale": 2, "cut": 4, "walrus": 1, "shape": 2, "activation": 2,
        "choice": 1, "several": 1, "lambda": 1, "list": 1, "partial": 1, "loop": 1, "product": 1, "checkpoint": 1, "dict": 1,
        "reduce": 1,
    }  # fmt: skip
    deeper = depth + 1
    match rng.choices(list(weights), list(weights.values()))[0]:
        case "name":
            return rng.choice(scope.tensors)
        case "net":
            return f"{_net(scope)}({_tensor(scope, deeper)})"
        case "method":
            return _called(scope, _tensor(scope, deeper))
        case "sum":
            return f"({_tensor(scope, deeper)} {rng.choice('+-')} {_tensor(scope, deeper)})"
        case "product":
            return f"({_tensor(scope, deeper)} * torch.sigmoid({_tensor(scope, deeper)}))"
        case "scale":
            return (
                f"{_tensor(scope, deeper)} * {rng.choice(('0.5', 'self.scale', '2'))}"
                if depth == 0
                else f"({_tensor(scope, deeper)} * 0.5)"
            )
        case "cut":
            cut = rng.choice((".detach()", ".detach()", ".data", ".detach().clone()", ".clone().detach()"))
            return f"({_tensor(scope, deeper)}){cut}"
        case "walrus" if scope.depth == 0 and not scope.yields:
            name = scope.name("w")
            return f"({name} := {_tensor(scope, deeper)})"
        case "shape":
            return rng.choice(
                ("torch.cat([{0}, {0}], 1)[:, :N]", "({0}).view(-1, N)", "torch.stack([{0}, {0}]).mean(0)")
            ).format(_tensor(scope, deeper + 1))
        case "activation":
            return rng.choice(
                (
                    "torch.relu({})",
                    "F.relu({})",
                    "({}).tanh()",
                    "F.softmax({}, dim=1)",
                    "torch.where({0} > 0, {0}, 0.1)",
                )
            ).format(_tensor(scope, deeper))
        case "choice":
            return f"({_tensor(scope, deeper)} if self.steps % 2 else {_tensor(scope, deeper)})"
        case "several":
            return f"sum(net({_tensor(scope, deeper)}) for net in (self.net, self.enc))"
        case "lambda":
            return f"(lambda t: {_net(scope)}(t))({_tensor(scope, deeper)})"
        case "list":
            return f"[{_tensor(scope, deeper)}, {_tensor(scope, deeper)}][{rng.randrange(2)}]"
        case "partial":
            return f"functools.partial({_net(scope)})({_tensor(scope, deeper)})"
        case "dict":
            return f"{{'a': {_tensor(scope, deeper)}, 'b': {_tensor(scope, deeper)}}}[{rng.choice('ab')!r}]"
        case "reduce":
            return f"functools.reduce(lambda t, net: net(t), (self.enc, {_net(scope)}), {_tensor(scope, deeper)})"
        case "loop":
            return (
                f"torch.stack([{_net(scope)}(row) for row in (x, x)]).mean(0)"
                if "x" in scope.tensors
                else rng.choice(scope.tensors)
            )
        case _:
            return (
                f"torch.utils.checkpoint.checkpoint({_net(scope)}, {_tensor(scope, deeper)}, use_reentrant=False)"
                if rng.random() < 0.3
                else rng.choice(scope.tensors)
            )


def _scalar(scope: Scope) -> str:
    form = scope.rng.choice((
        "({}).mean()", "({}).pow(2).mean()", "F.mse_loss({}, {})", "({} - {}).square().mean()", "F.mse_loss({}, ({}).detach())",
        "F.kl_div(F.log_softmax({}, 1), F.softmax({}, 1).detach(), reduction='batchmean')",
    ))  # fmt: skip
    while "{}" in form:
        form = form.replace("{}", _tensor(scope), 1)
    return form


def _number(scope: Scope, net: str = "") -> str:
    inner = f"self.{net}({_tensor(scope, 2)})" if net else _tensor(scope, 1)
    form = scope.rng.choice((
        "({}).sum().item()", "({}).argmax(1).float().mean().item()", "float(({}).mean())", "sum(({}).mean(0).tolist())",
        "(({}) > 0).sum().item()", "round(({}).std().item(), 3)", "int(({}).argmax())",
    ))  # fmt: skip
    return form.format(inner)


# spelling


def _spelled(rng: random.Random, lines: Lines) -> Lines:
    """Comments behind lines, and lines that follow each other joined or broken."""
    found: Lines = []
    for line in lines:
        is_plain = line.startswith("        ") and not line.rstrip().endswith((":", ",")) and "#" not in line
        if is_plain and rng.random() < 0.04 and found and _joins(found[-1], line):
            found[-1] += f"; {line.strip()}"
            continue
        if is_plain and ")" in line and rng.random() < 0.04:
            head, tail = line.rsplit(")", 1)
            line = f"{head}\n{' ' * (len(line) - len(line.lstrip()))}){tail}"
        elif is_plain and rng.random() < 0.03:
            line += "  # why"
        found.append(line)
    return found


def _joins(above: str, line: str) -> bool:
    indent = len(line) - len(line.lstrip())
    words = ("return", "if", "for", "with", "while", "else", "def", "class", "try", "except", "@", "#", "async", "pass")
    return (
        len(above) - len(above.lstrip()) == indent
        and "\n" not in above
        and "#" not in above
        and not above.strip().startswith(words)
        and not line.strip().startswith(words)
        and ":" not in line.replace(":=", "").replace(":, :", "")
        and ":" not in above.replace(":=", "").replace(":, :", "")
    )
