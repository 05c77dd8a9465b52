"""Caches in which a map-style data set keeps what `__getitem__` has made (TML110), read from the syntax of its class.

Two kinds: a decorator that remembers every result (of `functools` and other libraries, or written in the project), and
a dict or list of the object's own, filled and looked up under the index. What is bounded or emptied is none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow.datasets import SAMPLING
from torchmemlint.flow.program import ClassInfo, Function, decorator_name
from torchmemlint.immutable import immutable
from torchmemlint.syntax.outline import dotted
from torchmemlint.syntax.source_module import Site

# Decorators that keep all results for ever: `functools.cache` is `lru_cache(maxsize=None)` (Python's documentation);
# those of toolz, cytoolz and funcy keep a plain dict.
_KEEP_ALL = frozenset("functools.cache toolz.memoize toolz.functoolz.memoize cytoolz.memoize funcy.memoize".split())
_SIZED = frozenset("functools.lru_cache methodtools.lru_cache".split())  # with `maxsize=None` they keep all
_EMPTYING = frozenset("pop popitem clear".split())
_EMPTY_DICTS = frozenset("dict OrderedDict collections.OrderedDict defaultdict collections.defaultdict".split())


@immutable()
class Memoised:
    """A `__getitem__` under a decorator that keeps every result."""

    method: Function
    site: Site  # the decorator
    name: str  # "functools.lru_cache"
    memoiser: Function | ClassInfo | None  # where the project has it from, if it is the project's


@immutable()
class Filled:
    """An attribute that `__getitem__` fills under its index, and looks the index up in."""

    method: Function
    site: Site  # the statement that stores
    attribute: str  # "cache"
    made: Site  # where it is made empty


def memoised(cls: ClassInfo) -> Memoised | None:
    """The decorator of the class's own `__getitem__` that keeps every sample; None where there is none."""
    for name in SAMPLING:
        method = cls.methods.get(name)
        for decorator in method.node.decorators if method is not None and method.is_decorated else ():
            assert method is not None
            text = decorator_name(decorator)
            qualified = method.program.qualify(text)
            if qualified in _KEEP_ALL or (qualified in _SIZED and _is_unbounded(decorator)):
                return Memoised(method, Site(method.piece, decorator), text, None)
            if isinstance(decorator.decorator, cst.Call):
                continue  # what the project's own makes of its arguments is not followed
            memoiser = method.program.find_function(text) or method.program.resolve_class(text)
            memoiser = memoiser or method.program.resolve(qualified)
            if memoiser is not None and _keeps_all(memoiser):
                return Memoised(method, Site(method.piece, decorator), text, memoiser)
    return None


def _is_unbounded(decorator: cst.Decorator) -> bool:
    """`lru_cache(None)`, `lru_cache(maxsize=None)`: without arguments it keeps 128 results."""
    call = decorator.decorator
    for index, argument in enumerate(call.args if isinstance(call, cst.Call) else ()):
        if argument.keyword.value == "maxsize" if argument.keyword is not None else index == 0:
            return isinstance(argument.value, cst.Name) and argument.value.value == "None"
    return False


# -- decorators of the project ----------------------------------------------------------------------------------------


def _keeps_all(memoiser: Function | ClassInfo) -> bool:
    """Does a decorator look its arguments up in a dict, put the results there, and never take one out?"""
    if isinstance(memoiser, Function):
        syntax: ast.AST | None = memoiser.syntax
        inner = [node for node in ast.walk(syntax) if isinstance(node, ast.FunctionDef)] if syntax is not None else []
        functions = [node for node in inner if node is not syntax]
        decorated = _first_parameter(memoiser.syntax, 0)
    else:
        whole = memoiser.piece.outline if memoiser.local is None else None
        syntax = whole if isinstance(whole, ast.ClassDef) else None
        functions = [
            method.syntax for method in memoiser.methods.values() if isinstance(method.syntax, ast.FunctionDef)
        ]
        constructor = memoiser.methods.get("__init__")
        decorated = _attribute_of_first(constructor) if constructor is not None else ""
    if syntax is None or not decorated:
        return False
    made_empty = {
        target
        for node in ast.walk(syntax)
        if isinstance(node, ast.Assign) and _is_empty_dict(node.value)
        for target in map(_place, node.targets)
        if target
    }
    taken_out = {*_emptied(syntax), *_counted(syntax)}
    for function in functions:
        aliases, own, read = _aliases(function), _assigned(function), set(_read(function))
        for place in _results_kept(function, decorated):
            same = aliases.get(place, set()) | {place}
            lasts = any("." in one or one not in own for one in same)
            if lasts and same & read and same & made_empty and not same & taken_out:
                return True
    return False


