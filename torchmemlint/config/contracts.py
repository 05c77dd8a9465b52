"""Contracts of frameworks as tables: the vocabulary, and how a table is read.

The same tables stand in the linter's own data (`knowledge/contracts.toml`) and in a user's configuration
(`[tool.torchmemlint.contracts.NAME]`). `docs/contracts.md` is written from `VOCABULARY`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torchmemlint.config.errors import ConfigError, did_you_mean
from torchmemlint.immutable import immutable

OPERATIONS = "operations"
VERSION = "version"
# What may be said of one operation: type, default, meaning.
RESULTS = ("tensor", "tensors", "value")
OF_OPERATIONS = {
    "result": ('"tensor", "tensors" or "value"', '"tensor"', "What comes out; a value is no tensor."),
    "graph": ("boolean", "true", "May the result carry its arguments' graph?"),
    "discrete": ("boolean", "false", "Do integers or booleans come out, whatever goes in? They carry no graph."),
}
_FLAGS = ("graph", "discrete")

_NAME = re.compile(r"!?\.?[\w*\[\]-]+(\.[\w*\[\]-]+)*")
_WORD = re.compile(r"\S+")


@immutable()
class Term:
    """A key of a framework's table: a list of names, or a table from each name to where that is written."""

    key: str
    doc: str
    example: str
    words: bool = False  # plain words of the text, and no dotted names


VOCABULARY = (
    Term(
        "packages",
        "A file is read only if it contains one of these words: the names that the framework is imported as.",
        "acme",
        words=True,
    ),
    Term("no-grad", "Context managers and decorators that turn gradients off.", "acme.frozen"),
    Term("enable-grad", "Context managers and decorators that turn gradients on.", "acme.recording"),
    Term("set-grad", "Functions and context managers whose first argument says whether.", "acme.set_recording"),
    Term(
        "shows-graph",
        "Context managers that show what autograd saves for backward: a pass inside needs its graph.",
        "acme.saved_bytes",
    ),
    Term(
        "neutral",
        "Context managers and decorators that leave the gradient mode alone. Any other unknown one makes it unknown.",
        "acme.timed",
    ),
    Term(
        "runs-without-gradients",
        "Functions and methods that turn gradients off themselves: what they return carries no graph.",
        "acme.Model.sample",
    ),
    Term(
        "generates",
        "Methods that give, with `return_dict_in_generate=True`, an object with tensors of every step, as `generate` "
        "of transformers does.",
        "acme.Model.generate",
    ),
    Term(
        "inference-objects",
        "Classes and functions whose objects turn gradients off themselves when they are called.",
        "acme.predictor",
    ),
    Term(
        "called-without-gradients",
        "Methods that the framework calls with gradients off, of the classes that derive from its base.",
        "acme.Task.on_eval",
    ),
    Term(
        "called-with-gradients",
        "Methods that the framework calls with gradients on; it differentiates what they return.",
        "acme.Task.on_train",
    ),
    Term(
        "inference",
        "Methods that run inference and are called with gradients on: an override has to turn them off itself.",
        "acme.Task.predict",
    ),
    Term(
        "infers",
        "First words of the names of functions and methods that give results to users. What they do must agree.",
        "recommend",
        words=True,
    ),
    Term(
        "evaluates",
        "Words that say that a function evaluates, where its name begins with one or has one in second place.",
        "benchmark",
        words=True,
    ),
    Term(
        "called-per-epoch",
        "Methods that the framework calls once for many calls of the others: what only they empty has grown by then.",
        "acme.Task.on_epoch_end",
    ),
    Term(
        "receives-outputs",
        "Methods that are given what the steps of an epoch returned: the framework keeps that until then.",
        "acme.Task.on_epoch_outputs",
    ),
    Term(
        "called-per-batch",
        "Methods that the framework calls for every batch or decision, whatever the gradient mode.",
        "acme.Agent.decide",
    ),
    Term("differentiates", "Calls that run a backward pass from their first argument.", "acme.Engine.descend"),
    Term(
        "keeps", "Calls that keep what they are given, with its graph, as long as the object lives.", "acme.Log.record"
    ),
    Term(
        "trains",
        "Methods that make an optimizer for what the constructor of a framework's class is given, and step it. What "
        "else an object of a class that derives from it holds is not trained, unless the class overrides one of them.",
        "acme.Task.make_optimizer",
    ),
    Term(
        "returns-optimizers",
        "Methods whose optimizers the framework steps; what those do not hold is not trained.",
        "acme.Task.optimizers",
    ),
    Term("reads", "Calls that only look at what they are given: loggers, plots, files.", "acme.Log.show"),
    Term("passes", "Calls that return their first argument, with its graph.", "acme.Engine.reduce"),
    Term("modules", "Classes that are `nn.Module`s.", "acme.Network"),
    Term("factories", "Functions that return an `nn.Module` with parameters.", "acme.build_network"),
    Term(
        "wrappers",
        "Functions that return their first argument, a module; methods that return their arguments.",
        "acme.parallel",
    ),
    Term("parts", "Methods of an `nn.Module` that return a part of it.", "acme.Network.get_encoder"),
    Term("forward-methods", "Methods that run an `nn.Module`, as `forward` does.", "acme.Network.encode_image"),
    Term("loaders", "Classes that are built and iterated like `torch.utils.data.DataLoader`.", "acme.Loader"),
    Term("optimizers", "Classes that are optimizers.", "acme.optim.*"),
    Term("trainers", "Classes that evaluate as transformers' `Trainer` does.", "acme.Tuner"),
    Term("trainer-arguments", "Classes of the settings that such a trainer is given as `args`.", "acme.TunerSettings"),
    Term(
        "wide-outputs",
        "Models (and trainers of such) that predict something for every token or pixel of an example.",
        "acme.Translator",
    ),
    Term("derivatives", "Results of networks that these take by differentiating.", "forces", words=True),
    Term("pipelines", "Classes whose objects hold modules in evaluation mode.", "acme.*.[A-Z]*Pipeline"),
    Term("pipeline-modules", "Attributes of pipelines that are such modules.", "unet", words=True),
    Term("pipeline-inference", "Methods by which pipelines run inference.", "__call__", words=True),
    Term("pipeline-passes", "Methods by which pipelines run networks with gradients.", "encode_prompt", words=True),
    Term(
        "pipeline-methods",
        "Methods by which an object shows that it is one.",
        "load_lora",
        words=True,
    ),
)
TERMS = {term.key: term for term in VOCABULARY}


