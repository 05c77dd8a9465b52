"""Call forms: where the computation of an iteration is written, and how it is called."""

from __future__ import annotations

from tests.truth.forms import Call, Placed, Step, indented


def function(step: Step, name: str = "do_step", decorator: str = "") -> list[str]:
    """The computation as a function of the module."""
    head = [decorator] if decorator else []
    return [*head, f"def {name}(model, opt, x, y):", *indented(step.body("model", "opt"))]


def stepper(step: Step, name: str = "Stepper", method: str = "do_step") -> list[str]:
    """The computation as a method of an object that has the model and the optimizer."""
    return [
        f"class {name}:",
        "    def __init__(self, model, opt):",
        "        self.model = model",
        "        self.opt = opt",
        "",
        f"    def {method}(self, x, y):",
        *indented(step.body("self.model", "self.opt"), 2),
    ]


_STEPPER = ["stepper = Stepper({m}, {o})"]

CALL: dict[str, Call] = {
    "inline": lambda step: Placed(""),
    "function": lambda step: Placed("do_step({m}, {o}, x, y)", function(step)),
    "method": lambda step: Placed("stepper.do_step(x, y)", stepper(step), setup=_STEPPER),
    "other_file": lambda step: Placed("do_step({m}, {o}, x, y)", other=function(step)),
    "other_file_method": lambda step: Placed(
        "stepper.do_step(x, y)",
        other=stepper(step),
        setup=["stepper = helper.Stepper({m}, {o})"],
        imports=["import helper"],
    ),
    "bound_method": lambda step: Placed(
        "run_step(x, y)", stepper(step), setup=["run_step = Stepper({m}, {o}).do_step"]
    ),
    "partial": lambda step: Placed(
        "run_step(x, y)", function(step), setup=["run_step = functools.partial(do_step, {m}, {o})"]
    ),
    "decorated": lambda step: Placed(
        "do_step({m}, {o}, x, y)",
        [
            "def timed(function):",
            "    @functools.wraps(function)",
            "    def wrapper(*args, **kwargs):",
            "        return function(*args, **kwargs)",
            "    return wrapper",
            "",
            *function(step, decorator="@timed"),
        ],
    ),
    "super": lambda step: Placed(
        "stepper.do_step(x, y)",
        [
            *stepper(step, "Base"),
            "",
            "class Stepper(Base):",
            "    def do_step(self, x, y):",
            "        return super().do_step(x, y)",
        ],
        setup=_STEPPER,
    ),
}
