"""Results that a pass over the data collects on the device, and that the program wants on the host.

The list grows with the data set, in the memory that the model needs; what is done with it after the loop tells that
the results could have left the device batch by batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchmemlint.flow.facts import DeviceResults
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import Function
from torchmemlint.flow.values import (
    Container,
    Device,
    External,
    Flag,
    Known,
    LoopMark,
    Tensor,
    Unknown,
    Value,
)
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import string_value
from torchmemlint.syntax.walking import children, contains, inside

if TYPE_CHECKING:
    from torchmemlint.flow.arguments import Arguments

PREPARED = "prepared"  # flag of a loader whose batches come on the device
_TO_HOST = frozenset({"cpu", "numpy", "tolist"})
_JOINING = frozenset({"cat", "concat", "concatenate", "vstack"})  # of what has at least one dimension
_LIBRARIES = ("torch", "numpy")
_KEEPING = frozenset(
    "detach float double half long int bool view reshape flatten squeeze unsqueeze transpose permute contiguous clone "
    "t argmax softmax sigmoid".split()
)
_METADATA = frozenset("shape size dtype device dim ndim numel".split())
_MAX_NAMES = 3  # assignments followed from one name to the next


# -- the loop --------------------------------------------------------------------------------------------------------


def prepared(it: Interpreter, node: cst.Call, value: Value) -> None:
    """A framework takes over a loader: its batches come on the device."""
    if isinstance(value, Known) and value.role == "loader" and value.oid:
        it.state.heap[(value.oid, PREPARED)] = Flag(True, it.site(node))


def entered(it: Interpreter, element: Value) -> None:
    """A loop gives `element` in each iteration."""
    flag = it.state.heap.get((batch.oid, PREPARED)) if (batch := _batch(element)) is not None else None
    if isinstance(flag, Flag) and flag.site is not None:
        it.facts.on_device.setdefault(it.frame.loops[-1], flag.site)


def _batch(element: Value) -> Known | None:
    match element:
        case Known(role="batch"):
            return element
        case Container(items=items) if items:
            return next((found for item in items if (found := _batch(item)) is not None), None)
    return None


def moved(it: Interpreter, node: cst.Call, owner: Value, arguments: Arguments, device: Device) -> None:
    """`x.to(device)`: where x is (a part of) a loop's batch, the loop computes on that device."""
    if device is Device.HOST or not (it.recording or it.frame.path) or _is_dtype(arguments):
        return
    for mark in reversed(it.frame.loops):
        if isinstance(mark.node, cst.For) and _gives(it, mark, mark.node, owner):
            it.facts.on_device.setdefault(mark, it.site(node))
            return


def _is_dtype(arguments: Arguments) -> bool:
    given = arguments.find("0", "dtype", "device")
    if given is None:
        return False
    is_torch = isinstance(given.value, External) and given.value.qualified.startswith("torch.")
    return (
        is_torch
        or given.name == "dtype"
        or (isinstance(given.node, cst.Attribute) and given.node.attr.value == "dtype")
    )


def _gives(it: Interpreter, mark: LoopMark, loop: cst.For, owner: Value) -> bool:
    match owner:
        case Known(role="batch"):
            known = it.facts.micro_batches.get(mark)
            return known is not None and known.passes
        case Unknown(made=made) if made is not None:
            return contains(loop.iter, made.site.node)
    return False


# -- what is collected -----------------------------------------------------------------------------------------------


def collected(
    it: Interpreter, container: Container, node: cst.BaseExpression, value: Value, site_node: cst.CSTNode, text: str
) -> None:
    """A value is appended to a list: a fact where all of them wait on the device until they are brought to the host."""
    function = it.frame.function
    if not it.recording or function is None or container.kind != "list" or not text.isidentifier():
        return
    marks = [mark for mark in it.frame.loops if mark not in container.loops]
    mark = next((mark for mark in marks if mark in it.facts.on_device), None)
    if mark is None or not isinstance(mark.node, cst.For) or not _may_be_on_device(value):
        return
    names = it.local_names.get(function)
    if names is None:
        names = it.local_names[function] = LocalNames(function)
    past = names.past(node, mark.node)
    if any(_is_host_call(found) for found in past) or not _is_computed_there(past, mark.node, it.facts.on_device[mark]):
        return
    place = names.brought_to_host(text, mark.node)
    if place is not None:
        site = it.site(site_node)
        it.facts.device_results[site] = DeviceResults(
            site, it.scope, text, it.site(node), mark, it.facts.on_device[mark], it.site(place)
        )


