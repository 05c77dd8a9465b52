"""What an expression may be: the abstract values of the interpreter and how two of them join.

Values are immutable; what changes while a program runs (attributes, list elements, training modes) lives in
the `State`, keyed by the value's `oid`. Unknown is not a leak: an operation that is not understood yields
`Unknown`, and rules stay silent about it.
"""

from __future__ import annotations

import enum
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

import libcst as cst

from torchmemlint.flow.replacing import replace
from torchmemlint.immutable import immutable
from torchmemlint.knowledge.contracts import contracts
from torchmemlint.syntax.source_module import Site

if TYPE_CHECKING:
    from torchmemlint.flow.program import ClassInfo, Function

MAX_HISTORY = 5  # links of evidence kept on one value
MAX_ORIGINS = 60  # beyond this many, a value is no longer tracked to its origins


class Graph(enum.IntEnum):
    """Does a tensor hang on an autograd graph?"""

    NONE = 0  # it never did
    CUT = 1  # it was detached
    UNKNOWN = 2
    LIVE = 3


class Mode(enum.Enum):
    """Is autograd recording?"""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


class Device(enum.Enum):
    """Where a tensor's storage lies."""

    HOST = "host"
    ACCELERATOR = "accelerator"
    UNKNOWN = "unknown"


class Kind(enum.Enum):
    """Class of a tensor's dtype, as far as autograd cares."""

    FLOAT = "float"
    DISCRETE = "discrete"  # integer or boolean: never carries a graph
    UNKNOWN = "unknown"


class Via(enum.IntEnum):
    """How a loop-carried value entered its successor; the strongest operation wins."""

    COPY = 0
    ARITHMETIC = 1
    JOINED = 2  # cat, stack, or put into a container
    MODULE = 3


@immutable(repr=False)
class LoopMark:
    """Something that repeats: a loop statement, a comprehension, or the calls of a function or class."""

    node: cst.CSTNode | None  # None: the calls of `label`
    label: str = ""
    site: Site | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"LoopMark({self.label or self.site})"


@immutable()
class Carry:
    """The value holds the graph that `key` had in the previous iteration of `loop`."""

    loop: LoopMark
    key: Key
    via: Via = Via.COPY


Key: TypeAlias = "str | tuple[int, str]"  # a local path ("total", "opt.x") or (oid, attribute)
Loops: TypeAlias = "tuple[LoopMark, ...]"
Switches: TypeAlias = "tuple[tuple[str, bool], ...]"  # booleans that a call is given, by name or position


@immutable()
class Step:
    """One link of a value's history."""

    site: Site
    text: str


@immutable()
class Origin:
    """A place that makes graph-carrying values: a module call, a parameter, a call into the project."""

    site: Site
    index: int = -1  # element of an unpacked result, -1 for the whole
    path: tuple[int, ...] = ()  # identity of the inlined call chain, () in the function's own analysis


class Value:
    """Base of all abstract values."""

    __slots__ = ()


@immutable()
class Unknown(Value):
    """Anything. `origins` are the graph-making places that may be in its past."""

    origins: frozenset[Origin] = frozenset()
    made: Origin | None = None  # its own identity: a later `.backward()` proves what it was
    path: str = ""  # dotted source text, if it is a plain name or attribute chain
    part_of: ModuleValue | None = None  # an attribute of this module
    carried: frozenset[Carry] = frozenset()


@immutable()
class Constant(Value):
    """A Python number, string, bool or None; `known` tells whether `value` is its value."""

    value: Any = None
    known: bool = False


@immutable()
class TrainingMode(Constant):
    """`module.training` of a module whose mode is known."""

    module: int = 0  # its oid


@immutable()
class Tensor(Value):
    """A tensor; with `exact` False also a structure of tensors (the output of an unread module)."""

    graph: Graph = Graph.UNKNOWN
    origins: frozenset[Origin] = frozenset()
    history: tuple[Step, ...] = ()
    carried: frozenset[Carry] = frozenset()
    device: Device = Device.UNKNOWN
    kind: Kind = Kind.UNKNOWN
    exact: bool = True
    part: int = -1  # of a structure that is not known: which part was taken out of it
    certain: bool = True  # a tensor on every path that leads here
    producer: str = ""  # qualified name of the operation or module class that made it
    made: Site | None = None  # the place of that operation: the tensor's identity
    parameter_of: int = 0  # oid of the module whose parameter it is
    entry: Site | None = None  # the expression by which it entered a container
    summed: frozenset[Origin] = frozenset()  # folded or collected values that it is a sum, mean or multiple of

    @property
    def carries_graph(self) -> bool:
        """Is it known to hang on a graph (on some path)?"""
        return self.graph is Graph.LIVE


