"""Gradient modes: whether gradients are recorded, and who says so."""

from __future__ import annotations

from tests.truth.forms import Mode

MODE: dict[str, Mode] = {
    "on": Mode(off=False),
    "with": Mode("with torch.no_grad():"),
    "decorator": Mode(decorator="@torch.no_grad()"),
    "caller": Mode(caller="with torch.no_grad():"),
    "set_grad_enabled": Mode(before=("torch.set_grad_enabled(False)",), after=("torch.set_grad_enabled(True)",)),
    "inference_mode": Mode("with torch.inference_mode():"),
    "own_context": Mode(
        "with frozen():",
        top=("@contextlib.contextmanager", "def frozen():", "    with torch.no_grad():", "        yield"),
    ),
    "around_pass": Mode("with torch.no_grad():", around="pass"),
    # gradients stay on, or go on again
    "bare_call": Mode(before=("torch.no_grad()",), off=False),
    "around_put": Mode("with torch.no_grad():", around="put", off=False),
    "with_enable_grad": Mode("with torch.no_grad(), torch.enable_grad():", off=False),
}
