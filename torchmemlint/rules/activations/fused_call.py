"""The call of `F.scaled_dot_product_attention` that an attention written out amounts to.

Every argument is an expression of the code itself, so that the call computes what was computed, to rounding; where that
cannot be said (`NoCallError`), there is none.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torchmemlint.flow.program import Program
from torchmemlint.rules.activations import fused_terms as terms
from torchmemlint.rules.activations.attention import axes
from torchmemlint.rules.activations.attention.operations import Operations, Owner, integer
from torchmemlint.rules.activations.attention.stages import Attention, Kind, Step
from torchmemlint.syntax.outline import dotted


class Call:
    """The call, piece by piece."""

    def __init__(self, found: Attention, rows: Sequence[str], *, with_scale: bool) -> None:
        self.found = found
        self.rows = rows
        self.with_scale = with_scale
        self.program: Program = found.program
        self.steps = terms.in_order(found.weights)
        self.chain = {terms.bound(stage.statement) for stage in found.weights.past()} - {""}
        self.moved: list[ast.expr] = []  # what is now evaluated where the result is

    def written(self) -> tuple[str, list[str], str]:
        """The function, its arguments, and what follows the call."""
        function = self._name_of("torch.nn.functional", "scaled_dot_product_attention")
        if function is None:
            raise terms.NoCallError
        (query, key, value), after, flat = self._operands()
        arguments = [query, key, value]
        mask = self._mask(flat)
        if mask:
            arguments.append(f"attn_mask={mask}")
        dropout = self._dropout()
        if dropout:
            arguments.append(f"dropout_p={dropout}")
        if self._is_viewed():
            after += ".contiguous()"  # as the products are
        scale = self._scale()
        if scale:
            arguments.append(f"scale={scale}")
        self._check_casts()
        return function, arguments, after

    def _is_viewed(self) -> bool:
        """Is the result's shape looked at in a way that needs it contiguous?"""
        whole = getattr(self.found.statement, "value", None) is self.found.node
        bound = terms.bound(self.found.statement) if whole else ""
        for node in ast.walk(self.found.function):
            if isinstance(node, ast.Attribute) and node.attr == "view":
                viewed = node.value is self.found.node or (bound and dotted(node.value) == bound)
                if viewed:
                    return True
        return False

    def _operands(self) -> tuple[tuple[str, str, str], str, bool]:
        """Queries, keys and values in the layout that the function takes, what turns its result back, and whether
        they have three axes: the fused kernels take four."""
        product = self.found.product
        self.moved += [product.left, product.right, self.found.value]
        if product.subscripts is not None or self.found.subscripts is not None:
            return self._of_einsum()
        flat = product.spelling in ("bmm", "baddbmm") or self.found.spelling == "bmm" or self._rank() == 3
        query, key, value = self._text(product.left), self._keys(flat), self._text(self.found.value)
        after = ""
        if self.found.weights.swapped:
            value, after = self._turned(self.found.value), ".transpose(-2, -1)"
        if flat:
            query, key, value = (terms.applied(text, ".unsqueeze(0)") for text in (query, key, value))
            after = ".squeeze(0)" + after
        return (query, key, value), after, flat

    def _keys(self, flat: bool) -> str:
        return self._turned(self.found.product.right, flat)

    def _turned(self, node: ast.expr, flat: bool = False) -> str:
        """An operand with its last two axes exchanged."""
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="transpose" | "swapaxes"), args=[first, second]):
                pair = {integer(first), integer(second)}
                if pair == {-1, -2} or (pair == {1, 2} and flat) or (pair == {2, 3} and self._rank() == 4):
                    return self._text(value)
            case ast.Call(func=ast.Attribute(value=value, attr="permute"), args=order):
                if [integer(item) for item in order] in ([0, 2, 1], [0, 1, 3, 2]):
                    return self._text(value)
            case ast.Attribute(value=value, attr="mT"):
                return self._text(value)
            case ast.Call(func=ast.Attribute(value=value, attr="contiguous"), args=[]):
                return self._turned(value, flat)
        return terms.applied(self._text(node), ".transpose(-2, -1)")

    def _rank(self) -> int | None:
        """How many axes the operands have, where their making tells."""
        product = self.found.product
        operations = Operations(self.program, Owner(self.program, self.found.cls))
        for stage in self.found.weights.past():
            place = integer(stage.step.dim) if stage.step.kind is Kind.SOFTMAX else None
            if place is not None and place >= 0:
                return place + 1  # it is the last one
        for node in (product.left, product.right):
            known = axes.axes(node, product.names or {}, operations)
            if known is not None:
                return len(known)
        return None

    def _of_einsum(self) -> tuple[tuple[str, str, str], str, bool]:
        product, second = self.found.product, self.found.subscripts
        if product.subscripts is None or second is None or self.found.weights.swapped:
            raise terms.NoCallError
        query, key, scores = product.subscripts
        weights, value, result = second
        if "..." in scores:
            return self._of_ellipsis(query, key, scores, value, result)
        if len(weights) != len(scores) or "." in weights + query + key + value:
            raise terms.NoCallError
        renamed = dict(zip(weights, scores, strict=True))
        taken = set(scores) | set(query) | set(key)
        fresh = next(letter for letter in "zyxwvut" if letter not in taken)
        value, result = ("".join(renamed.get(letter, fresh) for letter in subscripts) for subscripts in (value, result))
        column, row = scores[-1], next(letter for letter in scores if letter in query and letter not in key)
        feature = next(letter for letter in query if letter not in scores)
        batch = "".join(letter for letter in scores if letter not in (row, column))
        if scores != batch + row + column and any(taken.step.kind in (Kind.ADD, Kind.FILL) for taken in self.steps):
            raise terms.NoCallError
        texts = [
            terms.permuted(self._text(node), subscripts, batch + last)
            for node, subscripts, last in (
                (product.left, query, row + feature),
                (product.right, key, column + feature),
                (self.found.value, value, column + fresh),
            )
        ]
        flat = len(batch) == 1
        after = terms.permuted("", batch + row + fresh, result)
        if flat:
            texts = [terms.applied(text, ".unsqueeze(0)") for text in texts]
            after = ".squeeze(0)" + after
        return (texts[0], texts[1], texts[2]), after, flat

    def _of_ellipsis(
        self, query: str, key: str, scores: str, value: str, result: str
    ) -> tuple[tuple[str, str, str], str, bool]:
        row, column = scores[-2], scores[-1]
        feature, made = query[-1], value[-1]
        fits = (query, key, scores) == (f"...{row}{feature}", f"...{column}{feature}", f"...{row}{column}")
        if not fits or (value, result) != (f"...{column}{made}", f"...{row}{made}"):
            raise terms.NoCallError
        product = self.found.product
        return (self._text(product.left), self._text(product.right), self._text(self.found.value)), "", False

    def _scale(self) -> str:
        """The argument `scale`, "" where the default is the same."""
        given = [taken for taken in self.steps if taken.step.kind is Kind.SCALE]
        if not given:
            if not self.with_scale:
                raise terms.NoCallError
            return "1.0"
        if len(given) > 1 or given[0].test is not None or not given[0].step.plain or given[0].step.operand is None:
            raise terms.NoCallError
        step, operand = given[0].step, given[0].step.operand
        kinds = [taken.step.kind for taken in self.steps]
        if any(kind in (Kind.ADD, Kind.FILL) for kind in kinds[: kinds.index(Kind.SCALE)]):
            raise terms.NoCallError  # the mask is scaled, too
        if self._is_default(step):
            return ""
        if not self.with_scale:
            raise terms.NoCallError
        self.moved.append(operand)
        text = self._text(operand)
        return f"1.0 / {terms.bracketed(text, operand)}" if step.negated else text

    def _is_default(self, step: Step) -> bool:
        """Does it divide by the root of the number of features, read from the queries or keys themselves?"""
        product = self.found.product
        if product.subscripts is not None and product.subscripts[0][-1] != product.subscripts[1][-1]:
            return False
        width = terms.root_of(step.operand, inverted=not step.negated)
        named = {dotted(node) for node in (product.left, terms.exchanged(product.right))} - {""}
        match width:
            case ast.Call(func=ast.Attribute(value=value, attr="size"), args=[place]):
                return integer(place) == -1 and dotted(value) in named
            case ast.Subscript(value=ast.Attribute(value=value, attr="shape"), slice=place):
                return integer(place) == -1 and dotted(value) in named
        return False

    def _mask(self, flat: bool) -> str:
        """The argument `attn_mask`, "" where there is none."""
        masks = [taken for taken in self.steps if taken.step.kind in (Kind.ADD, Kind.FILL)]
        if not masks:
            return ""
        if any(taken.weights or not taken.step.plain or taken.step.operand is None for taken in masks):
            raise terms.NoCallError
        if len(masks) > 1:
            if any(taken.step.kind is Kind.FILL or taken.test is not None for taken in masks):
                raise terms.NoCallError
            signs = [" - " if taken.step.negated else " + " for taken in masks]
            parts = [self._moved(taken.step.operand) for taken in masks]
            text = "".join(sign + terms.bracketed(part) for sign, part in zip(signs, parts, strict=True))
            return f"({text.removeprefix(' + ').strip()}).to({self._dtype()})"
        (taken,) = masks
        text = self._filled(taken.step) if taken.step.kind is Kind.FILL else self._added(taken.step)
        if taken.test is None:
            return text
        self.moved.append(taken.test)
        return f"{text} if {self._text(taken.test)} else None"

    def _added(self, step: Step) -> str:
        text = self._moved(step.operand)
        if step.negated:
            text = f"(-{terms.bracketed(text)})"
        return f"{terms.bracketed(text)}.to({self._dtype()})"

    def _filled(self, step: Step) -> str:
        assert step.operand is not None
        condition = self._moved(step.operand)
        value = terms.number(step.other, self.program)
        if value == float("-inf"):
            if step.negated:
                return condition if terms.is_boolean(step.operand) else f"{terms.bracketed(condition)}.bool()"
            return terms.denied(step.operand, condition)
        if value is None or value > terms.FAR_BELOW or self._name_of("torch", "where") is None:
            raise terms.NoCallError
        shown = self._moved(step.other)
        pair = f"0.0, {shown}" if step.negated else f"{shown}, 0.0"
        return f"{self._name_of('torch', 'where')}({condition}, {pair}).to({self._dtype()})"

    def _dropout(self) -> str:
        given = [taken for taken in self.steps if taken.step.kind is Kind.DROPOUT]
        if not given:
            return ""
        if len(given) > 1 or given[0].test is not None or not given[0].step.plain:
            raise terms.NoCallError
        step = given[0].step
        if step.negated:  # a module
            assert isinstance(step.operand, ast.Attribute)
            module = ast.unparse(step.operand.value)
            if not dotted(step.operand.value):
                raise terms.NoCallError
            return f"{module}.p if {module}.training else 0.0"
        p = self._moved(step.operand) if step.operand is not None else "0.5"
        match step.other:
            case None | ast.Constant(value=True):
                return p
            case ast.Constant(value=False):
                return ""
        return f"{p} if {self._moved(step.other)} else 0.0"

    def _check_casts(self) -> None:
        """The function returns the values' dtype: so must the weights have had it."""
        kinds = [(taken.step.kind, taken.step.plain, taken.weights) for taken in self.steps]
        widened = any(
            (taken.step.kind is Kind.CAST and not taken.step.plain)
            or (taken.step.kind is Kind.SOFTMAX and taken.step.other is not None)
            for taken in self.steps
        )
        restored = any(kind is Kind.CAST and plain and weights for kind, plain, weights in kinds)
        unknown = any(kind in (Kind.VIEW, Kind.CHOICE) for kind, _, _ in kinds)
        if unknown or (widened and not restored):
            raise terms.NoCallError
        for taken in self.steps:
            if taken.step.kind is Kind.CAST and taken.weights and not self._is_own_dtype(taken.step.node):
                raise terms.NoCallError

    def _is_own_dtype(self, node: ast.expr) -> bool:
        """Is the tensor whose dtype is restored one of those that are multiplied?"""
        product = self.found.product
        own = {dotted(part) for part in (product.left, product.right, terms.exchanged(product.right), self.found.value)}
        match node:
            case ast.Call(func=ast.Attribute(attr="contiguous")):
                return True
            case ast.Call(func=ast.Attribute(attr="type_as"), args=[other]):
                return dotted(other) in (own | self.chain) - {""}
            case ast.Call(args=[ast.Attribute(value=other, attr="dtype")]):
                return dotted(other) in (own | self.chain) - {""}
        return False

    def _dtype(self) -> str:
        """The source of the dtype that the masks must have."""
        for node in (self.found.product.left, terms.exchanged(self.found.product.right), self.found.value):
            if dotted(node):
                return f"{dotted(node)}.dtype"
        raise terms.NoCallError

    def _moved(self, node: ast.expr | None) -> str:
        assert node is not None
        self.moved.append(node)
        return self._text(node)

    def _text(self, node: ast.expr) -> str:
        """An expression as the file writes it, on one line; dtypes of the scores are those of the queries."""
        changed = terms.Renaming(self.chain, self.found.product.left).visit(
            ast.parse(ast.unparse(node), mode="eval").body
        )
        if ast.dump(changed) != ast.dump(ast.parse(ast.unparse(node), mode="eval").body):
            return ast.unparse(changed)
        if node.lineno == node.end_lineno and node.end_col_offset is not None:
            row = self.rows[node.lineno - 1].encode()
            return row[node.col_offset : node.end_col_offset].decode()
        return ast.unparse(node)

    def _name_of(self, module: str, name: str) -> str | None:
        """How the file can say `module.name`."""
        best = None
        for local, qualified in self.program.imported.items():
            if qualified == f"{module}.{name}":
                return local
            if module == qualified or module.startswith(qualified + "."):
                text = f"{local}{module.removeprefix(qualified)}.{name}"
                best = text if best is None or len(text) < len(best) else best
        return best
