"""Checkpoints that stay bound while the program goes on to work: where they are read, last used, and what runs then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from torchmemlint.findings import Position
from torchmemlint.flow.facts import CheckpointLoad, FileFacts, GuardedCall, ModuleCall, Use
from torchmemlint.immutable import immutable
from torchmemlint.syntax.source_module import Piece, Site
from torchmemlint.syntax.walking import children, inside, names_in

_KEPT = Use.STORED | Use.RETURNED
_Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_INNER = (cst.FunctionDef, cst.Lambda, cst.ClassDef)


@immutable()
class Leftover:
    """A checkpoint that its names keep alive beyond its last use."""

    names: tuple[str, ...]
    last: Site  # the last place that uses one of them
    work: Site  # what runs after it
    after: Site | None  # the statement behind which all of them can be deleted; None: not everywhere bound there


class _Tree:
    """The statements that share the names of a function, or of the module level, and what is above each node."""

    def __init__(self, facts: FileFacts, load: CheckpointLoad) -> None:
        function = load.scope.function
        self.pieces: dict[int, Piece] = {}
        self.above: dict[int, cst.CSTNode] = {}
        self.names: dict[str, list[cst.Name]] = {}
        if function is not None:
            self.roots: list[cst.CSTNode] = [function.node.body]
            self._take(function.node.body, load.site.piece)
            return
        self.roots = []
        for piece in facts.source.pieces:
            if piece.kind == "code" and piece.first_row >= load.site.piece.first_row:
                self.roots += piece.module.body
                for statement in piece.module.body:
                    self._take(statement, piece)

    def _take(self, root: cst.CSTNode, piece: Piece) -> None:
        for node in inside(root):
            self.pieces[id(node)] = piece
            for child in children(node):
                self.above[id(child)] = node
            if isinstance(node, cst.Name):
                self.names.setdefault(node.value, []).append(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The node itself and all above it."""
        above: cst.CSTNode | None = node
        while above is not None:
            yield above
            above = self.above.get(id(above))

    def is_label(self, name: cst.Name) -> bool:
        """An attribute's or keyword's name, which is no variable."""
        match self.above.get(id(name)):
            case cst.Attribute(attr=attr):
                return attr is name
            case cst.Arg(keyword=keyword):
                return keyword is name
        return False

    def statements_around(self, node: cst.CSTNode) -> list[_Statement]:
        """The statements that a node is in, innermost first."""
        return [above for above in self.ancestors(node) if isinstance(above, _Statement)]

    def following(self, statement: cst.CSTNode) -> list[cst.CSTNode]:
        """What stands after a statement in its block."""
        block = self.above.get(id(statement))
        body: Sequence[cst.CSTNode] = block.body if isinstance(block, cst.IndentedBlock) else self.roots
        index = next((i for i, one in enumerate(body) if one is statement), len(body))
        return list(body[index + 1 :])


def find(facts: FileFacts, load: CheckpointLoad) -> Leftover | None:
    """What keeps the contents of a file that was read; None where they go, or nothing follows, or it is not known."""
    if load.origin not in facts.copied_at or facts.use(frozenset({load.origin})) & _KEPT:
        return None
    tree = _Tree(facts, load)
    bound = tree.above.get(id(load.site.node))
    if not isinstance(bound, cst.Assign) or len(bound.targets) != 1:
        return None
    target = bound.targets[0].target
    if not isinstance(target, cst.Name) or _is_shared(facts, load, target.value):
        return None
    span = load.site.piece.span
    begin = span(bound).end
    names = {target.value, *_copied_from(tree, begin)}
    names |= _selected_from(tree, names)
    filled = _filled_with(tree, names)
    if not all(any(_is_bound(tree, node) for node in tree.names[name]) for name in filled):
        return None  # whoever called has them too
    names |= filled
    uses: list[cst.Name] = []
    bindings: list[cst.Name] = []
    for name in names:
        for node in tree.names.get(name, ()):
            if tree.is_label(node) or tree.pieces[id(node)].span(node).start < span(bound).start:
                continue
            around = list(tree.ancestors(node))
            if any(isinstance(above, (*_INNER, cst.Del, cst.Return, cst.Yield, cst.Global)) for above in around):
                return None
            (bindings if _is_bound(tree, node) else uses).append(node)
    if not uses or any(not _is_made_of(tree, node, bound, names) for node in bindings):
        return None
    last = max(uses, key=lambda node: tree.pieces[id(node)].span(node).start)
    ordered = (target.value, *sorted(names - {target.value}))
    return _after(facts, tree, bound, last, bindings, ordered)


