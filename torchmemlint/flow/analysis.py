"""From the text of a file to its facts: which functions are walked, in which order, with which arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import libcst as cst

from torchmemlint.flow import (
    annotated,
    calls,
    closing,
    configurations,
    defaults,
    gradient_modes,
    inheritance,
    modules,
    relevance,
    statements,
    worker_counts,
)
from torchmemlint.flow.callers import Callers
from torchmemlint.flow.dispatch import EVALUATORS, EXECUTORS
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.heap import Heap
from torchmemlint.flow.interpreter import CallRecord, Frame, Interpreter
from torchmemlint.flow.program import Function, Program
from torchmemlint.flow.project import Project
from torchmemlint.flow.relevance import Relevance
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.state import State
from torchmemlint.flow.values import (
    Carry,
    Constant,
    Container,
    Graph,
    Instance,
    Mode,
    ModuleValue,
    Step,
    Tensor,
    Unknown,
    Value,
)
from torchmemlint.knowledge import torch_api
from torchmemlint.knowledge.contracts import Contracts
from torchmemlint.syntax.outline import Outline, walk
from torchmemlint.syntax.source_module import Piece, SourceModule

MAX_PASSES = 3


@dataclass(slots=True)
class Analysis:
    """A file that was analysed: its facts, and what found them out."""

    facts: FileFacts
    interpreter: Interpreter
    relevant: Relevance | None = None  # None: there was nothing to look at

    def walk(self, function: Function) -> None:
        """A function's own analysis, and that of those defined within it."""
        it = self.interpreter
        within = {f for f in it.local_functions.values() if function in f.parents()}
        _walk_function(it, function)
        _walk_nested(it, set(it.local_functions.values()) - within)

    def finish(self) -> None:
        """What the walks took down is complete."""
        self.facts.finish(self.interpreter)
        worker_counts.settle(self.facts)


def analyse(
    source: SourceModule,
    project: Project | None = None,
    promised: Contracts | None = None,
    pulse: Callable[[], None] | None = None,
) -> FileFacts:
    """The facts of one file, as of `analysis`."""
    return analysis(source, project, promised, pulse).facts


def analysis(
    source: SourceModule,
    project: Project | None = None,
    promised: Contracts | None = None,
    pulse: Callable[[], None] | None = None,
) -> Analysis:
    """Look at one file, with the other files of its project for context.

    `promised`: what is known of frameworks, where it is not the project's or the linter's own. `pulse` is called again
    and again on the way, and may end it by raising.
    """
    program = Program(source, project, promised)
    it = Interpreter(program, FileFacts(source.path, source, program))
    if not source.pieces or program.is_of_another_framework:
        return Analysis(it.facts, it)
    it.evaluators = EVALUATORS
    it.executors = EXECUTORS
    it.body_executor = statements.execute_body
    if pulse is not None:
        it.pulse = pulse
    relevant = relevance.find(program)
    it.follows_imports = relevant.drives and not program.is_test
    it.callers = Callers(program)
    if not relevant.drives:
        it.constructors = frozenset(function for function in relevant.functions if function.name == "__init__")
    it.computing = relevant.computing
    it.called_out_of_view = relevant.called_out_of_view
    for name in relevant.called_out_of_view:
        callee = program.find_function(name)
        if callee is not None:
            it.records[callee] = CallRecord({Mode.ON})
    for number in range(MAX_PASSES):
        it.start_pass()
        _walk_module(it, relevant.functions)
        inheritance.construct(it, relevant.functions)
        walked: set[Function] = set()
        order = _callers_first(relevant.functions)
        if it.called_last is not None:
            order.sort(key=lambda f: f is not it.called_last)  # what constructors are given, it says
        for function in order:
            _walk_function(it, function)
            walked.add(function)
        _walk_nested(it, walked)
        ahead = number == 0 and it.called_last is not None and order[1:2] and order[1].name == "__init__"
        if not it.is_outdated(states=relevant.drives) and not ahead:
            break  # unless it was walked ahead of constructors, whose objects it works on
    it.facts.callers = it.callers
    done = Analysis(it.facts, it, relevant)
    done.finish()
    return done


def _callers_first(functions: Sequence[Function]) -> list[Function]:
    """Functions ordered so that, cycles aside, a caller is walked before what it calls."""
    by_name: dict[str, list[Function]] = {}
    for function in functions:
        by_name.setdefault(function.name, []).append(function)
    callees: dict[Function, list[Function]] = {}
    for function in functions:
        called: list[Function] = []
        for name in sorted(function.outline.calls & by_name.keys()):
            called += [f for f in by_name[name] if f is not function]
        callees[function] = called
    found: dict[Function, None] = {}
    for function in reversed(functions):
        _callees_first(function, callees, found, set())
    order = list(found)
    order.reverse()
    return sorted(order, key=_turn)