@immutable()
class ModuleValue(Value):
    """An `nn.Module` (instance), known by construction, annotation, base class or behaviour."""

    oid: int
    qualified: str = ""  # torch.nn.Linear, torchvision.models.resnet18(), ...; "" if not known
    cls: ClassInfo | None = None  # a class of the project
    parameters: bool | None = None  # has trainable parameters? None: not known
    why: Step | None = None  # what shows that it is a module
    made: Site | None = None
    arguments: tuple[tuple[str, Value], ...] = ()  # constructor arguments that rules ask about, positional as "0", ...
    children: tuple[Value, ...] = ()  # of a Sequential, in order; one stands for all of a list of unknown length
    single: bool = False  # whatever it is called with, it gives one tensor
    loops: Loops = ()


@immutable()
class Instance(Value):
    """An object of a project class that is not a module."""

    oid: int
    cls: ClassInfo
    loops: Loops = ()
    made: Site | None = None


@immutable()
class Known(Value):
    """An object of a library class that has a role: an optimizer, loader, iterator, logger, ..."""

    role: str
    oid: int = 0
    qualified: str = ""
    made: Site | None = None
    arguments: tuple[tuple[str, Value], ...] = ()
    loops: Loops = ()
    element: Value | None = None


@immutable()
class Container(Value):
    """A list, tuple, set, dict or deque. Elements live in the state under (oid, "[]") and (oid, "[key]")."""

    oid: int
    kind: str  # "list", "tuple", "set", "dict", "deque"
    loops: Loops = ()  # what was repeating when it was made
    items: tuple[Value, ...] | None = None  # of a tuple or list literal
    bounded: bool = False
    made: Site | None = None
    others: tuple[Container, ...] = ()  # what else it may be
    attributes: bool = False  # of a dict: its entries are attributes as well


@immutable()
class External(Value):
    """Something imported from outside the file: "torch.no_grad", "numpy.mean"."""

    qualified: str


@immutable()
class FunctionValue(Value):
    """A function of the project, with `self` bound where it is a method taken from an object."""

    function: Function
    bound: Value | None = None
    closure: tuple[tuple[str, Value], ...] = ()


@immutable()
class ClassValue(Value):
    """A class of the project."""

    cls: ClassInfo


@immutable()
class Method(Value):
    """A method of a value that the project does not define: `x.detach`, `losses.append`."""

    owner: Value
    name: str
    path: str = ""  # dotted source text of the owner, if plain


@immutable()
class Partial(Value):
    """`functools.partial(target, ...)`."""

    target: Value
    arguments: tuple[tuple[str, Value], ...] = ()


@immutable()
class GradMode(Value):
    """An object that sets the gradient mode, as a context or decorator: `torch.no_grad()`, or the class itself."""

    mode: Mode
    called: bool = True  # False: the bare class `torch.no_grad`
    site: Site | None = field(default=None, compare=False)


@immutable()
class Flag(Value):
    """A switch on an object in the state: a module's training mode, its being frozen."""

    on: bool
    site: Site | None = field(default=None, compare=False)


NONE = Constant(None, True)
NUMBER = Constant()
UNKNOWN = Unknown()


def cap(origins: frozenset[Origin]) -> frozenset[Origin]:
    """Origins, bounded, the same ones whatever the order they came in."""
    if len(origins) <= MAX_ORIGINS:
        return origins
    return frozenset(sorted(origins, key=_origin_order)[:MAX_ORIGINS])


def _origin_order(origin: Origin) -> tuple[int, int, tuple[int, ...]]:
    return (origin.site.serial, origin.index, origin.path)


def origins_of(value: Value) -> frozenset[Origin]:
    """The graph-making places in a value's past (of a container: of none; ask the state)."""
    if isinstance(value, Tensor | Unknown):
        return value.origins
    return frozenset()


def carried_of(value: Value) -> frozenset[Carry]:
    """What the value carries over from earlier iterations."""
    if isinstance(value, Tensor | Unknown):
        return value.carried
    return frozenset()


def join(a: Value, b: Value) -> Value:
    """The value that may be either: what is known of a graph on one path stays known."""
    if a is b or a == b:
        return a
    if isinstance(a, Constant | Known) and isinstance(b, Constant | Known):
        device = _joined_devices(a, b)
        if device is not None:
            return device
    match a, b:
        case Tensor(), Tensor():
            return _join_tensors(a, b)
        case Tensor(), Constant() | Unknown():
            return _tensor_or_other(a, b)
        case Constant() | Unknown(), Tensor():
            return _tensor_or_other(b, a)
        case Constant(), Constant():
            return NUMBER
        case Unknown(), Unknown():
            return Unknown(
                cap(a.origins | b.origins),
                a.made if a.made == b.made else None,
                a.path if a.path == b.path else "",
                a.part_of if a.part_of == b.part_of else None,
                a.carried | b.carried,
            )
        case Tensor(), Container():
            return replace(a, exact=False, certain=False)
        case Container(), Tensor():
            return replace(b, exact=False, certain=False)
        case (Known(role="dataset") as data, Unknown()) | (Unknown(), Known(role="dataset") as data):
            return data  # perhaps in memory: a loader of it may do well without workers
        case Known(), Known() if a.role == b.role:
            return a if a.oid == b.oid and a.made == b.made else _joined_objects(a, b)
        case External(), External() if a.qualified in contracts().neutral and b.qualified in contracts().neutral:
            return a
        case Container(), Container() if a.oid == b.oid:
            return replace(a, items=None, others=_union(a.others, b.others))
        case Container(), Container():
            return replace(a, items=None, others=_union(a.others, (replace(b, others=()), *b.others)))
        case ModuleValue(), ModuleValue():
            return _join_modules(a, b)
        case (ModuleValue() | Container() | Instance() | Known() | FunctionValue()) as kept, Constant(value=None):
            return kept
        case Constant(value=None), (ModuleValue() | Container() | Instance() | Known() | FunctionValue()) as kept:
            return kept
        case _:
            return Unknown(cap(origins_of(a) | origins_of(b)), carried=carried_of(a) | carried_of(b))


