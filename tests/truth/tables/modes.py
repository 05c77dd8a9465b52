"""Gradient modes: whether gradients are recorded, and who says so."""

from __future__ import annotations

from tests.truth.forms import Mode

_OFF: dict[str, Mode] = {
    "with": Mode("with torch.no_grad():"),
    "decorator": Mode(decorator="@torch.no_grad()"),
    "bare_decorator": Mode(decorator="@torch.no_grad"),
    "inference_decorator": Mode(decorator="@torch.inference_mode()"),
    "caller": Mode(caller="with torch.no_grad():"),
    "set_grad_enabled": Mode(before=("torch.set_grad_enabled(False)",), after=("torch.set_grad_enabled(True)",)),
    "set_grad_enabled_with": Mode("with torch.set_grad_enabled(False):"),
    "set_grad_enabled_flag": Mode("with torch.set_grad_enabled(train):", parameters=(("train", "False"),)),
    "set_grad_enabled_string": Mode('with torch.set_grad_enabled(phase == "train"):', parameters=(("phase", '"val"'),)),
    "conditional_with": Mode(
        "with contextlib.nullcontext() if train else torch.no_grad():", parameters=(("train", "False"),)
    ),
    "inference_mode": Mode("with torch.inference_mode():"),
    "stored_context": Mode("with quiet:", before=("quiet = torch.no_grad()",)),
    "exit_stack": Mode("with contextlib.ExitStack() as modes:\n    modes.enter_context(torch.no_grad())"),
    "entered": Mode(
        before=("guard = torch.no_grad()", "guard.__enter__()"), after=("guard.__exit__(None, None, None)",)
    ),
    "own_context": Mode(
        "with frozen():",
        top=("@contextlib.contextmanager", "def frozen():", "    with torch.no_grad():", "        yield"),
    ),
    "own_context_class": Mode(
        "with Frozen():",
        top=(
            "class Frozen:",
            "    def __enter__(self):",
            "        self.before = torch.is_grad_enabled()",
            "        torch.set_grad_enabled(False)",
            "",
            "    def __exit__(self, *exception):",
            "        torch.set_grad_enabled(self.before)",
        ),
    ),
    "own_decorator": Mode(
        decorator="@without_gradients",
        top=(
            "def without_gradients(function):",
            "    @functools.wraps(function)",
            "    def wrapper(*args, **kwargs):",
            "        with torch.no_grad():",
            "            return function(*args, **kwargs)",
            "",
            "    return wrapper",
        ),
    ),
    "helper_switch": Mode(
        before=("gradients(False)",),
        after=("gradients(True)",),
        top=("def gradients(on):", "    torch.set_grad_enabled(on)"),
    ),
    "patched_forward": Mode(before=("{m}.forward = torch.no_grad()({m}.forward)",)),
    "frozen_parameters": Mode(before=("for p in {m}.parameters():", "    p.requires_grad_(False)")),
    "frozen_module": Mode(before=("{m}.requires_grad_(False)",)),
    "around_pass": Mode("with torch.no_grad():", around="pass"),
    "inference_around_pass": Mode("with torch.inference_mode():", around="pass"),
}

_ON: dict[str, Mode] = {  # gradients stay on, or go on again
    "on": Mode(off=False),
    "bare_call": Mode(before=("torch.no_grad()",), off=False),
    "around_put": Mode("with torch.no_grad():", around="put", off=False),
    "with_enable_grad": Mode("with torch.no_grad(), torch.enable_grad():", off=False),
    "enabled_inside": Mode(before=("torch.set_grad_enabled(True)",), caller="with torch.no_grad():", off=False),
    "enable_decorator": Mode(decorator="@torch.enable_grad()", caller="with torch.no_grad():", off=False),
    "flag_true": Mode("with torch.set_grad_enabled(train):", parameters=(("train", "True"),), off=False),
    "string_train": Mode(
        'with torch.set_grad_enabled(phase == "train"):', parameters=(("phase", '"train"'),), off=False
    ),
    "ended_before": Mode(before=("with torch.no_grad():", "    batch_count = len(loader)"), off=False),
    "switched_back": Mode(
        before=("torch.set_grad_enabled(False)", "batch_count = len(loader)", "torch.set_grad_enabled(True)"), off=False
    ),
    "nullcontext": Mode("with contextlib.nullcontext():", off=False),
    "idle_context": Mode(
        "with quiet_part():",
        top=(
            "@contextlib.contextmanager",
            "def quiet_part():",
            "    with torch.no_grad():",
            "        pass",
            "    yield",
        ),
        off=False,
    ),
}

MODE: dict[str, Mode] = {**_ON, **_OFF}
