"""The call of `F.scaled_dot_product_attention` that an attention written out amounts to.

Every argument is an expression of the code itself, so that the call computes what was computed, to rounding; where that
cannot be said (`NoCallError`), there is none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.ir.control import If, With
from torchmemlint.flow.ir.ops import Call, CallMethod, Compare, Constant, GetAttribute, GetItem, Move, Op, Operate
from torchmemlint.flow.ir.places import ConstantKey, Temp
from torchmemlint.rules.activations.attention import axes
from torchmemlint.rules.activations.attention.chain import Attention, Kind, Stage, Step

_FAR_BELOW = -1e9  # a score of less adds nothing: `score + _FAR_BELOW` and `_FAR_BELOW` are the same to rounding
_MASKS = (Kind.ADD, Kind.FILL)

Taken = tuple[Stage, Temp | None]  # a stage and the condition under which its step is taken
Operands = tuple[list[str], str, bool]  # queries, keys and values; what turns the result back; have they three axes?


class NoCallError(Exception):
    """The fused function cannot be said, or not be proven, to compute the same."""


class FusedCall:
    """The call, piece by piece. `with_scale`: does the oldest torch in use have the argument `scale`?"""

    def __init__(self, found: Attention, text_of: Callable[[Op], str], names: set[str], *, with_scale: bool) -> None:
        self.found = found
        self.formula = found.formula
        self.with_scale = with_scale
        self.names = names  # of the scores and weights
        self.moved: list[Temp] = []  # what is now evaluated where the result is
        self._text_of = text_of
        self._taken = [(stage.step, stage.weights, test) for stage, test in _in_order(found)]

    def written(self) -> str:
        """The call, and what follows it."""
        function = self._name_of("torch.nn.functional", "scaled_dot_product_attention")
        arguments, after, flat = self._operands()
        if flat and after:
            raise NoCallError  # likewise: who writes it makes other tensors to begin with
        if flat:
            arguments, after = [_applied(text, ".unsqueeze(0)") for text in arguments], ".squeeze(0)" + after
        for name, text in (("attn_mask", self._mask()), ("dropout_p", self._dropout()), ("scale", self._scale())):
            arguments += [f"{name}={text}"] if text else []
        self._check_casts()
        whole = self.formula.read(self.found.sum.op)
        assert whole is not None
        takings = self.formula.takings(whole)
        viewed = any(isinstance(one.by, CallMethod) and one.by.name == "view" and one.index == 0 for one in takings)
        return f"{function}({', '.join(arguments)}){after}{'.contiguous()' * viewed}"  # as the products are

    def _of(self, *kinds: Kind) -> list[tuple[Step, bool, Temp | None]]:
        return [taken for taken in self._taken if taken[0].kind in kinds]

    def _operands(self) -> Operands:
        """Queries, keys and values in the layout that the function takes."""
        found, product = self.found, self.found.product
        self.moved += [product.left, product.right, found.value]
        if product.subscripts is not None or found.subscripts is not None:
            return self._of_einsum()
        rank = self._rank()
        flat = product.spelling in ("bmm", "baddbmm") or found.sum.spelling == "bmm" or rank == 3
        key, value, after = self._turned(product.right, 3 if flat else rank), self._text(found.value), ""
        if found.weights[0].swapped:
            value, after = self._turned(found.value, rank), ".transpose(-2, -1)"
        return [self._text(product.left), key, value], after, flat

    def _turned(self, temp: Temp, rank: int | None) -> str:
        """An operand with its last two axes exchanged."""
        formula, op = self.formula, self.formula.written(temp)
        operation = formula.read(op) if op is not None else None
        numbers = axes.order(formula, operation) if operation is not None else []
        match operation.name if operation is not None else "":
            case "transpose":
                pair = set(numbers)
                undone = pair == {-1, -2} or (rank is not None and pair == {rank - 2, rank - 1})
            case "permute":
                undone = numbers in ([0, 2, 1], [0, 1, 3, 2])
            case "contiguous" if operation is not None:
                return self._turned(operation.operands[0], rank)
            case name:
                undone = name == "mT"
        if undone and operation is not None and not operation.qualified:
            return self._text(operation.operands[0])
        if operation is not None and operation.name in ("transpose", "permute"):
            raise NoCallError  # to turn it twice computes the same, but nobody would write it
        return _applied(self._text(temp), ".transpose(-2, -1)")

    def _rank(self) -> int | None:
        """How many axes the operands have, where their making tells."""
        for stage in self.found.past():
            if stage.step.dim is not None and stage.step.dim >= 0:
                return stage.step.dim + 1  # it is the last one
        product = self.found.product
        known = axes.axes(self.formula, product.left) or axes.axes(self.formula, product.right)
        return len(known) if known is not None else None

    def _of_einsum(self) -> Operands:
        product, second = self.found.product, self.found.subscripts
        if product.subscripts is None or second is None or self.found.weights[0].swapped:
            raise NoCallError
        query, key, scores = product.subscripts
        weights, value, result = second
        temps = (product.left, product.right, self.found.value)
        if len(weights) != len(scores):
            raise NoCallError
        renamed = dict(zip(weights, scores, strict=True)) | {".": "."}
        fresh = next(letter for letter in "zyxwvut" if letter not in scores + query + key)
        value, result = ("".join(renamed.get(letter, fresh) for letter in one) for one in (value, result))
        if "..." in scores:
            row, column, feature = scores[-2], scores[-1], query[-1]
            wanted = f"...{row}{feature}", f"...{column}{feature}", f"...{row}{column}"
            if (query, key, scores) != wanted or (value, result) != (f"...{column}{fresh}", f"...{row}{fresh}"):
                raise NoCallError
            return [self._text(temp) for temp in temps], "", False
        if "." in weights + query + key + value:
            raise NoCallError
        column, row = scores[-1], next(letter for letter in scores if letter in query and letter not in key)
        feature = next(letter for letter in query if letter not in scores)
        batch = "".join(letter for letter in scores if letter not in (row, column))
        if scores != batch + row + column and self._of(*_MASKS):
            raise NoCallError
        orders = ((query, row + feature), (key, column + feature), (value, column + fresh))
        texts = [
            _permuted(self._text(temp), subscripts, batch + last)
            for temp, (subscripts, last) in zip(temps, orders, strict=True)
        ]
        return texts, _permuted("", batch + row + fresh, result), len(batch) == 1

    def _scale(self) -> str:
        """The argument `scale`, "" where the default is the same."""
        given, kinds = self._of(Kind.SCALE), [step.kind for step, _, _ in self._taken]
        if not given:
            return self._if_scaled("1.0")
        step, _, test = given[0]
        if len(given) > 1 or test is not None or not step.plain or step.operand is None:
            raise NoCallError
        if any(kind in _MASKS for kind in kinds[: kinds.index(Kind.SCALE)]):
            raise NoCallError  # the mask is scaled, too
        if self._is_default(step, step.operand):
            return ""
        text = self._moved(step.operand)
        return self._if_scaled(f"1.0 / {_bracketed(text)}" if step.negated else text)

    def _if_scaled(self, text: str) -> str:
        if not self.with_scale:
            raise NoCallError
        return text

    def _is_default(self, step: Step, operand: Temp) -> bool:
        """Does it divide by the root of the number of features, read from the queries or keys themselves?"""
        product = self.found.product
        if product.subscripts is not None and product.subscripts[0][-1] != product.subscripts[1][-1]:
            return False
        width = _root_of(self.formula, operand, inverted=not step.negated)
        op = self.formula.written(width) if width is not None else None
        match op:
            case CallMethod(base=base, name="size", arguments=(place,)) if self.formula.integer(place.temp) == -1:
                pass
            case GetItem(base=shape, key=ConstantKey(value=-1)):
                looked = self.formula.written(shape)
                base = looked.base if isinstance(looked, GetAttribute) and looked.name == "shape" else shape
            case _:
                return False
        return self.formula.flow.path(base) in self._paths()[:2]

    def _paths(self) -> list[str]:
        """The names of queries, keys and values, where they are names."""
        right = self.found.product.right
        temps = (self.found.product.left, axes.exchanged(self.formula, right) or right, self.found.value)
        return [self.formula.flow.path(temp) or "?" for temp in temps]

    def _mask(self) -> str:
        """The argument `attn_mask`, "" where there is none."""
        masks = self._of(*_MASKS)
        if not masks:
            return ""
        if any(weights or not step.plain or step.operand is None for step, weights, _ in masks):
            raise NoCallError
        if len(masks) == 1:
            ((step, _, test),) = masks
            text = self._filled(step) if step.kind is Kind.FILL else self._added(step)
            return text if test is None else f"{text} if {self._moved(test)} else None"
        if any(step.kind is Kind.FILL or test is not None for step, _, test in masks):
            raise NoCallError
        parts = [(" - " if step.negated else " + ") + _bracketed(self._moved(step.operand)) for step, _, _ in masks]
        return f"({''.join(parts).removeprefix(' + ').strip()}).to({self._dtype()})"

    def _added(self, step: Step) -> str:
        text = _bracketed(self._moved(step.operand))
        return f"{f'(-{text})' if step.negated else text}.to({self._dtype()})"

    def _filled(self, step: Step) -> str:
        assert step.operand is not None
        condition, op = self._moved(step.operand), self.formula.written(step.operand)
        value = _number(self.formula, step.other)
        if value == float("-inf"):
            if not step.negated:
                return _denied(op, condition)
            return condition if _is_boolean(op) else f"{_bracketed(condition)}.bool()"
        if value is None or value > _FAR_BELOW:
            raise NoCallError
        shown = self._moved(step.other)
        pair = f"0.0, {shown}" if step.negated else f"{shown}, 0.0"
        return f"{self._name_of('torch', 'where')}({condition}, {pair}).to({self._dtype()})"

    def _dropout(self) -> str:
        given = self._of(Kind.DROPOUT)
        if not given:
            return ""
        step, _, test = given[0]
        if len(given) > 1 or test is not None or not step.plain:
            raise NoCallError
        if step.negated:  # a module
            path, op = self.formula.flow.path, step.op
            module = (
                f"{path(op.base)}.{op.name}"
                if isinstance(op, CallMethod)
                else path(op.callee)
                if isinstance(op, Call)
                else ""
            )
            if not module:
                raise NoCallError
            return f"{module}.p if {module}.training else 0.0"
        p = self._moved(step.operand) if step.operand is not None else "0.5"
        training = self.formula.written(step.other) if step.other is not None else None
        if training is None or isinstance(training, Constant):
            return p if training is None or training.value else ""
        return f"{p} if {self._moved(step.other)} else 0.0"

    def _check_casts(self) -> None:
        """The function returns the values' dtype: so must the weights have had it."""
        casts = self._of(Kind.CAST)
        widened = any(not step.plain for step, _, _ in casts)
        widened = widened or any(step.other is not None for step, _, _ in self._of(Kind.SOFTMAX))
        restoring = [step for step, weights, _ in casts if weights]
        if self._of(Kind.VIEW) or (widened and not any(step.plain for step in restoring)):
            raise NoCallError
        if not all(self._is_own_dtype(step) for step in restoring):
            raise NoCallError

    def _is_own_dtype(self, step: Step) -> bool:
        """Is the tensor whose dtype is restored one of those that are multiplied?"""
        operation = self.formula.read(step.op)
        given = self.formula.written(operation.operands[-1]) if operation is not None else None
        if operation is None or operation.name == "contiguous":
            return operation is not None
        path = self.formula.flow.path(operation.operands[-1])
        if isinstance(given, GetAttribute) and given.name == "dtype":
            path = path.removesuffix(".dtype")
        elif operation.name != "type_as":
            return False
        return path in {*self._paths(), *self.names}

    def _dtype(self) -> str:
        """The source of the dtype that the masks must have."""
        for path in self._paths():
            if path != "?":
                return f"{path}.dtype"
        raise NoCallError

    def _moved(self, temp: Temp | None) -> str:
        assert temp is not None
        self.moved.append(temp)
        return self._text(temp)

    def _text(self, temp: Temp) -> str:
        """An expression as the file writes it, on one line; dtypes of the scores are those of the queries."""
        op = self.formula.written(temp)
        if op is None:
            raise NoCallError
        query = self._paths()[0]
        text = self._text_of(op)
        for name in self.names if query != "?" else ():
            text = re.sub(rf"(?<![\w.]){re.escape(name)}\.(dtype|device)\b", rf"{query}.\1", text)
        return text

    def _name_of(self, module: str, name: str) -> str:
        """How the file can say `module.name`."""
        ways = []
        for local, qualified in self.formula.function.unit.imports.items():
            if qualified == f"{module}.{name}":
                return local
            if module == qualified or module.startswith(qualified + "."):
                ways.append(f"{local}{module.removeprefix(qualified)}.{name}")
        if not ways:
            raise NoCallError
        return min(ways, key=len)


