"""The files of a project by module name, and the classes in them with their bases."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from torchmemlint.flow.domain.refs import Behind, ClassRef, Code, External, Globals
from torchmemlint.flow.domain.values import Value, of, symbol
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import Raise
from torchmemlint.flow.ir.ops import CallMethod, Class, Function, Op, Operate, SetAttribute, SetItem, Unit
from torchmemlint.flow.ir.places import AttributePlace, ItemPlace
from torchmemlint.flow.names.sources import Sources
from torchmemlint.knowledge.contracts import Contracts, contracts

_ABSTRACT = 6  # operations of a body that only raises, with a text
_HOPS = 6  # imports of imports

NETWORKS = (
    "torch.nn.Module",
    "LightningModule",
    "PreTrainedModel",
    "ModelMixin",
    "torch.nn.Sequential",
    "torch.nn.ModuleList",
    "torch.nn.ModuleDict",
)
_OPERATORS = frozenset(
    f"__{way}{name}__"
    for way in ("", "i")
    for name in ("add", "sub", "mul", "truediv", "matmul", "or", "lshift", "rshift", "and", "get", "set", "set_name")
) | {*"append appendleft clear extend get insert items keys pop popleft setdefault values".split()}
_SWITCHES = frozenset({"eval", "train"})
_RUNNING = frozenset({"__init__", "forward"})
_OPERATIONS = frozenset(
    f"torch.autograd.{name}" for name in ("Function", "function.Function", "function.InplaceFunction")
)
FILLING = frozenset({"append", "appendleft", "add", "extend", "insert", "put", "push", "setdefault", "update"})
_INSIDE = (AttributePlace, ItemPlace)
_BOXES = frozenset({"dict", "list", "collections.UserDict", "collections.OrderedDict", "collections.defaultdict"})


@dataclass(eq=False)
class Index:
    """The files of a project. `libraries_too`: those of libraries in it, too, which other files do not look into."""

    sources: Sources
    contracts: Contracts = field(default_factory=contracts)
    libraries_too: bool = True
    units: dict[str, Unit] = field(default_factory=dict)  # those that were asked for
    _absolute: dict[tuple[Unit, str], str] = field(default_factory=dict)
    _orders: dict[Class, tuple[Class, ...]] = field(default_factory=dict)
    _libraries: dict[Class, frozenset[str]] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)  # attributes that are assigned to outside of constructors
    operators: set[str] = field(default_factory=set)  # and containers' and networks' methods that some class defines
    _names: dict[tuple[Unit, str], Value | None] = field(default_factory=dict)
    _resolved: dict[str, Value | None] = field(default_factory=dict)
    _setters: dict[Class, dict[str, Function]] = field(default_factory=dict)
    _subclasses: dict[Class, list[Class]] = field(default_factory=dict)
    _known: int = 0  # files whose classes are among those
    _decorated: dict[Class, frozenset[str]] = field(default_factory=dict)
    _forwards: dict[Class, list[Function]] = field(default_factory=dict)
    _keeping: dict[Class, bool] = field(default_factory=dict)
    _differentiating: dict[Class, bool] = field(default_factory=dict)

    def add(self, unit: Unit) -> None:
        """Add a file."""
        self.stored |= unit.stored
        for cls in unit.classes:
            self.operators |= cls.methods.keys() & (_OPERATORS | _SWITCHES if "forward" in cls.methods else _OPERATORS)
        self.units[unit.name] = unit

    def is_network_name(self, qualified: str) -> bool:
        """Is this how a library's network class is named?"""
        return qualified.endswith(NETWORKS) or self.contracts.is_module_class(qualified)

    def remove(self, path: Path) -> None:
        """Let go of a file that nothing else has asked for."""
        self.units = {name: unit for name, unit in self.units.items() if self.sources.path(unit) != path}
        self._names.clear()
        self._resolved.clear()
        self._known = 0

    def attribute(self, module: str, name: str) -> Value | None:
        """Return a name of a module, or a module in it; None where it has none."""
        unit = self.units.get(module)
        if unit is None:
            return None
        found = self.in_unit(unit, name)
        if found is not None:
            return found
        inner = self.module(f"{module}.{name}")
        return of(Globals.of(inner.name)) if inner is not None else None

    def module(self, qualified: str) -> Unit | None:
        """Return the file of a module, which is added where it is met for the first time."""
        found = self.units.get(qualified)
        if found is None and (self.libraries_too or not self.sources.is_library(qualified)):
            found = self.sources.find(qualified)
            if found is not None:
                self.add(found)
        return found

    def matching(self, pattern: str, unit: Unit) -> list[Unit]:
        """Return the modules that a file may mean by a dotted name with `*` where it is not known."""
        found = (self.module(name) for name in self.sources.matching(pattern, unit))
        return [other for other in found if other is not None]

    def is_package(self, unit: Unit) -> bool:
        """Does it stand for a folder: is it an `__init__.py`?"""
        return self.sources.path(unit).stem == "__init__"

    def absolute(self, unit: Unit, qualified: str, relative: int = 0) -> str:
        """Return what an import stands for, seen from the project's root; its own name where that lies outside."""
        dotted = "." * relative + qualified
        found = self._absolute.get((unit, dotted))
        if found is None:
            found = self.sources.absolute(dotted, unit) or dotted.lstrip(".")
            self._absolute[unit, dotted] = found
        return found

    def resolve(self, qualified: str, hops: int = 0) -> Value | None:
        """Return what stands under a qualified name; None where the project does not have it."""
        if hops:
            return self._resolve(qualified, hops)
        if qualified not in self._resolved:
            self._resolved[qualified] = self._resolve(qualified, 0)
        return self._resolved[qualified]

    def _resolve(self, qualified: str, hops: int) -> Value | None:
        head, _, name = qualified.rpartition(".")
        unit = self.module(head) if head else None
        if unit is None or (name not in unit.module.bound and name not in unit.once) or self._is_below(unit, name):
            whole = self.module(qualified)
            if whole is not None:
                return of(Globals.of(whole.name))
        if not head:
            return None
        if unit is None:
            return self._member(head, name, hops)
        return self.in_unit(unit, name, hops)

    def _is_below(self, unit: Unit, name: str) -> bool:
        """Is a name that a package binds what lies below it: `from . import utils`?"""
        where = unit.imports.get(name)
        return where is not None and self.absolute(unit, where) == f"{unit.name}.{name}"

    def in_unit(self, unit: Unit, name: str, hops: int = 0) -> Value | None:
        """Return what a module-level name of a file stands for; None where it has none."""
        if hops:
            return self._in_unit(unit, name, hops)
        key = (unit, name)
        if key not in self._names:
            self._names[key] = self._in_unit(unit, name, 0)
        return self._names[key]

    def _in_unit(self, unit: Unit, name: str, hops: int) -> Value | None:
        found = unit.once.get(name)
        if found is not None:
            return of(reference(found))
        where = unit.imports.get(name)
        if where is not None and hops < _HOPS:
            known = self.resolve(self.absolute(unit, where), hops + 1)
            return known if known is not None else of(External.of(self.absolute(unit, where)))
        if name in unit.module.bound:
            return symbol(Behind.of(Globals.of(unit.name), name))
        for star in unit.stars:
            other = self.module(self.absolute(unit, star))
            if other is not None and other is not unit and hops < _HOPS and _gives(other, name):
                value = self.in_unit(other, name, hops + 1)
                if value is not None:
                    return value
        return None

    def _member(self, head: str, name: str, hops: int) -> Value | None:
        """Return a method of a class that is named with its module."""
        if hops > _HOPS or "." not in head:
            return None
        owner = self.resolve(head, hops + 1)
        if owner is None:
            return None
        for r in owner.refs:
            if type(r) is ClassRef:
                method = self.method(r.cls, name)
                if method is not None:
                    return of(Code.of(method, Globals.of(method.unit.name)))
        return None

    # Classes.

    def find_class(self, unit: Unit, name: str) -> Class | None:
        """Return the class that a dotted name of a file stands for; what decorators make of a class is taken for it."""
        found = self.in_unit(unit, name) if "." not in name else None
        if found is None:
            found = self.resolve(self.absolute(unit, name))
        if found is None:
            head, _, rest = name.partition(".")
            where = unit.imports.get(head)
            if where is not None:
                found = self.resolve(self.absolute(unit, where) + ("." + rest if rest else ""))
        if found is not None:
            for r in found.refs:
                if type(r) is ClassRef:
                    return r.cls
                if type(r) is Behind and type(r.base) is Globals:
                    unit, name = self.units[r.base.module], str(r.key)
        return next((cls for cls in unit.classes if cls.name == name), None)

    def order(self, cls: Class) -> tuple[Class, ...]:
        """Return a class and those it inherits from, nearest first, as far as the project has them."""
        known = self._orders.get(cls)
        if known is None:
            self._orders[cls] = (cls,)  # a class that is its own base
            chain, queue = [], [cls]
            while queue:
                current = queue.pop(0)
                if current not in chain:
                    chain.append(current)
                    queue.extend(c for base in current.bases if (c := self.find_class(current.unit, base)) is not None)
            known = self._orders[cls] = tuple(chain)
        return known

    def method(self, cls: Class, name: str) -> Function | None:
        """Return a method, own or inherited."""
        for c in self.order(cls):
            found = c.methods.get(name)
            if found is not None:
                return found
        return None

    def decorated(self, cls: Class) -> frozenset[str]:
        """Return the names of methods that a decorator of the project has replaced."""
        known = self._decorated.get(cls)
        if known is None:
            names = (name for name, f in cls.methods.items() if any(d.applied for d in f.decorators))
            known = self._decorated[cls] = frozenset(names)
        return known

    def overriding(self, cls: Class, name: str) -> list[Function]:
        """Return the methods by which subclasses replace one of a class."""
        return [c.methods[name] for c in self._below(cls) if name in c.methods]

    def _below(self, cls: Class) -> list[Class]:
        if self._known < len(self.units):
            self._known = len(self.units)
            self._subclasses.clear()
            for unit in list(self.units.values()):
                for c in unit.classes:
                    for above in self.order(c)[1:]:
                        self._subclasses.setdefault(above, []).append(c)
        return self._subclasses.get(cls, [])

    def setter(self, cls: Class, name: str) -> Function | None:
        """Return what runs where a property is assigned to."""
        known = self._setters.get(cls)
        if known is None:
            known = self._setters[cls] = {n: f for c in reversed(self.order(cls)) for n, f in c.setters.items()}
        return known.get(name)

    def above(self, cls: Class, start: Class, name: str) -> Function | None:
        """Return the method that `super()` in class `start` finds for an object of class `cls`."""
        chain = self.order(cls)
        after = chain[chain.index(start) + 1 :] if start in chain else self.order(start)[1:]
        for c in after:
            found = c.methods.get(name)
            if found is not None:
                return found
        return None

    def libraries(self, cls: Class) -> frozenset[str]:
        """Return the qualified names of all bases that the project does not have."""
        known = self._libraries.get(cls)
        if known is None:
            names = set()
            for c in self.order(cls):
                for base in c.bases:
                    if self.find_class(c.unit, base) is None:
                        head, _, rest = base.partition(".")
                        where = c.unit.imports.get(head) or self._through_stars(c.unit, head)
                        names.add(f"{where}.{rest}" if where and rest else where or base)
            known = self._libraries[cls] = frozenset(names)
        return known

    def _through_stars(self, unit: Unit, name: str) -> str | None:
        """Return what a name of a library is called there that `from module import *` brings along."""
        found = self.in_unit(unit, name) if unit.stars else None
        return next((r.qualified for r in found.refs if type(r) is External), None) if found is not None else None

    def is_network(self, cls: Class) -> bool:
        """Is it a torch.nn.Module?"""
        return any(self.is_network_name(name) or name == "Module" for name in self.libraries(cls))

    def forward(self, cls: Class) -> list[Function]:
        """Return the forward of a network and the methods that it calls, directly or through others."""
        known = self._forwards.get(cls)
        if known is None:
            found: dict[str, Function] = {}
            todo = ["forward"]
            while todo:
                name = todo.pop()
                method = self.method(cls, name) if name not in found else None
                if method is not None:
                    found[name] = method
                    todo += method.mentions
            known = self._forwards[cls] = list(found.values())
        return known

    def runs(self, cls: Class, name: object) -> bool:
        """Does the forward of a network use an attribute, as far as it is seen? Its loss functions it does not."""
        methods = self.forward(cls)
        return all(not m.mentions for m in methods) or any(name in m.mentions for m in methods)

    def keeps(self, cls: Class) -> bool:
        """May the forward of a network leave something behind: does it assign to attributes or items, or add to any?"""
        known = self._keeping.get(cls)
        if known is None:
            found = (op for method in self.forward(cls) for op in operations(method.body))
            known = self._keeping[cls] = any(map(_is_kept_by, found))
        return known

    def differentiates(self, cls: Class) -> bool:
        """Does the forward of a network differentiate what it consists of: itself, or in functions of its file?"""
        known = self._differentiating.get(cls)
        if known is None:  # one without parts differentiates what it is given
            has_parts = self.method(cls, "__init__") is not None
            known = self._differentiating[cls] = has_parts and _is_differentiating(self.forward(cls), cls.unit)
        return known

    def may_be_network(self, cls: Class) -> bool:
        """Is it a torch.nn.Module, or a class with a forward and a base that is not seen?"""
        if self.is_network(cls):
            return True
        return self.is_open(cls) and not self.is_operation(cls) and self.method(cls, "forward") is not None

    def is_pipeline(self, cls: Class) -> bool:
        """Does it run networks for its users, as the pipelines of diffusers do? These may be the project's own, too."""
        own = (f"{base.unit.name}.{base.name}" for base in self.order(cls)[1:])
        return any(map(self.contracts.is_pipeline, (*own, *self.libraries(cls))))

    def trainer(self, cls: Class) -> str | None:
        """Return the trainer of a library that a class derives from; None for others."""
        known = self.contracts.names("trainers")
        return next((name for name in sorted(self.libraries(cls)) if name in known), None)

    def is_operation(self, cls: Class) -> bool:
        """Is it an operation with a gradient of its own: a torch.autograd.Function?"""
        return not self.libraries(cls).isdisjoint(_OPERATIONS)

    def is_box(self, cls: Class) -> bool:
        """Is it a dict or list?"""
        return bool(self.libraries(cls) & _BOXES)

    def is_open(self, cls: Class) -> bool:
        """Has it a base outside the project, whose methods are not seen?"""
        return bool(self.libraries(cls) - {"object", "abc.ABC", "ABC", "typing.Generic", "typing.Protocol"})


