"""Instances and classes of the project: attributes, methods, construction."""

from __future__ import annotations

from dataclasses import replace

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.heap import ELEMENT, State
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.memory import begin, shadowed, write
from torchmemlint.flow.domain.refs import (
    Behind,
    Bound,
    ClassRef,
    Code,
    Globals,
    Key,
    Method,
    Object,
    Point,
    Ref,
    Source,
    SuperRef,
    extended,
)
from torchmemlint.flow.domain.values import NOTHING, PLAIN, UNKNOWN, Value, constant, join, limited, of, symbol
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.ops import Class, Function, GetAttribute, Op
from torchmemlint.flow.models import containers, modules, tensors, trainers
from torchmemlint.flow.names.index import is_abstract

_KEEPING = "cached_property"
_MAKING = frozenset({"__new__", "super"})  # what a `__new__` mentions that makes an object of its class


def code_of(function: Function) -> Code:
    """Return a method as a reference: its frame is that of the module or function around its class."""
    return Code.of(function, Globals.of(function.unit.name))


def member(frame: Frame, state: State, holder: Object, name: str) -> Value | None:
    """Return a method of an instance's class, bound; None where it has none."""
    cls: Class = holder.about.cls
    function = frame.machine.index.method(cls, name)
    if function is not None and is_abstract(function) and not _is_exact(holder):
        return _of_subclasses(frame, cls, name, holder)
    if function is not None:
        return of(Bound.of(Code.of(function, _frame_of(frame, holder.about, function)), holder))
    return None


def _frame_of(frame: Frame, cls_ref: ClassRef, function: Function) -> Ref:
    """Return the frame that a method of a class closes over."""
    if function.cls is cls_ref.cls:
        return cls_ref.frame
    return Globals.of(function.unit.name)


def is_module(frame: Frame, holder: Object) -> bool:
    """Is it an instance of a torch.nn.Module of the project?"""
    return holder.kind is Kind.INSTANCE and frame.machine.index.is_network(holder.about.cls)


def is_of_library(frame: Frame, cls: Class) -> bool:
    """Is it a network of another file of a library? It is taken as torch's own are: what it does inside is not run."""
    index = frame.machine.index
    return cls.unit is not frame.function.unit and index.sources.is_library(cls.unit.name) and index.is_network(cls)


def attribute(frame: Frame, state: State, holder: Ref, name: str, point: Point) -> Value:
    """Return what an attribute of an instance, class, function or `super()` is."""
    if type(holder) is SuperRef:
        return _above(frame, holder, name)
    if type(holder) is Object:
        if name == "__dict__":
            return of(holder)  # as `vars` gives it
        found = _of_class(frame, state, holder.about, name, holder, point)
        if found is not None:
            return found
        if frame.machine.index.is_box(holder.about.cls) and name in containers.METHODS:
            return of(Method.of(holder, name))
        named = state.heap.get(holder, Special.NAMED) or state.heap.get(holder, ELEMENT)
        other = frame.machine.index.is_box(holder.about.cls) or (is_module(frame, holder) and modules.is_own(name))
        if named is not None and not other:  # set under a name that is not known; a pipeline's parts have theirs
            is_part = frame.machine.index.is_pipeline(holder.about.cls)
            return elsewhere(holder, name, named.graph) if is_part else named
        if is_module(frame, holder):
            return modules.attribute(frame, state, holder, name, point)
        if name in tensors.NO_GRAPH_ATTRIBUTES and not state.heap.edges(holder):
            return PLAIN
        asked = member(frame, state, holder, "__getattr__")
        if asked is not None and not name.startswith("__"):
            return frame.machine.call(frame, state, asked, Arguments([constant(name)]), point)
        return elsewhere(holder, name) if _is_exact(holder) else _of_subclasses(frame, holder.about.cls, name, holder)
    if type(holder) is ClassRef:
        found = _of_class(frame, state, holder, name, None, point)
        if found is None and name == "apply" and frame.machine.index.is_operation(holder.cls):
            return of(Method.of(holder, name))
        return UNKNOWN if found is None else found
    own = state.heap.get(holder, name)
    if own is None and type(holder) is Code and type(holder.frame) is Globals and name in frame.machine.index.stored:
        own = symbol(Behind.of(holder, name))
    return own if own is not None else of(Method.of(holder, name))


