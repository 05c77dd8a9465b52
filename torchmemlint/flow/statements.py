"""Statements: how the state changes, where ways meet, and what a loop carries from one iteration to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from torchmemlint.flow import (
    attributes,
    calls,
    containers,
    entrywise,
    expressions,
    gradient_modes,
    iteration,
    type_tests,
)
from torchmemlint.flow.heap import Heap
from torchmemlint.flow.interpreter import FOLDED, KEPT, Interpreter
from torchmemlint.flow.program import ClassInfo, Function, expression_name
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.state import State, join_states
from torchmemlint.flow.values import (
    Carry,
    ClassValue,
    Constant,
    Container,
    External,
    FunctionValue,
    GradMode,
    Graph,
    Instance,
    Key,
    Known,
    LoopMark,
    Mode,
    ModuleValue,
    Partial,
    Tensor,
    Unknown,
    Value,
    cap,
)
from torchmemlint.knowledge import torch_api
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.text import text_of
from torchmemlint.syntax.walking import children

_MAX_ROUNDS_DEPTH = 4  # deeper loops are walked once


def execute_body(it: Interpreter, body: cst.BaseSuite | Sequence[cst.CSTNode]) -> None:
    """Walk the statements of a suite until one ends the way."""
    it.pulse()
    statements = body.body if type(body) is cst.IndentedBlock or isinstance(body, cst.BaseSuite) else body
    for statement in statements:
        if it.state.dead:
            return
        if type(statement) is cst.SimpleStatementLine:
            for small in statement.body:
                _small(it, small)
        elif not hasattr(statement, "body") and isinstance(statement, cst.BaseSmallStatement):
            _small(it, statement)
        else:
            it.steps += 1
            it.execute(statement)


def _small(it: Interpreter, statement: cst.BaseSmallStatement) -> None:
    it.steps += 1
    if it.frame.leads_abroad:
        it.steps_abroad += 1
    elif it.frame.is_abroad(it.main):
        it.steps_beyond += 1
    if it.state.dead:
        return
    it.frame.statement = it.site(statement) if it.recording else None
    it.execute(statement)


# -- assignment ------------------------------------------------------------------------------------------------------


def assign(it: Interpreter, target: cst.BaseExpression, value: Value, node: cst.BaseExpression | None) -> None:
    """Bind a target of any shape."""
    if type(target) is cst.Name:  # `isinstance` is slow on these classes where the answer is no
        _assign_name(it, target.value, value, target, node)
    elif type(target) is cst.Attribute:
        attributes.assign(it, target, value, node)
    elif type(target) is cst.Subscript:
        containers.assign_item(it, target, value, node if node is not None else target)
    elif type(target) is cst.Tuple or type(target) is cst.List:
        _unpack(it, target, value, node)
    elif type(target) is cst.StarredElement:
        assign(it, target.value, Unknown(it.deep_origins(value)), node)


def _kept_globally(
    it: Interpreter, name: str, value: Value, target: cst.CSTNode, node: cst.BaseExpression | None
) -> Value:
    """A `global` or `nonlocal` name outlives the call: a fact when it gets a graph."""
    if not isinstance(value, Tensor) or not value.carries_graph or node is None:
        return value
    kept = it.origin(target, KEPT)
    return containers.marked(it, value, kept)


def _assign_name(
    it: Interpreter, name: str, value: Value, target: cst.CSTNode, node: cst.BaseExpression | None = None
) -> None:
    if isinstance(value, Unknown):
        value = it.with_behaviour(value, name, it.site(target))
        if isinstance(value, Unknown) and value.path:
            value = replace(value, path="")
    if name in it.frame.globals_declared:
        value = _kept_globally(it, name, value, target, node)
        it.set_global(name, value)
    it.state.bind(name, value)


def _unpack(it: Interpreter, target: cst.Tuple | cst.List, value: Value, node: cst.BaseExpression | None) -> None:
    elements = target.elements
    starred = next((i for i, e in enumerate(elements) if type(e) is cst.StarredElement), None)
    items = value.items if isinstance(value, Container) else None
    for index, element in enumerate(elements):
        if type(element) is cst.StarredElement:
            part: Value = Unknown(it.deep_origins(value)) if not isinstance(value, Tensor) else value
        elif items is not None and (
            len(items) == len(elements) if starred is None else index < min(starred, len(items))
        ):
            part = items[index]
        elif items is not None and starred is not None and index > starred and len(elements) - index <= len(items):
            part = items[len(items) - (len(elements) - index)]
        else:
            part = _part(it, value, index, node if node is not None else target)
        part_node = node
        if (type(node) is cst.Tuple or type(node) is cst.List) and len(node.elements) == len(elements):
            part_node = node.elements[index].value
        assign(it, element.value, part, part_node)


def _one_of(it: Interpreter, container: Container) -> Value:
    """What a name gets of a container that is taken apart, where it is not known which element that is."""
    value = it.element(container)
    if isinstance(value, Tensor) and value.carries_graph:
        mixed = any(isinstance(one, Tensor) and one.graph <= Graph.CUT for one in it.elements(container))
        if mixed:
            return Unknown(it.deep_origins(container))
    return value


def _part(it: Interpreter, value: Value, index: int, node: cst.BaseExpression) -> Value:
    match value:
        case Tensor():
            proof = it.proved(it.site(node), index)
            if not value.exact and value.graph is Graph.UNKNOWN and proof is not None:
                return replace(value, graph=Graph.LIVE)
            if value.exact or value.producer in torch_api.SPLITTERS:
                return replace(value, exact=True, producer="unpack")
            if value.producer == "proved" and proof is None and it.proved_parts(it.site(node)):
                graph = Graph.UNKNOWN  # a backward runs through another part: this one may be detached
                return replace(value, graph=graph, history=(), part=index, certain=False, producer="unpack")
            found = proof is not None
            producer = value.producer if index == 0 and value.producer in torch_api.RECURRENT else "unpack"
            return replace(value, exact=found, part=-1 if found else index, certain=found, producer=producer)
        case Unknown():
            made = it.origin(node, index)
            proof = it.proved(made.site, index, it.switched_as(made, value))
            if proof is not None and it.state.mode is not Mode.OFF:
                return containers.proved_tensor(it, made, value)
            if not value.origins:
                return Unknown(made=made, part_of=value.part_of)
            if value.made is not None and value.made in it.callees:
                it.callees[made] = it.callees[value.made]
            return Unknown(value.origins | {made}, made, part_of=value.part_of)
        case Container():
            return containers.entry(it, value, f"[{index}]") or _one_of(it, value)
        case Known(role="batch"):
            return iteration.part(value)
        case Known(element=element) if element is not None:
            return element
        case ModuleValue():
            return Unknown(made=it.origin(node, index))
        case _:
            return Unknown()


def assign_statement(it: Interpreter, node: cst.Assign) -> None:
    """`target = value`."""
    it.frame.assigned = node.value
    value = it.evaluate(node.value)
    for assigned in node.targets:
        target = assigned.target
        assign(it, target, _fold(it, node, target, value), node.value)


def annotated_statement(it: Interpreter, node: cst.AnnAssign) -> None:
    """`target: type = value`."""
    if node.value is None:
        return
    value = it.evaluate(node.value)
    assign(it, node.target, _fold(it, node, node.target, value), node.value)


def augmented_statement(it: Interpreter, node: cst.AugAssign) -> None:
    """`target += value`."""
    old = it.evaluate(node.target)
    value = it.evaluate(node.value)
    if isinstance(old, Container) and isinstance(node.operator, cst.AddAssign):
        _extended(it, node, old, value)
        return
    operator = type(node.operator).__name__.removesuffix("Assign")
    new = expressions.arithmetic(it, node, old, value, operator)
    if it.state.mode is Mode.OFF and isinstance(new, Tensor) and isinstance(old, Tensor):
        new = replace(new, graph=old.graph, origins=old.origins, history=old.history, carried=old.carried)
    rebind(it, node.target, new, node)


def _extended(it: Interpreter, node: cst.AugAssign, old: Container, value: Value) -> None:
    """`losses += [loss]`."""
    text = text_of(node.target)
    if isinstance(value, Container):
        for _, element, site in list(containers.entries(it, value)):
            place = site.node if site is not None and isinstance(site.node, cst.BaseExpression) else node.value
            containers.put(it, old, place, element, how="+=", site_node=node, text=text)
    else:
        element = iteration.element_of(it, value, node.value)
        containers.put(it, old, node.value, element, how="+=", site_node=node, text=text)


def rebind(it: Interpreter, target: cst.BaseExpression, new: Value, node: cst.CSTNode) -> None:
    """An in-place change of what `target` names."""
    new = _fold(it, node, target, new)
    match target:
        case cst.Name() | cst.Attribute():
            if isinstance(target, cst.Attribute):
                owner = it.evaluate(target.value)
                slot = it.slot(owner, target.attr.value)
                if slot is not None:
                    it.state.heap[slot] = new
                    it.written(slot)
                elif isinstance(owner, Unknown):
                    path = dotted_text(target)
                    if path:
                        it.state.vars[path] = new
            else:
                it.state.vars[target.value] = new
                if target.value in it.frame.globals_declared:
                    it.set_global(target.value, new)
        case cst.Subscript():
            _rebind_item(it, target, new)


def _rebind_item(it: Interpreter, target: cst.Subscript, new: Value) -> None:
    owner = it.evaluate(target.value)
    if isinstance(owner, Container):
        key = _item_key(it, target)
        it.element_keys.setdefault(owner.oid, set()).add(key)
        it.state.heap[(owner.oid, key)] = new
        it.written((owner.oid, key))
        return
    path = containers.path_with_key(target, _key_value(it, target))
    if isinstance(owner, Tensor) and (owner.exact or not path):
        containers.in_place_item(it, target, owner, new)
    else:
        if path:
            it.state.vars[path] = new


def _key_value(it: Interpreter, target: cst.Subscript) -> Value | None:
    if len(target.slice) == 1 and isinstance(target.slice[0].slice, cst.Index):
        return it.evaluate(target.slice[0].slice.value)
    return None


def _item_key(it: Interpreter, target: cst.Subscript) -> str:
    key = _key_value(it, target)
    return f"[{key.value}]" if isinstance(key, Constant) and key.known else "[]"


def key_of(it: Interpreter, target: cst.BaseExpression) -> Key | None:
    """The slot that an assignment to `target` writes."""
    match target:
        case cst.Name(value=name):
            return name
        case cst.Attribute(value=owner_node, attr=cst.Name(value=name)):
            owner = it.evaluate(owner_node)
            return it.slot(owner, name) or dotted_text(target) or None
        case cst.Subscript():
            owner = it.evaluate(target.value)
            if isinstance(owner, Container):
                return (owner.oid, _item_key(it, target))
            return containers.path_with_key(target, _key_value(it, target)) or None
    return None


def _fold(it: Interpreter, node: cst.CSTNode, target: cst.BaseExpression, value: Value) -> Value:
    """The target's new value, which may still hold the graph that it had in an earlier iteration."""
    if type(target) is cst.Tuple or type(target) is cst.List:
        return _fold_parts(it, node, target, value)
    if not isinstance(value, Tensor) or value.graph < Graph.UNKNOWN or not value.carried:
        return value
    if isinstance(target, cst.Attribute) and target.attr.value in ("data", "grad"):
        return value  # written without a graph
    key = key_of(it, target)
    found = [c for c in value.carried if c.key == key and c.loop in it.frame.loops]
    if not found or key is None:
        return value
    origin = it.origin(node, FOLDED)
    terms = value.summed | {origin} if value.producer in _SUMMING else frozenset()
    value = replace(value, origins=cap(value.origins | {origin}), summed=terms)
    return value


