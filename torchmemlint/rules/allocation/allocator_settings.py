"""Settings of the caching allocator that come when it has been read already.

The allocator of CUDA reads its environment variable once: the first time that it is asked for a setting, which is when
CUDA is initialised (c10/cuda/CUDAAllocatorConfig.h, the same in torch 2.2, 2.6 and 2.13), and for `backend:` when torch
is loaded (pytorch#104801). What is put into `os.environ` afterwards reaches only processes that are started later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from torchmemlint.flow.program import Program
from torchmemlint.immutable import immutable
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Piece, Site
from torchmemlint.syntax.text import string_value, text_of
from torchmemlint.syntax.walking import children, inside

VARIABLES = frozenset({"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"})
_SETTERS = frozenset({"os.environ.setdefault", "os.putenv"})
# Functions that call torch.cuda._lazy_init, in each of these releases (torch/cuda/__init__.py).
_INITIALISING = frozenset(
    f"torch.cuda.{name}"
    for name in (
        "init current_device synchronize current_stream default_stream get_device_properties get_device_name "
        "get_device_capability mem_get_info"
    ).split()
)
# What starts other processes, which get the environment as it is then.
_STARTING = ("subprocess", "multiprocessing", "spawn", "Popen", "os.exec", "os.system", "ray.", "fork", "launch")


@immutable()
class LateSetting:
    """A setting that is not read."""

    site: Site
    variable: str
    before: Site  # what has had the variable read
    backend: bool  # it chooses the allocator's backend, which is done when torch is loaded


def find(program: Program) -> Iterator[LateSetting]:
    """The settings of a file that come too late."""
    text = program.source.text
    if "ALLOC_CONF" not in text or any(word in text for word in _STARTING):
        return
    for index, piece in enumerate(program.source.pieces):
        if "ALLOC_CONF" not in piece.text:
            continue
        above = {id(child): node for node in inside(piece.module) for child in children(node)}
        for node in inside(piece.module):
            variable, value = _set(program, node)
            if variable is None or _is_chosen(above, node):
                continue
            before = next(_before(program, piece, above, node), None)
            if before is None and piece.kind == "code" and _outermost(above, node) is None:
                before = next(_in_pieces(program, program.source.pieces[:index]), None)
            backend = value is not None and "backend:" in text_of(value)
            if before is None and backend:
                before = _torch_imported(program, index)
            if before is not None:
                yield LateSetting(Site(piece, node), variable, before, backend)


def _set(program: Program, node: cst.CSTNode) -> tuple[str | None, cst.BaseExpression | None]:
    """The variable that a node sets, and to what."""
    match node:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=owner, slice=[element]))], value=value):
            if program.qualify(dotted_text(owner)) == "os.environ" and isinstance(element.slice, cst.Index):
                return _variable(element.slice.value), value
        case cst.Call(func=func, args=[cst.Arg(value=key), cst.Arg(value=value), *_]):
            if program.qualify(dotted_text(func)) in _SETTERS:
                return _variable(key), value
    return None, None


def _variable(node: cst.BaseExpression) -> str | None:
    name = string_value(node) if isinstance(node, cst.SimpleString) else None
    return name if isinstance(name, str) and name in VARIABLES else None


def _is_chosen(above: dict[int, cst.CSTNode], node: cst.CSTNode) -> bool:
    """In an `except` clause: for what comes after a failure, perhaps in another process."""
    return any(isinstance(one, cst.ExceptHandler) for one in _ancestors(above, node))


def _ancestors(above: dict[int, cst.CSTNode], node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    found = above.get(id(node))
    while found is not None:
        yield found
        found = above.get(id(found))


def _outermost(above: dict[int, cst.CSTNode], node: cst.CSTNode) -> cst.CSTNode | None:
    """The function that it stands in."""
    return next((one for one in _ancestors(above, node) if isinstance(one, cst.FunctionDef | cst.Lambda)), None)


def _before(program: Program, piece: Piece, above: dict[int, cst.CSTNode], node: cst.CSTNode) -> Iterator[Site]:
    """What uses CUDA in the statements that run before it in the same function, or at the same level."""
    below: cst.CSTNode = node
    for one in _ancestors(above, node):
        if isinstance(one, cst.IndentedBlock | cst.Module):
            for statement in one.body:
                if statement is below:
                    break
                yield from _uses(program, piece, statement)
        if isinstance(one, cst.FunctionDef | cst.Lambda):
            return
        below = one


def _in_pieces(program: Program, pieces: Sequence[Piece]) -> Iterator[Site]:
    for piece in pieces:
        if piece.kind == "code" and "cuda" in piece.text:
            for statement in piece.module.body:
                yield from _uses(program, piece, statement)


def _uses(program: Program, piece: Piece, statement: cst.CSTNode) -> Iterator[Site]:
    """Calls in a statement that initialise CUDA for certain, but those of functions within it."""
    pending = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Lambda):
            continue
        if isinstance(node, cst.If) and not _is_about_cuda(node.test):
            pending += children(node.test)
            continue
        if isinstance(node, cst.Call) and _initialises(program, node):
            yield Site(piece, node)
        pending += reversed(children(node))


def _is_about_cuda(test: cst.BaseExpression) -> bool:
    return text_of(test).endswith(("cuda.is_available()", "accelerator.is_available()"))


def _initialises(program: Program, call: cst.Call) -> bool:
    match call:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="cuda"))):
            return program.qualify(dotted_text(owner)) != "torch"
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="to")), args=[cst.Arg(value=place), *_]) if _is_cuda(
            place
        ):
            return True
    qualified = program.qualify(dotted_text(call.func))
    if qualified in _INITIALISING:
        return True
    placed = (argument.value for argument in call.args if argument.keyword is not None)
    names = (argument.keyword.value for argument in call.args if argument.keyword is not None)
    on_cuda = any(name == "device" and _is_cuda(value) for name, value in zip(names, placed, strict=True))
    return on_cuda and qualified.startswith("torch.") and qualified.count(".") == 1


def _is_cuda(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.SimpleString) and str(string_value(node)).startswith("cuda")


def _torch_imported(program: Program, index: int) -> Site | None:
    """Where torch is imported at the top of the file, before this piece."""
    for piece in program.source.pieces[:index]:
        for statement in piece.module.body if piece.kind == "code" and "torch" in piece.text else ():
            for node in inside(statement):
                if "torch" in _imported(node):
                    return Site(piece, node)
    return None


def _imported(node: cst.CSTNode) -> set[str]:
    """The packages that a statement imports, by their first names."""
    match node:
        case cst.Import(names=names):
            return {dotted_text(one.name).partition(".")[0] for one in names}
        case cst.ImportFrom(module=cst.Name() | cst.Attribute() as module, relative=()):
            return {dotted_text(module).partition(".")[0]}
    return set()
