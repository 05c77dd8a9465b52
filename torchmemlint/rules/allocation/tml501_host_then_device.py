"""TML501 host-then-device."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Span
from torchmemlint.flow.fact.details import Creating
from torchmemlint.knowledge import torch_api
from torchmemlint.rules.allocation.filled import filled as filled_by
from torchmemlint.rules.allocation.series import beside
from torchmemlint.rules.arguments import WrittenCall
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.told import Told
from torchmemlint.syntax import cst
from torchmemlint.syntax.text import shortened, text_of


class HostThenDevice(TellingRule):
    """A tensor is created on the host and copied to the device at once."""

    def tell(self, told: Told) -> Finding:
        """Say that a tensor is created on the host only to be moved."""
        place, creating = told.case.place, told.about(Creating)
        created, device = told.call_at(creating.created), _device(told.call)
        callee = created.callee if created is not None else ""
        return told.finding(
            self,
            f"`{callee}(…)` is created on the CPU and then copied to `{shortened(device, 40)}`",
            [
                told.link(creating.created, "created on the CPU: no `device=` is given"),
                told.link(place, "copied to the device at once"),
            ],
            fix=_fix(told, created, device),
        )


def _device(moved: WrittenCall | None) -> str:
    """Source text of the device that a tensor goes to."""
    arguments = moved.node.args if moved is not None else ()
    named = [(one.keyword.value if one.keyword is not None else "", one.value) for one in arguments]
    return next((text_of(value) for name, value in named if name in ("", "device")), '"cuda"')


def _fix(told: Told, created: WrittenCall | None, device: str) -> Fix:
    creating, moved = told.about(Creating), told.call
    exact = creating.exact
    edits = _edits(moved, created, device, exact=exact) if creating.same_place else ()
    if edits:
        edits += tuple(edit for alike in beside(told) for edit in _edits(*alike, device, exact=exact))
    return offered("Pass `device=`", Applicability.SAFE if creating.exact else Applicability.UNSAFE, edits)


def _edits(moved: WrittenCall | None, created: WrittenCall | None, device: str, *, exact: bool) -> tuple[Edit, ...]:
    if moved is None or created is None:
        return ()
    written, (module, _, name) = created.piece.written, created.callee.rpartition(".")
    text, dtype = written(created.node), torch_api.CONSTRUCTORS.get(name)
    if "#" in written(moved.node)[len(text) :] or text.startswith("(") or (dtype is not None and not module):
        return ()
    filling = cst.ensure_type(moved.node.func, cst.Attribute).value
    filled = filled_by(created, filling, typed=bool(dtype))
    factory = filled.factory() if filled is not None and module else ""
    kept = created.piece.span(created.node if factory else filling)
    last, kind = moved.node, f"{module}.{dtype}" if dtype else ""
    if exact and dtype is None and created.argument("dtype") is None:
        last, kind = _converted(moved)
    named = f"dtype={kind}, device={device}" if kind else f"device={device}"
    given = filled.edits(named) if filled is not None and factory else created.adding(named)
    factory = factory or ("empty" if dtype is not None else name)
    made = created.replacing(created.node.func, f"{module}.{factory}") if factory != name else ()
    return (*made, *given, Edit(Span(kept.end, created.piece.span(last).end), ""))


def _converted(moved: WrittenCall) -> tuple[cst.Call, str]:
    """The call that gives what is moved the type of another tensor, `.to(x.dtype)`, and that type; "" without one."""
    match moved.piece.tree.method_on(moved.node):
        case (
            cst.Call(
                func=cst.Attribute(value=inner, attr=cst.Name("to")),
                args=[cst.Arg(value=cst.Attribute(attr=cst.Name("dtype")) as dtype)],
            ) as call
        ) if "#" not in moved.piece.written(call)[len(moved.piece.written(inner)) :]:
            return call, text_of(dtype)
    return moved.node, ""
