"""The abstract interpreter: one walk per function that turns code into facts.

This module holds what the walk shares: frames, the state, identities, uses and proofs. How each kind of syntax is
read stands beside it: `expressions`, `statements`, `attributes`, `calls` and the files named after what is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchmemlint.flow import building
from torchmemlint.flow.asking import Asked, strength
from torchmemlint.flow.facts import FileFacts, Noted, Scope
from torchmemlint.flow.heap import Heap, Slot
from torchmemlint.flow.program import ClassInfo, Function, Program
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.state import State, join_states
from torchmemlint.flow.values import (
    ClassValue,
    Constant,
    Container,
    External,
    Flag,
    FunctionValue,
    Graph,
    Instance,
    Known,
    LoopMark,
    Loops,
    Mode,
    ModuleValue,
    Origin,
    Step,
    Switches,
    Tensor,
    Unknown,
    Value,
    cap,
    join,
    origins_of,
)
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import behaviour
from torchmemlint.syntax.outline import Outline
from torchmemlint.syntax.source_module import Piece, Site

if TYPE_CHECKING:
    from torchmemlint.flow.callers import Callers
    from torchmemlint.flow.properties import Reading

MAX_DEPTH = 5  # nested calls that are followed into the project
MAX_STEPS = 6_000  # statements of callees looked at on behalf of one function
MAX_DEPTH_ABROAD = 3  # of these calls, in other files
MAX_DEPTH_BUILDING = 1  # where a module's constructor calls them: what matters is done at once
MAX_STEPS_ABROAD = 500  # statements of other files looked at on behalf of one file, in each pass
MAX_STEPS_OF_FILE = 60_000  # after so many, a function gets a tenth of that: one file costs seconds, not minutes
MAX_ELEMENT_DEPTH = 4  # containers within containers
FOLDED = -2  # index of the origin of a value folded over iterations
PIPELINE = "diffusers.DiffusionPipeline"
KEPT = -3  # index of the origin of a value put where it outlives the iteration or call


@immutable()
class Entrance:
    """A call of the analysed file that leads into another one: facts about what happens there are noted here."""

    site: Site
    scope: Scope
    callee: str  # source text of what is called
    arguments: tuple[tuple[Site, Value, frozenset[Origin]], ...]  # with the origins of all that is in each

    def argument(self, value: Tensor) -> tuple[Site, bool] | None:
        """The argument that a value in the callee is, or is computed from, and whether it is a tensor itself."""
        for site, given, origins in self.arguments:
            if isinstance(given, Tensor) and origins and origins <= value.origins:
                return site, True
        for site, given, origins in self.arguments:
            if not isinstance(given, Tensor) and origins & value.origins:
                return site, False
        return None


@dataclass(eq=False, slots=True)
class Frame:
    """One function (or the module level) being walked."""

    function: Function | None
    piece: Piece
    outline: Outline
    loops: Loops
    path: tuple[int, ...] = ()  # () in a function's own analysis, the call chain where it is inlined
    self_value: Value | None = None
    self_name: str = ""
    closure: dict[str, Value] = field(default_factory=dict)
    recording: bool = True
    entrance: Entrance | None = None  # where a function of another file is followed
    statement: Site | None = None  # the statement being executed
    assigned: cst.BaseExpression | None = None  # the value of the last assignment
    returns: list[Value] = field(default_factory=list)
    return_states: list[State] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    breaks: list[list[State]] = field(default_factory=list)
    continues: list[list[State]] = field(default_factory=list)
    globals_declared: set[str] = field(default_factory=set)
    tests: tuple[tuple[cst.BaseExpression, bool], ...] = ()  # `if` conditions around, False in their else branches
    handling: bool = False  # is an `except` clause being walked?

    @property
    def leads_abroad(self) -> bool:
        """Did a call of the analysed file lead to a function of another one, which this is or was called by?"""
        return self.entrance is not None

    def is_abroad(self, main: Program) -> bool:
        """Was it come to from the file that is analysed, and stands in another?"""
        return bool(self.path) and self.function is not None and self.function.program is not main


@dataclass(slots=True)
class CallRecord:
    """How a function was called from the code in view."""

    modes: set[Mode] = field(default_factory=set)
    arguments: dict[str, Value] = field(default_factory=dict)
    sites: dict[Site, Mode] = field(default_factory=dict)


class Interpreter:
    """Walks the functions of one file."""

    def __init__(self, program: Program, facts: FileFacts) -> None:
        self.main = program  # of the file that is analysed
        self.contracts = program.contracts
        self.facts = facts
        self.state = State({}, Heap(), Mode.ON)
        self.frame = Frame(None, program.source.pieces[0] if program.source.pieces else _NO_PIECE, Outline(), ())
        self.frames: list[Frame] = []
        self.globals: dict[str, Value] = {}
        self.lasting_heap: dict[tuple[int, str], Value] = {}  # what objects hold between calls
        self.asked = Asked()  # in this pass
        self.records: dict[Function, CallRecord] = {}
        self.nested: dict[Function, dict[str, Value]] = {}
        self.taken_down: dict[Function, Noted] = {}  # by functions' own analyses
        self.walking: Function | None = None  # whose own analysis it is
        self.abstract = 0  # calls of methods that subclasses replace
        self.enclosed: set[Function] = set()  # nested functions whose enclosing function was walked in this pass
        self.proofs: dict[tuple[Site, int], Site] = {}  # value's identity -> the backward that proved its graph
        self.switches: dict[Origin, Switches] = {}  # calls that are not understood: booleans that they were given last
        self.leaves: dict[Origin, Switches] = {}  # of these, those that were asked for a leaf, `requires_grad=True`
        self.proven_with: dict[tuple[Site, int], dict[Switches, Site]] = {}  # those given where a backward proves it
        self.effects: dict[Function | None, set[str]] = {}  # "backward", "step", ... by function
        self.element_keys: dict[int, set[str]] = {}  # container -> its slots, ever
        self.entry_sites: dict[tuple[int, str], Site] = {}  # slot -> the expression that fills it
        self.written_each: dict[cst.Subscript, Value | None] = {}  # see flow.entrywise
        self.readings: dict[tuple[Function, int, Mode], Reading] = {}  # of properties, in this pass
        self.assigned: Counter[tuple[int, str]] = Counter()  # how often slots were
        self.writes: dict[Function | None, set[tuple[int, str]]] = {}  # heap slots that functions assign
        self.hooked: dict[
            Function, list[tuple[tuple[tuple[str, Value], ...], Site, str, Mode]]
        ] = {}  # functions registered as hooks
        self.called_back: set[Function] = set()  # handed to code that is not understood
        self.returned: dict[Function, list[Value]] = {}
        self.called_out_of_view: Set[str] = frozenset()  # functions that are called by others which are not walked
        self.context_modes: dict[int, Mode] = {}  # the project's own context managers
        self.proved_tensors: set[Site] = set()  # what hooks are given, shown to be tensors by what is done with it
        self.indirect: set[tuple[Site, int]] = set()  # proofs of a call by what became of its result
        self.forward_origins: set[Origin] = set()  # calls of modules
        self.weak_origins: set[Origin] = set()  # calls of variables and attributes, which may be modules
        self.callees: dict[Origin, str] = {}  # calls that are not understood: the source text of what is called
        self.entries: dict[Origin, tuple[str, ...]] = {}  # parts of what calls returned: name of the callee, and keys
        self._roots: dict[Origin, Origin] = {}  # entries -> the call
        self._entry_at: dict[tuple[Origin, str], Origin] = {}
        self.spent_log: list[tuple[Origin, Site]] = []  # backwards so far, and what they freed
        self.left_in: set[Mode] = set()  # the gradient modes at the ends of the function that was walked last
        self.forwards: list[Site | None] = []  # forward passes so far: where their module was put into evaluation mode
        self.yield_modes: list[list[Mode]] = []  # modes at the yields of context managers being walked
        self.parser_arguments: dict[int, set[str]] = {}
        self.local_functions: dict[cst.FunctionDef, Function] = {}
        self.local_classes: dict[cst.ClassDef, ClassInfo] = {}
        self.global_writes: dict[str, Value] = {}  # what functions assign to `global` names
        self.module_mode = Mode.ON
        self.last_call: cst.Call | None = None  # what the module level ends with: see flow.closing
        self.called_last: Function | None = None  # by it
        self.active: list[Function] = []
        self.body_executor: Callable[[Interpreter, cst.BaseSuite], None] = lambda it, body: None
        self.skimming = False  # is an outer loop walked for the first time? Loops within it are walked once, then
        self.skimmed = False  # was one of these met?
        self.constructors: Set[Function] = frozenset()  # of modules: walked for their class, not for each object
        self.computing: Set[Function] = frozenset()  # forward passes that need not be followed: they only compute
        self.foreign_objects: set[int] = set()  # instances of other files' classes
        self.callers: Callers | None = None  # of the file's functions, in the whole project
        self.follows_imports = True  # are the other files of the project looked into (but for base classes)?
        self.steps = 0
        self.steps_abroad = 0  # in functions of other files
        self.steps_beyond = 0  # in those that the running function comes to by way of others of this file
        self.computed = 0  # forward and backward passes so far, in whatever gradient mode
        self.steps_before = 0  # of the functions walked so far
        self.order = 0
        self._sites: dict[int, Site] = {}  # by the node's identity: nodes hash slowly, and sites keep them alive
        self._externals: dict[tuple[Program, str], Value] = {}
        self._roles: dict[tuple[Function | None, str], str | None] = {}
        self._oids: dict[object, int] = {}
        self.evaluators: dict[type, Callable[[Interpreter, Any], Value]] = {}
        self.executors: dict[type, Callable[[Interpreter, Any], None]] = {}
        self.pulse: Callable[[], None] = lambda: None  # called with each suite; what it raises ends the analysis

    @property
    def program(self) -> Program:
        """The file that the running function belongs to."""
        function = self.frame.function
        return function.program if function is not None else self.main

    # -- identity ------------------------------------------------------------------------------------------------

    def site(self, node: cst.CSTNode) -> Site:
        """The node as a place in the file."""
        site = self._sites.get(id(node))
        if site is None:
            site = self._sites[id(node)] = Site(self.frame.piece, node, len(self._sites))
        return site

    def oid(self, *key: object) -> int:
        """The identity of the object made at `key`, the same whenever the walk comes by."""
        found = self._oids.get(key)
        if found is None:
            found = self._oids[key] = self.main.new_oid()
        return found

    def origin(self, node: cst.CSTNode, index: int = -1) -> Origin:
        """A graph-making place in the running frame."""
        return Origin(self.site(node), index)

    def entry(self, node: cst.CSTNode, owner: Unknown, key: str) -> Origin:
        """`owner[key]` or `owner.key`: of what a call returned, one and the same wherever it is read."""
        made = owner.made
        if made is None:
            return self.origin(node)
        above = self.entries.get(made)
        if above is None:
            name = _callee_name(made.site.node)
            if not name:
                return self.origin(node)
            above = (name,)
        found = self._entry_at.setdefault((made, key), self.origin(node))
        self.entries.setdefault(found, (*above, key))
        self._roots.setdefault(found, self._roots.get(made, made))
        return found

    @property
    def scope(self) -> Scope:
        """Where the walk is, for facts."""
        return Scope(self.frame.function, self.frame.loops, self.state.mode)

    @property
    def recording(self) -> bool:
        """Are facts taken down (and not only values computed)?"""
        return self.frame.recording

    # -- evaluation ----------------------------------------------------------------------------------------------

    def evaluate(self, node: cst.BaseExpression) -> Value:
        """The abstract value of an expression."""
        evaluator = self.evaluators.get(type(node))
        value = evaluator(self, node) if evaluator else Unknown()
        return value

    def execute(self, node: cst.CSTNode) -> None:
        """Walk one statement."""
        executor = self.executors.get(type(node))
        if executor is not None and not self.state.dead:
            executor(self, node)

    def tick(self) -> int:
        """The next position in the order of evaluation."""
        self.order += 1
        return self.order

    def execute_body(self, body: cst.BaseSuite) -> None:
        """Walk a suite."""
        self.body_executor(self, body)

    def wants(self, function: Function) -> bool:
        """Should a call of this function be followed?"""
        if function.program is not self.main and not self._wants_foreign(function):
            return False
        if function in self.computing and self._is_in_layer():
            return False
        return function not in self.active and len(self.frames) < MAX_DEPTH and self.steps <= self._most_steps()

    def _wants_foreign(self, function: Function) -> bool:
        """In other files, what meters, helpers and loops do is looked into, and not how layers are made."""
        abroad = sum(frame.is_abroad(self.main) for frame in (*self.frames, self.frame))
        if abroad >= MAX_DEPTH_ABROAD or self.steps_abroad > MAX_STEPS_ABROAD or self.steps_beyond > MAX_STEPS_ABROAD:
            return False
        if self._is_building() and (abroad >= MAX_DEPTH_BUILDING or not building.has_a_say(function, self.main)):
            return False
        cls = function.cls
        return cls is None or not cls.is_module or function.name not in ("__init__", "forward")

    def _is_in_layer(self) -> bool:
        """Is a module's method being walked?"""
        function = self.frame.function
        return function is not None and function.cls is not None and function.cls.is_module

    def _is_building(self) -> bool:
        """Is a module being made?"""
        functions = (frame.function for frame in (*self.frames, self.frame))
        return any(f is not None and f.name == "__init__" and f.cls is not None and f.cls.is_module for f in functions)

    def _most_steps(self) -> int:
        return MAX_STEPS if self.steps_before <= MAX_STEPS_OF_FILE else MAX_STEPS // 10

    # -- passes --------------------------------------------------------------------------------------------------

    def start_pass(self) -> None:
        """Forget the facts of an earlier pass; keep what it proved and what objects hold between calls."""
        self.facts = FileFacts(self.facts.path, self.facts.source, self.main)
        self.taken_down = {}
        self.effects = {}
        self.enclosed = set()
        self.readings = {}
        self.steps_abroad = self.steps_beyond = 0
        self.returned = {}
        self.globals = {}
        self.called_last = None
        self.asked.clear()

    def is_outdated(self, *, states: bool) -> bool:
        """Was something found out after it was asked for? Only then another pass comes to more.

        `states`: do values that one call leaves to the next matter?
        """
        asked = self.asked
        if asked.flags or asked.other:
            return True
        if not states:
            return False
        if any(strength(self.lasting_heap.get(slot)) for slot in asked.rewritten):
            return True
        written = set().union(*self.writes.values()) if self.writes and asked.learned else set()
        if not asked.learned.isdisjoint(written):
            return True
        live = [slot for slot in asked.learned if slot[1].startswith("[") and strength(self.lasting_heap[slot]) > 1]
        return bool(live) and not self._lasting_containers().isdisjoint(oid for oid, _ in live)

    def learn(self, slot: Slot, value: Value) -> None:
        """What an object holds between calls: this, or what is known already."""
        known = self.lasting_heap.get(slot)
        self.lasting_heap[slot] = now = value if known is None else join(known, value)
        self.asked.learn(slot, known, now, self.walking)

    def lasting(self, slot: Slot) -> Value | None:
        """What an object holds between calls, as far as it is known."""
        self.asked.slots.add(slot)
        return self.lasting_heap.get(slot)

    def _lasting_containers(self) -> set[int]:
        """Containers that one walk leaves to another: in attributes, globals, closures, arguments, or in such ones."""
        if not self.element_keys:
            return set()
        pending: list[Value] = [v for slot, v in self.lasting_heap.items() if not slot[1].startswith("[")]
        pending += self.globals.values()
        pending += self.global_writes.values()
        for closure in self.nested.values():
            pending += closure.values()
        for record in self.records.values():
            pending += record.arguments.values()
        pending += (value for hooks in self.hooked.values() for given, *_ in hooks for _, value in given)
        found: set[int] = set()
        while pending:
            value = pending.pop()
            if isinstance(value, Container) and value.oid not in found:
                found.add(value.oid)
                pending += value.others
                pending += value.items or ()
                for key in self.element_keys.get(value.oid, ()):
                    element = self.lasting_heap.get((value.oid, key))
                    if element is not None:
                        pending.append(element)
            elif isinstance(value, Known) and value.element is not None:
                pending.append(value.element)
        return found

    def remember(self, heap: Heap, *, everything: bool) -> None:
        """Keep what outlives the walk of a function: attributes of `self`, contents of containers, frozen modules."""
        mine = {cls.oid for cls in self.main.classes.values()}
        for slot, value in heap.written():
            known = self.lasting_heap.get(slot)
            if known is value:
                continue
            lasts = (
                slot[0] in mine
                or slot[0] in self.foreign_objects
                or slot[1].startswith("[")
                or slot[1] in ("frozen", "default")
            )
            if not everything and not lasts:
                continue
            if slot[1] == "training" and not everything:
                continue
            if isinstance(value, Tensor) and value.carried:
                value = replace(value, carried=frozenset())
            self.learn(slot, value)

    def written(self, slot: tuple[int, str]) -> None:
        """An attribute is assigned by the running function."""
        self.assigned[slot] += 1
        entrance = self.frame.entrance
        function = self.frame.function if entrance is None else entrance.scope.function
        if function is not None and function.name != "__init__":
            known = self.writes.setdefault(function, set())
            if slot not in known:
                known.add(slot)
                self.asked.write(slot)

    def set_global(self, name: str, value: Value) -> None:
        """A `global` name is assigned by the running function."""
        if isinstance(value, Tensor) and value.carried:
            value = replace(value, carried=frozenset())
        known = self.global_writes.get(name)
        self.global_writes[name] = now = value if known is None else join(known, value)
        if name in self.asked.names:
            self.asked.other |= strength(now) > 1 >= strength(known)

    # -- names ---------------------------------------------------------------------------------------------------

    def lookup(self, name: str) -> Value:
        """The value of a plain name: local, closure, module level, import."""
        value = self.state.vars.get(name)
        if value is not None:
            return self.external(value.qualified) if isinstance(value, External) else value
        value = self.frame.closure.get(name) or _LITERALS.get(name)
        if value is not None:
            return value
        return self.lookup_global(name)

    def lookup_global(self, name: str, program: Program | None = None) -> Value:
        """The value of a name at module level. Of other files, only functions, classes and imports are known."""
        program = program or self.program
        if program is not self.main:
            return self._definition(name, program)
        value = self.globals.get(name)
        written = self.written_global(name)
        if written is not None:
            value = written if value is None else join(value, written)
        if isinstance(value, External):  # imported under a condition
            return self.external(value.qualified, program)
        return value if value is not None else self._definition(name, program)

    def written_global(self, name: str) -> Value | None:
        """What functions assign to a `global` name, as far as it is known."""
        self.asked.names.add(name)
        return self.global_writes.get(name)

    def _definition(self, name: str, program: Program) -> Value:
        if program.defines(name):
            function = program.find_function(name)
            if function is not None:
                return FunctionValue(function)
            cls = program.find_class(name)
            if cls is not None:
                return ClassValue(cls)
        qualified = program.imported.get(name)
        if qualified is not None:
            return self.external(qualified, program)
        if name == "torch" and program.star_imports:
            return External(name)  # it came with `from utils import *`
        if program.star_imports and self.follows_imports:
            match program.starred(name):
                case ClassInfo() as cls:
                    return ClassValue(cls)
                case Function() as function:
                    return FunctionValue(function)
        return Unknown(path=name)

    def external(self, qualified: str, program: Program | None = None) -> Value:
        """What an imported name stands for: a function or class of the project, else something out of view."""
        program = program or self.program
        known = self._externals.get((program, qualified))
        if known is None:
            known = self._externals[program, qualified] = self._imported(qualified, program)
        return known

    def _imported(self, qualified: str, program: Program) -> Value:
        if not self.follows_imports or self.contracts.known_callable(qualified):
            return External(qualified)
        match program.resolve(qualified):
            case ClassInfo() as cls:
                return ClassValue(cls)
            case Function() as function:
                return FunctionValue(function)
        return External(qualified)

    def methods_called_on(self, path: str) -> set[str]:
        """Names of the methods that the surrounding code calls on a dotted path: evidence by behaviour."""
        frame = self.frame
        found = set(frame.outline.methods.get(path, ()))
        if path in frame.outline.called:
            found.add("__call__")
        function = frame.function
        if function is not None and frame.self_name and path.startswith(frame.self_name + "."):
            cls = function.cls
            if cls is not None:
                found |= cls.methods_called_on("self" + path[len(frame.self_name) :])
        parent = function.parent if function is not None else None
        while parent is not None:
            found |= parent.outline.methods.get(path, set())
            parent = parent.parent
        return found

    def with_behaviour(self, value: Value, path: str, made: Site | None = None) -> Value:
        """The value, or what its treatment by the surrounding code shows that it must be."""
        if not isinstance(value, Unknown) or not path:
            return value
        asked = (self.frame.function, path)
        if asked not in self._roles:
            self._roles[asked] = behaviour.role(self.methods_called_on(path), self.contracts.pipeline_methods)
        role = self._roles[asked]
        if role is None:
            return value
        oid = self.oid("behaviour", self.frame.function, path)
        if role == "pipeline":
            shown = next(iter(sorted(self.methods_called_on(path) & self.contracts.pipeline_methods)))
            site = made if made is not None else None
            why = Step(site, f"`{path}` is a diffusers pipeline: `.{shown}()` is called on it") if site else None
            if site is not None:
                self.state.heap.setdefault((oid, "training"), Flag(False, site))
            return ModuleValue(oid, PIPELINE, why=why, made=made, loops=self.frame.loops)
        if role == "module":
            step = None
            if made is not None:
                shown = behaviour.telling(self.methods_called_on(path))
                step = Step(made, f"`{path}` is a module: `.{shown}()` is called on it")
            return ModuleValue(oid, why=step, made=made, loops=self.frame.loops)
        return Known(role, oid, loops=self.frame.loops, made=made)

    # -- origins and proofs -------------------------------------------------------------------------------------------

    def deep_origins(self, value: Value, depth: int = 0) -> frozenset[Origin]:
        """Origins of a value and of everything in it."""
        if not isinstance(value, Container):
            return value.origins if isinstance(value, Unknown | Tensor) else _NO_ORIGINS
        if depth >= MAX_ELEMENT_DEPTH:
            return frozenset()
        found: frozenset[Origin] = frozenset()
        for element in self.elements(value):
            found |= self.deep_origins(element, depth + 1)
        return cap(found)

    def elements(self, container: Container) -> Iterator[Value]:
        """Everything that a container is known to hold."""
        for other in container.others:
            yield from self.elements(other)
        if container.kind == "tuple" and container.items is not None:
            yield from container.items
            return
        heap = self.state.heap
        if not heap.ask_for_elements(container.oid):
            self.asked.own[container.oid] = self.walking
        for key in sorted(self.element_keys.get(container.oid, ())):
            value = heap.peek((container.oid, key))
            if value is None:
                value = self.lasting_heap.get((container.oid, key))
            if value is not None:
                yield value

    def element(self, container: Container) -> Value:
        """Any element of a container, joined."""
        result: Value | None = None
        nested: list[Value] = []
        for value in self.elements(container):
            result = value if result is None else join(result, value)
            if isinstance(value, Container):
                nested.append(value)
        if isinstance(result, Tensor | Unknown) and nested:  # what becomes of it becomes of these
            origins = result.origins.union(*(self.deep_origins(value) for value in nested))
            result = replace(result, origins=cap(origins))
        return result if result is not None else Unknown()

    def prove(self, value: Value, site: Site) -> None:
        """A backward runs through the value: it had a graph."""
        if isinstance(value, Unknown) and value.made is not None:
            self._is_proven(value.made, site)
        elif isinstance(value, Tensor) and value.graph is Graph.UNKNOWN and value.made is not None:
            self._take_down_proof((value.made, -1), site)
        elif isinstance(value, Tensor) and value.part >= 0 and value.made is not None:
            self._take_down_proof((value.made, value.part), site)
        own = value.made if isinstance(value, Unknown) else None
        calls = [o for o in origins_of(value) if o in self.callees and o != own]
        calls = [o for o in calls if o in self.leaves] or calls
        explained = any(o in self.forward_origins for o in origins_of(value))
        if not explained and len({self.callees[o] for o in calls}) == 1:
            for origin in calls:
                if (origin.site, origin.index) not in self.proofs:
                    self.indirect.add((origin.site, origin.index))
                self._is_proven(origin, site)

        self._prove_entries(value, site, explained=explained)

    def _prove_entries(self, value: Value, site: Site, *, explained: bool) -> None:
        """A backward runs through a sum of entries of one kind (`a["loss"] + b["loss"]`): they had a graph."""
        if explained or not isinstance(value, Unknown | Tensor) or value.origins.isdisjoint(self.entries):
            return
        terms = [origin for origin in value.origins if origin in self.entries]
        if len({self.entries[origin] for origin in terms}) == 1:
            for origin in terms:
                self._is_proven(origin, site)

    def prove_part(self, value: Value, site: Site) -> None:
        """A backward runs through a sum with this value: what a call returned for it will have had a graph as well."""
        if isinstance(value, Unknown) and value.made in self.callees:
            place = (value.made.site, value.made.index)
            if place not in self.proofs:
                self.indirect.add(place)
            self._is_proven(value.made, site)

    def switched(self, made: Origin, switches: Switches) -> Switches:
        """Remember the booleans that a call which is not understood is given."""
        self.switches[made] = switches
        if ("requires_grad", True) in switches:
            self.leaves[made] = switches
        return switches

    def switched_as(self, made: Origin, owner: Unknown) -> Switches:
        """Remember of a part of what a call gave what that call was given."""
        return self.switched(made, self.switches.get(owner.made, ()) if owner.made is not None else ())

    def _is_proven(self, origin: Origin, site: Site) -> None:
        place = (origin.site, origin.index)
        self._take_down_proof(place, site)
        given = self.leaves.get(origin) or self.switches.get(origin, ())
        shown = self.proven_with.setdefault(place, {})
        self.asked.other |= given not in shown and place in self.asked.places
        shown.setdefault(given, site)

    def _take_down_proof(self, place: tuple[Site, int], site: Site) -> None:
        if place not in self.proofs:
            self.proofs[place] = site
            self.asked.prove(place)

    def is_shown_to_be_tensor(self, made: Site | None) -> bool:
        """Is what was made here shown to be one tensor (and no tuple) by what is done with it?"""
        self.asked.places.add((made, None))
        return made in self.proved_tensors

    def show_to_be_tensor(self, made: Site) -> None:
        """What was made here is one tensor."""
        if made not in self.proved_tensors:
            self.proved_tensors.add(made)
            # Where nothing trains, no backward asks which part of a result it goes through.
            self.asked.other |= self.follows_imports and (made, None) in self.asked.places

    def proved(self, site: Site, index: int = -1, switches: Switches = ()) -> Site | None:
        """The backward that proves that the value made here had a graph.

        `switches`: the booleans that the call which makes it is given here. A helper may hand them on from its caller,
        and what is proven of `run(x, as_numbers=False)` is not proven of `run(x, as_numbers=True)`.
        """
        self.asked.places.add((site, index))
        shown = self.proven_with.get((site, index)) if switches else None
        if shown and not any(_agree(switches, one) for one in shown):
            return None
        return self.proofs.get((site, index))

    def proved_parts(self, site: Site) -> bool:
        """Does a backward prove that single parts of what is made here had a graph?"""
        self.asked.places.add((site, None))
        return any(made is site and index >= 0 for made, index in self.proofs)

    def effect(self, name: str) -> None:
        """Something that concerns every function on the stack happens: a backward, an optimizer step."""
        self.effects.setdefault(self.frame.function, set()).add(name)
        for frame in self.frames:
            self.effects.setdefault(frame.function, set()).add(name)

    # -- frames --------------------------------------------------------------------------------------------------

    @contextmanager
    def entered(self, frame: Frame, variables: dict[str, Value], mode: Mode) -> Iterator[None]:
        """Run a callee's frame on the shared heap; afterwards the caller's names are back."""
        caller = self.state
        self.frames.append(self.frame)
        self.frame = frame
        self.state = State(variables, caller.heap, mode)
        try:
            yield
        finally:
            ends = [*frame.return_states, self.state]
            end = ends[0]
            for other in ends[1:]:
                end = join_states(end, other)
            self.frame = self.frames.pop()
            caller.heap = end.heap
            self.state = caller

    def repeating(self, loops: Loops) -> LoopMark | None:
        """The outermost loop that runs here but did not run when something with `loops` was made."""
        for mark in self.frame.loops:
            if mark not in loops:
                return mark
        return None

    # -- objects -------------------------------------------------------------------------------------------------

    def slot(self, owner: Value, attribute: str) -> tuple[int, str] | None:
        """The heap slot of an attribute, for values that have an identity."""
        if isinstance(owner, ModuleValue | Instance | Known | Container) and owner.oid:
            return (owner.oid, attribute)
        if isinstance(owner, ClassValue):
            return (owner.cls.oid, attribute)
        return None

    def heap_value(self, owner: Value, attribute: str) -> Value | None:
        """An attribute's value on this object, else what its class's methods leave there."""
        slot = self.slot(owner, attribute)
        if slot is None:
            return None
        value = self.state.heap.get(slot)
        if value is not None:
            return value
        cls = class_of(owner)
        if cls is None:
            return None
        for ancestor in cls.ancestors():
            shared = (ancestor.oid, attribute)
            value = self.state.heap.get(shared)
            if value is None:
                value = self.lasting(shared)
            if value is not None:
                return value
        return None


def _callee_name(node: cst.CSTNode) -> str:
    """The last name of what a call calls; "" where it is no call."""
    if type(node) is not cst.Call:  # a match is slow on these classes where the answer is no
        return ""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name)) | cst.Name(value=name)):
            return name
    return ""


def _agree(given: Switches, others: Switches) -> bool:
    """Is no boolean told to be another by the one than by the other?"""
    known = dict(others)
    return all(known.get(name, on) is on for name, on in given)


def class_of(value: Value) -> ClassInfo | None:
    """The project class of an object."""
    return value.cls if isinstance(value, ModuleValue | Instance) else None


_NO_ORIGINS: frozenset[Origin] = frozenset()
_LITERALS: dict[str, Value] = {
    "None": Constant(None, True),
    "True": Constant(True, True),
    "False": Constant(False, True),
}
_NO_PIECE = Piece([], 1, "code", "", None, Path())
