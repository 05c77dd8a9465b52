"""The facts of a file brought up to date after an edit, without looking at all of it again.

An editor is to say at once what is wrong with the function that is being typed in. What the analysis found out about
the rest of the file still stands, or nearly: the function's own facts are forgotten, and it alone is walked again. What
the edit changes for others (a caller that is given something else by it now) comes with the next whole analysis.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Set

from torchmemlint.flow import relevance
from torchmemlint.flow.analysis import Analysis
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import Function, Program
from torchmemlint.source.decoding import UnreadableFile
from torchmemlint.syntax.grafting import graft
from torchmemlint.syntax.outline import imports
from torchmemlint.syntax.revision import Revision, compare
from torchmemlint.syntax.source_module import Piece

_PASSES = 2  # what a backward proves comes after what it is proven of


class TooMuch(Exception):  # noqa: N818 (nothing is wrong)
    """An edit changed more than can be followed. The analysis is of no use any more."""


def revise(analysis: Analysis, text: str, pulse: Callable[[], None]) -> None:
    """Bring the facts of a file up to date with its text, which is another one now.

    Raises UnreadableFile where that cannot be read; the analysis stays one of the old text. Raises TooMuch where more
    changed than the body of one function, or imports that nobody uses, or comments. After that, and after any other
    exception, the analysis is of no use.
    """
    it = analysis.interpreter
    source = it.main.source
    revision = compare(source, text)
    if revision is None:
        raise TooMuch
    try:
        function = _changed(analysis, revision)
    except UnreadableFile:
        raise TooMuch from None  # it is nested too deeply: a whole look says so
    source.become(text, revision.pieces)
    for piece, rows in revision.moved:
        piece.move(rows)
        cls = it.main.classes.get(piece.name) if piece.kind == "class" else None
        if cls is not None and cls.piece is piece:
            for method in cls.methods.values():
                method.piece.move(rows)
    if function is not None:
        it.pulse = pulse
        if analysis.relevant is not None and function in analysis.relevant.functions:
            _walk_again(analysis, function)
        else:
            _stays_irrelevant(analysis)


def _stays_irrelevant(analysis: Analysis) -> None:
    """A function changed that was not walked: the same ones must be worth it."""
    before = analysis.relevant.functions if analysis.relevant is not None else ()
    if set(relevance.find(analysis.interpreter.main).functions) != set(before):
        raise TooMuch


# -- the text --------------------------------------------------------------------------------------------------------


def _changed(analysis: Analysis, revision: Revision) -> Function | None:
    """The function that an edit changed, with its new body; None where it changed none."""
    program = analysis.interpreter.main
    match revision.gone, revision.come:
        case [], []:
            return None
        case gone, come if all(_only_names(piece) for piece in (*gone, *come)):
            _change_imports(program, revision)
            return None
        case [old], [new] if old.kind == new.kind == "def" and old.name == new.name:
            function = program.functions.get(old.name)
            if function is not None and function.piece is old:
                function = _rewritten(analysis, function, new)
        case [old], [new] if old.kind == new.kind == "class" and old.name == new.name:
            function = _changed_method(analysis, old, new)
        case _:
            raise TooMuch
    if function is None:
        raise TooMuch
    revision.pieces[revision.pieces.index(new)] = old
    return function


def _only_names(piece: Piece) -> bool:
    """An import, or a name that stands alone, as the beginnings of most lines do: `impor`."""
    match piece.outline:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Name() | ast.Attribute(value=ast.Name())):
            return piece.text.count(";") == 0
    return False


def _change_imports(program: Program, revision: Revision) -> None:
    """Imports came or went: that nothing in the file mentions them is all that is understood."""
    changed: set[str] = set()
    for pieces in (revision.gone, revision.come):
        changed ^= {name for name, _ in imports([piece.outline for piece in pieces if piece.outline is not None])}
    others = [piece for piece in revision.pieces if not _only_names(piece)]
    if "*" in changed or any(not changed.isdisjoint(program.summary(piece).names) for piece in others):
        raise TooMuch
    was_test = program.is_test
    program.imported.clear()
    program.imported.update(imports([piece.outline for piece in revision.pieces if piece.outline is not None]))
    if program.is_test != was_test or not others or revision.pieces[-1] in revision.come:
        raise TooMuch  # how a script ends has a meaning of its own


def _changed_method(analysis: Analysis, old: Piece, new: Piece) -> Function | None:
    """The one method in which two texts of a class differ."""
    program = analysis.interpreter.main
    cls = program.classes.get(old.name)
    before, after = old.outline, new.outline
    assert isinstance(before, ast.ClassDef)
    assert isinstance(after, ast.ClassDef)
    if cls is None or cls.piece is not old or len(before.body) != len(after.body) or _head(old) != _head(new):
        return None
    different = [
        (one, other) for one, other in zip(before.body, after.body, strict=True) if old.part(one) != new.part(other)
    ]
    match different:
        case [(ast.FunctionDef() | ast.AsyncFunctionDef() as one, other)] if type(one) is type(other):
            function = cls.methods.get(one.name)
            names = [part.name for part in before.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
            if function is None or names.count(one.name) != 1 or one.name != other.name:
                return None
            old.become(new)
            for part in after.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part is not other:
                    cls.methods[part.name].piece.become(new.method(part))
            return _rewritten(analysis, function, new.method(other))
    return None


def _head(piece: Piece) -> str:
    """The text of a class before its body."""
    assert isinstance(piece.outline, ast.ClassDef)
    return "".join(piece.lines[: piece.row_of(piece.outline.body[0]) - piece.first_row])


def _rewritten(analysis: Analysis, function: Function, new: Piece) -> Function | None:
    """The function with its new text; None where that has another head."""
    tree = graft(function.piece, new)
    if tree is None:
        return None
    function.piece.become(new, tree)
    analysis.interpreter.main.reread(function.piece.top)
    return function


# -- the facts -------------------------------------------------------------------------------------------------------


def _walk_again(analysis: Analysis, function: Function) -> None:
    it = analysis.interpreter
    gone = {function, *(f for f in it.local_functions.values() if function in f.parents())}
    it.steps_abroad = 0
    states = analysis.relevant is not None and analysis.relevant.drives
    for _ in range(_PASSES):
        _forget(it, gone)
        it.asked.clear()
        analysis.walk(function)
        if not it.is_outdated(states=states):
            break
    analysis.finish()


def _forget(it: Interpreter, gone: Set[Function]) -> None:
    """Drop what functions' own analyses took down, and what is known of them by their bodies."""
    pieces = {function.piece for function in gone}
    proofs = {place: site for place, site in it.proofs.items() if site.piece not in pieces or site.stands}
    it.indirect -= it.proofs.keys() - proofs.keys()
    it.proofs = proofs
    it.proven_with = {
        place: {switches: site for switches, site in shown.items() if site.piece not in pieces or site.stands}
        for place, shown in it.proven_with.items()
        if place in proofs
    }
    it.enclosed -= gone
    it._roles = {key: role for key, role in it._roles.items() if key[0] not in gone}
    for function in gone:
        it.facts.forget(it.taken_down.pop(function, []))
        it.effects.pop(function, None)
        it.returned.pop(function, None)
        if function.parent is not None:
            it.nested.pop(function, None)