def _of_class(
    frame: Frame, state: State, cls_ref: ClassRef, name: str, receiver: Object | None, point: Point
) -> Value | None:
    index = frame.machine.index
    for cls in index.order(cls_ref.cls):
        owner = cls_ref if cls is cls_ref.cls else ClassRef.of(cls, Globals.of(cls.unit.name))
        value = state.heap.get(owner, name)
        if value is None and name in cls.members and type(owner.frame) is Globals:
            value = symbol(Behind.of(owner, name))
        if value is not None:  # a class attribute, or a method that a decorator of the project has replaced
            got = _described(frame, state, value, cls_ref, receiver, point)
            return _bound_value(value, receiver, name in index.decorated(cls)) if got is None else got
        function = cls.methods.get(name)
        if function is not None and receiver is not None and is_abstract(function) and not _is_exact(receiver):
            return _of_subclasses(frame, cls, name, receiver)
        if function is not None:
            return _bound(frame, state, Code.of(function, owner.frame), cls_ref, receiver, point)
    return None


def _described(
    frame: Frame, state: State, value: Value, cls_ref: ClassRef, receiver: Object | None, point: Point
) -> Value | None:
    """Return what the `__get__` of an object of the class gives; None where that has none."""
    getter = _method_of(frame, state, value, "__get__")
    if getter is None or receiver is None:
        return None
    return frame.machine.call(frame, state, getter, Arguments([of(receiver), of(cls_ref)]), point)


def _method_of(frame: Frame, state: State, value: Value, name: str) -> Value | None:
    """Return a method of a descriptor of the project: an instance that a class holds; None for anything else."""
    for r in value.refs if len(value.refs) == 1 and name in frame.machine.index.operators else ():
        if type(r) is Behind and type(r.base) is ClassRef and type(r.key) is str:
            return _method_of_member(frame, state, r.base.cls, r.key, name)
        if type(r) is Object and r.kind is Kind.INSTANCE:
            return member(frame, state, r, name)
    return None


def _method_of_member(frame: Frame, state: State, cls: Class, member_name: str, name: str) -> Value | None:
    """Return a method of the descriptor that a class of a module holds which has been run, with all that that holds."""
    home = frame.machine.end_of(cls.unit).heap
    held = home.get(ClassRef.of(cls, Globals.of(cls.unit.name)), member_name)
    for r in held.refs if held is not None and len(held.refs) == 1 else ():
        if type(r) is Object and r.kind is Kind.INSTANCE:
            for key, value in home.edges(r).items():
                if state.heap.get(r, key) is None:
                    state.heap.put(r, key, value)
            return member(frame, state, r, name)
    return None


def name_members(frame: Frame, state: State, cls_ref: ClassRef, point: Point) -> None:
    """Tell the descriptors of a new class their names: `__set_name__`."""
    for name, value in list(state.heap.edges(cls_ref).items()):
        told = _method_of(frame, state, value, "__set_name__") if type(name) is str else None
        if told is not None:
            frame.machine.call(frame, state, told, Arguments([of(cls_ref), constant(name)]), point)


def _is_exact(instance: Object) -> bool:
    """Did the program itself make it, of just this class?"""
    return isinstance(instance.site, Op) and not any(isinstance(call, Class) for call in instance.context)


def _of_subclasses(frame: Frame, cls: Class, name: str, receiver: Object) -> Value:
    """Return a method that a class leaves to its subclasses: one of theirs, or code that is not seen."""
    refs, more = limited(
        frozenset(Bound.of(code_of(function), receiver) for function in frame.machine.index.overriding(cls, name))
    )
    return Value(refs, open=more) if refs else elsewhere(receiver, name)


def elsewhere(holder: Object, name: Key, graph: frozenset[Source] | None = None) -> Value:
    """Return an attribute or item that code which is not seen has set: one thing, whatever it is."""
    one = Behind.of(holder, name).alone
    return Value(one, one if graph is None else graph, open=True)


def _bound_value(value: Value, receiver: Object | None, method: bool) -> Value:
    if receiver is None:
        return value
    refs = frozenset(
        Bound.of(r, receiver) if method or type(r) is Code or (type(r) is Object and r.kind is Kind.GUARDED) else r
        for r in value.refs
    )
    return Value(refs, value.graph, value.constant, value.open)