def _in_order(found: Attention) -> list[Taken]:
    """The steps from the product to the weights. Raises NoCallError where ways meet that are not one step left out."""
    taken: list[Taken] = []
    ways = found.weights
    while ways:
        if len(ways) == 1:
            taken.append((ways[0], None))
            ways = ways[0].parents
            continue
        first, second = ways[:2]
        longer, base = (first, second) if second in first.past() else (second, first)
        if len(ways) > 2 or base not in longer.past():
            raise NoCallError
        while longer is not base:
            around = next(
                ((op, block) for op, block in found.layout.above(longer.step.op) if not isinstance(op, With)), None
            )
            branch = around[0] if around is not None else None
            if around is None or not isinstance(branch, If) or around[1] is not branch.then or len(longer.parents) != 1:
                raise NoCallError
            if found.layout.home(branch) is not found.layout.home(base.step.op) or isinstance(branch.then[-1], Move):
                raise NoCallError
            taken.append((longer, branch.test))
            longer = longer.parents[0]
        ways = (base,)
    return [one for one in reversed(taken) if one[0].step.kind not in (Kind.SWAP, Kind.PRODUCT)]


def _root_of(formula: Formula, temp: Temp, *, inverted: bool) -> Temp | None:
    """`width`, of `math.sqrt(width)` (or, inverted, of one over that) in its usual spellings."""
    match formula.written(temp):
        case Call() | CallMethod() as op if formula.called(op) in ("math.sqrt", "numpy.sqrt") and not inverted:
            return op.arguments[0].temp if len(op.arguments) == 1 else None
        case Operate(operator="**", operands=(width, power)):
            return width if formula.constant(power) == (-0.5 if inverted else 0.5) else None
        case Operate(operator="/", operands=(one, right)) if inverted and formula.constant(one) == 1:
            return _root_of(formula, right, inverted=False)
    return None