@immutable()
class NamedOperation:
    """What a table says of one operation: a function, by its qualified name, or `*.name`, a method of tensors."""

    name: str
    result: str = "tensor"  # one of RESULTS
    graph: bool = True  # may the result carry its arguments' graph?
    discrete: bool = False


@immutable()
class Framework:
    """One table, read."""

    name: str
    version: str = ""  # what it was checked against
    names: tuple[tuple[str, tuple[str, ...]], ...] = ()  # by term
    sources: tuple[tuple[str, str, str], ...] = ()  # (term, names as written, where that is written)
    operations: tuple[NamedOperation, ...] = ()

    def of(self, term: str) -> tuple[str, ...]:
        """The names listed under a term."""
        return dict(self.names).get(term, ())


def read_frameworks(tables: object) -> tuple[Framework, ...]:
    """The frameworks of a `contracts` table, in order; raises `ConfigError`."""
    return tuple(read_framework(name, table) for name, table in _table(tables).items())


def read_framework(name: str, table: object) -> Framework:
    """One framework; raises `ConfigError` with what is wrong and where in the table."""
    names: list[tuple[str, tuple[str, ...]]] = []
    sources: list[tuple[str, str, str]] = []
    operations: tuple[NamedOperation, ...] = ()
    version = ""
    with _within(name):
        for key, value in _table(table).items():
            with _within(key):
                if key == VERSION:
                    version = _text(value)
                elif key == OPERATIONS:
                    operations = tuple(
                        _operation(one, line)
                        for written, line in _table(value).items()
                        for one in _expanded(written, TERMS["reads"])
                    )
                elif key in TERMS:
                    listed = dict(_entries(value))
                    names.append((key, tuple(n for written in listed for n in _expanded(written, TERMS[key]))))
                    sources += [(key, written, where) for written, where in listed.items() if where]
                else:
                    known = (*TERMS, OPERATIONS, VERSION)
                    raise ConfigError(f"there is no such key.{did_you_mean(key, known)}")
    return Framework(name, version, tuple(names), tuple(sources), operations)


@contextmanager
def _within(key: str) -> Iterator[None]:
    """An error in here is one about this key."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"`{key}`: {error}") from None


def _entries(value: object) -> Iterator[tuple[str, str]]:
    """(names as written, where that is written)."""
    if isinstance(value, list):
        for item in value:
            yield _text(item), ""
    elif isinstance(value, dict):
        for written, where in value.items():
            yield written, _text(where)
    else:
        raise ConfigError(f"expected a list of names, or a table from names to sources, found {_kind(value)}")


def _expanded(written: str, term: Term) -> Iterator[str]:
    """`a.{b,c}` is `a.b` and `a.c`."""
    parts = re.split(r"\{([^{}]*)\}", written)
    for chosen in itertools.product(*(part.split(",") if index % 2 else (part,) for index, part in enumerate(parts))):
        name = "".join(part.strip() for part in chosen)
        if not (_WORD if term.words else _NAME).fullmatch(name):
            raise ConfigError(f"`{written}` is no dotted name such as `{term.example}`")
        yield name


def _operation(name: str, value: object) -> NamedOperation:
    with _within(name):
        if not _NAME.fullmatch(name) or "." not in name:
            raise ConfigError("expected a dotted name such as `acme.fused_norm`, or `*.fused_norm` for a method")
        table = _table(value)
        known = tuple(OF_OPERATIONS)
        for key in table:
            if key not in known:
                raise ConfigError(f"`{key}`: there is no such key.{did_you_mean(key, known)}")
        with _within("result"):
            result = _text(table.get("result", "tensor"))
            if result not in RESULTS:
                listed = ", ".join(f'"{one}"' for one in RESULTS)
                raise ConfigError(f'expected one of {listed}, found "{result}".{did_you_mean(result, RESULTS)}')
        flags = {key: table.get(key, key == "graph" and result != "value") for key in _FLAGS}
        for key, flag in flags.items():
            if not isinstance(flag, bool):
                raise ConfigError(f"`{key}`: expected true or false, found {_kind(flag)}")
    return NamedOperation(name, result, **flags)  # type: ignore[arg-type]


def _table(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"expected a table, found {_kind(value)}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"expected a string, found {_kind(value)}")
    return value


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "a list", dict: "a table"}
    return names.get(type(value), f"a {type(value).__name__}")
