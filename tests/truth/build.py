"""From a choice to the files of one program."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from functools import cached_property

from . import tables
from .choice import BINDING, Choice, ImpossibleError, Values, check
from .emission import Mark, Section, emitted
from .forms import Parameter, Placed, Step, indented
from .tables.words import NAMES, NOISE, PACKED

_HOLE = re.compile(r"\{(v|t|f|s|c|m|o|r|obj|attr|clear|first|zero)\}")
_WORD = re.compile(r"\b(" + "|".join(NAMES) + r")\b")


@dataclass(frozen=True)
class Program:
    """The files of a program, and what is known of them by construction."""

    values: Values
    form: str  # why it should leak, or not: running it decides
    seed: str
    files: dict[str, str]
    marks: dict[str, list[Mark]]
    drive: str = ""  # how a caller that is in no file runs it; "": main.py runs itself

    @property
    def text(self) -> str:
        """All of it, as one text."""
        return "\0".join(f"{name}\0{text}" for name, text in sorted(self.files.items())) + self.drive


@dataclass(frozen=True)
class Spelling:
    """What is drawn for a program and means nothing. Twins have the same."""

    in_class: bool
    noise: str
    packed: str
    named: bool  # an unpacked value gets a name
    names: dict[str, str]

    @classmethod
    def drawn(cls, seed: str) -> Spelling:
        """The spelling of a seed."""
        rng = random.Random(seed)
        in_class, named = rng.random() < 0.3, rng.random() < 0.5
        noise, packed = rng.choice(NOISE), rng.choice(PACKED)
        return cls(in_class, noise, packed, named, {name: rng.choice(others) for name, others in NAMES.items()})

    def renamed(self, text: str) -> str:
        """The text with the names of this spelling."""
        return _WORD.sub(lambda word: self.names[word[1]], text)


def filled(text: str, holes: dict[str, str]) -> str:
    """The text with its holes filled; what fills one may have holes itself."""
    for _ in range(4):
        new = _HOLE.sub(lambda hole: holes.get(hole[1], hole[0]), text)
        if new == text:
            break
        text = new
    return text


def build(values: Values, seed: str, form: str = "") -> Program:
    """The program of these values; raises `ImpossibleError` if they make none."""
    choice = Choice.of(values)
    check(choice)
    spelling = Spelling.drawn(seed)
    written = _Writer(choice, spelling)
    sections = written.sections()
    sections = [Section(s.file, [spelling.renamed(line) for line in s.lines], s.imports) for s in sections if s.lines]
    files, marks = emitted(sections)
    drive = spelling.renamed(written.drive(list(files)))
    return Program(values, form, seed, files, marks, drive)


@dataclass
class _Writer:
    c: Choice
    spelling: Spelling
    placed: Placed = field(init=False)

    def __post_init__(self) -> None:
        self.placed = self.c.call(Step(self.source_lines, self.packed))

    @cached_property
    def source_lines(self) -> list[str]:
        wrap = self.c.mode.wrap if self.c.mode.around == "pass" else ""
        wrapped = [
            [wrap, f"    {line}"] if wrap and line.endswith("#@pass") else [line] for line in self.c.source.lines
        ]
        return [line for lines in wrapped for line in lines]

    # what the holes stand for

    @cached_property
    def in_class(self) -> bool:
        return self.c.holder.needs_self or self.c.loop.style == "method" or self.spelling.in_class

    @cached_property
    def packed(self) -> str:
        """The value, cut there if it is, in what carries it."""
        value = self.c.source.value
        return filled(self.c.carrier.pack, {"v": self.c.cut_of(value) if self.c.cut_at_source else value})

    @cached_property
    def fold(self) -> str:
        c, kind = self.c, self.c.holder.kind
        if c.source.carried:
            fold = c.source.folded
        else:
            way = tables.WAY.get(kind, {}).get(c.way)
            fold = way.fold if way and way.fold and not c.bound.put else c.holder.fold or tables.FOLD.get(kind, "")
        return fold if c.source.scalar or kind == "hook" else f"({fold}).sum()"

    @cached_property
    def holes(self) -> dict[str, str]:
        holder = self.c.holder
        kind = "tensor_sum" if holder.kind == "sum" and holder.tensor else holder.kind
        owner, _, attribute = holder.target.rpartition(".")
        return {
            "m": "self.model" if self.in_class else "model",
            "o": "self.opt" if self.in_class else "opt",
            "t": holder.target,
            "f": self.fold,
            "clear": holder.clear or tables.CLEAR.get(kind, ""),
            "obj": owner,
            "attr": attribute,
            "first": "next(iter({t}))" if kind == "dict" else "0",
            "zero": self.c.source.initial or tables.ZERO,
        }

    @cached_property
    def parameters(self) -> list[Parameter]:
        """Of the host, with what main gives."""
        given = dict(self.c.bound.parameters)
        return [(name, given.get(name, value)) for name, value in (*self.c.mode.parameters, *self.c.guard.parameters)]

    # one iteration

    def _carried(self) -> str:
        """What the computation's result is called."""
        if self.placed.call:
            return self.spelling.packed if self.c.values["carrier"] != "name" else "value"
        if self.c.values["carrier"] == "name" and not (self.c.cut_at_source and self.c.values["cut"] != "none"):
            return self.c.source.value
        return self.spelling.packed

    def computation(self) -> list[str]:
        """From the batch to the value, packed."""
        lines = ["x, y = x.to(DEVICE), y.to(DEVICE)", *([self.spelling.noise] if self.spelling.noise else [])]
        lines += self.placed.before
        if self.placed.call:
            return [*lines, f"{self._carried()} = {self.placed.call}"]
        lines += self.source_lines
        if self._carried() != self.c.source.value:
            lines.append(f"{self._carried()} = {self.packed}")
        return lines

    def keeping(self, carried: str) -> list[str]:
        """From the packed value to the holder, and what follows."""
        c = self.c
        lines: list[str] = []
        unpacked = filled(c.carrier.unpack, {"c": carried})
        used_again = c.source.after or c.decoy.lines or any("{s}" in line for line in c.fate.body)
        if unpacked != carried and (used_again or self.spelling.named):
            lines.append(f"value = {unpacked}")
            unpacked = "value"
        value = unpacked if c.cut_at_source else c.cut_of(unpacked)
        if c.holder.kind != "hook":
            lines += self._guarded(value)
        lines += [filled(line, {"v": unpacked}) for line in c.source.after]
        lines += [*c.bound.lines, *c.fate.body]
        scalar = unpacked if c.source.scalar else f"{unpacked}.sum()"
        lines += [filled(line, {"v": unpacked}) for line in c.decoy.lines]
        return [filled(line, {**self.holes, "v": value, "s": scalar}) for line in lines]

    def _guarded(self, value: str) -> list[str]:
        put = filled(self._put(), {"v": value})
        lines = [self.c.mode.wrap, f"    {put}"] if self.c.mode.around == "put" else [put]
        guarded: list[str] = []
        for line in self.c.guard.lines:
            before, hole, _ = line.partition("{put}")
            guarded += [before + inner for inner in lines] if hole else [line]
        return guarded

    def _put(self) -> str:
        c, kind = self.c, self.c.holder.kind
        if c.source.carried:
            return "{t} = {v} #@put"
        if c.bound.put:
            return c.bound.put[kind] + " #@put"
        if kind == "own":
            return c.holder.puts[c.way]
        put = tables.WAY[kind][c.way].put
        return put if "#@" in put or self._puts_elsewhere() else put + " #@put"

    def _puts_elsewhere(self) -> bool:
        return any("#@put" in line for line in tables.WAY[self.c.holder.kind][self.c.way].top)

    # the host

    def loop(self) -> list[str]:
        c, style = self.c, self.c.loop.style
        if style == "collect":
            return self._collected()
        if style == "split":
            keep = self.keeping("got") or ["pass"]
            if any(re.search(r"\b[xy]\b", line) for line in keep):
                raise ImpossibleError("the batch is not seen there")
            return [*self._one([*self.computation(), f"return {self._carried()}"]), *c.loop.weave(keep)]
        body = [*self.computation(), *self.keeping(self._carried())]
        if style == "body":
            return c.loop.weave(body)
        if style == "nested":
            return [*self._one([*self._declarations(body), *body]), *c.loop.weave([])]
        return c.loop.weave([])

    def method(self) -> list[str]:
        """The iteration as a method of the host's class."""
        if self.c.loop.style != "method":
            return []
        if any(BINDING.match(line) for line in self.placed.setup):
            raise ImpossibleError("a method does not see the host's names")
        head, *unpacking = self.c.loop.method
        body = [*self.computation(), *self.keeping(self._carried())]
        return [head, *indented([*self._declarations(body), *unpacking, *body]), ""]

    def _one(self, body: list[str]) -> list[str]:
        return ["def one(x, y):", *indented(body)]

    def _collected(self) -> list[str]:
        c = self.c
        unpacked = filled(c.carrier.unpack, {"c": self._carried()})
        value = unpacked if c.cut_at_source else c.cut_of(unpacked)
        one = self._one([*self.computation(), f"return {value}"])
        if c.holder.kind == "hook":
            raise ImpossibleError("a hook collects itself")
        return [*one, f"{c.holder.target} = {c.loop.collects[c.holder.kind]} #@put"]

    def _declarations(self, body: list[str]) -> list[str]:
        """`nonlocal` and `global`, for what the body binds."""
        method = self.c.loop.style == "method"
        text = "\n".join(filled(line, self.holes) for line in body)
        return [
            line
            for line in (self.c.holder.decl, self.c.bound.decl, self.c.decoy.decl)
            if line and not (method and line.startswith("nonlocal")) and _binds(text, line.split()[1])
        ]

    def host(self) -> list[str]:
        """The body of the function that has the loop."""
        c = self.c
        looped = self.loop()
        if c.mode.wrap and c.mode.around == "loop":
            looped = [*c.mode.wrap.split("\n"), *indented(looped)]
        init = [self._in_hook(line.replace(*c.bound.swap)) for line in c.holder.init]
        lines = [
            *c.source.setup,
            *init,
            *c.bound.init,
            *c.decoy.init,
            *self.placed.setup,
            *c.mode.before,
            *looped,
            *c.mode.after,
        ]
        lines += c.fate.after
        if c.fate.returns:
            lines.append(f"return {c.fate.returns}")
        lines = [filled(line, self.holes) for line in lines]
        declared = c.holder.host_decl
        return [declared, *lines] if declared and _binds("\n".join(lines), declared.split()[1]) else lines

    def _in_hook(self, line: str) -> str:
        return line.replace("{v}", self.c.cut_of("out")) if self.c.holder.kind == "hook" else line

    def host_section(self) -> list[str]:
        c = self.c
        parameters = "".join(f", {name}" for name, _ in self.parameters)
        decorator = [c.mode.decorator] if c.mode.decorator else []
        host = self.host()
        if not self.in_class:
            return [*decorator, f"def host_run(model, opt, loader{parameters}):", *indented(host)]
        init = ["self.model = model", "self.opt = opt", *(filled(line, self.holes) for line in c.holder.attrs)]
        named = ", ".join(filter(None, (c.holder.bases, c.loop.bases)))
        bases = f"({named})" if named else ""
        methods = [
            *c.holder.class_body,
            "def __init__(self, model, opt):",
            *indented(init),
            "",
            *(filled(line, self.holes) for line in self.method()),
            *decorator,
            f"def host_run(self, loader{parameters}):",
            *indented(host),
        ]
        return [f"class Trainer{bases}:", *indented(methods)]

    # the files

    @cached_property
    def called(self) -> str:
        """How main calls the host."""
        given = "".join(f", {name}={value}" for name, value in self.parameters)
        return (
            f"Trainer(model, opt).host_run(loader{given})" if self.in_class else f"host_run(model, opt, loader{given})"
        )

    @cached_property
    def making(self) -> list[str]:
        """What main makes first."""
        return [
            "torch.manual_seed(0)",
            f"model = {self.c.model.make}.to(DEVICE)",
            "opt = torch.optim.SGD(model.parameters(), lr=0.01)",
            "loader = make_loader()",
        ]

    def drive(self, files: list[str]) -> str:
        """What a caller that is in no file does."""
        if not self.c.fate.drive:
            return ""
        lines = [
            "import torch",
            "from torch import nn",
            *(f"from {name.removesuffix('.py')} import *" for name in files),
        ]
        return "\n".join([*lines, *self.making, f"result = {self.called}", filled(self.c.fate.drive, {"r": "result"})])

    def sections(self) -> list[Section]:
        """The parts of the program, in order, each with its file."""
        c = self.c
        file = {part: c.place.files.get(part, "main.py") for part in ("top", "holder", "model", "host")}
        packing = "core.py" if self.placed.third else "helper.py" if self.placed.other else file["top"]
        way = tables.WAY.get(c.holder.kind, {}).get(c.way)
        net = [*c.network.top, *([""] if c.network.top else []), *c.network.lines]
        host = self.host_section()
        cutting = file["holder"] if c.holder.kind == "hook" else packing if c.cut_at_source else file["top"]
        parts: list[tuple[str, list[str]]] = [
            (file["host"], ['DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")']),
            (packing, list(c.source.top)),
            (packing, list(c.carrier.top)),
            (cutting, list(c.cut.top)),
            (file["holder"], [self._in_hook(line.replace(*c.bound.swap)) for line in c.holder.top]),
            (file["top"], list(way.top) if way and not c.bound.put else []),
            *((file["top"], list(part)) for part in (c.mode.top, c.loop.top, c.fate.top, c.decoy.top)),
            (file["model"], _with_net(c.model.top, net)),
            ("parts.py", _with_net(c.model.other, net)),
            ("layers.py", _with_net(c.model.third, net)),
            (file["host"], self.placed.top),
            ("helper.py", self.placed.other),
            ("core.py", self.placed.third),
        ]
        sections = [Section(name, [filled(line, self.holes) for line in lines]) for name, lines in parts]
        sections.append(Section(file["host"], host, self.placed.imports))
        sections.append(Section("main.py", list(_LOADER)))
        if not c.fate.drive:
            sections.append(Section("main.py", self._main()))
        return sections

    def _main(self) -> list[str]:
        c = self.c
        call = f"result = {self.called}" if c.fate.main else self.called
        lines = [c.mode.caller, f"    {call}"] if c.mode.caller else [call]
        lines = [*self.making, *lines, *c.fate.main]
        return ["def main():", *indented(lines), "", 'if __name__ == "__main__":', "    main()"]


_LOADER = (
    "def make_loader():",
    "    data = TensorDataset(torch.randn(51200, 1024), torch.randn(51200, 1000))",
    "    return DataLoader(data, batch_size=256)",
)


def _with_net(lines: tuple[str, ...], net: list[str]) -> list[str]:
    return [new for line in lines for new in (net if line == "{net}" else [line])]


def _binds(text: str, name: str) -> bool:
    return re.search(rf"(?<![.\w]){name}(?:, \w+)* (?:[-+|*]|)= ", text) is not None