def _is_shared(facts: FileFacts, load: CheckpointLoad, name: str) -> bool:
    """May other functions see it, or ask for all variables?"""
    function = load.scope.function
    if function is not None:
        return "locals" in function.outline.calls
    pieces = (piece for piece in facts.source.pieces if piece.kind != "code")
    return any(name in piece.text for piece in pieces)


def _copied_from(tree: _Tree, begin: Position) -> set[str]:
    """Names of what is given to `load_state_dict` by itself and assigned after the file was read."""
    found: set[str] = set()
    for name, nodes in tree.names.items():
        given = any(_is_given_to_load(tree, node) for node in nodes)
        if given and any(_is_bound(tree, n) and tree.pieces[id(n)].span(n).start > begin for n in nodes):
            found.add(name)
    return found


def _selected_from(tree: _Tree, names: set[str]) -> set[str]:
    """Names of dictionaries made of the items of these, by a loop or `{k: v for k, v in state.items() if k in own}`."""
    found: set[str] = set()
    for name in names:
        for node in tree.names.get(name, ()):
            found |= {filled for loop in tree.ancestors(node) for filled in _filled_by(loop, node)}
    for name, nodes in tree.names.items():
        for node in nodes:
            statement = tree.above.get(id(tree.above.get(id(node)))) if _is_bound(tree, node) else None
            if isinstance(statement, cst.Assign) and _selects(statement.value, names):
                found.add(name)
    return found


def _filled_with(tree: _Tree, names: set[str]) -> set[str]:
    """Names of dictionaries that take the contents of these: `own.update(state)`."""
    found: set[str] = set()
    for name in names:
        for node in tree.names.get(name, ()):
            argument = tree.above.get(id(node))
            match tree.above.get(id(argument)):
                case cst.Call(func=cst.Attribute(value=cst.Name(value=filled), attr=cst.Name(value="update"))):
                    found.add(filled)
    return found


def _filled_by(loop: cst.CSTNode, node: cst.Name) -> Iterator[str]:
    """`for k, v in state.items(): renamed[k[7:]] = v`, where `node` is `state`."""
    if not isinstance(loop, cst.For) or not any(one is node for one in inside(loop.iter)):
        return
    taken = names_in(loop.target)
    for one in inside(loop.body):
        match one:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Name(value=filled)))],
                value=cst.Name(value=value),
            ) if value in taken:
                yield filled


def _selects(value: cst.BaseExpression, names: set[str]) -> bool:
    match value:
        case cst.DictComp(value=cst.Name(value=taken), for_in=cst.CompFor(target=target, iter=items)):
            return taken in names_in(target) and not names_in(items).isdisjoint(names)
    return False


def _is_given_to_load(tree: _Tree, node: cst.Name) -> bool:
    argument = tree.above.get(id(node))
    call = tree.above.get(id(argument)) if isinstance(argument, cst.Arg) else None
    match call:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="load_state_dict")), args=[first, *_]):
            return first is argument
    return False


def _target(tree: _Tree, node: cst.Name) -> cst.CSTNode:
    """The name itself, or the outermost tuple of names that it is one of."""
    target: cst.CSTNode = node
    while isinstance(element := tree.above.get(id(target)), cst.Element | cst.StarredElement):
        target = tree.above[id(element)]
    return target


