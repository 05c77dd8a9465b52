"""`match`: a chain of branches. A case first tests, then captures, then asks its guard."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .building import Builder, given_plainly, span, statement
from .control import If, Narrowing
from .keys import WHOLE, dict_key
from .narrowing import mark_tested, narrowings
from .ops import Call, Choose, Class, Compare, Constant, GetAttribute, GetItem, Load, Move, Span
from .places import ConstantKey, Key, Temp
from .texts import dotted


@statement("Match")
def match(b: Builder, node: ast.Match) -> None:
    """`match x: case ...`: each case is in the other branch of the one before."""
    subject = b.expression(node.subject)
    mark_tested(b, node.subject)
    outer = b.block
    for case in node.cases:
        place = span(case.pattern)
        test = _test(b, case.pattern, subject)
        narrowed: tuple[Narrowing, ...] = ()
        captured = False
        if case.guard is not None:
            test = _guard(b, case, subject, test)
            narrowed = tuple([n for n in narrowings(b, case.guard) if n.in_then])
            narrowed = tuple([Narrowing(n.name, n.key, n.kind, n.holds, True, False) for n in narrowed])
            captured = True
        elif test is not None:
            narrowed = _narrowing(b, node.subject, case.pattern)
        if test is None:
            _capture(b, case.pattern, subject)
            b.statements(case.body)
            break
        branch = If(b.function, place, test, [], [], narrowed)
        b.block.append(branch)
        b.block = branch.then
        if not captured:
            _capture(b, case.pattern, subject)
        b.statements(case.body)
        b.block = branch.orelse
    b.block = outer


def _guard(b: Builder, case: ast.match_case, subject: Temp, test: Temp | None) -> Temp:
    """The captures and the guard are looked at only where the pattern fits."""
    assert case.guard is not None
    place = span(case.pattern)
    if test is None:
        _capture(b, case.pattern, subject)
        mark_tested(b, case.guard)
        return b.expression(case.guard)
    both = b.temp()
    branch = If(b.function, place, test, [], [], ())
    outer = b.block
    outer.append(branch)
    b.block = branch.then
    _capture(b, case.pattern, subject)
    mark_tested(b, case.guard)
    src = b.expression(case.guard)
    b.block.append(Move(b.function, place, both, src))
    b.block = branch.orelse
    b.block.append(Move(b.function, place, both, b.make(Constant, place, False)))
    b.block = outer
    return both


def _narrowing(b: Builder, subject: ast.expr, pattern: ast.pattern) -> tuple[Narrowing, ...]:
    """`case torch.Tensor():` and `case None:`."""
    while isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        pattern = pattern.pattern
    if isinstance(subject, ast.Name):
        if isinstance(pattern, ast.MatchSingleton) and pattern.value is None:
            return (Narrowing(b.names[subject.id], None, "none", True),)
        if isinstance(pattern, ast.MatchClass) and dotted(pattern.cls).rpartition(".")[2] == "Tensor":
            whole = not (pattern.patterns or pattern.kwd_patterns)
            return (Narrowing(b.names[subject.id], None, "tensor", True, True, whole),)
    return ()


def _choose(b: Builder, place: Span, operator: str, operands: list[Temp]) -> Temp:
    if len(operands) == 1:
        return operands[0]
    return b.make(Choose, place, operator, tuple(operands))


def _ask(b: Builder, place: Span, function: str, *values: Temp) -> Temp:
    """Call `isinstance` or `len`."""
    callee = b.make(Load, place, b.names[function])
    return b.make(Call, place, callee, tuple([given_plainly[value] for value in values]))


# What has to hold.


def _test(b: Builder, pattern: ast.pattern, subject: Temp) -> Temp | None:
    """Test a value against a pattern; None if everything fits it."""
    return _TESTS[pattern.__class__](b, pattern, subject)


def _test_singleton(b: Builder, pattern: ast.MatchSingleton, subject: Temp) -> Temp:
    place = span(pattern)
    return b.make(Compare, place, "is", (subject, b.make(Constant, place, pattern.value)))


def _test_or(b: Builder, pattern: ast.MatchOr, subject: Temp) -> Temp | None:
    tests: list[Temp] = []
    for choice in pattern.patterns:
        test = _test(b, choice, subject)
        if test is None:
            return None
        tests.append(test)
    return _choose(b, span(pattern), "or", tests)


def _test_sequence(b: Builder, pattern: ast.MatchSequence, subject: Temp) -> Temp:
    place = span(pattern)
    stars = sum(isinstance(part, ast.MatchStar) for part in pattern.patterns)
    length = b.make(Constant, place, len(pattern.patterns) - stars)
    tests = [b.make(Compare, place, ">=" if stars else "==", (_ask(b, place, "len", subject), length))]
    for key, part in _sequence_parts(pattern):
        if _refutable(part):
            _add_test(b, part, b.make(GetItem, span(part), subject, key), tests)
    return _choose(b, place, "and", tests)


def _sequence_parts(pattern: ast.MatchSequence) -> list[tuple[Key, ast.pattern]]:
    """The parts with where they are; behind a star, counted from the end."""
    parts: list[tuple[Key, ast.pattern]] = []
    behind = False
    for index, part in enumerate(pattern.patterns):
        if isinstance(part, ast.MatchStar):
            behind = True
            parts.append((WHOLE, part))
        else:
            parts.append((ConstantKey(index - len(pattern.patterns) if behind else index), part))
    return parts


def _test_mapping(b: Builder, pattern: ast.MatchMapping, subject: Temp) -> Temp | None:
    place = span(pattern)
    tests: list[Temp] = []
    for key, part in zip(pattern.keys, pattern.patterns, strict=True):
        tests.append(b.make(Compare, place, "in", (b.expression(key), subject)))
        if _refutable(part):
            _add_test(b, part, b.make(GetItem, span(part), subject, dict_key(b, key)), tests)
    if not tests:
        tests.append(_ask(b, place, "isinstance", subject, b.make(Load, place, b.names["dict"])))
    return _choose(b, place, "and", tests)


def _test_class(b: Builder, pattern: ast.MatchClass, subject: Temp) -> Temp:
    place = span(pattern)
    tests = [_ask(b, place, "isinstance", subject, b.expression(pattern.cls))]
    for part, where in _class_parts(b, pattern):
        if _refutable(part):
            _add_test(b, part, _part_of(b, span(part), subject, where), tests)
    return _choose(b, place, "and", tests)


def _class_parts(b: Builder, pattern: ast.MatchClass) -> list[tuple[ast.pattern, str | int | None]]:
    """The parts, with their attribute, else their position; None for the value itself, as in `int(x)`."""
    parts: list[tuple[ast.pattern, str | int | None]] = []
    if pattern.patterns:
        name = dotted(pattern.cls)
        fields = _fields(b, name)
        for index, part in enumerate(pattern.patterns):
            if name in _BUILT_IN:
                parts.append((part, None))
            else:
                parts.append((part, fields[index] if index < len(fields) else index))
    parts.extend(zip(pattern.kwd_patterns, pattern.kwd_attrs, strict=True))
    return parts


_BUILT_IN = frozenset("bool bytearray bytes dict float frozenset int list set str tuple".split())


def _fields(b: Builder, name: str) -> list[str]:
    """The fields of a class of the same file."""
    found: Class | None = next((cls for cls in b.unit.classes if cls.name == name), None)
    return [] if found is None else [field for field, _ in found.fields]


def _part_of(b: Builder, place: Span, subject: Temp, where: str | int | None) -> Temp:
    if where is None:
        return subject
    if isinstance(where, str):
        b.mentions.add(where)
        return b.make(GetAttribute, place, subject, where)
    return b.make(GetItem, place, subject, ConstantKey(where))


def _add_test(b: Builder, pattern: ast.pattern, subject: Temp, tests: list[Temp]) -> None:
    test = _test(b, pattern, subject)
    if test is not None:
        tests.append(test)


def _refutable(pattern: ast.pattern) -> bool:
    """Is there something that does not fit?"""
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is not None and _refutable(pattern.pattern)
    if isinstance(pattern, ast.MatchOr):
        return all(_refutable(choice) for choice in pattern.patterns)
    return not isinstance(pattern, ast.MatchStar)


_TESTS: dict[type[ast.AST], Callable[[Builder, Any, Temp], Temp | None]] = {
    ast.MatchValue: lambda b, p, subject: b.make(Compare, span(p), "==", (subject, b.expression(p.value))),
    ast.MatchSingleton: _test_singleton,
    ast.MatchAs: lambda b, p, subject: None if p.pattern is None else _test(b, p.pattern, subject),
    ast.MatchOr: _test_or,
    ast.MatchStar: lambda b, p, subject: None,
    ast.MatchSequence: _test_sequence,
    ast.MatchMapping: _test_mapping,
    ast.MatchClass: _test_class,
}


# What is bound.


def _capture(b: Builder, pattern: ast.pattern, subject: Temp) -> None:
    """Bind the names in a pattern that fits."""
    place = span(pattern)
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None:
            _capture(b, pattern.pattern, subject)
        if pattern.name is not None:
            _capture_name(b, pattern.name, subject, place)
    elif isinstance(pattern, ast.MatchStar):
        if pattern.name is not None:
            b.bind(pattern.name, subject, place)
    elif isinstance(pattern, ast.MatchOr):
        _capture_choice(b, pattern, subject)
    elif isinstance(pattern, ast.MatchSequence):
        for key, part in _sequence_parts(pattern):
            if _captures(part):
                _capture(b, part, b.make(GetItem, span(part), subject, key))
    elif isinstance(pattern, ast.MatchMapping):
        for written, part in zip(pattern.keys, pattern.patterns, strict=True):
            if _captures(part):
                _capture(b, part, b.make(GetItem, span(part), subject, dict_key(b, written)))
        if pattern.rest is not None:
            _capture_name(b, pattern.rest, subject, place)
    elif isinstance(pattern, ast.MatchClass):
        for part, where in _class_parts(b, pattern):
            if _captures(part):
                _capture(b, part, _part_of(b, span(part), subject, where))


def _capture_name(b: Builder, name: str, subject: Temp, place: Span) -> None:
    dst = b.make(Move, place, subject)
    b.bind(name, dst, place)


def _capture_choice(b: Builder, pattern: ast.MatchOr, subject: Temp) -> None:
    """The choices bind the same names: which of them fits is asked again."""
    if not _captures(pattern):
        return
    outer = b.block
    for choice in pattern.patterns[:-1]:
        test = _test(b, choice, subject)
        if test is None:
            _capture(b, choice, subject)
            break
        branch = If(b.function, span(choice), test, [], [], ())
        b.block.append(branch)
        b.block = branch.then
        _capture(b, choice, subject)
        b.block = branch.orelse
    else:
        _capture(b, pattern.patterns[-1], subject)
    b.block = outer


def _captures(pattern: ast.pattern) -> bool:
    """Does it bind a name?"""
    if isinstance(pattern, ast.MatchAs):
        return pattern.name is not None or (pattern.pattern is not None and _captures(pattern.pattern))
    if isinstance(pattern, ast.MatchStar):
        return pattern.name is not None
    if isinstance(pattern, ast.MatchMapping) and pattern.rest is not None:
        return True
    parts = [*getattr(pattern, "patterns", ()), *getattr(pattern, "kwd_patterns", ())]
    return any(_captures(part) for part in parts)
