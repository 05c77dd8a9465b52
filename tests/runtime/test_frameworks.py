"""Programs of Lightning and of Hugging Face's Trainer, run as `verify` and `trace` run them, where these are installed.

They are no dependency of this project.
"""

from __future__ import annotations

import importlib
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torchmemlint.cli.main import main  # noqa: E402
from torchmemlint.runtime.aside import Aside  # noqa: E402
from torchmemlint.runtime.frameworks import Frameworks  # noqa: E402
from torchmemlint.runtime.launch import launch, order_for, workspace  # noqa: E402
from torchmemlint.runtime.loops import LoopWatch  # noqa: E402
from torchmemlint.runtime.order import Program  # noqa: E402
from torchmemlint.runtime.process import _tidy  # noqa: E402
from torchmemlint.runtime.results import End, RunResult  # noqa: E402
from torchmemlint.runtime.trace import ANALYSIS  # noqa: E402
from torchmemlint.runtime.trace_report import leak_from_json  # noqa: E402

LIGHTNING = """
    import lightning as L
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)

    class Regression(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 1))
            self.history = []

        def training_step(self, batch, batch_idx):
            hidden = self.layers[:2](batch[0])
            self.history.append(hidden)  # KEPT
            return nn.functional.mse_loss(self.layers[2](hidden), batch[1])

        def validation_step(self, batch, batch_idx):
            self.log("validation", nn.functional.mse_loss(self.layers(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    data = TensorDataset(torch.randn(800, 16), torch.randn(800, 1))
    trainer = L.Trainer(max_epochs=2, accelerator="auto", logger=False, enable_progress_bar=False)
    model = Regression()
    trainer.fit(model, DataLoader(data, batch_size=8), DataLoader(data, batch_size=8))
    trainer.validate(ckpt_path="best", dataloaders=DataLoader(data, batch_size=8))
    trainer.save_checkpoint("mine.ckpt")
    trainer.save_checkpoint("new/last.ckpt")
"""
TRAINER = """
    import os
    import torch
    from torch import nn
    from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments

    torch.set_num_threads(1)

    class Regression(PreTrainedModel):
        config_class = PretrainedConfig

        def __init__(self, config):
            super().__init__(config)
            self.layers = nn.Sequential(nn.Linear(16, 256), nn.ReLU())
            self.head = nn.Linear(256, 1)
            self.history = []
            self.post_init()

        def forward(self, inputs, labels=None):
            hidden = self.layers(inputs)
            if self.training:
                self.history.append(hidden)  # KEPT
            outputs = self.head(hidden)
            return {"loss": nn.functional.mse_loss(outputs, labels), "logits": outputs}

    data = [{"inputs": torch.randn(16), "labels": torch.randn(1)} for _ in range(800)]
    arguments = TrainingArguments(
        output_dir="out", num_train_epochs=2, per_device_train_batch_size=8, report_to=[], eval_strategy="epoch",
        save_strategy="epoch", save_total_limit=1, load_best_model_at_end=True, disable_tqdm=True,
    )
    model = Regression(PretrainedConfig())
    trainer = Trainer(model, arguments, train_dataset=data, eval_dataset=data)
    trainer.train()
    trainer.save_model()
    model.save_pretrained("new/final")
    assert os.path.exists("new/final/config.json")
    Regression.from_pretrained("new/final")
"""


def run(folder: Path, text: str, **settings: Any) -> RunResult:
    (folder / "train.py").write_text(dedent(text))
    with workspace() as space:
        return launch(order_for(Program("train.py", directory=str(folder)), space, steps=12, **settings))


def files_of(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in sorted(folder.rglob("*")) if one.is_file()}


def kept_line(text: str) -> int:
    return next(number for number, line in enumerate(dedent(text).splitlines(), 1) if line.endswith("# KEPT"))


