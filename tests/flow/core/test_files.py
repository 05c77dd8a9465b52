"""Files are run one by one: what is found in another file is reported there."""

from __future__ import annotations

from pathlib import Path

from tests.flow.core.findings import cases, found
from torchmemlint.doubts import Doubt
from torchmemlint.flow.fact.cases import in_memory

NET = "import torch\nnet = torch.nn.Linear(3, 3)\noptimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
STEP = (
    "def step(x, history):\n"
    "    loss = net(x).sum()\n"
    "    loss.backward()\n"
    "    optimizer.step()\n"
    "    history.append(loss)\n"
)
LOOP = "history = []\nfor _ in range(9):\n    step(torch.rand(2, 3), history)\nprint(history)\n"


def test_what_another_file_runs() -> None:
    files = {"training.py": NET + STEP, "main.py": "import torch\nfrom training import step\n" + LOOP}
    assert found(files) == {("training.py", 8, "TML102")}


def test_files_of_one_name_in_two_folders() -> None:
    main = "import torch\nfrom utils import step\n" + LOOP
    harmless = STEP.replace("append(loss)", "append(loss.item())")
    files = {
        "one/main.py": main,
        "one/utils.py": NET + STEP,
        "two/main.py": main,
        "two/utils.py": NET + harmless,
    }
    assert found(files) == {("one/utils.py", 8, "TML102")}


def test_what_lies_in_another_folder() -> None:
    """After `sys.path.append` the only file of a name is meant, whatever the folder is that is added."""
    plain = "import torch\nfrom training import step\n" + LOOP
    main = plain.replace("import torch\n", "import sys\nimport torch\nsys.path.append(folder)\n", 1)
    assert found({"lib/training.py": NET + STEP, "main.py": main}) == {("lib/training.py", 8, "TML102")}
    assert found({"lib/training.py": NET + STEP, "main.py": plain}) == set()
    assert found({"lib/training.py": NET + STEP, "other/training.py": NET + STEP, "main.py": main}) == set()


def test_what_lies_in_another_folder_below_one_of_a_common_name() -> None:
    """Of several folders of its first name the one is meant in which the rest of a name leads to a file."""
    main = "import sys\nimport torch\nsys.path.append(folder)\nfrom core.train.training import step\n" + LOOP
    files = {"kit/core/train/training.py": NET + STEP, "other/core/__init__.py": "", "kit/uses/main.py": main}
    assert found(files) == {("kit/core/train/training.py", 8, "TML102")}
    assert found({**files, "more/core/train/training.py": NET + STEP}) == set()


def test_a_network_whose_base_comes_with_everything_of_another_file() -> None:
    network = "from common import *\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    network += "        self.layer = nn.Linear(2, 2)\n\n    def forward(self, x):\n        return self.layer(x)\n"
    score = "import torch\nfrom net import Net\n\n\ndef score(loader):\n    net = Net()\n"
    score += "    net.load_state_dict(torch.load('a'))\n    net.eval()\n    right = 0\n    for x, y in loader:\n"
    score += "        right += (net(x).argmax(1) == y).sum().item()\n    return right\n"
    files = {"net.py": network, "score.py": score}
    assert found({**files, "common.py": "import torch\nimport torch.nn as nn\n"}) == {("score.py", 11, "TML201")}
    assert (
        found({**files, "common.py": "import torch\nfrom own import nn\n", "own/nn.py": "class Module: ...\n"}) == set()
    )


def test_a_base_that_a_decorator_registers() -> None:
    """What a decorator makes of a class is taken for that class: the base's method trains what both methods run."""
    base = (
        "import torch\nfrom registry import register\n\n"
        '@register("base")\nclass Trainer:\n    def __init__(self):\n        self.net = torch.nn.Linear(300, 300)\n\n'
        "    def update(self, loss, optimizer):\n        loss.backward()\n        optimizer.step()\n"
    )
    own = (
        "import torch\nfrom base import Trainer\nfrom registry import register\n\n"
        '@register("own")\nclass Own(Trainer):\n    def run(self, x):\n        return self.net(x)\n\n'
        "    def predict(self, data):\n        self.net.eval()\n"
        "        return [self.run(x).tolist() for x in data]\n\n"
        "    def train(self, data, optimizer):\n        for x in data:\n"
        "            self.update(self.run(x).sum(), optimizer)\n        return self.predict(data)\n"
    )
    assert found({"base.py": base, "own.py": own}) == {("own.py", 12, "TML201")}


def test_a_pass_that_a_file_elsewhere_trains() -> None:
    """A function's demonstration in its own file does not say how it is used."""
    sampler = "import torch\n\nclass Sampler:\n    def __init__(self, table):\n        self.table = table\n\n"
    sampler += "    def sample(self, labels):\n        return self.table(labels)\n\n"
    sampler += "if __name__ == '__main__':\n"
    sampler += "    print(Sampler(torch.nn.Embedding(9, 2)).sample(torch.arange(3)).detach())\n"
    train = "import sys\nimport torch\nsys.path.append('utils')\nfrom sampler import Sampler\n\n"
    train += "table = torch.nn.Embedding(9, 2)\noptimizer = torch.optim.SGD(table.parameters(), 0.1)\n"
    train += "sampler = Sampler(table)\nfor _ in range(9):\n    optimizer.zero_grad()\n"
    train += "    sampler.sample(torch.arange(3)).sum().backward()\n    optimizer.step()\n"
    assert found({"utils/sampler.py": sampler}) == {("utils/sampler.py", 8, "TML203")}
    assert found({"utils/sampler.py": sampler, "train.py": train}) == {("utils/sampler.py", 11, "TML203")}


