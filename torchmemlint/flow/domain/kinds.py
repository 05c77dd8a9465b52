"""What kinds of objects there are, and of keys."""

from __future__ import annotations

import enum

PART = "part"  # what a list is about that has only some of the elements of another one
PIECES = "pieces"  # what the sequence of the smaller batches is about that one is cut into


class Special(enum.Enum):
    """Keys of edges that are no attribute and no constant key of the program."""

    ELEMENT = "[]"  # every element that no constant key names
    LAST = "last"  # of a list: what was added to it at its end, with nothing else since
    MADE = "made"  # the site has made this object in the current run
    FROZEN = "frozen"  # of a module: its parameters do not require gradients
    TAUGHT = "taught"  # of a module: its gradients are used
    HOST = "host"  # of what has a state: was it brought to the host last?
    EVALUATING = "evaluating"  # of a module: eval() was called last
    FACTORY = "factory"  # of a defaultdict: what makes missing values
    MIXED = "mixed"  # of a list: something was stored under an index that is not known
    NAMED = "named"  # every attribute whose name is not known
    PART = "part"  # a slice of a sequence; of a list that is one: where the whole has been
    REST = "rest"  # what a call gives beside its first results
    SHORT = "short"  # of a container: it was filled from a few things that are written out
    WEAK = "weak"  # of a container: it does not keep what it is given alive
    BOUNDED = "bounded"  # of a container: old elements are pushed out
    FUNCTION = "function"  # of a partial: what it calls
    GRAPH = "graph"  # of a tensor that was changed in place: what was added to its graph
    CACHED = "cached"  # of a function: the results that a decorator keeps
    HANDED = "handed"  # of an object of the project: code that is not seen has it
    GIVEN = "given"  # of an object of the project: what holds the arguments that a library's constructor is given
    OUTPUTS = "outputs"  # of an object: what its steps returned, where the framework that calls them keeps it
    SENT = "sent"  # of a generator: what is sent into it
    OTHER = "other"  # of what may be a module: the same thing where a test has shown that it is none
    BODY = "body"  # of the variables of a module: its body began here, and what it did not bind cannot be read
    OUTER = "outer"  # of a frame: the frame of the enclosing function

    __hash__ = object.__hash__  # by identity: they are keys of every dict of the heap

    def __repr__(self) -> str:
        return f"#{self.value}"


class Kind(enum.Enum):
    """What an object is, as far as its handling differs."""

    LIST = "list"  # also sets and deques
    TUPLE = "tuple"
    DICT = "dict"
    LAZY = "lazy"  # an iterator that does its work when it is consumed: map, zip, enumerate
    GENERATOR = "generator"  # a call of a generator function that has not run yet
    INSTANCE = "instance"  # of a class of the project
    MODULE = "module"  # of a class of torch.nn, or of another library's network
    TENSOR = "tensor"  # one that may be written in place
    OPTIMIZER = "optimizer"
    PARTIAL = "partial"
    GUARDED = "guarded"  # a function that runs in a gradient mode of its own
    MODE = "mode"  # torch.no_grad() and its like
    STACK = "stack"  # an ExitStack
    FRAME = "frame"  # of a call whose variables nested functions share
    OPAQUE = "opaque"  # an object of a library that is called but not followed

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self.value