_SUMMING = frozenset({"Add", "Subtract", "add", "sub", "add_", "sub_"})


def _fold_parts(it: Interpreter, node: cst.CSTNode, target: cst.Tuple | cst.List, value: Value) -> Value:
    """`out, h = rnn(x, h)`: each target on its own."""
    items = value.items if isinstance(value, Container) else None
    parts = []
    for index, element in enumerate(target.elements):
        part = items[index] if items is not None and index < len(items) else value
        parts.append(_fold(it, node, element.value, part))
    if isinstance(value, Container) and items is not None and len(items) == len(parts):
        return replace(value, items=tuple(parts))
    return value


# -- simple statements -----------------------------------------------------------------------------------------------


def expression_statement(it: Interpreter, node: cst.Expr) -> None:
    """An expression as a statement."""
    it.evaluate(node.value)


def return_statement(it: Interpreter, node: cst.Return) -> None:
    """`return`."""
    value: Value = Constant(None, True) if node.value is None else it.evaluate(node.value)
    it.frame.returns.append(value)
    it.frame.return_states.append(it.state.copy())
    it.state.dead = True


def raise_statement(it: Interpreter, node: cst.Raise) -> None:
    """`raise`: the way ends here."""
    if node.exc is not None:
        it.evaluate(node.exc)
    it.state.dead = True