def _may_be_on_device(value: Value) -> bool:
    match value:
        case Tensor():
            return not value.carries_graph and value.device is not Device.HOST
        case Known(role="batch", qualified=qualified):
            return qualified == "computed"
        case Unknown():
            return True
    return False


def _is_computed_there(past: Sequence[cst.CSTNode], loop: cst.For, on_device: Site) -> bool:
    """Is it made of what the loop moves, or (where a framework or helper moves it) of what the loop runs over?"""
    if contains(loop.body, on_device.node):
        return any(_is_transfer(found) for found in past)
    given = set(_bound(loop.target))
    return any(isinstance(found, cst.Name) and found.value in given for found in past)


def _is_transfer(node: cst.CSTNode) -> bool:
    return (
        isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in ("to", "cuda")
    )


class LocalNames:
    """What a function does with its local names, as its syntax shows it: one for all calls of the function."""

    def __init__(self, function: Function) -> None:
        self._program = function.program
        self._parents: dict[int, cst.CSTNode] = {}
        self._loads: dict[str, list[cst.Name]] = {}
        self._assigned: dict[str, list[cst.BaseExpression]] = {}
        self._written: set[int] = set()
        for node in inside(function.node.body):
            for child in children(node):
                self._parents[id(child)] = node
            self._note(node)

    def _note(self, node: cst.CSTNode) -> None:
        if type(node) is cst.Name:  # `isinstance` is slow on these classes where the answer is no
            if not self._is_label(node):
                self._loads.setdefault(node.value, []).append(node)
        elif type(node) is cst.Assign:
            for target in node.targets:
                self._written.update(id(name) for name in _names(target.target))
                for name in _bound(target.target):
                    self._assigned.setdefault(name, []).append(node.value)
        elif type(node) is cst.For:
            self._written.update(id(name) for name in _names(node.target))

    def _is_label(self, node: cst.Name) -> bool:
        """An attribute's or keyword's name, or what is assigned to."""
        match self._parents.get(id(node)):
            case cst.Attribute(attr=attr):
                return attr is node
            case cst.Arg(keyword=keyword):
                return keyword is node
            case cst.AnnAssign(target=target):
                return target is node
        return id(node) in self._written

    def _within(self, node: cst.CSTNode, around: cst.CSTNode) -> bool:
        """`contains(around, node)`, from below where both are of this function."""
        if id(around) not in self._parents:
            return contains(around, node)
        above: cst.CSTNode | None = node
        while above is not None and above is not around:
            above = self._parents.get(id(above))
        return above is around

    def past(self, node: cst.CSTNode, loop: cst.CSTNode) -> list[cst.CSTNode]:
        """The nodes of an expression, and of what the loop assigns to the names in it, and so on."""
        found: list[cst.CSTNode] = []
        pending, seen = [node], set[str]()
        while pending:
            for below in inside(pending.pop()):
                found.append(below)
                if isinstance(below, cst.Name) and below.value not in seen:
                    seen.add(below.value)
                    pending += [value for value in self._assigned.get(below.value, ()) if self._within(value, loop)]
        return found

    def brought_to_host(self, name: str, loop: cst.CSTNode, depth: int = 0) -> cst.CSTNode | None:
        """The place after the loop where what a name stands for is brought to the host; None where more is done."""
        found: cst.CSTNode | None = None
        for node in self._loads.get(name, ()):
            if found is not None and self._names_result(found, name, node):
                continue
            if self._is_neutral(node) or (self._within(node, loop) and self._is_appended_to(node)):
                continue
            if self._within(node, loop):
                return None
            place = self._fate(node, name, loop, depth)
            if place is None:
                return None
            found = found if place is _LATER else place
        return found

    def _names_result(self, place: cst.CSTNode, name: str, node: cst.CSTNode) -> bool:
        """`xs = torch.cat(xs).cpu()`: is it what has been brought to the host that the name stands for from here on?"""
        statement: cst.CSTNode | None = place
        while statement is not None and not isinstance(statement, cst.BaseSmallStatement | cst.BaseCompoundStatement):
            statement = self._parents.get(id(statement))
        if not isinstance(statement, cst.Assign) or self._within(node, statement):
            return False
        block: cst.CSTNode | None = statement
        while block is not None and not isinstance(block, cst.IndentedBlock):
            block = self._parents.get(id(block))
        names = [bound for target in statement.targets for bound in _bound(target.target)]
        return name in names and (block is None or self._within(node, block))

    def _is_appended_to(self, node: cst.Name) -> bool:
        match self._parents.get(id(node)):
            case cst.Attribute(attr=cst.Name(value="append")):
                return True
        return False

    def _is_neutral(self, node: cst.CSTNode) -> bool:
        """`len(xs)`, `del xs`, `if xs`, `xs.clear()`, `xs.shape`."""
        parent = self._parents.get(id(node))
        match parent:
            case cst.Arg():
                call = self._parents.get(id(parent))
                return isinstance(call, cst.Call) and dotted_text(call.func) in ("len", "isinstance")
            case cst.Attribute(attr=cst.Name(value=attribute)):
                return attribute in _METADATA or attribute == "clear"
            case cst.Del() | cst.If() | cst.UnaryOperation(operator=cst.Not()):
                return True
        return False

    def _fate(self, node: cst.CSTNode, name: str, loop: cst.CSTNode, depth: int) -> cst.CSTNode | None:
        """Where an expression is brought to the host; `_LATER` where it only gets another name; else None."""
        joined = depth > 0 or self._is_rebound(name)
        while True:
            if self._is_neutral(node):
                return _LATER
            parent = self._parents.get(id(node))
            above = self._parents.get(id(parent)) if parent is not None else None
            match parent, above:
                case cst.Attribute(attr=cst.Name(value=method)), cst.Call() if joined and above.func is parent:
                    if _is_host_call(above):
                        return above if method != "numpy" else None  # which raises for what lies elsewhere
                    if method not in _KEEPING:
                        return None
                    node = above
                case cst.Arg(), cst.Call() if self._joins(above) and above.args[0] is parent:
                    node, joined = above, True
                case cst.Subscript(), _ if joined:
                    node = parent
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=target))]), _ if joined:
                    if target == name:
                        return _LATER
                    return self.brought_to_host(target, loop, depth + 1) if depth < _MAX_NAMES else None
                case cst.CompFor(target=cst.Name(value=element), inner_for_in=None), _ if not joined:
                    return self._each(parent, element)
                case _:
                    return None

    def _is_rebound(self, name: str) -> bool:
        """`xs = torch.cat(xs)`: from there on the name stands for one tensor."""
        return any(isinstance(value, cst.Call) and self._joins(value) for value in self._assigned.get(name, ()))

    def _joins(self, call: cst.Call) -> bool:
        """Is it `torch.cat` or one of its kin?"""
        path = dotted_text(call.func)
        if path.rpartition(".")[2] not in _JOINING:
            return False
        return self._program.qualify(path).partition(".")[0] in _LIBRARIES

    def _each(self, over: cst.CompFor, element: str) -> cst.CSTNode | None:
        """`np.concatenate([x.cpu().numpy() for x in xs])`."""
        comprehension = self._parents.get(id(over))
        argument = self._parents.get(id(comprehension))
        call = self._parents.get(id(argument))
        if not isinstance(comprehension, cst.ListComp | cst.GeneratorExp):
            return None
        if not isinstance(argument, cst.Arg) or not isinstance(call, cst.Call) or not self._joins(call):
            return None
        moves = [found for found in inside(comprehension.elt) if _is_host_call(found) and _root(found) == element]
        names = [found for found in inside(comprehension.elt) if isinstance(found, cst.Name) and found.value == element]
        if not moves or len(names) != 1 or _method(moves[-1]) == "numpy":
            return None
        return moves[-1]