def _first_parameter(syntax: ast.FunctionDef | ast.AsyncFunctionDef | None, index: int) -> str:
    parameters = syntax.args.args if syntax is not None else []
    return parameters[index].arg if len(parameters) > index else ""


def _attribute_of_first(constructor: Function) -> str:
    """ "self.func" where the constructor keeps its first argument there."""
    given = _first_parameter(constructor.syntax, 1)
    for node in ast.walk(constructor.syntax) if constructor.syntax is not None and given else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == given:
            return next(filter(None, map(_place, node.targets)), "")
    return ""


def _place(node: ast.expr) -> str:
    """Dotted text of a name or attribute."""
    return dotted(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _is_empty_dict(value: ast.expr) -> bool:
    match value:
        case ast.Dict(keys=[]):
            return True
        case ast.Call(func=func, args=arguments, keywords=[]):
            return dotted(func) in _EMPTY_DICTS and len(arguments) <= ("default" in dotted(func))
    return False


def _emptied(syntax: ast.AST) -> Iterator[str]:
    """Containers that something is taken out of."""
    for node in ast.walk(syntax):
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _EMPTYING:
                yield _place(owner)
            case ast.Delete(targets=targets):
                for target in targets:
                    yield _place(target.value if isinstance(target, ast.Subscript) else target)


def _counted(syntax: ast.AST) -> Iterator[str]:
    """Containers whose length is asked for, as by who bounds it."""
    for node in ast.walk(syntax):
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[given]):
                yield _place(given)