def assert_statement(it: Interpreter, node: cst.Assert) -> None:
    """`assert`: its test is read."""
    it.evaluate(node.test)


def delete_statement(it: Interpreter, node: cst.Del) -> None:
    """`del`: the name or attribute is gone."""
    targets = node.target.elements if isinstance(node.target, cst.Tuple) else [cst.Element(node.target)]
    for element in targets:
        match element.value:
            case cst.Name(value=name):
                it.state.vars.pop(name, None)
            case cst.Attribute() as attribute:
                slot = it.slot(it.evaluate(attribute.value), attribute.attr.value)
                if slot is not None:
                    it.state.heap.pop(slot, None)
            case cst.Subscript() as subscript:
                it.evaluate(subscript.value)


def global_statement(it: Interpreter, node: cst.Global | cst.Nonlocal) -> None:
    """`global x` and `nonlocal x`: the name outlives the calls of the function."""
    for item in node.names:
        name = item.name.value
        it.frame.globals_declared.add(name)
        value = it.written_global(name) or it.frame.closure.get(name) or it.globals.get(name)
        if value is None:
            continue
        function = it.frame.function
        if isinstance(value, Tensor) and value.carries_graph and function is not None:
            value = replace(value, carried=value.carried | {Carry(calls.call_mark(function), name)})
        it.state.vars[name] = value