def _joined_objects(a: Known, b: Known) -> Known:
    """One object or another of one role: what tells them apart is not known."""
    if a.role == "context":
        return replace(a, oid=0, made=None, qualified="")
    if a.role == "default":
        return replace(a, element=join(a.element or UNKNOWN, b.element or UNKNOWN))
    if a.role in ("loader", "batch", "dataset", "parts", "device"):
        return replace(a, oid=0, made=None, arguments=(), qualified="", element=None)
    return a


# What makes whatever model a name stands for, also one whose code its repository brings.
OF_ANY_REPOSITORY = ("transformers.Auto", "torch.hub.load")
_DEVICES = {"cpu": False, "cuda": True, "xpu": True, "mps": True, "hip": True, "npu": True, "xla": True}


def _joined_devices(a: Value, b: Value) -> Value | None:
    """`"cuda" if ... else "cpu"`: an accelerator, where there is one; None where these are not two devices."""
    first, second = _is_accelerator(a), _is_accelerator(b)
    if first is None or second is None or not (first or second):
        return None
    chosen = a if first else b
    return chosen if isinstance(chosen, Known) else Known("device", arguments=(("0", chosen),))


def _is_accelerator(value: Value) -> bool | None:
    match value:
        case Constant(known=True, value=str(text)):
            return _DEVICES.get(text.split(":")[0])
        case Known(role="device", arguments=((_, given), *_)):
            return _is_accelerator(given)
        case Known(role="default", element=element) if element is not None:
            return _is_accelerator(element)
    return None


def _join_modules(a: ModuleValue, b: ModuleValue) -> ModuleValue:
    """Two modules that may stand in one place: what they have in common."""
    if a.oid == b.oid:
        return a
    alike = a.cls is b.cls and a.qualified == b.qualified and a.arguments == b.arguments
    if alike and (a.cls is not None or a.qualified):
        return a
    same = a.parameters is b.parameters
    return replace(
        a,
        cls=None,
        qualified=next((m.qualified for m in (a, b) if m.qualified.startswith(OF_ANY_REPOSITORY)), ""),
        parameters=a.parameters if same else None,
        arguments=(),
        children=(),
        single=a.single and b.single,
    )


def _union(a: tuple[Container, ...], b: tuple[Container, ...]) -> tuple[Container, ...]:
    found = {container.oid: container for container in (*a, *b)}
    return tuple(found[oid] for oid in sorted(found))[:4]


def _join_tensors(a: Tensor, b: Tensor) -> Tensor:
    first = a if a.graph >= b.graph else b
    return replace(
        first,
        origins=cap(a.origins | b.origins),
        carried=a.carried | b.carried,
        device=a.device if a.device is b.device else Device.UNKNOWN,
        kind=a.kind if a.kind is b.kind else Kind.UNKNOWN,
        exact=a.exact and b.exact,
        part=max(a.part, b.part),
        certain=a.certain and b.certain,
        producer=a.producer if a.producer == b.producer else "",
        made=a.made if a.made is b.made else None,
        parameter_of=a.parameter_of if a.parameter_of == b.parameter_of else 0,
        entry=first.entry or a.entry or b.entry,
        summed=_joined_sums(a, b) if a.summed or b.summed else a.summed,
    )


def _joined_sums(a: Tensor, b: Tensor) -> frozenset[Origin]:
    """What is a term of the one is a term of the other as well, or has no part in it."""
    return frozenset(
        origin
        for origin in a.summed | b.summed
        if all(origin in value.summed or origin not in value.origins for value in (a, b))
    )


def _tensor_or_other(tensor: Tensor, other: Value) -> Tensor:
    if isinstance(other, Unknown):
        return replace(
            tensor,
            origins=cap(tensor.origins | other.origins),
            carried=tensor.carried | other.carried,
            certain=False,
        )
    return replace(tensor, certain=False) if tensor.certain else tensor
