"""What an entry of each table says.

Lines of source have holes: `{m}` the model and `{o}` the optimizer (as they are spelt where the line lands), `{v}` the
value that carries the graph, `{c}` what it is packed in, `{t}` the holder's target, `{f}` what is folded from the
holder, `{s}` the value as a scalar, `{clear}` the statement that empties the holder, `{obj}` and `{attr}` the parts of
a target that is an attribute, `{first}` the oldest key of the holder, `{zero}` what the holder starts with.

`#@put` at the end of a line marks the statement that keeps the value, `#@pass` a forward pass. Both are taken out when
a file is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

Lines = tuple[str, ...]
Parameter = tuple[str, str]  # a name of the host's parameters, and what the caller gives for it


def indented(lines: Iterable[str], levels: int = 1) -> list[str]:
    """The lines, further to the right."""
    return ["    " * levels + line if line else line for line in lines]


def body_of(lines: Iterable[str]) -> Lines:
    """The lines as a body of a function or a class."""
    return tuple(indented(lines))


@dataclass(frozen=True)
class Source:
    """Where the graph comes from: what one iteration computes."""

    lines: Lines  # inside one iteration; x and y are the batch
    value: str  # the expression that carries the graph
    after: Lines = ()  # after the value has been kept ({v} is it)
    setup: Lines = ()  # in the host, before the loop
    top: Lines = ()  # of the module
    scalar: bool = True
    live: bool = True  # may still be differentiated after the iteration
    movable: bool = True  # may be moved to a function or another file
    network: str = "tensor"  # what the model returns: a key of NETWORK
    initial: str = ""  # for carried states, the first one
    cuts: dict[str, str] = field(default_factory=dict)  # how a value that is no tensor is cut, by name of the cut
    folded: str = "{t}"  # one tensor of a carried state
    opaque: bool = False  # no tensor: nothing can be folded from what is kept
    idle: bool = False  # its forward pass records a graph that nothing ever needs, whatever else is done

    @property
    def carried(self) -> bool:
        """Whether the value is the state that the next iteration starts from."""
        return bool(self.initial)

    @property
    def trains(self) -> bool:
        """Whether an iteration goes backward itself."""
        return any("backward" in line or "autograd.grad" in line for line in (*self.lines, *self.after))


@dataclass(frozen=True)
class Carrier:
    """How the value travels from where it is made to where it is kept."""

    pack: str  # over {v}
    unpack: str  # over {c}
    top: Lines = ()


@dataclass(frozen=True)
class Holder:
    """What keeps the value over iterations."""

    kind: str  # a key of WAY; "own": then `puts` says how; "hook": then `init` keeps what a hook sees
    target: str
    init: Lines = ()  # in the host, before the loop
    top: Lines = ()
    attrs: Lines = ()  # in the host class's __init__
    class_body: Lines = ()  # in the host class
    bases: str = ""  # of the host class
    decl: str = ""  # needed where the iteration is an inner function
    host_decl: str = ""  # needed at the top of the host function
    needs_self: bool = False
    tensor: bool = False  # starts as a tensor (needed by add_)
    scalar_only: bool = False
    puts: dict[str, str] = field(default_factory=dict)
    fold: str = ""  # default: from the kind
    clear: str = ""  # default: from the kind
    local: bool = True  # `init` binds names of the host
    together: bool = False  # `top` has to be in the host's file


@dataclass(frozen=True)
class Way:
    """How the value gets into the holder."""

    put: str
    tensor: bool = False  # the target must start as a tensor
    scalar: bool = False
    attr: bool = False  # the target must be an attribute
    top: Lines = ()
    fold: str = ""  # where it differs from the kind's


LoopStyle = Literal["body", "nested", "method", "split", "collect"]


@dataclass(frozen=True)
class Loop:
    """How an iteration is repeated. Batches come one by one from a DataLoader: there the counting is done.

    `weave` makes the loop of the lines of one iteration (style "body"), or of the lines that keep `got`, which
    `one(x, y)` returns ("split"). It gets no lines where `one(x, y)` is a function that does an iteration ("nested"),
    and where the host has a method for it ("method"). A loop of style "collect" is one expression by kind of holder.
    """

    weave: Callable[[list[str]], list[str]]
    style: LoopStyle = "body"
    top: Lines = ()
    method: Lines = ()  # the head of the host's method, and what unpacks the batch
    collects: dict[str, str] = field(default_factory=dict)
    bases: str = ""  # of the host class, which has the loop from there
    threaded: bool = False  # iterations run in another thread


@dataclass(frozen=True)
class Step:
    """The computation of an iteration; `{m}` and `{o}` are still open in `lines`."""

    lines: list[str]
    pack: str

    def body(self, model: str, optimizer: str) -> list[str]:
        """A function's body that does it and returns the packed value."""
        lines = [*self.lines, f"return {self.pack}"]
        return [line.replace("{m}", model).replace("{o}", optimizer) for line in lines]


