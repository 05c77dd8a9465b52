"""Explaining out-of-memory errors from within programs, by a context and by callbacks of frameworks, simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from torchmemlint import callbacks  # noqa: E402
from torchmemlint.runtime.simulated.backend import Simulated  # noqa: E402


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANK", raising=False)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        large = torch.ones(1 << 28, device=x.device)  # more than there is
        return {"loss": self.layer(x).mean() + large.sum()}


def test_a_context_explains_and_lets_the_error_through(capsys: pytest.CaptureFixture[str]) -> None:
    with Simulated().running():
        torch.cuda.set_per_process_memory_fraction(0.001)
        net = Net().to("cuda")
        with pytest.raises(torch.cuda.OutOfMemoryError), callbacks.explained(report="told.html") as made:
            net(torch.ones(2, 8, device="cuda"))
        assert made.written == 1
    told = capsys.readouterr().err
    assert "out of memory" in told
    assert "in forward" in told
    assert "<svg" in Path("told.html").read_text()


def test_a_context_is_silent_where_memory_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    with Simulated().running(), callbacks.explained():
        torch.ones(8, device="cuda")
    assert not capsys.readouterr().err
    assert not Path("oom_snapshot.pickle").exists()


def test_lightning(capsys: pytest.CaptureFixture[str]) -> None:
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
            return self.net(batch)["loss"]

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    options = {"logger": False, "enable_progress_bar": False, "enable_checkpointing": False, "accelerator": "gpu"}
    with Simulated().running():
        torch.cuda.set_per_process_memory_fraction(0.001)
        trainer = lightning.Trainer(max_steps=2, devices=1, callbacks=[callbacks.lightning_callback()], **options)
        loader = torch.utils.data.DataLoader(torch.ones(4, 8), batch_size=2)
        with pytest.raises(torch.cuda.OutOfMemoryError):
            trainer.fit(Module(), loader)
    told = capsys.readouterr().err
    assert told.count("\nA snapshot of ") == 1
    assert "in forward" in told


def test_trainer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    ends: list[object] = []
    monkeypatch.setattr("atexit.register", ends.append)
    rows = [{"x": [1.0] * 8, "labels": 1.0}] * 4
    with Simulated().running():
        torch.cuda.set_per_process_memory_fraction(0.001)
        made = callbacks.trainer_callback()
        options = transformers.TrainingArguments("out", max_steps=2, report_to=[], save_strategy="no")
        trainer = transformers.Trainer(Net(), options, train_dataset=rows, callbacks=[made])
        with pytest.raises(torch.cuda.OutOfMemoryError):
            trainer.train()
        ends[0]()  # type: ignore[operator]
    told = capsys.readouterr().err
    assert "A snapshot of " in told
    assert "in forward" in told
