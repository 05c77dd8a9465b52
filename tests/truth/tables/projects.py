"""What projects of several people do: registries, factories, configurations, loggers of many meters, callbacks."""

from __future__ import annotations

from tests.truth.forms import Call, Holder, Lines, Loop, Model, Placed, Step, indented
from tests.truth.tables.calls import function, stepper

_CALLED = "stepper.do_step(x, y)"
_GAP = ["", ""]

_REGISTRY = [
    "class Registry:",
    "    def __init__(self):",
    "        self.entries = {}",
    "",
    "    def register(self, cls):",
    "        self.entries[cls.__name__] = cls",
    "        return cls",
    "",
    "    def build(self, config, *args):",
    "        settings = dict(config)",
    '        kind = settings.pop("type")',
    "        return self.entries[kind](*args, **settings)",
    *_GAP,
    "STEPPERS = Registry()",
    *_GAP,
]
_BASE = [
    "class BaseStepper:",
    "    def __init__(self, model, opt):",
    "        self.model = model",
    "        self.opt = opt",
    "",
    "    def run_step(self, x, y):",
    "        return self.compute(x, y)",
    "",
    "    def compute(self, x, y):",
    "        raise NotImplementedError",
]


def _derived(step: Step) -> list[str]:
    lines = indented(step.body("self.model", "self.opt"), 2)
    return ["class TrainStepper(BaseStepper):", "    def compute(self, x, y):", *lines]


CALL: dict[str, Call] = {
    "class_registry": lambda step: Placed(
        _CALLED,
        [*_REGISTRY, "@STEPPERS.register", *stepper(step)],
        setup=['stepper = STEPPERS.build({"type": "Stepper"}, {m}, {o})'],
    ),
    "base_in_other_file": lambda step: Placed(
        "stepper.run_step(x, y)", _derived(step), _BASE, setup=["stepper = TrainStepper({m}, {o})"]
    ),
    "factory_in_other_file": lambda step: Placed(
        _CALLED,
        other=[
            *stepper(step),
            *_GAP,
            "def build_stepper(kind, model, opt):",
            '    if kind == "train":',
            "        return Stepper(model, opt)",
            "    raise KeyError(kind)",
        ],
        setup=['stepper = build_stepper("train", {m}, {o})'],
    ),
    "getattr_formatted": lambda step: Placed(
        'getattr(stepper, f"{phase}_step")(x, y)',
        stepper(step, method="train_step"),
        setup=["stepper = Stepper({m}, {o})", 'phase = "train"'],
    ),
    "config_of_functions": lambda step: Placed(
        'config["step"]({m}, {o}, x, y)', function(step), setup=['config = {"step": do_step, "lr": 0.1}']
    ),
    "config_with_function": lambda step: Placed(
        "settings.step({m}, {o}, x, y)",
        [*function(step), *_GAP, "@dataclass", "class Settings:", "    step: object = None", "    epochs: int = 1"],
        setup=["settings = Settings(step=do_step)"],
    ),
    "property_method": lambda step: Placed(
        "stepper.current(x, y)",
        [*stepper(step), "", "    @property", "    def current(self):", "        return self.do_step"],
        setup=["stepper = Stepper({m}, {o})"],
    ),
}

MODEL: dict[str, Model] = {
    "config_dict": Model(
        'build_model({"width": 4096, "act": "relu"})',
        top=(
            'ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh}',
            *_GAP,
            "def build_model(config):",
            '    act = ACTIVATIONS[config["act"]]',
            '    return nn.Sequential(nn.Linear(1024, config["width"]), act(), nn.Linear(config["width"], 1000))',
        ),
        only="tensor",
    ),
    "dataclass_config": Model(
        "Configured(ModelConfig())",
        top=(
            "@dataclass",
            "class ModelConfig:",
            "    width: int = 4096",
            *_GAP,
            "class Configured(nn.Module):",
            "    def __init__(self, config):",
            "        super().__init__()",
            "        self.config = config",
            "        self.layers = nn.Sequential(",
            "            nn.Linear(1024, config.width), nn.ReLU(), nn.Linear(config.width, 1000)",
            "        )",
            "",
            "    def forward(self, x):",
            "        return self.layers(x)",
        ),
        only="tensor",
    ),
    "registered_in_other_file": Model(
        'create_model("net")',
        top=(),
        other=(
            "_MODELS = {}",
            *_GAP,
            "def register_model(cls):",
            "    _MODELS[cls.__name__.lower()] = cls",
            "    return cls",
            *_GAP,
            "def create_model(name, **kwargs):",
            "    return _MODELS[name](**kwargs)",
            *_GAP,
            "{net}",
            *_GAP,
            "register_model(Net)",
        ),
    ),
    "base_in_other_file": Model("Special()", top=("class Special(Net):", '    kind = "special"'), other=("{net}",)),
    "set_by_name": Model(
        "Built()",
        top=(
            "{net}",
            *_GAP,
            "class Built(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            '        for name in ("body",):',
            "            setattr(self, name, Net())",
            "",
            "    def forward(self, *args, **kwargs):",
            '        return getattr(self, "body")(*args, **kwargs)',
        ),
    ),
}