def _bound(frame: Frame, state: State, code: Code, cls_ref: ClassRef, receiver: Object | None, point: Point) -> Value:
    function = code.function
    if function.is_static:
        return of(code)
    if function.is_decorated("classmethod"):
        return of(Bound.of(code, cls_ref))
    if receiver is None:
        return of(code)
    if function.is_decorated("property", "abstractproperty", _KEEPING):
        read_at = _read_at(frame, function.name, point)
        value = frame.machine.call(frame, state, of(Bound.of(code, receiver)), Arguments(), read_at)
        if function.is_decorated(_KEEPING):
            write(frame, state, of(receiver), function.name, value, read_at)
        return value
    return of(Bound.of(code, receiver))


def _read_at(frame: Frame, name: str, point: Point) -> Point:
    """Return where a property is read: in the function that is being called, if only its caller knows whose it is."""
    if type(point.site) is GetAttribute:
        return point
    called = frame.machine.active[-1:]
    ops = (op for one in called for function in (one, *one.nested) for op in operations(function.body))
    read = next((op for op in ops if type(op) is GetAttribute and op.name == name), None)
    return point if read is None else Point(read, extended((), (point.site, *point.context)))


def _above(frame: Frame, holder: SuperRef, name: str) -> Value:
    index = frame.machine.index
    receiver = holder.receiver
    cls = receiver.about.cls if type(receiver) is Object and receiver.kind is Kind.INSTANCE else holder.cls
    function = index.above(cls, holder.cls, name)
    if function is None:
        return of(Method.of(holder, name))
    if function.is_static:
        return of(code_of(function))
    return of(Bound.of(code_of(function), receiver))


def set_attribute(frame: Frame, state: State, base: Value, name: str, value: Value, point: Point) -> None:
    """`base.name = value`, through a property's setter where there is one."""
    if name == "data":  # of a tensor: its graph stays what it was
        own = (
            r for r in base.refs if (type(r) is Object and r.kind is Kind.INSTANCE) or (r.symbolic and not frame.entry)
        )
        base = Value(frozenset(own), base.graph, open=base.open)
    if name == "__dict__":  # whatever the attributes are called
        write(frame, state, base, Special.NAMED, UNKNOWN, point, weak=True)
        return
    for holder in base.each():
        if type(holder) is Object and holder.kind is Kind.INSTANCE:
            setter = frame.machine.index.setter(holder.about.cls, name)
            if setter is not None:
                frame.machine.call(frame, state, of(Bound.of(code_of(setter), holder)), Arguments([value]), point)
                return
            held = _held_by_class(frame, state, holder, name)
            told = _method_of(frame, state, held, "__set__")
            if told is not None:
                frame.machine.call(frame, state, told, Arguments([of(holder), value]), point)
                return
            if frame.loops and value.refs:
                shadowed(frame, state, held, value, point)
    write(frame, state, base, name, value, point)


def _held_by_class(frame: Frame, state: State, holder: Object, name: str) -> Value:
    """Return what an attribute of an instance is as long as nobody sets it."""
    for cls in frame.machine.index.order(holder.about.cls):
        if name in cls.members:
            owner = holder.about if cls is holder.about.cls else ClassRef.of(cls, Globals.of(cls.unit.name))
            return state.heap.get(owner, name) or symbol(Behind.of(owner, name))
    return NOTHING


def item_setter(frame: Frame, state: State, base: Value) -> Value | None:
    """Return the `__setitem__` that a class of the project defines; None where there is none."""
    for holder in base.each():
        if type(holder) is Object and holder.kind is Kind.INSTANCE:
            found = member(frame, state, holder, "__setitem__")
            if found is not None:
                return found
    return None