def _number(formula: Formula, temp: Temp | None) -> float | None:
    """The value that fills, where it is a number that can be told, or the least of a dtype."""
    op = formula.written(temp) if temp is not None else None
    match op:
        case Constant(value=int() | float() as literal):
            return float(literal)
        case Operate(operator="-", operands=(operand,)):
            value = _number(formula, operand)
            return -value if value is not None else None
        case Call(arguments=(text,)) if formula.called(op) == "float":
            named = str(formula.constant(text.temp)).lower().replace("infinity", "inf")
            return float(named) if named in ("inf", "-inf") else None
        case GetAttribute(base=base, name=name):
            limits = formula.of(base)
            if limits is not None and limits.qualified == "torch.finfo":
                return {"min": -1e38, "max": 1e38}.get(name)
            return float("inf") if formula.name(op.dst) in ("math.inf", "torch.inf", "numpy.inf") else None
    return None


def _is_boolean(op: Op | None) -> bool:
    """Is a condition a tensor of booleans for certain?"""
    inverted = isinstance(op, Operate) and op.operator == "~"
    return inverted or isinstance(op, Compare) or (isinstance(op, CallMethod) and op.name in ("bool", "logical_not"))


def _denied(op: Op | None, text: str) -> str:
    """The opposite of a condition, as a boolean tensor."""
    if isinstance(op, Compare) and op.operator in ("==", "!=") and text.count(op.operator) == 1:
        return text.replace(op.operator, "!=" if op.operator == "==" else "==")
    if isinstance(op, Operate) and op.operator == "~" and text.startswith("~"):
        return text[1:].strip()
    return f"{_bracketed(text)}.logical_not()"


def _bracketed(text: str) -> str:
    """The text of an expression, in brackets where something is to be applied to it."""
    whole = ast.parse(text, mode="eval").body
    return (
        text if isinstance(whole, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant) else f"({text})"
    )


def _applied(text: str, method: str) -> str:
    """A method called on an expression."""
    return _bracketed(text) + method


def _permuted(text: str, order: str, wanted: str) -> str:
    """A tensor with its axes in another order; with an empty text only what does it."""
    if sorted(order) != sorted(wanted):
        raise NoCallError
    if order == wanted:
        return text
    moved = [index for index, (one, other) in enumerate(zip(order, wanted, strict=True)) if one != other]
    places = ", ".join(map(str, moved)) if len(moved) == 2 else ", ".join(str(order.index(letter)) for letter in wanted)
    method = f".{'transpose' if len(moved) == 2 else 'permute'}({places})"
    return _applied(text, method) if text else method