@pytest.mark.parametrize("backend", ["cpu", "simulated"])
@pytest.mark.parametrize(("module", "text"), [("lightning", LIGHTNING), ("transformers", TRAINER)])
def test_a_leak_in_a_frameworks_loop(tmp_path: Path, module: str, text: str, backend: str) -> None:
    pytest.importorskip(module)
    old = {"mine.ckpt": "precious", "out/checkpoint-9/weights": "precious", "out/model.safetensors": "precious"}
    for name, content in old.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    result = run(tmp_path, text, backend=backend, analysis=ANALYSIS)
    assert (result.end, result.error) == (End.FINISHED, None)
    assert result.steps == 24  # two epochs of twelve
    # Each step keeps what the activation gave, 8 x 256 floats, for which ReLU saves its result; no copy.
    leak = leak_from_json(result.analysis["leaks"][0])
    assert (leak.line.line, leak.bytes_per_turn) == (kept_line(text), 8 * 256 * 4)
    assert result.left_out["torch.save"] >= 3
    # The user's own checkpoints are as they were, and there are no new ones.
    assert files_of(tmp_path) == {**old, "train.py": dedent(text)}
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "checkpoints").exists()


PREDICTIONS = """
    import torch
    from torch import nn
    from transformers import Trainer, TrainingArguments

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 48

        def __getitem__(self, index):
            return {"x": torch.ones(16), "labels": torch.zeros(1)}

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(16, 256)

        def forward(self, x, labels=None):
            out = self.layer(x)
            return {"loss": out.mean(), "logits": out}

    settings = dict(per_device_eval_batch_size=4, report_to=[], disable_tqdm=True)
    settings = TrainingArguments(output_dir="out", **settings)
    trainer = Trainer(Model(), settings, eval_dataset=Rows(), compute_metrics=lambda result: {})
    trainer.evaluate()  # KEPT
"""
WIDE = """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 48

        def __getitem__(self, index):
            return {"input_ids": torch.arange(16), "labels": torch.arange(16)}

    def metrics(result):
        return {"rows": len(result.predictions)}

    shape = dict(vocab_size=512, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    model = LlamaForCausalLM(LlamaConfig(**shape))
    settings = TrainingArguments(output_dir="out", per_device_eval_batch_size=4, report_to=[], disable_tqdm=True)
    trainer = Trainer(model, settings, eval_dataset=Rows(), compute_metrics=metrics)
    trainer.evaluate()  # KEPT
"""
IGNITE = """
    import torch
    from ignite.engine import Engine, Events
    from torch import nn
    from torch.utils.data import DataLoader

    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(torch.ones(200, 16), batch_size=4)
    epochs = []

    def step(engine, batch):
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()

    trainer = Engine(step)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: epochs.append(trainer.state.iteration))
    trainer.run(loader, max_epochs=2)
    assert epochs == [12, 24]
"""


def test_what_a_trainers_evaluation_collects_is_told(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    result = run(tmp_path, PREDICTIONS, backend="simulated", analysis=ANALYSIS)
    assert (result.end, result.error) == (End.FINISHED, None)
    leak = next(leak for leak in map(leak_from_json, result.analysis["leaks"]) if leak.gathered)
    assert (leak.line.line, leak.bytes_per_turn) == (kept_line(PREDICTIONS), pytest.approx(4 * 256 * 4, rel=0.01))
    assert leak.holder is not None
    assert leak.holder.of_type == "EvalLoopContainer"


def test_the_finding_about_it_has_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "train.py").write_text(dedent(WIDE))
    monkeypatch.chdir(tmp_path)
    options = ["--isolated", "--backend", "simulated", "--output-format", "json", "--output-file", "said.json"]
    assert main(["verify", *options, "train.py"]) == 0
    findings = json.loads(Path("said.json").read_text())["findings"]
    (told,) = [one for one in findings if one["finding"]["code"] == "TML702"]
    assert (told["verdict"], told["collected"]) == ("no fix tried", True)
    series, growth = told["growing"]
    assert series.endswith(f"train.py:{kept_line(WIDE)}")
    assert growth["bytes_per_step"] == pytest.approx(4 * 16 * (512 * 4 + 8), rel=0.01)  # scores and labels of a batch