def _turn(function: Function) -> int:
    """Constructors come first, then methods that freeze: what both leave behind, others work with."""
    if function.name == "__init__":
        return 0
    freezes = not function.outline.names.isdisjoint(torch_api.ASKING_FOR_GRADIENTS)
    return 1 if freezes and function.cls is not None and function.name != "forward" else 2


def _callees_first(
    function: Function, callees: dict[Function, list[Function]], order: dict[Function, None], begun: set[Function]
) -> None:
    """Put into `order` all that is reached from `function`, then itself."""
    if function in order or function in begun:
        return
    begun.add(function)
    for callee in callees[function]:
        _callees_first(callee, callees, order, begun)
    order[function] = None


def _walk_module(it: Interpreter, functions: Sequence[Function]) -> None:
    """The module level, top to bottom; `functions` have an analysis of their own."""
    it.last_call = closing.call(it.program, functions)
    state = State({}, Heap(), Mode.ON)
    it.state = state
    it.walking = None
    frame = Frame(None, it.program.source.pieces[0], _module_outline(it.program), ())
    it.frame = frame
    for piece in it.program.source.pieces:
        if piece.kind != "code" or _without_effect(piece):
            continue
        frame.piece = piece
        statements.execute_body(it, piece.module.body)
        if it.state.dead:
            break
        it.globals.update({k: v for k, v in it.state.vars.items() if "." not in k})
    it.module_mode = it.state.mode
    it.remember(it.state.heap, everything=True)


def _module_outline(program: Program) -> Outline:
    outline = Outline()
    for piece in program.source.pieces:
        if piece.kind == "code" and not _without_effect(piece):
            outline.merge(program.outline_of(piece))
    return outline


def _without_effect(piece: Piece) -> bool:
    """Imports, docstrings and tables: nothing that the analysis would look at."""
    match piece.outline:
        case ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign() | ast.AnnAssign() if len(piece.text) > 2_000:
            return True
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) if len(piece.text) > 400:
            return _is_table(value)
    return False


def _is_table(value: ast.expr) -> bool:
    """`dict(a=_entry(1), b=_entry(MEAN))`, `register({"a": _entry(1), ...})`: nothing that works on anything."""
    match value:
        case ast.Call(func=ast.Name(), args=[ast.Dict() | ast.List() | ast.Tuple() as value], keywords=[]):
            pass
        case ast.Dict() | ast.List() | ast.Tuple() | ast.Call(func=ast.Name(id="dict")):
            pass
        case _:
            return False
    nodes = list(walk(value))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    if any(not isinstance(function, ast.Name) or function.id[:1].isupper() for function in called):
        return False
    functions = {id(function) for function in called}
    return all(node.id.isupper() for node in nodes if isinstance(node, ast.Name) and id(node) not in functions)


def _walk_nested(it: Interpreter, walked: set[Function]) -> None:
    """Functions defined within functions, with what they close over; hooks with what hooks are given."""
    for _ in range(3):
        local = (f for f in it.local_functions.values() if f.program is it.main)
        pending = [f for f in local if f not in walked and f in it.nested]
        if not pending:
            return
        for function in pending:
            _walk_function(it, function)
            walked.add(function)


def _walk_function(it: Interpreter, function: Function) -> None:
    """A function's own analysis: facts are taken down."""
    before = it.facts.extent()
    it.walking = function
    _enter_function(it, function)
    it.taken_down[function] = it.facts.since(before)


def _enter_function(it: Interpreter, function: Function) -> None:
    record = it.records.get(function)
    modes = set(record.modes) if record is not None else set()
    if gradient_modes.trained_by_framework(function):
        modes.add(Mode.ON)
    mode = it.module_mode
    if modes:
        mode = Mode.ON if Mode.ON in modes else Mode.UNKNOWN if Mode.UNKNOWN in modes else Mode.OFF
    registrations = it.hooked.get(function)
    if registrations and all(registered is Mode.OFF for *_, registered in registrations):
        mode = Mode.OFF  # the hooked modules run with gradients off
    if gradient_modes.guarded_by_framework(function):
        mode = Mode.OFF
    self_value = _self_value(it, function)
    closure = it.nested.get(function, {})
    frame = Frame(
        function,
        function.piece,
        function.outline,
        () if function.name == "__init__" else (calls.call_mark(function),),
        self_value=self_value,
        self_name=calls.self_name(function) if self_value is not None else "",
        closure=closure,
    )
    it.frame = frame
    mode = gradient_modes.mode_of_function(it, function, mode)
    heap = Heap(it.lasting_heap.copy(), asked=it.asked.slots)
    for slot in it.writes.get(function, ()):
        value = heap.get(slot)
        least = Graph.UNKNOWN if function.name == "forward" else Graph.LIVE
        if isinstance(value, Tensor) and value.graph >= least and frame.loops:
            heap[slot] = replace(value, carried=value.carried | {Carry(frame.loops[0], slot)})
    it.state = State({}, heap, mode)
    it.steps_before += it.steps
    it.steps = it.steps_beyond = 0
    _bind_parameters(it, function, self_value)
    it.active.append(function)
    try:
        statements.execute_body(it, function.node.body)
    finally:
        it.active.pop()
    _leave(it, function, frame)