def construct(frame: Frame, state: State, cls_ref: ClassRef, arguments: Arguments, point: Point) -> Value:
    """Return a new instance of a class of the project, or what its `__new__` gives that makes none of it."""
    index = frame.machine.index
    new = index.method(cls_ref.cls, "__new__")
    if new is not None and _MAKING.isdisjoint(new.mentions):
        code = Code.of(new, _frame_of(frame, cls_ref, new))
        given = [of(cls_ref), *arguments.positional]
        return frame.machine.call(frame, state, of(code), replace(arguments, positional=given), point)
    made = Object.of(Kind.INSTANCE, point.site, point.context, cls_ref)
    begin(frame, state, made, point)
    if is_of_library(frame, cls_ref.cls):
        return of(made)
    init = index.method(cls_ref.cls, "__init__")
    if init is not None:
        code = Code.of(init, _frame_of(frame, cls_ref, init))
        with frame.machine.part(frame):
            frame.machine.call(frame, state, of(Bound.of(code, made)), arguments, point)
    else:
        _fill_fields(frame, state, made, arguments, point)
        if index.trainer(cls_ref.cls) is not None:
            trainers.hand(CallSite(frame, state, point, arguments), made)
    post = index.method(cls_ref.cls, "__post_init__") if init is None else None
    if post is not None:
        frame.machine.call(frame, state, of(Bound.of(code_of(post), made)), Arguments(), point)
    return of(made)


def is_made_by(frame: Frame, cls_ref: ClassRef, name: str) -> bool:
    """Does a method of a base that is not seen make new instances: `from_pretrained`, `load_from_checkpoint`?"""
    index, made = frame.machine.index, frame.machine.index.contracts.names("factories")
    if name not in made.last_parts or index.method(cls_ref.cls, name) is not None:
        return False
    bases = index.libraries(cls_ref.cls)
    return made.has_method(name, bases) or any(map(index.contracts.is_pipeline, bases))


def restored(frame: Frame, state: State, cls_ref: ClassRef, arguments: Arguments, point: Point) -> Value:
    """Return a new instance that such a method makes, of what is kept in files and of what it is given by name."""
    given = Arguments([], arguments.named, UNKNOWN, UNKNOWN)
    return construct(frame, state, cls_ref, given, point)


def _fill_fields(frame: Frame, state: State, made: Object, arguments: Arguments, point: Point) -> None:
    """Bind the arguments of a dataclass, namedtuple or plain record to its fields."""
    index = frame.machine.index
    cls_ref: ClassRef = made.about
    fields: list[str] = []
    for cls in reversed(index.order(cls_ref.cls)):
        fields += [name for name, _ in cls.fields if name not in fields]
    box = of(made)
    site = CallSite(frame, state, point, arguments)
    if not fields and index.is_box(cls_ref.cls):
        for value in arguments.positional:
            site.consume(value, box)
    positional = list(arguments.positional)
    if arguments.star is not None:
        spread = containers.written_out(state, arguments.star)
        positional += (
            spread if spread is not None else [site.iterate(arguments.star)] * max(len(fields) - len(positional), 0)
        )
    for number, value in enumerate(positional[: len(fields)]):
        write(frame, state, box, fields[number], value, point)
    for name, value in arguments.named.items():
        write(frame, state, box, name, value, point)
    if arguments.stars is not None:
        containers.merge(site, box, arguments.stars)
    for name in fields[len(positional) :]:
        if name not in arguments.named:
            default = _default(frame, state, cls_ref, name, site)
            if default is not None:
                write(frame, state, box, name, default, point)


def _default(frame: Frame, state: State, cls_ref: ClassRef, name: str, site: CallSite) -> Value | None:
    for cls in frame.machine.index.order(cls_ref.cls):
        owner = cls_ref if cls is cls_ref.cls else ClassRef.of(cls, Globals.of(cls.unit.name))
        home = state
        if state.heap.get(owner, name) is None and type(owner.frame) is Globals:
            home = frame.machine.end_of(cls.unit)
        found = home.heap.get(owner, name)
        if found is not None:
            return _made_default(home, found, site)
    return None


def _made_default(home: State, found: Value, site: CallSite) -> Value:
    """Return a field's default: field(default_factory=list) is called for each instance."""
    result = NOTHING
    for r in found.each():
        if type(r) is Object and r.about == "dataclasses.field":
            factory = home.heap.get(r, "default_factory")
            given = home.heap.get(r, "default")
            result = site.call(factory) if factory is not None else given or PLAIN
        else:
            result = join(result, of(r))
    return result if found.refs else found
