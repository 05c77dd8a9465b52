"""Programs in which something other than a graph holds networks, each with a harmless twin; run, and labelled by that.

A program is one entry of each table: what holds the network, how it is repeated, and where it is written. While it
runs, the garbage collector is off. Before each iteration all layers are counted that are alive, by weak references, and
all hooks that they have; at the end once more, when the collector has run.
"""

from __future__ import annotations

import gc
import itertools
import textwrap
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from unittest import mock

STEPS = 5
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        {made}

    def forward(self, x):
        return self.body(x)

    def own(self, x):
        return self.body(x)
"""
TRAINER = """
class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        {made}

    def fit(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()
"""
CALLBACK = """
class Callback:
    def __init__(self, trainer):
        self.trainer = {held}
"""
CACHE = """
@functools.lru_cache(maxsize=None)
def size_of({parameter}):
    return 4
"""


@dataclass(frozen=True)
class Holder:
    """What may hold a network: the classes of a program, and what an iteration does; once so, once harmlessly."""

    classes: tuple[str, str]
    iteration: tuple[str, str]
    code: str


def _on_net(bad: str, good: str) -> Holder:
    iteration = "net = Net()\nprint(net(x).mean().item())"
    return Holder((NET.format(made=bad), NET.format(made=good)), (iteration, iteration), "TML801")


def _on_trainer(bad: str, good: str, after: str = "") -> Holder:
    iteration = f"trainer = Trainer(nn.Linear(4, 4))\nprint(trainer.fit(x))\n{after}"
    return Holder((TRAINER.format(made=bad), TRAINER.format(made=good)), (iteration, iteration), "TML801")


def _callback(bad: str, good: str, given: str) -> Holder:
    iteration = f"trainer = Trainer(nn.Linear(4, 4))\n{given}\nprint(trainer.fit(x))"
    classes = [TRAINER.format(made="self.callbacks = []") + CALLBACK.format(held=held) for held in (bad, good)]
    return Holder((classes[0], classes[1]), (iteration, iteration), "TML801")


_FIT = "net = nn.Linear(4, 4)\nloss = net(x).square().mean()\nloss.backward()\n"
_HOOK = "lambda module, given, output: None"
HOLDERS = {
    "method in a dict": _on_trainer('self.ways = {"fit": self.fit}', 'self.ways = {"fit": "fit"}'),
    "method in a list": _on_trainer("self.ways = [self.fit]", "self.ways = [len]"),
    "method": _on_trainer("self.way = self.fit", "self.way = print"),
    "partial of a method": _on_trainer("self.way = functools.partial(self.fit)", "self.way = functools.partial(print)"),
    "lambda": _on_net("self.scaled = lambda x: self.body(x)", "self.scaled = lambda x: 2 * x"),
    "method of the network": _on_net("self.way = self.own", "self.way = Net.own"),
    "hook of the network": _on_net(
        "self.body.register_forward_hook(lambda module, given, output: self.train(False) and None)",
        f"self.body.register_forward_hook({_HOOK})",
    ),
    "parent": _callback("trainer", "weakref.ref(trainer)", "trainer.callback = Callback(trainer)"),
    "callback": _callback("trainer", "weakref.proxy(trainer)", "trainer.callbacks.append(Callback(trainer))"),
    "itself": _on_trainer("self.me = self", "self.me = None"),
    "list": Holder(("", ""), (f"{_FIT}kept.append(net)", f"{_FIT}kept.append(loss.item())"), "TML807"),
    "row": Holder(
        ("", ""), (f"{_FIT}kept.append((loss.item(), net))", f"{_FIT}kept.append((loss.item(), 1))"), "TML807"
    ),
    "dict of rows": Holder(
        ("", ""),
        (f'{_FIT}kept.append({{"net": net, "loss": loss.item()}})', f'{_FIT}kept.append({{"loss": loss.item()}})'),
        "TML807",
    ),
    "cache": Holder(
        (CACHE.format(parameter="network"), CACHE.format(parameter="width")),
        (f"{_FIT}print(size_of(net))", f"{_FIT}print(size_of(4))"),
        "TML804",
    ),
    "hook of each iteration": Holder(
        ("", ""),
        (f"shared.register_forward_hook({_HOOK})", f"shared.register_forward_hook({_HOOK}).remove()"),
        "TML802",
    ),
    "hook of each layer": Holder(
        ("", ""),
        (
            f"for layer in pair:\n    layer.register_forward_hook({_HOOK})",
            f"with pair[0].register_forward_hook({_HOOK}):\n    print(pair(x).mean().item())",
        ),
        "TML802",
    ),
    "hook of parameters": Holder(
        ("", ""),
        (
            "shared.weight.register_hook(lambda gradient: gradient * 1)",
            "shared(x).register_hook(lambda gradient: gradient * 1)",
        ),
        "TML802",
    ),
}
LOOPS = {
    "for": "for step in range({steps}):\n    probe()\n{body}",
    "while": "step = 0\nwhile step < {steps}:\n    step += 1\n    probe()\n{body}",
    "enumerate": "for step, name in enumerate({names}):\n    probe()\n{body}",
    "thread": "for step in range({steps}):\n    probe()\n    def work():\n{inner}\n"
    "    worker = threading.Thread(target=work)\n    worker.start()\n    worker.join()",
    "thread pool": "with ThreadPoolExecutor(max_workers=1) as pool:\n    for step in range({steps}):\n        probe()\n"
    "        def work():\n{innermost}\n        pool.submit(work).result()",
}
CALLS = ("in the loop", "in a function", "two calls deep")


@dataclass(frozen=True)
class Program:
    """One program, and the code by which it is to be reported; "" for a harmless one."""

    name: str
    text: str
    code: str


def programs() -> Iterator[Program]:
    """Yield all programs: each holder in each loop and call, and its harmless twin."""
    for (name, holder), (loop, frame), call in itertools.product(HOLDERS.items(), LOOPS.items(), CALLS):
        for number, code in enumerate((holder.code, "")):
            text = _text(holder.classes[number], holder.iteration[number], frame, call)
            yield Program(f"{name}, {loop}, {call}, {code or 'harmless'}", text, code)


def _text(classes: str, iteration: str, frame: str, call: str) -> str:
    names, functions = "kept, shared, pair, x", ""
    body = iteration
    if call != CALLS[0]:
        functions += f"\ndef once({names}):\n{textwrap.indent(iteration, '    ')}\n"
        body = f"once({names})"
    if call == CALLS[2]:
        functions += f"\ndef outer({names}):\n    once({names})\n"
        body = f"outer({names})"
    body, inner, innermost = (textwrap.indent(body, "    " * depth) for depth in (1, 2, 3))
    loop = frame.format(steps=STEPS, names=tuple("abcde"), body=body, inner=inner, innermost=innermost)
    main = (
        "def main():\n    kept, x = [], torch.randn(2, 4)\n    shared = nn.Linear(4, 4)\n"
        "    pair = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))\n"
        f"{textwrap.indent(loop, '    ')}\n    probe()\n    print(len(kept))\n\n\nmain()\n"
    )
    imports = "import functools\nimport threading\nimport weakref\nfrom concurrent.futures import ThreadPoolExecutor\n"
    return f"{imports}\nimport torch\nfrom torch import nn\n\n{classes}\n{functions}\n{main}"


def label(program: Program) -> str:
    """Run a program, and return the code that what it holds stands for; "" where nothing grows."""
    from torch import nn

    made: list[weakref.ref[nn.Module]] = []
    alive: list[int] = []
    hooks: list[int] = []

    class Counted(nn.Linear):
        def __init__(self, given: int, gives: int) -> None:
            super().__init__(given, gives)
            made.append(weakref.ref(self))

    def probe() -> None:
        layers = [layer for reference in made if (layer := reference()) is not None]
        alive.append(len(layers))
        hooks.append(sum(len(one._forward_hooks) + len(one.weight._backward_hooks or ()) for one in layers))
        if len(alive) == STEPS + 1:
            del layers
            gc.collect()
            alive.append(sum(reference() is not None for reference in made))

    gc.disable()
    gc.freeze()  # what there was before is not looked at
    try:
        with mock.patch.object(nn, "Linear", Counted):
            exec(compile(program.text, program.name, "exec"), {"probe": probe, "print": lambda *_: None})
    finally:
        gc.unfreeze()
        gc.enable()
    if alive[STEPS] - alive[1] >= STEPS - 1:
        return "TML801" if alive[-1] < alive[STEPS] else "TML804" if "lru_cache" in program.text else "TML807"
    return "TML802" if hooks[STEPS] - hooks[1] >= STEPS - 1 else ""