def _leave(it: Interpreter, function: Function, frame: Frame) -> None:
    """What the walked function leaves behind, and where its results go."""
    it.returned.setdefault(function, []).extend((*frame.returns, *frame.yields))
    states = [*frame.return_states, it.state]
    for state in states:
        it.remember(state.heap, everything=function.name == "__init__" or function is it.called_last)
    it.asked.leave()


def _called_out_of_view(it: Interpreter, function: Function) -> bool:
    """Is it called by functions that are not walked?"""
    return function.cls is None and function.parent is None and function.name in it.called_out_of_view


def _self_value(it: Interpreter, function: Function) -> Value | None:
    cls = function.cls
    if cls is None or "staticmethod" in function.decorator_texts():
        return None
    if cls.is_module:
        return ModuleValue(cls.oid, cls=cls, why=None, parameters=modules.own_parameters(it, cls))
    return Instance(cls.oid, cls)


def _bind_parameters(it: Interpreter, function: Function, self_value: Value | None) -> None:
    params = function.node.params
    record = it.records.get(function)
    hooked = it.hooked.get(function)
    parameters = [*params.posonly_params, *params.params, *params.kwonly_params]
    for index, parameter in enumerate(parameters):
        name = parameter.name.value
        if index == 0 and self_value is not None and "classmethod" not in function.decorator_texts():
            it.state.vars[name] = self_value
            continue
        value: Value | None = record.arguments.get(name) if record is not None else None
        if isinstance(value, Constant) and _called_out_of_view(it, function):
            value = None  # others may give something else
        if isinstance(value, Tensor) and value.carries_graph:
            value = replace(value, origins=value.origins | {it.origin(parameter)})
        if value is None:
            value = configurations.option(function, name)
        if value is None or isinstance(value, Unknown):
            declared = annotated.value_of(it, parameter)
            if declared is not None:
                value = declared
        if value is None:
            value = defaults.layer_class(it, function, parameter)
        if value is None:
            value = Unknown(frozenset({it.origin(parameter)}), it.origin(parameter), name)
        if isinstance(value, Unknown):
            site = it.proved(it.site(parameter))
            if site is not None and not isinstance(parameter.default, cst.Name):
                value = Tensor(
                    Graph.LIVE,
                    frozenset({it.origin(parameter)}),
                    (Step(it.site(parameter), "carries a graph: a backward runs through it"),),
                    made=it.site(parameter),
                )
            else:
                value = it.with_behaviour(replace(value, path=name), name, it.site(parameter))
        it.state.vars[name] = value
    for star in (params.star_arg, params.star_kwarg):
        if type(star) is cst.Param:
            given = record.arguments.get(star.name.value) if record is not None else None
            known = star is params.star_kwarg and _holds_settings(it, given) and not _called_out_of_view(it, function)
            unknown = Unknown(made=it.origin(star), path=star.name.value)
            it.state.vars[star.name.value] = given if known and given is not None else unknown
    if hooked:
        taken = [p for p in (*params.posonly_params, *params.params) if p.default is None]
        _bind_hook(it, taken, function, self_value is not None)


def _holds_settings(it: Interpreter, keywords: Value | None) -> bool:
    """Are the keywords that callers give all known by name, and what they give no tensors?"""
    if not isinstance(keywords, Container) or keywords.others:
        return False
    entries = {key: it.lasting((keywords.oid, key)) for key in it.element_keys.get(keywords.oid, ())}
    return "[]" not in entries and not any(isinstance(value, Tensor | Container) for value in entries.values())


def _bind_hook(it: Interpreter, parameters: list[cst.Param], function: Function, is_method: bool) -> None:
    """`hook(module, inputs, output)`: what a registered hook is called with."""
    given, _, kind, _ = it.hooked[function][0]
    rest = parameters[1:] if is_method else parameters
    for position, value in given:
        if position.isdigit() and int(position) < len(rest):
            it.state.vars[rest[int(position)].name.value] = value
    rest = rest[sum(position.isdigit() for position, _ in given) :]
    if it.state.mode is not Mode.ON or kind in (
        "register_hook",
        "register_full_backward_hook",
        "register_backward_hook",
    ):
        return
    for parameter in rest[-1:] if kind == "register_forward_pre_hook" else rest[1:3]:
        it.state.vars[parameter.name.value] = modules.hook_tensor(it, parameter)