def _aliases(function: ast.FunctionDef) -> dict[str, set[str]]:
    """Name -> the attributes that it stands for: `cache = obj.cache`, `cache = obj.cache = {}`."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            places = [place for place in (*map(_place, node.targets), _place(node.value)) if place]
            for name in places:
                if "." not in name:
                    found.setdefault(name, set()).update(place for place in places if "." in place)
    return found


def _assigned(function: ast.FunctionDef) -> set[str]:
    """Names that the function binds; a name declared `nonlocal` or `global` is not its own."""
    own = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    shared = (node.names for node in ast.walk(function) if isinstance(node, ast.Nonlocal | ast.Global))
    return own.difference(*shared)


def _results_kept(function: ast.FunctionDef, decorated: str) -> Iterator[str]:
    """What the results of the decorated function are put into under a key: `cache[key] = res = f(*args)`."""

    def is_result(value: ast.expr) -> bool:
        return isinstance(value, ast.Call) and dotted(value.func) == decorated

    results = {
        name
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and is_result(node.value)
        for name in map(_place, node.targets)
    }
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=targets, value=value) if is_result(value) or _place(value) in results - {""}:
                yield from (_place(one.value) for one in targets if isinstance(one, ast.Subscript))
            case ast.Call(func=ast.Attribute(value=owner, attr="setdefault"), args=[_, value]) if is_result(value):
                yield _place(owner)


def _read(function: ast.AST) -> Iterator[str]:
    """Containers that an entry is read of, or that are asked for one."""
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=owner, ctx=ast.Load()):
                yield _place(owner)
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[owner]):
                yield _place(owner)
            case ast.Call(func=ast.Attribute(value=owner, attr="get" | "setdefault")):
                yield _place(owner)


# -- dicts and lists filled by hand -----------------------------------------------------------------------------------


def filled_by_hand(cls: ClassInfo) -> Filled | None:
    """The attribute that `__getitem__` alone fills, under the very index that it is asked for; None if not certain."""
    method = cls.methods.get("__getitem__")
    syntax = method.syntax if method is not None else None
    if method is None or syntax is None:
        return None
    index = _first_parameter(syntax, 1)
    if not index or any(isinstance(node.ctx, ast.Store) for node in _names(syntax) if node.id == index):
        return None  # asked for one sample, it may give another
    methods = [one.syntax for base in cls.ancestors() for one in base.methods.values() if one.syntax is not None]
    if any(_asks_itself(one) for one in methods):
        return None  # a sample may be asked for twice in a pass, or before it
    read = set(_read(syntax))
    for store, attribute in _stored(syntax, index):
        made = _made_empty(cls, attribute)
        if made is None or attribute not in read or _is_switched(syntax, store, attribute):
            continue
        others = [place for one in methods if one is not syntax for place in _changed(one)]
        if attribute in others or attribute in _emptied(syntax):
            continue
        site = method.piece.site_of(store, method.program.source.rows)
        if site is not None:
            return Filled(method, site, attribute, made)
    return None


def _names(syntax: ast.AST) -> Iterator[ast.Name]:
    return (node for node in ast.walk(syntax) if isinstance(node, ast.Name))


def _asks_itself(syntax: ast.AST) -> bool:
    """`self[i]`, `self.__getitem__(i)`, `for sample in self`."""
    for node in ast.walk(syntax):
        match node:
            case ast.Subscript(value=ast.Name(id="self")) | ast.For(iter=ast.Name(id="self")):
                return True
            case ast.comprehension(iter=ast.Name(id="self")) | ast.Attribute(attr="__getitem__"):
                return True
    return False


def _stored(syntax: ast.AST, index: str) -> Iterator[tuple[ast.Assign, str]]:
    """Statements `self.cache[index] = sample`, with "self.cache"."""
    for node in ast.walk(syntax):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            match target:
                case ast.Subscript(value=ast.Attribute(value=ast.Name(id="self")) as owner, slice=ast.Name(id=key)):
                    if key == index and isinstance(node, ast.Assign):
                        yield node, _place(owner)


def _made_empty(cls: ClassInfo, attribute: str) -> Site | None:
    """Where the constructor makes it a dict without entries or a list of nothing; None if it is also anything else."""
    made: Site | None = None
    for base in cls.ancestors():
        for method in base.methods.values():
            for node in ast.walk(method.syntax) if method.syntax is not None else ():
                if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                    continue
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if attribute not in map(_place, targets):
                    continue
                if method.name != "__init__" or not (_is_empty_dict(node.value) or _is_list_of_nothing(node.value)):
                    return None
                made = made or method.piece.site_of(node, method.program.source.rows)
    return made


def _is_list_of_nothing(value: ast.expr) -> bool:
    match value:
        case ast.BinOp(left=ast.List(elts=[ast.Constant(value=None)]), op=ast.Mult()):
            return True
        case ast.BinOp(right=ast.List(elts=[ast.Constant(value=None)]), op=ast.Mult()):
            return True
        case ast.ListComp(elt=ast.Constant(value=None)):
            return True
    return False


def _is_switched(syntax: ast.AST, store: ast.Assign, attribute: str) -> bool:
    """Is it stored only where something other than the cache itself says so: a flag, the kind of a sample?"""
    for node in ast.walk(syntax):
        if not isinstance(node, ast.If) or all(one is not store for part in node.body for one in ast.walk(part)):
            continue
        of_object = {_place(one) for one in ast.walk(node.test) if isinstance(one, ast.Attribute)}
        if of_object - {attribute} and attribute not in _counted(node.test):
            return True
    return False


def _changed(syntax: ast.AST) -> Iterator[str]:
    """Containers that a method puts something into, takes something out of, or gives away."""
    for node in ast.walk(syntax):
        match node:
            case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()):
                yield _place(owner)
            case ast.Call(func=ast.Attribute(value=owner), args=arguments):
                yield _place(owner)
                yield from map(_place, arguments)