def _is_bound(tree: _Tree, node: cst.Name) -> bool:
    """Is it assigned to?"""
    target = _target(tree, node)
    match tree.above.get(id(target)):
        case cst.AssignTarget() | cst.AsName():
            return True
        case cst.For(target=bound) | cst.NamedExpr(target=bound):
            return bound is target
    return False


def _is_made_of(tree: _Tree, node: cst.Name, bound: cst.Assign, names: set[str]) -> bool:
    """Is it the reading itself, a part of what was read, or a new dictionary that takes such parts?"""
    statement = tree.above.get(id(tree.above[id(_target(tree, node))]))
    if statement is bound:
        return True
    if not isinstance(statement, cst.Assign):
        return False
    value = statement.value
    if any(isinstance(part, cst.Name) and part.value in names for part in inside(value)):
        return True
    match value:
        case cst.Dict(elements=[]) | cst.Call(args=[]):
            return True
    return False


def _after(
    facts: FileFacts,
    tree: _Tree,
    bound: cst.Assign,
    last: cst.Name,
    bindings: list[cst.Name],
    names: tuple[str, ...],
) -> Leftover | None:
    blocks = [tree.above.get(id(one)) for one in tree.statements_around(bound)]
    statement = next(
        (one for one in tree.statements_around(last) if tree.above.get(id(one)) in blocks),
        None,
    )
    if statement is None:
        return None
    work = _work(facts, tree, statement)
    if work is None:
        return None
    home = _home(tree, bound)
    whole = tree.above.get(id(statement)) is home and all(_home(tree, node) is home for node in bindings)
    piece = tree.pieces[id(statement)]
    return Leftover(
        names,
        Site(tree.pieces[id(last)], last),
        work,
        Site(piece, statement) if whole else None,
    )


def _home(tree: _Tree, node: cst.CSTNode) -> cst.CSTNode | None:
    """The block that a statement stands in; a `with` has none of its own."""
    for statement in tree.statements_around(node):
        block = tree.above.get(id(statement))
        if not isinstance(tree.above.get(id(block)), cst.With):
            return block
    return None


def _work(facts: FileFacts, tree: _Tree, statement: cst.CSTNode) -> Site | None:
    """A training, or a loop that runs a model, after a statement."""
    passes = {id(one.site.node) for one in facts.backwards}
    forwards: list[ModuleCall | GuardedCall] = [*facts.module_calls, *facts.guarded_calls]
    runs = {id(one.site.node) for one in forwards if any(mark.node is not None for mark in one.scope.loops)}
    functions = {function for function, effects in facts.effects.items() if "backward" in effects}
    functions |= {one.scope.function for one in forwards if any(mark.node is not None for mark in one.scope.loops)}
    workers = {function.name for function in functions if function is not None and function.name != "forward"}
    current: cst.CSTNode | None = statement
    while current is not None:
        later = tree.following(current)
        for one in later:
            for node in inside(one):
                if not isinstance(node, cst.Call):
                    continue
                if id(node) in passes | runs or (_last_name(node.func) in workers and not _sets_mode(tree, node)):
                    return Site(tree.pieces[id(node)], node)
        if any(_ends(one) for one in later):
            return None
        current = next((above for above in list(tree.ancestors(current))[1:] if isinstance(above, _Statement)), None)
    return None


def _sets_mode(tree: _Tree, call: cst.Call) -> bool:
    """`model.train()` where `model.load_state_dict(...)` stands: a function of the file may be called `train`, too."""
    match call.func:
        case cst.Attribute(value=owner, attr=cst.Name(value="train" | "eval")):
            above = (tree.above.get(id(name)) for name in tree.names.get("load_state_dict", ()))
            return any(isinstance(one, cst.Attribute) and one.value.deep_equals(owner) for one in above)
    return False


def _last_name(node: cst.BaseExpression) -> str:
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name
    return ""


def _ends(statement: cst.CSTNode) -> bool:
    """Does the way end here?"""
    small = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    return any(isinstance(one, cst.Return | cst.Raise | cst.Continue | cst.Break) for one in small)
