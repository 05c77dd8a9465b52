"""Programs made up by hypothesis: PyTorch code of any shape, put together from templates of statements."""

from __future__ import annotations

import io
import itertools
import sys
import textwrap
import tokenize
import warnings
from collections.abc import Sequence

from hypothesis import strategies as st

Lines = list[str]

TOKENS = ("(", ")", ":", "*", "=", "await ", "yield ", "not ", ",", ".", "\n", "\t")

NAMES = (
    "model", "loss", "x", "out", "total", "losses", "h", "optimizer", "loader", "i", "self", "criterion", "net.head",
)  # fmt: skip
TARGETS = (
    *NAMES[:8], "self.loss", "self.cache[i]", "history['loss']", "history[f'{i}']", "a.b.c", "out[:, i]", "losses[-1]",
    "loss, h", "out, *h", "(x, (h, out)), i", "self.a, self.b", "*h,",
)  # fmt: skip
LEAVES = (
    *NAMES, "0.0", "1", "None", "True", "'loss'", "f'{loss}'", "b''", "[]", "{}", "()", "...", "torch.zeros(3)",
    "x.grad", "model.parameters()", "self.net", "torch.nn.Linear(2, 2)", "nn.ReLU(inplace=True)", "self.hidden",
    "batch['x']", "DataLoader(dataset, batch_size=4, shuffle=True)", "-x", "not loss", "range(3)",
    "model.state_dict()", "model.eval()", "copy.deepcopy(model)", "collections.deque(maxlen=4)", "defaultdict(list)",
    "lambda: 0",
)  # fmt: skip
EXPRESSIONS = (
    "model({0})", "criterion({0}, {1})", "self.net({0})", "({0} + {1})", "{0} * {1}", "{0} @ {1}", "-{0}",
    "({0}).detach()", "({0}).item()", "({0})[{1}]", "({0})[0]", "({0}).mean()", "({0}).cpu()", "({0}).to(device)",
    "({0}).data", "[{0}, {1}]", "({0}, {1})", "{{'loss': {0}, i: {1}}}", "{{**{0}, 'a': {1}}}", "[*{0}, {1}]",
    "{{{0}, {1}}}", "[{0} for x in {1}]", "[{0} for x, *y in {1} if {0} for i in x]", "{{k: {0} for k, v in {1}}}",
    "{{{0} for x in {1}}}", "sum({0} for x in {1})", "(lambda x, *a, k={0}, **kw: {1})", "step({0}, *{1})",
    "step(**{0}, x={1})", "({0} if {1} else {0})", "({0} and {1})", "{0} < {1} <= {0}", "torch.stack({0})",
    "torch.cat([{0}, {1}], dim=0)", "torch.autograd.grad({0}, {1}, create_graph=True)", "F.relu({0}, inplace=True)",
    "F.cross_entropy({0}, {1})", "nn.Sequential({0}, nn.ReLU(), {1})", "f'{{{0}!r:>{{{1}}}}}'",
    "({0}).backward(retain_graph=True)", "float({0})", "step({0})", "step({0}, {1})", "getattr(self, 'a')({0})",
    "losses.append({0})", "history['loss'].append({0})", "self.meter.update({0}, {1})", "enumerate({0})",
    "zip({0}, {1})", "next(iter({0}))", "max({0}, {1})", "losses.extend([{0}])",
    "history.setdefault(i, []).append({0})", "({0}).softmax(-1).argmax(1)", "scaler.scale({0})",
    "model.register_forward_hook({0})", "map(lambda x: {0}, {1})", "isinstance({0}, {1})", "({0})[..., :{1}]",
)  # fmt: skip
SIMPLE = (
    "{t} = {e}", "{t} = {e}", "{n} += {e}", "self.total += {e}", "{n} = {n} + {e}", "{n}: torch.Tensor = {e}",
    "{n} *= {e}", "out = loss = {e}", "{e}", "losses.append({e})", "history['loss'].append({e})", "loss.backward()",
    "({e}).backward()", "loss.backward(retain_graph=True)", "optimizer.step()", "optimizer.zero_grad()",
    "model.eval()", "model.train()", "model.train({e})", "del {n}", "del history['loss'], {n}", "assert {e}, {e}",
    "raise ValueError({e}) from {e}", "pass", "import torch.nn as nn", "from torch import no_grad as quiet",
    "torch.set_grad_enabled({e})", "torch.no_grad()", "model.requires_grad_(False)",
    "model.layer.register_forward_hook(hook)", "print({e}, {e})", "return_value = {e}", "x = x.relu_()", "x.add_({e})",
    "losses += [{e}]", "loss = loss.detach()", "h = tuple(s.detach() for s in h)", "a = 1; b = {e}",
    "{n} = yield_ = {e}", "x, h = model(x, h)", "self.x = {e}", "torch.nn.functional.relu_({e})",
)  # fmt: skip
CONTEXTS = (
    "torch.no_grad()", "torch.inference_mode()", "torch.set_grad_enabled(phase == 'train')", "torch.enable_grad()",
    "quiet()", "torch.autocast('cuda'), open({e}) as f", "{e} as (a, b)", "torch.no_grad",
    "contextlib.suppress(Exception)", "ExitStack() as stack, stack.enter_context(torch.no_grad())", "{e}",
)  # fmt: skip
DECORATORS = (
    "@torch.no_grad()", "@torch.no_grad", "@functools.lru_cache(maxsize=None)", "@staticmethod", "@property",
    "@classmethod", "@torch.jit.script", "@contextlib.contextmanager", "@step({e})",
)  # fmt: skip
PARAMETERS = (
    "", "self", "self, x", "x, h=None", "x: torch.Tensor, /, y: int = 1, *, z", "*args, **kwargs",
    "model: nn.Module, loader", "self, *x: torch.Tensor, k={e}", "module, inputs, output", "x, y, **kw",
)  # fmt: skip
PATTERNS = (
    "_", "0", "'loss'", "[x, *rest]", "{{'loss': loss, **rest}}", "nn.Linear(in_features=h)", "(1 | 2) as i",
    "Loss(x, y=out)", "None", "[loss] if loss", "torch.float",
)  # fmt: skip
FUNCTIONS = ("__init__", "forward", "step", "training_step", "validation_step", "hook", "update", "train")
BASES = (
    "", "(nn.Module)", "(torch.nn.Module, metaclass=M)", "(Dataset)", "(pl.LightningModule)", "(Base[int])",
    "(Outer.Inner)",
)  # fmt: skip


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    """An expression, nested up to `depth` times."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(LEAVES))
    template = draw(st.sampled_from(EXPRESSIONS))
    return template.format(*(draw(expressions(depth - 1)) for _ in range(2)))


@st.composite
def filled(draw: st.DrawFn, templates: Sequence[str]) -> str:
    """A template with its holes filled; each `{e}` is the same expression."""
    template = draw(st.sampled_from(templates))
    parts = {"t": st.sampled_from(TARGETS), "n": st.sampled_from(NAMES), "e": expressions()}
    return template.format(**{hole: draw(part) for hole, part in parts.items() if f"{{{hole}}}" in template})


@st.composite
def blocks(draw: st.DrawFn, depth: int, place: str = "", most: int = 4) -> Lines:
    """A suite; `place` has an `f` in a function, a `c` in a coroutine, an `l` in a loop."""
    lines: Lines = []
    for _ in range(draw(st.integers(1, most))):
        lines += draw(statements(depth, place))
    return lines


@st.composite
def statements(draw: st.DrawFn, depth: int, place: str) -> Lines:
    """One statement of any kind."""
    kinds = ["simple"] * 4
    if "f" in place:
        kinds += ["leave"]
    if "l" in place:
        kinds += ["jump"]
    if depth:
        kinds += ["for", "for", "while", "if", "with", "try", "match", "def", "class"]
        if "c" in place:
            kinds += ["async"]

    def block(where: str = place) -> Lines:
        return ["    " + line for line in draw(blocks(depth - 1, where, 3))]

    def expression() -> str:
        return draw(expressions())

    match draw(st.sampled_from(kinds)):
        case "simple":
            return [draw(filled(SIMPLE))]
        case "leave":
            words = ["return", f"return {expression()}", f"yield {expression()}", f"h = yield {expression()}"]
            if "c" in place:
                words = ["return", f"x = await {expression()}", f"yield {expression()}"]
            else:
                words.append(f"yield from {expression()}")
            return [draw(st.sampled_from(words))]
        case "jump":
            return [draw(st.sampled_from(["break", "continue"]))]
        case "for":
            head = f"for {draw(st.sampled_from(TARGETS))} in {expression()}:"
            return [head, *block(place + "l"), *(["else:", *block()] if draw(st.booleans()) else [])]
        case "while":
            test = draw(st.sampled_from(["True", "(loss := model(x)) is not None", expression()]))
            return [f"while {test}:", *block(place + "l"), *(["else:", *block()] if draw(st.booleans()) else [])]
        case "if":
            test = draw(st.sampled_from([f"(out := {expression()})", expression(), "self.training"]))
            lines = [f"if {test}:", *block()]
            if draw(st.booleans()):
                lines += [f"elif {expression()}:", *block()]
            return lines + (["else:", *block()] if draw(st.booleans()) else [])
        case "with":
            return [f"with {draw(filled(CONTEXTS))}:", *block()]
        case "try":
            star = "*" if sys.version_info >= (3, 11) and draw(st.booleans()) else ""
            inside = place.replace("l", "") if star else place  # no break or continue out of `except*`
            inside = "".join(letter for letter in inside if not (star and letter in "fc"))
            lines = ["try:", *block(), f"except{star} (RuntimeError, ValueError) as error:", *block(inside)]
            if not star and draw(st.booleans()):
                lines += ["except:", *block()]
            lines += ["else:", *block()] if draw(st.booleans()) else []
            return lines + (["finally:", *block(inside.replace("l", ""))] if draw(st.booleans()) else [])
        case "match":
            lines = [f"match {expression()}:"]
            for pattern in draw(st.lists(st.sampled_from(PATTERNS[1:]), min_size=1, max_size=3)):
                lines += [f"    case {pattern.format()}:", *("    " + line for line in block())]
            return lines
        case "async":
            heads = ("async for x in {}:", "async with {} as x:", "for x in [y async for y in {}]:")
            head = draw(st.sampled_from(heads))
            return [head.format(expression()), *block(place + "l" * ("for" in head))]
        case "def":
            return draw(functions(depth))
        case _:
            lines = [f"class {draw(st.sampled_from(['Net', 'Meter', 'Trainer']))}{draw(st.sampled_from(BASES))}:"]
            for _ in range(draw(st.integers(1, 3))):
                lines += ["    " + line for line in draw(functions(depth))]
            return lines + ["    " + line for line in draw(blocks(0))]


@st.composite
def functions(draw: st.DrawFn, depth: int) -> Lines:
    """A function or method, a coroutine now and then."""
    name = draw(st.sampled_from(FUNCTIONS))
    coroutine = draw(st.integers(0, 5)) == 0
    lines = draw(st.lists(filled(DECORATORS), max_size=2))
    lines.append(f"{'async ' * coroutine}def {name}({draw(filled(PARAMETERS))}) -> torch.Tensor:")
    first = draw(st.sampled_from(["", "", "'''A docstring.'''", "global total, losses", "super().__init__()"]))
    body = draw(blocks(depth - 1, "fc" if coroutine else "f", 5))
    inner = ["global total"] if draw(st.booleans()) else ["nonlocal x", "x = model(x)"]
    if draw(st.integers(0, 4)) == 0:
        body = ["x = loss", "def inner(*a):", *("    " + line for line in inner), "    return x", "inner()", *body]
    return [*lines, *("    " + line for line in [first, *body] if line)]


HEADER = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
model = nn.Linear(2, 2)
"""