def import_statement(it: Interpreter, node: cst.Import) -> None:
    """`import` inside a function."""
    for alias in node.names:
        qualified = expression_name(alias.name)
        if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
            it.state.vars[alias.asname.name.value] = External(qualified)
        else:
            first = qualified.split(".")[0]
            it.state.vars[first] = External(first)


def import_from_statement(it: Interpreter, node: cst.ImportFrom) -> None:
    """`from ... import` inside a function."""
    if isinstance(node.names, cst.ImportStar):
        return
    base = "." * len(node.relative) + (expression_name(node.module) if node.module else "")
    separator = "" if base.endswith(".") or not base else "."
    for alias in node.names:
        name = expression_name(alias.name)
        bound = alias.asname.name if alias.asname is not None else alias.name
        if isinstance(bound, cst.Name):
            it.state.vars[bound.value] = External(f"{base}{separator}{name}")


def break_statement(it: Interpreter, node: cst.Break) -> None:
    """`break`."""
    if it.frame.breaks:
        it.frame.breaks[-1].append(it.state.copy())
    it.state.dead = True


def continue_statement(it: Interpreter, node: cst.Continue) -> None:
    """`continue`."""
    if it.frame.continues:
        it.frame.continues[-1].append(it.state.copy())
    it.state.dead = True


# -- branches --------------------------------------------------------------------------------------------------------


def if_statement(it: Interpreter, node: cst.If) -> None:
    """`if`: both ways, joined."""
    switched = _switched(node.test)
    if switched is not None:
        if switched:
            execute_body(it, node.body)
        elif node.orelse is not None:
            _orelse(it, node.orelse)
        return
    test = it.evaluate(node.test)
    decided = isinstance(test, Constant) and test.known and not it.recording
    if decided and isinstance(test, Constant):
        if test.value:
            execute_body(it, node.body)
        elif node.orelse is not None:
            _orelse(it, node.orelse)
        return
    before = it.state.copy()
    tests = it.frame.tests
    it.frame.tests = (*tests, (node.test, True))
    type_tests.narrow(it, node.test, test, True)
    execute_body(it, node.body)
    after = it.state
    it.state = before
    type_tests.narrow(it, node.test, test, False)
    if node.orelse is not None:
        it.frame.tests = (*tests, (node.test, False))
        _orelse(it, node.orelse)
    it.frame.tests = tests
    it.state = join_states(after, it.state)


def _switched(test: cst.BaseExpression) -> bool | None:
    """What the source itself decides: `if False:`, `if os.path.isfile(path) and 0:`, `if use_cache or True:`."""
    if type(test) is cst.Name:  # a match is slow on these classes where the answer is no
        return {"True": True, "False": False}.get(test.value)
    if type(test) is cst.Integer:
        return {"1": True, "0": False}.get(test.value)
    if type(test) is not cst.BooleanOperation:
        return None
    sides = (_switched(test.left), _switched(test.right))
    enough = type(test.operator) is cst.Or
    if enough in sides:
        return enough
    return None if None in sides else not enough