def test_ignites_epochs_end_where_passes_are_cut(tmp_path: Path) -> None:
    pytest.importorskip("ignite")
    result = run(tmp_path, IGNITE, backend="cpu")
    assert (result.end, result.error, result.steps) == (End.FINISHED, None, 24)


def test_lightnings_limits_are_the_cut_length() -> None:
    """With one that stands in for its trainer."""

    class Trainer:
        def __init__(self, **given: Any) -> None:
            self.limit_train_batches = given.get("train", 1.0)
            self.limit_val_batches = given.get("val", 1.0)
            self.limit_test_batches, self.limit_predict_batches = 0.5, 5
            self.accumulate_grad_batches = given.get("accumulate", 1)
            self.val_check_interval = given.get("every", 1.0)

    frameworks = Frameworks(Aside(Path(), Path("made")), LoopWatch(steps=30, seconds=60, now=lambda: 0))
    frameworks._limited(SimpleNamespace(Trainer=Trainer))
    limited = Trainer(accumulate=2, every=500, val=7)
    assert (limited.limit_train_batches, limited.val_check_interval) == (60, 60)
    assert (limited.limit_val_batches, limited.limit_test_batches, limited.limit_predict_batches) == (7, 0.5, 5)
    assert Trainer().val_check_interval == 1.0


STANDS_IN = """
    from pathlib import Path

    class TorchCheckpointIO:
        def save_checkpoint(self, checkpoint, path, storage_options=None):
            Path(path).parent.mkdir(exist_ok=True)
            Path(path).write_text(checkpoint)

        def load_checkpoint(self, path, map_location=None):
            return Path(path).read_text()
"""


def test_a_module_is_replaced_as_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one that stands in for Lightning's, where that is not installed."""
    if find_spec("lightning_fabric") is not None:
        pytest.skip("the real one is here")
    module = tmp_path / "lightning_fabric" / "plugins" / "io" / "torch_io.py"
    module.parent.mkdir(parents=True)
    module.write_text(dedent(STANDS_IN))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "private").mkdir()
    (tmp_path / "old").write_text("precious")
    aside = Aside(tmp_path / "private", tmp_path / "private" / "made")
    with Frameworks(aside, LoopWatch(steps=30, seconds=60, now=lambda: 0)):
        one = importlib.import_module("lightning_fabric.plugins.io.torch_io").TorchCheckpointIO()
    try:
        one.save_checkpoint("spoilt", str(tmp_path / "old"))
        assert one.load_checkpoint(path=str(tmp_path / "old")) == "spoilt"
        assert (tmp_path / "old").read_text() == "precious"
        one.save_checkpoint("new", path=tmp_path / "folder" / "new")
        assert one.load_checkpoint(tmp_path / "folder" / "new") == "new"
        assert aside.counts == {"torch.save": 2}
        _tidy(tmp_path / "private" / "made")
        assert not (tmp_path / "folder").exists()
    finally:
        for name in [name for name in sys.modules if name.startswith("lightning_fabric")]:
            del sys.modules[name]


def test_a_folder_of_a_model(tmp_path: Path) -> None:
    for name in ("private", "full", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "weights").write_text("precious")
    made = tmp_path / "private" / "made"
    aside = Aside(tmp_path / "private", made)
    given = {name: Path(aside.folder(tmp_path / name)) for name in ("full", "empty", "not/there")}
    assert given["full"].parent == tmp_path / "private"
    assert (given["empty"], given["not/there"]) == (tmp_path / "empty", tmp_path / "not" / "there")
    for folder in given.values():
        (folder / "part").mkdir(parents=True)
        (folder / "part" / "weights").write_text("new")
        aside.gather(folder)
    assert aside.folder(given["full"]) == str(given["full"])  # a model that a trainer saves into its own folder
    (tmp_path / "not" / "log").write_text("the program's own")
    _tidy(made)
    assert files_of(tmp_path / "full") == {"weights": "precious"}
    assert (tmp_path / "empty").is_dir()  # was there
    assert files_of(tmp_path / "empty") == {}
    assert files_of(tmp_path / "not") == {"log": "the program's own"}
    assert not (tmp_path / "not" / "there").exists()