def test_what_a_caller_in_another_file_decides() -> None:
    """`evaluate` is run without gradients wherever it is called."""
    evaluate = (
        "import torch\n\ndef evaluate(net, loader):\n    net.eval()\n    return [net(x).argmax() for x in loader]\n"
    )
    call = "    print(evaluate(torch.nn.Linear(3, 3), torch.rand(4, 2, 3)))\n"
    main = "import torch\nfrom evaluation import evaluate\n\nwith torch.no_grad():\n"
    assert found({"evaluation.py": evaluate, "main.py": main + call}) == set()
    without = main.replace("with torch.no_grad():", "if True:")
    assert found({"evaluation.py": evaluate, "main.py": without + call}) == {("evaluation.py", 5, "TML201")}
    assert found({"evaluation.py": evaluate}) == {("evaluation.py", 5, "TML201")}


def test_files_that_import_each_other() -> None:
    files = {
        "training.py": "import main\n" + NET + STEP,
        "main.py": "import torch\n\ndef run():\n    from training import step\n"
        + "".join(f"    {line}\n" for line in LOOP.splitlines()),
    }
    assert found(files) == {("training.py", 9, "TML102")}


def test_a_file_that_is_imported_from_now_on() -> None:
    """Who calls what it has was not known before."""
    root = Path("/")
    network = "import torch\n\n\ndef validate(model, loader):\n    model.eval()\n"
    network += "    return [model(x).mean() for x in loader]\n"
    main = "import torch\nfrom network import validate\n\n"
    main += "scores = validate(torch.nn.Linear(3, 3), torch.rand(9, 2, 3))\nprint([s.item() for s in scores])\n"
    texts = {root / "network.py": network, root / "main.py": "import torch\n"}
    before = in_memory(texts, root)
    assert {case.confidence.value for case in before.of(root / "network.py")} == {"likely"}
    texts[root / "main.py"] = main
    before.changed(root / "main.py", main)
    after = in_memory(texts, root)
    assert before.of(root / "network.py") == after.of(root / "network.py")
    assert {case.confidence.value for case in after.of(root / "network.py")} == {"certain"}


SAMPLER = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def sample(self, graph):
        return self.layer(graph).argmax(-1).tolist()
"""
GENERATE = """
import torch

def generate(net, graphs):
    {guard}
        return [net.sample(graph) for graph in graphs]
"""


def test_a_file_that_calls_a_method_of_this_name_with_gradients_off() -> None:
    root = Path("/project")
    texts = {root / "net.py": SAMPLER, root / "generate.py": GENERATE.format(guard="if graphs:")}
    project = in_memory(texts, root)

    def doubts() -> list[frozenset[Doubt]]:
        return [case.doubts for case in project.of(root / "net.py") if case.code == "TML201"]

    assert doubts() == [frozenset()]
    for guard, wanted in (("with torch.no_grad():", []), ("if graphs:", [frozenset()])):
        texts[root / "generate.py"] = GENERATE.format(guard=guard)
        project.changed(root / "generate.py", texts[root / "generate.py"])
        assert doubts() == wanted


def test_a_script_that_speaks_of_no_device_in_any_of_its_files() -> None:
    networks = "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    networks += "        self.body = torch.nn.Conv1d(4, 1, 3)\n\n    def forward(self, x):\n"
    networks += "        return self.body(x)\n"
    main = "import torch\nfrom networks import Net\n\n\ndef train(batches):\n    net, target = Net(), Net()\n"
    main += "    optimizer = torch.optim.SGD(net.parameters(), 0.1)\n    for x, y in batches:\n"
    main += "        loss = (net(x) - target(y).detach()).pow(2).mean()\n        optimizer.zero_grad()\n"
    main += "        loss.backward()\n        optimizer.step()\n\n\nif __name__ == '__main__':\n    train(list(data))\n"

    def little(networks: str) -> list[bool]:
        return [case.little for case in cases({"networks.py": networks, "main.py": main}) if case.code == "TML203"]

    assert little(networks) == [True]
    assert little(networks.replace("super().__init__()", "super().__init__()\n        self.cuda()")) == [False]


NETS = """import torch

class Net:
    def __new__(cls, kind):
        return Wide() if kind == "wide" else Deep(kind)

class Wide(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(300, 300)

    def forward(self, x):
        return self.layer(x)

class Deep(Wide):
    def __new__(cls, kind):
        return super().__new__(cls)

    def __init__(self, kind):
        super().__init__()

    def forward(self, x):
        return self.layer(self.layer(x))
"""
MEASURING = """import nets

class Measure:
    def __init__(self, kind):
        self.net = nets.Net(kind)
        self.kept = []

    def measure(self, data):
        for x in data:
            self.kept.append(self.net(x){read})

def main(kind, data):
    Measure(kind).measure(data)
"""


def test_a_class_whose_new_makes_objects_of_others() -> None:
    """It is a factory. One that asks its base class for the object makes one of its own."""
    kept = {("main.py", 10, "TML201")}
    assert found({"nets.py": NETS, "main.py": MEASURING.format(read=".argmax().item()")}) == kept
    guarded = MEASURING.format(read=".argmax().item()").replace("def measure", "@torch.no_grad()\n    def measure")
    assert found({"nets.py": NETS, "main.py": f"import torch\n{guarded}"}) == set()