@st.composite
def programs(draw: st.DrawFn, depth: int = 3) -> str:
    """A whole program; nearly all of them compile."""
    return HEADER + "\n".join(draw(blocks(depth, "", 6))) + "\n"


def compiles(text: str) -> bool:
    """Whether this Python compiles the text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "<program>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


@st.composite
def mutations(draw: st.DrawFn, texts: Sequence[str]) -> str:
    """One of the texts with lines and tokens dropped, doubled, swapped and moved in from another."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            lines = text.splitlines(keepends=True)
            other = draw(st.sampled_from(texts)).splitlines(keepends=True)
            text = "".join(draw(_mutated(lines, other)))
        else:
            tokens = _tokens(text)
            text = "".join(draw(_mutated(tokens, TOKENS)))
    return text


@st.composite
def _mutated(draw: st.DrawFn, parts: Sequence[str], others: Sequence[str]) -> list[str]:
    found = list(parts) or [""]
    here = draw(st.integers(0, len(found) - 1))
    there = draw(st.integers(0, len(found) - 1))
    match draw(st.sampled_from(["drop", "double", "swap", "insert", "indent"])):
        case "drop":
            del found[here : here + draw(st.integers(1, 3))]
        case "double":
            found.insert(there, found[here])
        case "swap":
            found[here], found[there] = found[there], found[here]
        case "insert":
            found.insert(here, draw(st.sampled_from(others)) if others else "")
        case _:
            found[here] = textwrap.indent(found[here], "    ")
    return found


def _tokens(text: str) -> list[str]:
    """The text cut at its tokens; cut at its lines where it has none."""
    lines = text.splitlines(keepends=True)
    cuts = {0}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            for row, column in (token.start, token.end):
                cuts.add(sum(map(len, lines[: row - 1])) + column)
    except (tokenize.TokenError, SyntaxError):
        return lines
    edges = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    return [text[start:end] for start, end in itertools.pairwise(edges)]
