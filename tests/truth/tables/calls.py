"""Call forms: where the computation of an iteration is written, and how it is called."""

from __future__ import annotations

from tests.truth.forms import Call, Placed, Step, indented


def function(step: Step, name: str = "do_step", decorator: str = "", more: str = "", first: str = "") -> list[str]:
    """The computation as a function of the module."""
    head = [decorator] if decorator else []
    before = first.split("\n") if first else []
    return [*head, f"def {name}(model, opt, x, y{more}):", *indented([*before, *step.body("model", "opt")])]


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
_BY_OBJECT = "stepper.do_step(x, y)"
_BY_FUNCTION = "do_step({m}, {o}, x, y)"
_GAP = ["", ""]

CALL: dict[str, Call] = {
    "inline": lambda step: Placed(""),
    # a function
    "function": lambda step: Placed(_BY_FUNCTION, function(step)),
    "keywords": lambda step: Placed("do_step(opt={o}, model={m}, x=x, y=y)", function(step)),
    "starred": lambda step: Placed("do_step(*arguments)", function(step), before=["arguments = ({m}, {o}, x, y)"]),
    "double_starred": lambda step: Placed(
        "do_step(x=x, y=y, **parts)", function(step), setup=['parts = {"model": {m}, "opt": {o}}']
    ),
    "forwarded": lambda step: Placed(
        "forward_to(do_step, {m}, {o}, x, y=y)",
        [
            *function(step),
            *_GAP,
            "def forward_to(function, *args, **kwargs):",
            "    return function(*args, **kwargs)",
        ],
    ),
    "flag": lambda step: Placed(
        "do_step({m}, {o}, x, y, active=True)",
        function(step, more=", active=False", first="if not active:\n    return None"),
    ),
    "mode_string": lambda step: Placed(
        'do_step({m}, {o}, x, y, "train")',
        function(step, more=', phase="val"', first='if phase != "train":\n    return None'),
    ),
    "partial": lambda step: Placed(
        "run_step(x, y)", function(step), setup=["run_step = functools.partial(do_step, {m}, {o})"]
    ),
    "lambda": lambda step: Placed(
        "run_step(x, y)", function(step), setup=["run_step = lambda x, y: do_step({m}, {o}, x, y)"]
    ),
    "local_function": lambda step: Placed(
        "compute(x, y)", setup=["def compute(x, y):", *indented(step.body("{m}", "{o}"))]
    ),
    "closure": lambda step: Placed(
        "run_step(x, y)",
        [
            "def make_step(model, opt):",
            "    def inner_step(x, y):",
            *indented(step.body("model", "opt"), 2),
            "",
            "    return inner_step",
        ],
        setup=["run_step = make_step({m}, {o})"],
    ),
    "decorated": lambda step: Placed(
        _BY_FUNCTION,
        [
            "def timed(function):",
            "    @functools.wraps(function)",
            "    def wrapper(*args, **kwargs):",
            "        return function(*args, **kwargs)",
            "    return wrapper",
            *_GAP,
            *function(step, decorator="@timed"),
        ],
    ),
    "decorated_with_arguments": lambda step: Placed(
        _BY_FUNCTION,
        [
            "def retried(times):",
            "    def decorate(function):",
            "        def wrapper(*args):",
            "            for _ in range(times):",
            "                result_ = function(*args)",
            "            return result_",
            "        return wrapper",
            "    return decorate",
            *_GAP,
            *function(step, decorator="@retried(1)"),
        ],
    ),
    "registry": lambda step: Placed(
        'STEPS["train"]({m}, {o}, x, y)',
        [
            "STEPS = {}",
            *_GAP,
            "def register(name):",
            "    def decorate(function):",
            "        STEPS[name] = function",
            "        return function",
            "    return decorate",
            *_GAP,
            *function(step, decorator='@register("train")'),
        ],
    ),
    "generator": lambda step: Placed(
        "next(stepping)",
        [
            "def steps_of(model, opt, pending):",
            "    while True:",
            "        x, y = pending.pop()",
            *indented([*step.body("model", "opt")[:-1], f"yield {step.pack}"], 2),
        ],
        setup=["pending = []", "stepping = steps_of({m}, {o}, pending)"],
        before=["pending.append((x, y))"],
    ),
    "two_functions": lambda step: Placed(
        "outer({m}, {o}, x, y)",
        [*function(step), *_GAP, "def outer(model, opt, x, y):", "    return do_step(model, opt, x, y)"],
    ),
    # the result is left somewhere
    "left_on_object": lambda step: Placed(
        "stepper.result",
        [
            "class Stepper:",
            "    def __init__(self, model, opt):",
            "        self.model = model",
            "        self.opt = opt",
            "        self.result = None",
            "",
            "    def do_step(self, x, y):",
            *indented([*step.body("self.model", "self.opt")[:-1], f"self.result = {step.pack}"], 2),
        ],
        setup=_STEPPER,
        before=[_BY_OBJECT],
    ),
    "left_in_module": lambda step: Placed(
        "LATEST",
        [
            "LATEST = None",
            *_GAP,
            "def do_step(model, opt, x, y):",
            "    global LATEST",
            *indented([*step.body("model", "opt")[:-1], f"LATEST = {step.pack}"]),
        ],
        before=[_BY_FUNCTION],
    ),
    "out_parameter": lambda step: Placed(
        "answers[0]",
        [
            "def do_step(model, opt, x, y, answers):",
            *indented([*step.body("model", "opt")[:-1], f"answers.append({step.pack})"]),
        ],
        before=["answers = []", "do_step({m}, {o}, x, y, answers)"],
    ),
    "continuation": lambda step: Placed(
        'answer["result"]',
        [
            "def do_step(model, opt, x, y, then):",
            *indented([*step.body("model", "opt")[:-1], f"then({step.pack})"]),
        ],
        before=["answer = {}", 'do_step({m}, {o}, x, y, functools.partial(answer.__setitem__, "result"))'],
    ),
    "context_manager": lambda step: Placed(
        "entered.enter_context(do_step({m}, {o}, x, y))",
        [
            "@contextlib.contextmanager",
            "def do_step(model, opt, x, y):",
            *indented([*step.body("model", "opt")[:-1], f"yield {step.pack}"]),
        ],
        before=["entered = contextlib.ExitStack()"],
    ),
    # another file
    "other_file": lambda step: Placed(_BY_FUNCTION, other=function(step)),
    "other_file_method": lambda step: Placed(
        _BY_OBJECT, other=stepper(step), setup=["stepper = helper.Stepper({m}, {o})"], imports=["import helper"]
    ),
    "other_file_alias": lambda step: Placed(
        "tools_.do_step({m}, {o}, x, y)", other=function(step), imports=["import helper as tools_"]
    ),
    "third_file": lambda step: Placed(
        "outer({m}, {o}, x, y)",
        other=["def outer(model, opt, x, y):", "    return do_step(model, opt, x, y)"],
        third=function(step),
    ),
    # an object
    "method": lambda step: Placed(_BY_OBJECT, stepper(step), setup=_STEPPER),
    "bound_method": lambda step: Placed(
        "run_step(x, y)", stepper(step), setup=["run_step = Stepper({m}, {o}).do_step"]
    ),
    "methods_by_name": lambda step: Placed(
        'handlers["train"](x, y)', stepper(step), setup=[*_STEPPER, 'handlers = {"train": stepper.do_step}']
    ),
    "getattr": lambda step: Placed('getattr(stepper, "do_step")(x, y)', stepper(step), setup=_STEPPER),
    "callable_object": lambda step: Placed("stepper(x, y)", stepper(step, method="__call__"), setup=_STEPPER),
    "static_method": lambda step: Placed(
        "Steps.do_step({m}, {o}, x, y)", ["class Steps:", *indented(function(step, decorator="@staticmethod"))]
    ),
    "class_method": lambda step: Placed(
        "Steps.do_step({m}, {o}, x, y)",
        [
            "class Steps:",
            "    @classmethod",
            "    def do_step(cls, model, opt, x, y):",
            *indented(step.body("model", "opt"), 2),
        ],
    ),
    "super": lambda step: Placed(
        _BY_OBJECT,
        [
            *stepper(step, "Base"),
            *_GAP,
            "class Stepper(Base):",
            "    def do_step(self, x, y):",
            "        return super().do_step(x, y)",
        ],
        setup=_STEPPER,
    ),
    "inherited": lambda step: Placed(
        _BY_OBJECT, [*stepper(step, "Base"), *_GAP, "class Stepper(Base):", "    pass"], setup=_STEPPER
    ),
    "mixin": lambda step: Placed(
        _BY_OBJECT,
        [
            "class Steps:",
            "    def do_step(self, x, y):",
            *indented(step.body("self.model", "self.opt"), 2),
            *_GAP,
            "class Parts:",
            "    def __init__(self, model, opt):",
            "        self.model, self.opt = model, opt",
            *_GAP,
            "class Stepper(Steps, Parts):",
            "    pass",
        ],
        setup=_STEPPER,
    ),
    "template_method": lambda step: Placed(
        "stepper.go(x, y)",
        [
            "class Template:",
            "    def go(self, x, y):",
            "        return self.do_step(x, y)",
            *_GAP,
            *[line.replace("class Stepper:", "class Stepper(Template):") for line in stepper(step)],
        ],
        setup=_STEPPER,
    ),
    "dataclass_object": lambda step: Placed(
        _BY_OBJECT,
        [
            "@dataclass",
            "class Stepper:",
            "    model: nn.Module",
            "    opt: torch.optim.Optimizer",
            "",
            "    def do_step(self, x, y):",
            *indented(step.body("self.model", "self.opt"), 2),
        ],
        setup=_STEPPER,
    ),
    "delegated": lambda step: Placed(
        "owner.do_step(x, y)",
        [
            *stepper(step),
            *_GAP,
            "class Owner:",
            "    def __init__(self, inner):",
            "        self.inner = inner",
            "",
            "    def __getattr__(self, name):",
            "        return getattr(self.inner, name)",
        ],
        setup=["owner = Owner(Stepper({m}, {o}))"],
    ),
}
