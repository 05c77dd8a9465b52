"""Networks (what a model computes and returns) and models (where it is defined, and how it is made)."""

from __future__ import annotations

from tests.truth.forms import Lines, Model, Network, body_of

_LAYERS: Lines = (
    "class Net(nn.Module):",
    "    def __init__(self):",
    "        super().__init__()",
    "        self.inp = nn.Linear(1024, 4096)",
    "        self.out = nn.Linear(4096, 1000)",
    "",
)


def _forward(parameters: str, *lines: str) -> Lines:
    return (*_LAYERS, f"    def forward(self, {parameters}):", *body_of(body_of(lines)))


def _recurrent(cell: str) -> Lines:
    return (
        "class Net(nn.Module):",
        "    def __init__(self):",
        "        super().__init__()",
        f"        self.cells = nn.{cell}(1024, 4096)",
        "        self.out = nn.Linear(4096, 1000)",
        "",
        "    def forward(self, x, state=None):",
        "        features, state = self.cells(x.unsqueeze(0), state)",
        "        return self.out(features.squeeze(0)), state",
    )


_HIDDEN = "hidden = torch.relu(self.inp(x))"
_OUTPUT: Lines = ("@dataclass", "class Output:", "    logits: torch.Tensor", "    loss: torch.Tensor | None = None", "")

NETWORK: dict[str, Network] = {
    "tensor": Network(_forward("x", _HIDDEN, "return self.out(hidden)")),
    "stateful": Network(_forward("x, state=0.0", _HIDDEN, "return self.out(hidden) + 0.5 * state")),
    "tuple": Network(_forward("x", _HIDDEN, "return self.out(hidden), hidden")),
    "dict": Network(_forward("x", _HIDDEN, 'return {"logits": self.out(hidden), "features": hidden}')),
    "dataclass": Network(_forward("x", _HIDDEN, "return Output(self.out(hidden))"), _OUTPUT),
    "computes_loss": Network(
        _forward(
            "x, targets=None",
            _HIDDEN,
            "logits = self.out(hidden)",
            "if targets is None:",
            "    return Output(logits)",
            "return Output(logits, F.mse_loss(logits, targets))",
        ),
        _OUTPUT,
    ),
    "lstm": Network(_recurrent("LSTM")),
    "gru": Network(_recurrent("GRU")),
    "layered": Network(
        (
            "class Net(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            "        self.cells = nn.ModuleList([nn.GRUCell(1024, 4096), nn.GRUCell(4096, 4096)])",
            "        self.out = nn.Linear(4096, 1000)",
            "",
            "    def forward(self, x, states=None):",
            "        new = []",
            "        for i, cell in enumerate(self.cells):",
            "            x = cell(x, states[i] if states is not None else None)",
            "            new.append(x)",
            "        return self.out(x), new",
        )
    ),
}

MODEL: dict[str, Model] = {
    "class": Model(),
    "other_file": Model(top=(), other=("{net}",)),
    "third_file": Model("create()", top=(), other=("def create():", "    return Net()"), third=("{net}",)),
    "sequential": Model(
        "nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1000))", top=(), only="tensor"
    ),
    "factory": Model(
        "build_model(4096)",
        top=(
            "def build_model(width):",
            "    layers = [nn.Linear(1024, width), nn.Tanh()]",
            "    layers.append(nn.Linear(width, 1000))",
            "    return nn.Sequential(*layers)",
        ),
        only="tensor",
    ),
    "module_list": Model(
        "Deep(2)",
        top=(
            "class Deep(nn.Module):",
            "    def __init__(self, depth):",
            "        super().__init__()",
            "        self.blocks = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(depth))",
            "        self.head = nn.Linear(1024, 1000)",
            "",
            "    def forward(self, x):",
            "        for block in self.blocks:",
            "            x = x + F.gelu(block(x))",
            "        return self.head(x)",
        ),
        only="tensor",
    ),
    "subclass": Model(
        "Larger()",
        top=(
            "{net}",
            "",
            "",
            "class Larger(Net):",
            "    def forward(self, *args, **kwargs):",
            "        return super().forward(*args, **kwargs)",
        ),
    ),
    "mixin": Model(
        "Counted()",
        top=(
            "{net}",
            "",
            "",
            "class Sized:",
            "    def size(self):",
            "        return sum(p.numel() for p in self.parameters())",
            "",
            "",
            "class Counted(Sized, Net):",
            "    pass",
        ),
    ),
    "wrapper": Model(
        "Wrapped(Net())",
        top=(
            "{net}",
            "",
            "",
            "class Wrapped(nn.Module):",
            "    def __init__(self, inner):",
            "        super().__init__()",
            "        self.inner = inner",
            "",
            "    def forward(self, *args, **kwargs):",
            "        return self.inner(*args, **kwargs)",
        ),
    ),
    "registry": Model('MODELS["small"]()', top=("{net}", "", "", 'MODELS = {"small": Net}')),
    "classmethod": Model(
        "Made.from_config()",
        top=(
            "{net}",
            "",
            "",
            "class Made(Net):",
            "    @classmethod",
            "    def from_config(cls):",
            "        return cls()",
        ),
    ),
}
