"""Operations as text, to read them in tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import (
    Await,
    Break,
    Check,
    Continue,
    Enter,
    For,
    If,
    Narrowing,
    Raise,
    Return,
    Try,
    While,
    With,
    Yield,
)
from torchmemlint.flow.ir.lower import lower
from torchmemlint.flow.ir.places import (
    NO_TEMP,
    Argument,
    AttributePlace,
    ComputedKey,
    ConstantKey,
    Entry,
    Key,
    Name,
    Place,
    SliceKey,
    Spread,
)


def lowered(text: str, function: str = "<module>") -> str:
    """The operations of a function, by its name, of a file."""
    unit = lower(text, "example")
    return printed(next(f for f in unit.functions if f.name == function))


def printed(function: ops.Function) -> str:
    return "\n".join(_block(function.body, "")) + "\n"


def names(function: ops.Function) -> dict[str, str]:
    """The names that the operations of a function use, with their scopes."""
    found: dict[str, str] = {}
    for op in walk(function.body):
        for name in names_of(op):
            found[name.text] = name.scope.value + (f" {name.hops}" if name.hops else "")
    return found


def names_of(op: ops.Op) -> list[Name]:
    found = [getattr(op, slot) for slot in ("name", "place") if isinstance(getattr(op, slot, None), Name)]
    found += [narrowing.name for narrowing in getattr(op, "narrowings", ()) if narrowing.name is not None]
    if isinstance(op, Try):
        found += [handler.name for handler in op.handlers if handler.name is not None]
    return found


def blocks(op: ops.Op) -> list[list[ops.Op]]:
    found = [getattr(op, slot) for slot in ("head", "then", "body", "orelse", "final") if hasattr(op, slot)]
    if isinstance(op, Try):
        found += [handler.body for handler in op.handlers]
    return found


def walk(block: list[ops.Op]) -> Iterator[ops.Op]:
    for op in block:
        yield op
        for inner in blocks(op):
            yield from walk(inner)


def _block(block: list[ops.Op], indent: str) -> Iterator[str]:
    for op in block:
        head = _PRINTERS[type(op)](op)
        for index, (title, inner) in enumerate(_parts(op, head)):
            if index == 0 or inner:
                yield indent + title
                yield from _block(inner, indent + "    ")


def _parts(op: ops.Op, head: str) -> list[tuple[str, list[ops.Op]]]:
    if isinstance(op, If):
        return [(head, op.then), ("else:", op.orelse)]
    if isinstance(op, While):
        return [("while:", op.head), (head, op.body), ("else:", op.orelse)]
    if isinstance(op, For):
        return [(head, op.body), ("else:", op.orelse)]
    if isinstance(op, With):
        return [(head, op.body)]
    if isinstance(op, Try):
        handlers = [(f"except {' '.join(h.types)} t{h.caught}:", h.body) for h in op.handlers]
        return [(head, op.body), *handlers, ("else:", op.orelse), ("finally:", op.final)]
    return [(head, [])]


def _key(key: Key | None) -> str:
    if isinstance(key, ConstantKey):
        return repr(key.value)
    if isinstance(key, ComputedKey):
        return f"t{key.temp}"
    assert isinstance(key, SliceKey)
    return "slice " + _temps(key.parts) if key.parts else "slice"


def _temps(temps: tuple[int, ...]) -> str:
    return ", ".join("-" if temp == NO_TEMP else f"t{temp}" for temp in temps)


def _place(place: Place | None) -> str:
    if place is None:
        return ""
    if isinstance(place, Name):
        return f"  -> {place.text}"
    if isinstance(place, AttributePlace):
        return f"  -> t{place.base}.{place.name}"
    return f"  -> t{place.base}[{_key(place.key)}]"


def _arguments(arguments: tuple[Argument, ...]) -> str:
    texts = []
    for a in arguments:
        head = f"{a.name}=" if a.spread is Spread.NAMED else a.spread.value
        texts.append(f"{head}t{a.temp}")
    return ", ".join(texts)


def _entries(entries: tuple[Entry, ...]) -> str:
    return ", ".join(e.spread.value + (f"{_key(e.key)}: " if e.key is not None else "") + f"t{e.temp}" for e in entries)


def _narrowings(narrowings: tuple[Narrowing, ...]) -> str:
    texts = []
    for n in narrowings:
        where = {(True, True): "", (True, False): " then", (False, True): " else"}[n.in_then, n.in_orelse]
        key = "" if n.key is None else f".{n.key}"
        name = "it" if n.name is None else n.name.text
        texts.append(f"{name}{key} {'is' if n.holds else 'not'} {n.kind}{where}")
    return f"  ({', '.join(texts)})" if texts else ""


def _writes(writes: frozenset[str]) -> str:
    return f"  {{{', '.join(sorted(writes))}}}" if writes else ""


def _unpack(op: ops.Unpack) -> str:
    targets = [("*" if index == op.star else "") + f"t{temp}" for index, temp in enumerate(op.targets)]
    return f"{', '.join(targets)} = t{op.src}"


_PRINTERS: dict[type[ops.Op], Callable[[Any], str]] = {
    ops.Constant: lambda o: f"t{o.dst} = {o.value!r}",
    ops.Load: lambda o: f"t{o.dst} = {o.name.text}",
    ops.Bind: lambda o: f"{o.name.text} = t{o.src}",
    ops.Unbind: lambda o: f"del {o.name.text}",
    ops.Move: lambda o: f"t{o.dst} = t{o.src}",
    ops.Import: lambda o: f"t{o.dst} = import {'.' * o.relative}{o.qualified}",
    ops.GetAttribute: lambda o: f"t{o.dst} = t{o.base}.{o.name}",
    ops.SetAttribute: lambda o: f"t{o.base}.{o.name} = t{o.src}{_place(o.place)}",
    ops.GetItem: lambda o: f"t{o.dst} = t{o.base}[{_key(o.key)}]",
    ops.SetItem: lambda o: f"t{o.base}[{_key(o.key)}] = t{o.src}{_place(o.place)}",
    ops.Remove: lambda o: f"del t{o.base}" + (f".{o.key.value}" if o.attribute else f"[{_key(o.key)}]"),
    ops.Operate: lambda o: f"t{o.dst} = {o.operator} {_temps(o.operands)}{_place(o.place)}",
    ops.Compare: lambda o: f"t{o.dst} = {o.operator} {_temps(o.operands)}",
    ops.Choose: lambda o: f"t{o.dst} = {o.operator} {_temps(o.operands)}",
    ops.Format: lambda o: f"t{o.dst} = text {_temps(o.operands)}".rstrip(),
    ops.Call: lambda o: f"t{o.dst} = t{o.callee}({_arguments(o.arguments)})",
    ops.CallMethod: lambda o: f"t{o.dst} = t{o.base}.{o.name}({_arguments(o.arguments)}){_place(o.place)}",
    ops.Super: lambda o: f"t{o.dst} = super()",
    ops.Make: lambda o: f"t{o.dst} = {o.kind} {_entries(o.entries)}".rstrip(),
    ops.Collect: lambda o: f"t{o.box}" + (f"[{_key(o.key)}]" if o.key is not None else "") + f" << t{o.src}",
    ops.Unpack: _unpack,
    ops.Define: lambda o: f"t{o.dst} = def {o.function.name}({', '.join(f'{n}=t{t}' for n, t in o.defaults)})",
    ops.DefineClass: lambda o: f"t{o.dst} = class {o.cls.name}({', '.join(f'{n}=t{t}' for n, t in o.members)})",
    If: lambda o: f"if t{o.test}:{_narrowings(o.narrowings)}",
    For: lambda o: f"for t{o.item} in t{o.source}:{_writes(o.writes)}{' comprehension' if o.comprehension else ''}",
    While: lambda o: f"while t{o.test}:{_writes(o.writes)}",
    Try: lambda o: "try:",
    With: lambda o: f"with {_temps(o.contexts)}:",
    Enter: lambda o: f"t{o.dst} = enter t{o.context}",
    Return: lambda o: f"return {_temps((o.src,))}",
    Yield: lambda o: f"t{o.dst} = yield {'from ' if o.many else ''}{_temps((o.src,))}",
    Await: lambda o: f"t{o.dst} = await t{o.src}",
    Break: lambda o: "break",
    Continue: lambda o: "continue",
    Raise: lambda o: f"raise {_temps((o.src,))}",
    Check: lambda o: f"assert t{o.test}{_narrowings(o.narrowings)}",
}