@dataclass(frozen=True)
class Placed:
    """The computation in its place, and how it is called from the iteration."""

    call: str  # over {m} and {o}; "" means inline
    top: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)  # lines of helper.py
    third: list[str] = field(default_factory=list)  # lines of core.py
    setup: list[str] = field(default_factory=list)  # in the host
    before: list[str] = field(default_factory=list)  # in the iteration
    imports: list[str] = field(default_factory=list)  # of the host's file, where `from … import …` is not enough


Call = Callable[[Step], Placed]


@dataclass(frozen=True)
class Mode:
    """Whether gradients are recorded, and who says so."""

    wrap: str = ""  # a `with` header around the loop
    before: Lines = ()
    after: Lines = ()
    decorator: str = ""
    caller: str = ""  # a `with` header around the call in main
    top: Lines = ()
    around: Literal["loop", "put", "pass"] = "loop"  # what `wrap` wraps
    off: bool = True  # gradients are meant to be off (measured anyway)
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class Fate:
    """What becomes of what was kept."""

    after: Lines = ()  # in the host, after the loop
    body: Lines = ()  # in the iteration, after the put
    main: Lines = ()  # in main, with `result` = what the host returned
    returns: str = ""
    top: Lines = ()
    differentiates: bool = False
    needs_fold: bool = True
    drive: str = ""  # the caller that the linter does not see
    window: bool = False  # empties the holder itself
    kinds: Lines = ()  # of holders; default: any


@dataclass(frozen=True)
class Network:
    """What a model computes and returns: the class `Net`."""

    lines: Lines
    top: Lines = ()  # before it


@dataclass(frozen=True)
class Model:
    """Where the network is defined and how it is made. In each text `{net}` stands for the lines of the network."""

    make: str = "Net()"
    top: Lines = ("{net}",)
    other: Lines = ()  # lines of parts.py
    third: Lines = ()  # lines of layers.py
    only: str = ""  # the one network that it makes (then it needs no `{net}`)


@dataclass(frozen=True)
class Cut:
    """What is done to the value before it is kept."""

    text: str  # over {v}
    cuts: bool = False  # whether it is meant to let the graph go (measured anyway)
    scalar: bool = False
    reshapes: bool = False  # what comes out has another shape or type
    top: Lines = ()


@dataclass(frozen=True)
class Bound:
    """What limits the holder."""

    lines: Lines = ()  # after the put
    kinds: Lines = ()  # of holders; default: any
    init: Lines = ()
    decl: str = ""
    put: dict[str, str] = field(default_factory=dict)  # what takes the way's place, by kind
    swap: tuple[str, str] = ("\n", "\n")  # what changes in the holder's text
    parameters: tuple[Parameter, ...] = ()  # in place of those of the guard


@dataclass(frozen=True)
class Guard:
    """The statement around the one that keeps the value; `{put}` is a line of its own."""

    lines: Lines = ("{put}",)
    parameters: tuple[Parameter, ...] = ()
    styles: tuple[LoopStyle, ...] = ("body", "nested", "method", "split")


@dataclass(frozen=True)
class Decoy:
    """Harmless lines beside the put."""

    lines: Lines = ()  # at the end of the iteration
    init: Lines = ()  # in the host, before the loop
    decl: str = ""
    top: Lines = ()


@dataclass(frozen=True)
class Place:
    """The files: which of the program's parts live outside main.py. Parts: top, holder, model, host."""

    files: dict[str, str] = field(default_factory=dict)  # a part and its file; main.py if it is not named