def _orelse(it: Interpreter, node: cst.If | cst.Else) -> None:
    if isinstance(node, cst.Else):
        execute_body(it, node.body)
    else:
        if_statement(it, node)


def try_statement(it: Interpreter, node: cst.Try | cst.TryStar) -> None:
    """`try`: handlers start anywhere in the body."""
    before = it.state.copy()
    execute_body(it, node.body)
    after_body = it.state
    if node.orelse is not None and not after_body.dead:
        execute_body(it, node.orelse.body)
        after_body = it.state
    ends = after_body
    start = join_states(before, after_body)
    for handler in node.handlers:
        it.state = start.copy()
        it.state.dead = False
        outer, it.frame.handling = it.frame.handling, True
        execute_body(it, handler.body)
        it.frame.handling = outer
        ends = join_states(ends, it.state)
    it.state = ends
    if node.finalbody is not None:
        dead = it.state.dead
        it.state.dead = False
        execute_body(it, node.finalbody.body)
        it.state.dead = it.state.dead or dead


def match_statement(it: Interpreter, node: cst.Match) -> None:
    """`match`: every case, joined."""
    it.evaluate(node.subject)
    before = it.state
    result: State | None = before.copy()
    for case in node.cases:
        it.state = before.copy()
        for name in _captured(case.pattern):
            it.state.bind(name, Unknown())
        if case.guard is not None:
            it.evaluate(case.guard)
        execute_body(it, case.body)
        result = it.state if result is None else join_states(result, it.state)
    it.state = result if result is not None else before


def _captured(pattern: cst.CSTNode) -> list[str]:
    found: list[str] = []
    if isinstance(pattern, cst.MatchAs | cst.MatchStar) and isinstance(pattern.name, cst.Name):
        found.append(pattern.name.value)
    for child in children(pattern):
        found += _captured(child)
    return found


def with_statement(it: Interpreter, node: cst.With) -> None:
    """`with`: its contexts may set the gradient mode."""
    mode = it.state.mode
    for item in node.items:
        value = it.evaluate(item.item)
        it.state.mode = it.state.mode if isinstance(value, GradMode) else mode_unless_set(it, mode)
        gradient_modes.enter(it, value, item.item)
        if item.asname is not None:
            assign(it, item.asname.name, _entered(value), item.item)
    execute_body(it, node.body)
    if not it.state.dead:
        it.state.mode = mode


def _entered(context: Value) -> Value:
    """What entering a context gives: itself, where nothing else is known."""
    match context:
        case Known(role="context manager", element=yielded):
            return yielded or Unknown()
        case GradMode():
            return Unknown()
    return context


def mode_unless_set(it: Interpreter, mode: Mode) -> Mode:
    """The mode after evaluating a context expression (an earlier item of the same `with` may have changed it)."""
    return it.state.mode


# -- loops -----------------------------------------------------------------------------------------------------------


def for_statement(it: Interpreter, node: cst.For) -> None:
    """`for`."""
    iterable = it.evaluate(node.iter)

    def head() -> None:
        element = iteration.element_of(it, iterable, node.iter)
        assign(it, node.target, element, node.iter)

    each = entrywise.target_of(node)
    if each is not None:
        it.written_each[each] = None
    _loop(it, node, head, node.body, node.orelse)
    if each is not None:
        entrywise.replaced(it, each)


def while_statement(it: Interpreter, node: cst.While) -> None:
    """`while`."""

    def head() -> None:
        it.evaluate(node.test)

    _loop(it, node, head, node.body, node.orelse)