_SMOOTHED: Lines = (
    "class SmoothedValue:",
    "    def __init__(self, window=20):",
    "        self.recent = deque(maxlen=window)",
    "        self.sum = 0.0",
    "        self.count = 0",
    "",
    "    def update(self, value, n=1):",
    "        self.recent.append(value)",
    "        self.count += n",
    "        self.sum += value * n #@put",
    *_GAP,
    "class MetricLogger:",
    "    def __init__(self):",
    "        self.meters = defaultdict(SmoothedValue)",
    "",
    "    def update(self, **kwargs):",
    "        for name, value in kwargs.items():",
    "            self.meters[name].update(value) #@put",
)


def _own(name: str, init: tuple[str, ...], top: Lines, put: str, fold: str, clear: str) -> Holder:
    return Holder("own", name, init, top, puts={"method": f"{put} #@put"}, fold=fold, clear=clear)


HOLDER: dict[str, Holder] = {
    "metric_logger": _own(
        "logger",
        ("logger = MetricLogger()",),
        _SMOOTHED,
        "logger.update(loss={v}, more=1.0)",
        'logger.meters["loss"].sum',
        "logger.meters.clear()",
    ),
    "history_callback": _own(
        "recorders",
        ("recorders = [History()]",),
        (
            "class Callback:",
            "    def on_batch_end(self, logs):",
            "        pass",
            *_GAP,
            "class History(Callback):",
            "    def __init__(self):",
            "        self.values = []",
            "",
            "    def on_batch_end(self, logs):",
            '        self.values.append(logs["loss"]) #@put',
        ),
        '[recorder.on_batch_end({"loss": {v}}) for recorder in recorders]',
        "sum(recorders[0].values)",
        "recorders[0].values.clear()",
    ),
    "running_average": _own(
        "tracker",
        ("tracker = Tracker()",),
        (
            "class Tracker:",
            "    def __init__(self, beta=0.9):",
            "        self.beta = beta",
            "        self.average = 0.0",
            "",
            "    def update(self, new):",
            "        self.average = self.beta * self.average + (1 - self.beta) * new #@put",
            "        return self.average",
        ),
        "tracker.update({v})",
        "tracker.average",
        "tracker.average = 0.0",
    ),
    "trainer_state": _own(
        "progress",
        ("progress = TrainState()",),
        ("@dataclass", "class TrainState:", "    step: int = 0", "    logs: dict = field(default_factory=dict)"),
        'progress.logs.setdefault("loss", []).append({v})',
        'sum(progress.logs["loss"])',
        "progress.logs.clear()",
    ),
    "attribute_by_name": _own(
        "box",
        ("box = Plain()", "box.summed_up = 0.0", 'key_ = "summed"'),
        ("class Plain:", "    pass"),
        'setattr(box, f"{key_}_up", getattr(box, key_ + "_up") + {v})',
        "box.summed_up",
        "box.summed_up = 0.0",
    ),
}

LOOP: dict[str, Loop] = {
    "endless_generator": Loop(
        lambda body: [
            "batches = endless(loader)",
            "for _ in range(len(loader)):",
            "    x, y = next(batches)",
            *indented(body),
        ],
        top=("def endless(batches):", "    while True:", "        yield from batches"),
    ),
    "config_steps": Loop(
        lambda body: [
            'limits = {"steps": len(loader)}',
            "batches = iter(loader)",
            "steps_done = 0",
            'while steps_done < limits["steps"]:',
            "    x, y = next(batches)",
            "    steps_done += 1",
            *indented(body),
        ]
    ),
    "wrapped_loader": Loop(
        lambda body: ["for x, y in Prefetcher(loader):", *indented(body)],
        top=(
            "class Prefetcher:",
            "    def __init__(self, loader):",
            "        self.loader = loader",
            "",
            "    def __iter__(self):",
            "        for batch in self.loader:",
            "            yield batch",
        ),
    ),
    "iterator_class": Loop(
        lambda body: ["for x, y in Batches(loader):", *indented(body)],
        top=(
            "class Batches:",
            "    def __init__(self, loader):",
            "        self.inner = iter(loader)",
            "",
            "    def __iter__(self):",
            "        return self",
            "",
            "    def __next__(self):",
            "        return next(self.inner)",
        ),
    ),
}