_LATER = cst.Pass()  # stands for: another place tells


def _is_host_call(node: cst.CSTNode) -> bool:
    """`x.cpu()`, `x.numpy()`, `x.to("cpu")`."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=method)), args=arguments):
            if method == "to":
                return any(_is_host(argument.value) for argument in arguments)
            return method in _TO_HOST
    return False


def _is_host(node: cst.BaseExpression) -> bool:
    match node:
        case cst.SimpleString():
            return string_value(node) == "cpu"
        case cst.Call(args=[cst.Arg(value=inner)]):
            return dotted_text(node.func).endswith("device") and _is_host(inner)
    return False


def _method(call: cst.CSTNode) -> str:
    match call:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=method))):
            return method
    return ""


def _root(node: cst.CSTNode) -> str:
    """The name that a chain of calls, attributes and subscripts begins with."""
    while True:
        match node:
            case cst.Call(func=inner) | cst.Attribute(value=inner) | cst.Subscript(value=inner):
                node = inner
            case cst.Name(value=name):
                return name
            case _:
                return ""


def _bound(target: cst.BaseExpression) -> Sequence[str]:
    """The names that an assignment gives a value, or (`batch[key] = ...`) a part of one."""
    if isinstance(target, cst.Subscript):
        return [_root(target)]
    return [name.value for name in _names(target)]


def _names(target: cst.BaseExpression) -> Sequence[cst.Name]:
    match target:
        case cst.Name():
            return [target]
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return [name for element in elements for name in _names(element.value)]
    return []
