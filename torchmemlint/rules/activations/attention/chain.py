"""What the scores of an attention go through on the way from their product to the weighted sum of the values."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from itertools import combinations

from torchmemlint.flow.fact.equations import equation
from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.operands import Operation, Taking, looks
from torchmemlint.flow.ir.blocks import Layout
from torchmemlint.flow.ir.control import For, If, While
from torchmemlint.flow.ir.defuse import operands
from torchmemlint.flow.ir.ops import Bind, CallMethod, GetAttribute, Load, Op
from torchmemlint.flow.ir.places import NO_TEMP, Temp
from torchmemlint.immutable import immutable
from torchmemlint.rules.activations.attention import einsums
from torchmemlint.rules.activations.attention.axes import Axis, axes, exchanged, is_table, order
from torchmemlint.rules.activations.attention.einsums import Subscripts
from torchmemlint.rules.activations.attention.numbers import is_gate, is_number
from torchmemlint.rules.activations.attention.softmaxes import own_softmax

PRODUCTS = frozenset({"matmul", "bmm", "baddbmm", "einsum"})
_LONGEST = 50  # steps
_ALIKE = frozenset(f"torch.{name}_like" for name in ("empty", "full", "ones", "zeros"))
_CASTS = frozenset({"float", "half", "bfloat16", "to", "type", "type_as", "contiguous", "double"})
_TURNS = ([0, 2, 1], [0, 1, 3, 2], [0, 1, 2, 4, 3])
_PAIRS = ({-1, -2}, {1, 2}, {2, 3}, {1, -1}, {2, -1})


class Kind(enum.Enum):
    """What a step does."""

    PRODUCT = "product"  # queries times keys: the scores
    SCALE = "scale"  # times or divided by a number; of weights, also times a gate for all of them
    ADD = "add"  # an additive mask or bias
    FILL = "fill"  # masked_fill and its kin
    SOFTMAX = "softmax"  # from here on they are weights
    DROPOUT = "dropout"
    CAST = "cast"  # another dtype, or contiguous
    VIEW = "view"  # another shape, the last axis kept
    SWAP = "swap"  # the last two axes change places


@immutable(eq=False)
class Product:
    """Queries times keys, or weights times values, however it is spelled."""

    op: Op
    spelling: str  # "matmul", "bmm", "baddbmm", "einsum"
    left: Temp
    right: Temp
    equation: str = ""  # of einsum
    subscripts: Subscripts | None = None  # of einsum: the queries', the keys' and the scores'


@immutable(eq=False)
class Step:
    """One operation on scores or weights."""

    kind: Kind
    op: Op
    main: Temp = NO_TEMP  # the scores or weights that it takes
    operand: Temp | None = None  # the factor, mask, condition, or dropout's probability
    other: Temp | None = None  # the value that fills; what says whether dropout is on; the dtype of a softmax
    negated: bool = False  # divided by; subtracted; kept where the condition holds; a module's dropout
    plain: bool = True  # can it be said in arguments of the fused function?
    dim: int | None = None  # of a softmax


@immutable(eq=False)
class Stage:
    """Scores or weights as one step leaves them."""

    step: Step
    product: Product
    weights: bool = False  # after the softmax
    parents: tuple[Stage, ...] = ()
    swapped: bool = False  # the last two axes have changed places

    def past(self) -> list[Stage]:
        """This stage and all before it, each once."""
        found = [self]
        for stage in found:
            found += [parent for parent in stage.parents if parent not in found]
        return found


@immutable(eq=False)
class Attention:
    """An attention whose weights are made for nothing but the weighted sum."""

    formula: Formula
    layout: Layout
    weights: tuple[Stage, ...]  # as they meet the values: one for each way
    sum: Product
    taken: Temp  # the weights in the sum
    value: Temp
    subscripts: Subscripts | None  # of einsum: the weights', the values' and the result's

    @property
    def product(self) -> Product:
        """Queries times keys."""
        return self.weights[0].product

    def beside(self, name: str) -> int:
        """How many calls of a function run together with it, for other queries or keys?"""
        calls = self.formula.operations(frozenset({name}))
        return sum(not _excluded(self.layout, call.op, self.product.op) for call in calls)

    def past(self) -> list[Stage]:
        """All stages, each once."""
        return list(dict.fromkeys(one for stage in self.weights for one in stage.past()))


def find(formula: Formula) -> Iterator[Attention]:
    """The attentions of a function that could be computed by the fused function, in order."""
    sums = list(formula.operations(PRODUCTS))
    if len(sums) < 2:
        return
    chain = Chain(formula)
    found = [one for operation in sums if (one := chain.attention(operation)) is not None]
    layout = Layout(formula.function)
    for product in dict.fromkeys(one.product for one in found):
        ways = [one for one in found if one.product is product]
        if _is_alone(formula, layout, ways) and _is_attention(ways[0]):
            yield ways[0]


class Chain:
    """The scores and weights in a function."""

    def __init__(self, formula: Formula) -> None:
        self.formula = formula
        self.layout = Layout(formula.function)
        self._known: dict[tuple[Op, bool], Stage | None] = {}
        self._depth = 0

    def attention(self, operation: Operation) -> Attention | None:
        """A product as that of weights and values."""
        whole = _product(self.formula, operation)
        if whole is None or whole.spelling == "baddbmm":
            return None
        for place, (taken, value) in enumerate(((whole.left, whole.right), (whole.right, whole.left))):
            weights = self.stages(taken, weights=True)
            if not weights or any(self._is_staged(load.dst) for load in _loads(self.formula, value)):
                continue
            subscripts = None
            if whole.spelling == "einsum":
                subscripts = einsums.summed(whole.equation, place, weights[0].product.subscripts)
                fits = subscripts is not None and not weights[0].swapped
            else:
                fits = weights[0].swapped is (place == 1)
            if fits:
                return Attention(self.formula, self.layout, weights, whole, taken, value, subscripts)
        return None

    def _is_staged(self, temp: Temp) -> bool:
        return any(self.stages(temp, weights=weights) for weights in (False, True))

    def stages(self, temp: Temp, *, weights: bool) -> tuple[Stage, ...]:
        """The scores, or weights, that a value is: one for each way; none where it may be something else."""
        found = [self._stage(op, weights) for op in self.formula.sources(temp)]
        stages = tuple(stage for stage in found if stage is not None)
        alike = len({(stage.product, stage.swapped) for stage in stages}) == 1
        return stages if alike and len(stages) == len(found) else ()

    def _stage(self, op: Op, weights: bool) -> Stage | None:
        key = op, weights
        if key not in self._known and self._depth < _LONGEST:
            self._known[key] = None  # what a loop carries round is none
            self._depth += 1
            self._known[key] = self._made(op, weights)
            self._depth -= 1
        return self._known.get(key)

    def _made(self, op: Op, weights: bool) -> Stage | None:
        operation = self.formula.read(op)
        steps = list(self._steps(op, operation, weights))
        ways = [(step, self.stages(step.main, weights=weights and step.kind is not Kind.SOFTMAX)) for step in steps]
        led = [(step, parents) for step, parents in ways if parents]
        if len(led) == 1:
            ((step, parents),) = led
            fits = not parents[0].swapped or step.kind not in (Kind.SWAP, Kind.VIEW)
            if fits and self._is_possible(step, parents):
                swapped = parents[0].swapped or step.kind is Kind.SWAP
                return Stage(step, parents[0].product, weights, parents, swapped)
        if led or weights or operation is None:
            return None
        product = _product(self.formula, operation)
        if product is None or self._is_staged(product.left) or self._is_staged(product.right):
            return None
        return _scores(self.formula, product, operation)

    def _steps(self, op: Op, operation: Operation | None, weights: bool) -> Iterator[Step]:
        """What an operation may be; of two operands, either may be the scores."""
        formula = self.formula
        if weights and (dropout := _dropout_layer(formula, op, operation)) is not None:
            yield dropout
        if weights and operation is None and (own := own_softmax(formula, op)) is not None:
            yield Step(Kind.SOFTMAX, op, own[0], dim=own[1])
        match operation:
            case Operation(name="mul" | "div" as name, operands=(left, right), keywords=()):
                for main, other in ((left, right), (right, left))[: 1 if name == "div" else 2]:
                    number = is_number(formula, other)
                    if number is not None or (weights and is_gate(formula, other)):
                        plain = number is True and not weights
                        yield Step(Kind.SCALE, op, main, other, negated=name == "div", plain=plain)
            case Operation(name="add" | "sub" as name, operands=(left, right), keywords=()) if not weights:
                for main, other in ((left, right), (right, left))[: 1 if name == "sub" else 2]:
                    yield Step(Kind.ADD, op, main, other, negated=name == "sub")
            case Operation(name="masked_fill", operands=(main, condition, value)):
                yield Step(Kind.FILL, op, main, condition, value, plain=not weights)
            case Operation(qualified="torch.where", operands=(condition, first, second)):
                yield Step(Kind.FILL, op, first, condition, second, negated=True, plain=not weights)
                yield Step(Kind.FILL, op, second, condition, first, plain=not weights)
            case Operation(name="softmax", operands=(main, *_)) if weights:
                said, place = (operation, 1) if operation.layer is None else (operation.layer, 0)
                dim = formula.around(said).integer(said.argument("dim", place))
                yield Step(Kind.SOFTMAX, op, main, other=operation.keyword("dtype"), dim=dim)
            case Operation(name="dropout", qualified=str(name), operands=(main, *_)) if weights and name:
                yield Step(Kind.DROPOUT, op, main, operation.argument("p", 1), operation.argument("training", 2))
            case Operation(name="mT", operands=(main,)) if weights:
                yield Step(Kind.SWAP, op, main)
            case Operation(name="transpose" | "permute", operands=(main, *_)) if weights:
                numbers = order(formula, operation)
                if numbers in _TURNS or (len(numbers) == 2 and set(numbers) in _PAIRS):
                    yield Step(Kind.SWAP, op, main)
            case Operation(op=CallMethod(name=name), qualified="", operands=(main, *_)) if name in _CASTS:
                yield Step(Kind.CAST, op, main, plain=_restores(formula, operation))
            case Operation(name="view" | "reshape", qualified="", operands=(main, _, *_)):
                yield Step(Kind.VIEW, op, main, plain=False)

    def _is_possible(self, step: Step, parents: tuple[Stage, ...]) -> bool:
        """Do the scores allow the step: a softmax over their last axis, a mask that is given, and not made of them?"""
        formula, product = self.formula, parents[0].product
        if step.operand is not None and any(self._is_staged(load.dst) for load in _loads(formula, step.operand)):
            return False
        if step.kind is Kind.ADD and step.operand is not None:
            own = _tensors(formula, product.left) | _tensors(formula, product.right)
            return own.isdisjoint(_tensors(formula, step.operand, steps=3)) and not self._is_staged(step.operand)
        if step.kind is Kind.SOFTMAX:
            return _is_last(formula, step.dim, parents)
        if step.kind is Kind.FILL and not step.plain:  # zeros where the scores were masked: nothing is changed by them
            past = [one.step for stage in parents for one in stage.past() if one.step.kind is Kind.FILL]
            masks = [formula.flow.written(one.operand) for one in past if one.operand is not None]
            same = step.operand is not None and formula.flow.written(step.operand) in masks
            return same and formula.constant(step.other) == 0
        return True


def _product(formula: Formula, operation: Operation) -> Product | None:
    """`q @ k`, `torch.matmul(q, k)`, `q.bmm(k)`, `torch.einsum("bid,bjd->bij", q, k)`, `torch.baddbmm(m, q, k)`."""
    name, given = operation.name, operation.operands
    if name not in PRODUCTS or (operation.keywords and name != "baddbmm"):
        return None
    if name in ("einsum", "baddbmm"):
        if len(given) != 3:
            return None
        given = given[1:]
    if len(given) != 2:
        return None
    subscripts = equation(formula, operation) if name == "einsum" else ""
    return Product(operation.op, name, *given, subscripts) if subscripts is not None else None


def _scores(formula: Formula, product: Product, operation: Operation) -> Stage | None:
    """The stage that a product begins."""
    op, spelling = product.op, product.spelling
    if spelling == "einsum":
        subscripts = einsums.scores(product.equation)
        if subscripts is None:
            return None
        turned = subscripts[0] != einsums.parts(product.equation)[0]
        sides = (product.right, product.left) if turned else (product.left, product.right)
        product = Product(op, spelling, *sides, product.equation, subscripts)
    stage = Stage(Step(Kind.PRODUCT, op), product)
    if spelling == "baddbmm":
        alpha, beta = operation.keyword("alpha"), operation.keyword("beta")
        used = formula.constant(beta) if beta is not None else 1
        if used not in (0, 1):
            return None
        if alpha is not None:
            kind = is_number(formula, alpha)
            if kind is None:
                return None
            stage = Stage(Step(Kind.SCALE, op, operand=alpha, plain=kind), product, parents=(stage,))
        if used:
            stage = Stage(Step(Kind.ADD, op, operand=operation.operands[0]), product, parents=(stage,))
    return stage


def _dropout_layer(formula: Formula, op: Op, operation: Operation | None) -> Step | None:
    """A dropout as a layer, or one that is an identity on some ways."""
    if isinstance(op, CallMethod):
        stored, is_own, arguments = formula.attribute(op.base, op.name), formula.flow.is_self(op.base), op.arguments
    else:
        stored, is_own, arguments = [], operation is not None, getattr(op, "arguments", ())
    made = [one.construction(source) for one, temp in stored for source in one.sources(temp)]
    if operation is not None:
        made = [operation.layer]
    kinds = {one.qualified if one is not None else "" for one in made}
    if not is_own or len(arguments) != 1 or not kinds or not kinds <= {"torch.nn.Dropout", "torch.nn.Identity"}:
        return None
    return Step(Kind.DROPOUT, op, arguments[0].temp, negated=True, plain=kinds == {"torch.nn.Dropout"})


def _restores(formula: Formula, operation: Operation) -> bool:
    """Does a cast go back to the dtype of a tensor: `.to(q.dtype)`, `.type_as(q)`? (`.contiguous()` changes none.)"""
    dtype = formula.made(operation.argument("dtype", 1))
    return operation.name in ("contiguous", "type_as") or (isinstance(dtype, GetAttribute) and dtype.name == "dtype")


def _is_last(formula: Formula, dim: int | None, stages: tuple[Stage, ...]) -> bool:
    """Is a softmax over the last axis?"""
    if dim is None or dim < 0:
        return dim == -1
    product = stages[0].product
    if any(one.step.kind is Kind.VIEW for stage in stages for one in stage.past()):
        return False
    if product.spelling in ("bmm", "baddbmm"):
        return dim == 2
    if product.subscripts is not None:
        return "." not in product.subscripts[2] and dim == len(product.subscripts[2]) - 1
    known = axes(formula, product.left) or axes(formula, product.right)
    if known is not None:
        return dim == len(known) - 1
    operation = formula.of(product.right)
    numbers = order(formula, operation) if operation is not None else []
    if operation is not None and operation.name == "transpose":
        return set(numbers) == {dim - 1, dim}
    return dim == (len(numbers) - 1 if operation is not None and operation.name == "permute" else 3)


def _loads(formula: Formula, temp: Temp) -> list[Load]:
    """Where names are read that an expression is computed from, not only their shapes."""
    found: list[Load] = []
    pending = [temp]
    for one in pending:
        op = formula.written(one)
        if isinstance(op, Load):
            found.append(op)
        elif op is not None:
            pending += [taken for taken in operands(op) if not looks(op, taken)]
    return [load for load in found if not formula.flow.is_self(load.dst)]


def _tensors(formula: Formula, temp: Temp, steps: int = 0) -> set[str]:
    """The names that an expression is computed from, and, for so many steps, those that these were."""
    loads = _loads(formula, temp)
    found = {load.name.text for load in loads}
    for load in loads if steps else ():
        for bind in formula.definitions_of(load):
            found |= _tensors(formula, bind.src, steps - 1) if isinstance(bind, Bind) else set()
    return found


def _is_alone(formula: Formula, layout: Layout, ways: list[Attention]) -> bool:
    """Are the scores and weights taken by nothing but the steps that lead on, and these by one sum of values?"""
    stages = list(dict.fromkeys(stage for way in ways for stage in way.past()))
    taking = {(stage.step.op, stage.step.main) for stage in stages} | {(way.sum.op, way.taken) for way in ways}
    for op in {stage.step.op for stage in stages}:
        operation = formula.read(op) or Operation(op, "dropout", ())
        if any((one.by, one.temp) not in taking and not _is_shape_of(one) for one in formula.takings(operation)):
            return False
    loops = {tuple(a for a, _ in layout.above(op) if isinstance(a, For | While)) for op, _ in taking}
    return len(loops) == 1 and all(_excluded(layout, a.sum.op, b.sum.op) for a, b in combinations(ways, 2))


def _is_shape_of(taking: Taking) -> bool:
    """Is a tensor only taken as an example of its shape, as `torch.full_like` does?"""
    operation = taking.operation
    return operation is not None and operation.qualified in _ALIKE and taking.index == 0


def _excluded(layout: Layout, one: Op, other: Op) -> bool:
    """Do two operations stand in different branches?"""
    branches = {above: block for above, block in layout.above(one) if isinstance(above, If)}
    return any(above in branches and branches[above] is not block for above, block in layout.above(other))


def _is_attention(found: Attention) -> bool:
    """Does the product run over features, for many queries, with keys and values that are computed?"""
    formula, product = found.formula, found.product
    if is_table(formula, product.right) or is_table(formula, found.value):
        return False
    left, right = axes(formula, product.left), axes(formula, product.right)
    if product.spelling == "einsum":  # the subscripts say which axis is which
        return not any(known and known[-1] is Axis.POSITIONS for known in (left, right))
    rows, summed = left[-2:] if left is not None and len(left) > 1 else (None, None)
    summed_too, columns = right[-2:] if right is not None and len(right) > 1 else (None, None)
    if Axis.POSITIONS in (summed, summed_too) or {rows, columns} & {Axis.FEATURES, Axis.ONE}:
        return False
    if rows is Axis.POSITIONS or summed_too is Axis.FEATURES:
        return True
    return exchanged(formula, product.left) is None and exchanged(formula, product.right) is not None