def _loop(
    it: Interpreter,
    node: cst.For | cst.While,
    head: Callable[[], None],
    body: cst.BaseSuite,
    orelse: cst.Else | None,
) -> None:
    frame = it.frame
    mark = LoopMark(node, site=it.site(node))
    entry = it.state
    loops = frame.loops
    frame.loops = (*loops, mark)
    endless = isinstance(node, cst.While) and isinstance(node.test, cst.Name) and node.test.value == "True"
    try:
        # Of an outer loop's first round only what it carries over counts: loops within it are walked once there, and
        # twice in its second, so that the work grows with their depth, and not with two to its power.
        repeated = len(frame.loops) <= _MAX_ROUNDS_DEPTH + 2 and not it.skimming
        it.skimming |= repeated
        try:
            end, breaks = _round(it, entry.copy(), head, body)
        finally:
            it.skimming &= not repeated
        if repeated:
            again = _carry(entry, end, mark)
            if again is None and it.skimmed:
                again = entry.copy()  # nothing is carried over here, but perhaps in a loop within
            it.skimmed = False
            if again is not None:
                second, more = _round(it, again, head, body)
                breaks += more
                end = join_states(end, second)
    finally:
        frame.loops = loops
    if it.skimming:
        it.skimmed = True
    exit_state = State({}, Heap(), entry.mode, dead=True) if endless else join_states(entry, end)
    for state in breaks:
        exit_state = join_states(exit_state, state)
    it.state = exit_state
    if orelse is not None and not it.state.dead:
        execute_body(it, orelse.body)


def _round(it: Interpreter, state: State, head: Callable[[], None], body: cst.BaseSuite) -> tuple[State, list[State]]:
    """One walk of a loop's body: the state at its end, and those that left it by `break`."""
    frame = it.frame
    it.state = state
    frame.breaks.append([])
    frame.continues.append([])
    try:
        head()
        execute_body(it, body)
    finally:
        breaks = frame.breaks.pop()
        continues = frame.continues.pop()
    end = it.state
    for other in continues:
        end = join_states(end, other)
    return end, breaks


def _carry(entry: State, end: State, mark: LoopMark) -> State | None:
    """The state at the head of the second iteration, with what the first left marked; None if nothing changed."""
    if end.dead:
        return None
    state = join_states(entry, end).copy()
    keys: list[Key] = [name for name, value in end.vars.items() if entry.vars.get(name) is not value]
    keys += end.heap.changed_since(entry.heap)
    for key in keys:
        value, ended = state.get(key), end.get(key)
        if not isinstance(ended, Tensor) or not ended.carries_graph:
            continue
        leaf = isinstance(value, Tensor) and value.producer in ("requires_grad", "parameter")
        if isinstance(value, Tensor) and value.carries_graph and not leaf:
            state.put(key, replace(value, carried=value.carried | {Carry(mark, key)}))
    return state if keys or len(entry.vars) != len(end.vars) else None


# -- definitions -----------------------------------------------------------------------------------------------------


def function_statement(it: Interpreter, node: cst.FunctionDef) -> None:
    """A function defined within another (or conditionally at module level)."""
    name = node.name.value
    function = it.local_functions.get(node)
    if function is None:
        function = Function(name, it.frame.piece, it.program, None, it.frame.function, _node=node)
        it.local_functions[node] = function
    if it.frame.function is None and name not in it.program.functions:
        it.program.functions[name] = function
    value = FunctionValue(function, closure=())
    it.state.bind(name, value)
    it.nested[function] = _closed_over(it, function, {**it.frame.closure, **it.state.vars})
    if it.recording and it.frame.self_name and it.frame.self_value is not None:
        it.nested[function][it.frame.self_name] = it.frame.self_value
    for decorator in node.decorators:
        it.evaluate(decorator.decorator)


def _closed_over(it: Interpreter, function: Function, names: dict[str, Value]) -> dict[str, Value]:
    """What a nested function sees: an argument that is one function in one call and another in the next is unknown."""
    earlier = it.nested.get(function, {}) if function in it.enclosed else {}
    it.enclosed.add(function)
    parent = function.parent
    if not earlier or parent is None:
        return names
    params = parent.node.params
    for parameter in (*params.posonly_params, *params.params, *params.kwonly_params):
        name = parameter.name.value
        old, new = earlier.get(name), names.get(name)
        if old != new and (isinstance(old, _CALLED) or isinstance(new, _CALLED)):
            names[name] = Unknown(path=name)
    return names


_CALLED = FunctionValue | Instance | Partial  # of the project: what calling them does is looked into


def class_statement(it: Interpreter, node: cst.ClassDef) -> None:
    """A class defined within a function or condition."""
    name = node.name.value
    info: ClassInfo | None = it.local_classes.get(node)
    if info is None:
        known = it.program.classes.get(name)
        info = known if known is not None and known.local is node else it.program.add_local_class(node, it.frame.piece)
        it.local_classes[node] = info
    it.state.bind(name, ClassValue(info))