def takes_gradients(function: Function) -> bool:
    """Does a function name what differentiates: `backward`, or `grad` of autograd?"""
    autograd = "autograd" in function.mentions | function.unit.module.mentions
    return "backward" in function.mentions or (autograd and "grad" in function.mentions)


def _is_differentiating(methods: list[Function], unit: Unit) -> bool:
    others: dict[str, list[Function]] = {}
    for function in unit.functions:  # methods of its parts, too
        if function.cls is None or function.name not in _RUNNING:
            others.setdefault(function.name, []).append(function)
    for function in (todo := list(methods)):
        if takes_gradients(function):
            return True
        for name in sorted(function.mentions & others.keys()):
            todo += [other for other in others[name] if other not in todo]
    return False


def _is_kept_by(op: Op) -> bool:
    if isinstance(op, CallMethod):
        return op.name in FILLING
    return isinstance(op, SetAttribute | SetItem) or (isinstance(op, Operate) and isinstance(op.place, _INSIDE))


def _gives(unit: Unit, name: str) -> bool:
    """Does `from module import *` give a name, if the module has it?"""
    return not name.startswith("_") if unit.exported is None else name in unit.exported


def is_abstract(function: Function) -> bool:
    """Is it left to subclasses: does it do nothing but raise, or nothing at all?"""
    if any(d.name.endswith("abstractmethod") for d in function.decorators):
        return True
    body = function.body
    return not body or (len(body) <= _ABSTRACT and isinstance(body[-1], Raise))


def reference(found: Function | Class) -> Code | ClassRef:
    """Return the reference of a module-level function or class."""
    frame = Globals.of(found.unit.name)
    return Code.of(found, frame) if isinstance(found, Function) else ClassRef.of(found, frame)
