"""Networks (what a model computes and returns) and models (where it is defined, and how it is made)."""

from __future__ import annotations

from tests.truth.forms import Lines, Model, Network

_LAYERS: Lines = (
    "class Net(nn.Module):",
    "    def __init__(self):",
    "        super().__init__()",
    "        self.inp = nn.Linear(1024, 4096)",
    "        self.out = nn.Linear(4096, 1000)",
    "",
)

NETWORK: dict[str, Network] = {
    "tensor": Network(
        (
            *_LAYERS,
            "    def forward(self, x):",
            "        hidden = torch.relu(self.inp(x))",
            "        return self.out(hidden)",
        )
    ),
    "stateful": Network(
        (
            *_LAYERS,
            "    def forward(self, x, state=0.0):",
            "        hidden = torch.relu(self.inp(x))",
            "        return self.out(hidden) + 0.5 * state",
        )
    ),
}

MODEL: dict[str, Model] = {
    "class": Model(),
    "other_file": Model(top=(), other=("{net}",)),
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
}
