"""Files of a library, so many that import each other, are run one by one: what they call of others is followed."""

from __future__ import annotations

import pytest

from torchmemlint.doubts import Doubt
from torchmemlint.flow.fact.cases import cases
from torchmemlint.flow.names import importing

from .findings import found

NETWORK = """import torch
from package import evaluation

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x)

def number(y):
    return y.argmax().item()
"""

EVALUATION = """import torch
from package.network import Net, number

def evaluate(net: Net, batches):
    net.eval()
    for batch in batches:{guard}
        print(number(net(batch)))
"""

GUARD = "\n      with torch.no_grad():"


@pytest.fixture(autouse=True)
def _all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_LARGE", 100)


def _package(**files: str) -> dict[str, str]:
    return {f"package/{name}.py": text for name, text in {"__init__": "", **files}.items()}


def test_what_a_file_calls_of_another_is_followed() -> None:
    network, evaluation = NETWORK, EVALUATION.format(guard="")
    assert found(_package(network=network, evaluation=evaluation)) == {("package/evaluation.py", 7, "TML201")}
    guarded = EVALUATION.format(guard=GUARD)
    assert found(_package(network=network, evaluation=guarded)) == set()


def test_a_loss_of_another_file() -> None:
    """What a function of another file gives has a graph, or has none."""
    losses = "import torch\nfrom package import training\n\ndef loss_of(y):\n    return y.square().mean(){end}\n"
    training = """import torch
from package.losses import loss_of

def train(model: torch.nn.Linear, optimizer, batches):
    total = 0
    for batch in batches:
        loss = loss_of(model(batch))
        loss.backward()
        optimizer.step()
        total += loss{detach}
    return total
"""
    files = _package(losses=losses.format(end=""), training=training.format(detach=""))
    assert found(files) == {("package/training.py", 10, "TML101")}
    files = _package(losses=losses.format(end=""), training=training.format(detach=".detach()"))
    assert found(files) == set()


def test_a_network_of_another_file_is_not_run_inside() -> None:
    """It is a network, as those of torch are: what it keeps is found in its own file."""
    network = NETWORK.replace(
        "        return self.layer(x)", "        self.seen.append(x)\n        return self.layer(x)"
    )
    network = network.replace("Linear(3, 3)\n", "Linear(3, 3)\n        self.seen = []\n")
    use = "import torch\nfrom package.network import Net\n\ndef run(batches):\n    net = Net()\n"
    trained = f"{use}    for batch in batches:\n        net(batch).sum().backward()\n"
    evaluated = f"{use}    for batch in batches:\n        print(net(batch).argmax())\n"
    importing_all = network.replace("from package import evaluation", "from package import use")
    assert found(_package(network=importing_all, use=trained)) == set()
    assert found(_package(network=importing_all, use=evaluated)) == {("package/use.py", 7, "TML201")}


def test_who_names_a_function_may_turn_gradients_off() -> None:
    evaluation = EVALUATION.format(guard="")
    user = "import torch\nfrom package import evaluation, network\n\ndef run(net):\n    evaluation.{}(net, [])\n"
    network = NETWORK.replace("import evaluation", "import evaluation, user")
    for name, doubts in (("evaluate", {Doubt.MENTIONED}), ("other", set())):
        files = _package(network=network, evaluation=evaluation, user=user.format(name))
        assert [case.doubts for case in cases(files) if case.code == "TML201"] == [doubts]


def test_functions_that_only_build_are_not_run() -> None:
    """A list of layers is no reason to run a function."""
    network = NETWORK + "\ndef layers(n, x):\n    found = []\n    for _ in range(n):\n        found.append(x)\n"
    assert found(_package(network=network, evaluation=EVALUATION.format(guard=GUARD))) == set()


def test_a_pipeline_of_its_own_library() -> None:
    base = "import torch\nfrom package import paint\n\nclass DiffusionPipeline:\n"
    base += "    def register_modules(self, **parts):\n        for name, part in parts.items():\n"
    base += "            setattr(self, name, part)\n"
    paint = """import torch
from package.base import DiffusionPipeline

class Painter(DiffusionPipeline):
    def __init__(self, unet, vae, tokenizer):
        self.register_modules(unet=unet, vae=vae, tokenizer=tokenizer)

    def __call__(self, prompt, noise):
        ids = self.tokenizer(prompt)
        print(ids.shape)
        for step in range(50):
            noise = self.unet(noise, ids)
        return noise
"""
    assert found(_package(base=base, paint=paint)) == {("package/paint.py", 12, "TML201")}
    guarded = paint.replace("    def __call__", "    @torch.no_grad()\n    def __call__")
    assert found(_package(base=base, paint=guarded)) == set()


def test_a_file_that_a_library_uses() -> None:
    """It is judged without the library's runs: what these mention may be run without gradients."""
    apart = "import torch\n\ndef evaluate(net, batches):\n    net.eval()\n    for batch in batches:\n"
    apart += "        print(net(batch).argmax())\n"
    user = "import torch\nfrom package import apart, network\n\ndef run(net):\n    apart.{}(net, [])\n"
    network = NETWORK.replace("import evaluation", "import evaluation, user")
    evaluation = EVALUATION.format(guard=GUARD)
    for name, is_named in (("evaluate", True), ("other", False)):
        files = _package(network=network, evaluation=evaluation, user=user.format(name), apart=apart)
        (case,) = (case for case in cases(files) if case.code == "TML201")
        assert (case.file, case.line) == ("package/apart.py", 6)
        assert (Doubt.MENTIONED in case.doubts) is is_named


def test_who_names_a_class_may_call_its_objects_with_gradients_off() -> None:
    """A call of an object does not name `__call__`."""
    paint = """import torch
from diffusers import StableDiffusionPipeline

class Painter(StableDiffusionPipeline):
    def __call__(self, noise, steps):
        for step in steps:
            noise = self.unet(noise, step, return_dict=False)[0]
        return noise
"""
    serve = """import torch
from paint import {}

class Server:
    def __init__(self, pipe):
        self.pipe = pipe

    def answer(self, noise):
        with torch.no_grad():
            if isinstance(self.pipe, {}):
                return self.pipe(noise, range(10))
"""
    for name, lines in (("Painter", set()), ("StableDiffusionPipeline", {("paint.py", 7, "TML201")})):
        assert found({"paint.py": paint, "serve.py": serve.format(name, name)}) == lines
