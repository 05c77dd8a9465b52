"""Estimates against arithmetic, and against a real run (float32: 4 bytes)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from click.testing import CliRunner  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from torchmemlint.cli.main import cli  # noqa: E402
from torchmemlint.runtime import track_memory  # noqa: E402
from torchmemlint.runtime.estimates.estimate import CONTEXT, Estimate, NoSuchFactoryError, estimate  # noqa: E402
from torchmemlint.runtime.estimates.plan import Input, Plan  # noqa: E402
from torchmemlint.runtime.estimates.stepping import run  # noqa: E402
from torchmemlint.runtime.kinds import Kind  # noqa: E402

MIB = 2**20


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        batch, length, width = values.shape
        shape = batch, length, 3, self.heads, width // self.heads
        query, key, value = self.inputs(values).view(shape).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return self.output(mixed.transpose(1, 2).reshape(values.shape))


def linear() -> nn.Module:
    return nn.Linear(256, 512, bias=False)


def convolution() -> nn.Module:
    return nn.Conv2d(16, 32, 3, padding=1, bias=False)


def feed_forward() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 256, bias=False), nn.GELU(), nn.Linear(256, 64, bias=False))


def attention() -> nn.Module:
    return Attention(64, 4)


def normalised() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 2))


def deep() -> nn.Module:
    return nn.Sequential(*[feed_forward() for _ in range(8)])


def huge() -> nn.Module:
    return nn.Sequential(*[nn.Linear(16384, 16384, bias=False) for _ in range(8)])


def nothing() -> int:
    return 1


def plan(*inputs: str, **changes: object) -> Plan:
    return Plan(tuple(map(Input.parse, inputs)), **changes)  # type: ignore[arg-type]


def test_a_linear_layer_keeps_its_input() -> None:
    use = run(linear, plan("32x256"))
    assert use.parameters == 256 * 512
    assert [layer.parameters for layer in use.layers] == [256 * 512 * 4]
    # Its input is the batch itself, which is no activation; the loss keeps nothing of its own.
    assert use.saved == 0
    assert use.by_kind[Kind.PARAMETER] == 256 * 512 * 4
    assert use.by_kind[Kind.OPTIMIZER_STATE] == 2 * 256 * 512 * 4


def test_a_convolution_keeps_its_input() -> None:
    chain = run(lambda: nn.Sequential(convolution(), nn.Conv2d(32, 8, 3, bias=False)), plan("4x16x10x10"))
    assert {layer.name: layer.saved for layer in chain.layers} == {"0": 4 * 32 * 10 * 10 * 4, "1": 0}


def test_a_feed_forward_layer_keeps_two_hidden_activations() -> None:
    use = run(feed_forward, plan("8x16x64"))
    hidden = 8 * 16 * 256 * 4  # before the GELU, and after it
    assert {layer.name: layer.saved for layer in use.layers} == {"0": hidden, "1": hidden, "2": 0}
    assert use.saved == 2 * hidden


def test_attention_keeps_query_key_value_and_its_result() -> None:
    use = run(attention, plan("2x32x64"))
    features = 2 * 32 * 64 * 4
    statistics = 2 * 4 * 32 * 4  # a number for each head and row, instead of the weights themselves
    saved = {layer.name: layer.saved for layer in use.layers}
    assert saved["inputs"] == 3 * features
    assert features <= saved["(model)"] <= 2 * features + statistics + 512
    assert use.saved < 2 * 4 * 32 * 32 * 4 + 5 * features + 1024


@pytest.mark.parametrize(
    ("optimizer", "states"), [("sgd", 0), ("momentum", 1), ("adam", 2), ("adamw", 2), ("rmsprop", 1), ("adagrad", 1)]
)
def test_optimizer_state(optimizer: str, states: int) -> None:
    weights = 256 * 512 * 4
    use = run(linear, plan("32x256", optimizer=optimizer))
    assert use.by_kind.get(Kind.OPTIMIZER_STATE, 0) == states * weights


def test_eight_bit_state() -> None:
    use = run(linear, plan("32x256", optimizer="adamw8bit"))
    elements = 256 * 512
    assert use.by_kind[Kind.OPTIMIZER_STATE] == 2 * (elements + elements // 256 * 4)


def test_inference_saves_nothing() -> None:
    use = run(deep, plan("8x16x64", optimizer=None))
    assert use.saved == 0
    assert Kind.GRADIENT not in use.by_kind
    assert use.phase == "forward"


def test_a_dtype_halves_parameters_and_activations() -> None:
    full, half = run(deep, plan("64x64")), run(deep, plan("64x64", dtype="bfloat16"))
    assert half.saved * 2 == full.saved
    assert half.by_kind[Kind.PARAMETER] * 2 == full.by_kind[Kind.PARAMETER]


def test_checkpointing_keeps_less() -> None:
    full, recomputed = run(deep, plan("512x64")), run(deep, plan("512x64", checkpoint=True))
    # Of each of the eight blocks only the input is kept, and the first block's is the batch.
    assert full.saved == 8 * 2 * 512 * 256 * 4 + 7 * 512 * 64 * 4
    assert recomputed.saved == 7 * 512 * 64 * 4 or recomputed.saved == 0
    assert recomputed.peak < full.peak


@pytest.mark.parametrize(
    ("factory", "given"), [(feed_forward, "64x64"), (attention, "4x32x64"), (normalised, "16x3x8x8"), (deep, "64x64")]
)
def test_an_estimate_is_what_a_simulated_run_takes(factory: object, given: str) -> None:
    """With values: the same model, batch and optimizer, each operation computed."""
    estimated = run(factory, plan(given))  # type: ignore[arg-type]
    shape = Input.parse(given).shape
    with track_memory("simulated") as memory:
        with torch.device("cuda"):
            model = factory()  # type: ignore[operator]
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            loss = model(torch.zeros(shape, device="cuda")).float().mean()
            torch.stack([loss]).sum().backward()
            del loss
            optimizer.step()
            optimizer.zero_grad()
    assert estimated.peak == pytest.approx(memory.peak, rel=0.01)
    assert estimated.reserved == memory.peak_reserved


def test_a_model_larger_than_this_machine() -> None:
    found = estimate(f"{__name__}:huge", plan("8x16384"), card="a100-40gb", alternatives=False)
    assert found.use.by_kind[Kind.PARAMETER] == 8 * 16384**2 * 4  # 8 GiB, and as much for gradients, twice for AdamW
    assert found.needed[0] == found.use.reserved + CONTEXT[0]
    assert found.use.peak > 32 * 1024 * MIB
    assert found.fits == (found.needed[1] <= found.capacity)


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    found = estimate(f"{__name__}:deep", plan("4096x256x64"), card="t4")
    most = found.largest_batch
    assert most is not None
    capacity = found.capacity - CONTEXT[1]
    assert run(deep, plan(f"{most}x256x64")).reserved <= capacity < run(deep, plan(f"{most + 1}x256x64")).reserved
    named = {remedy.name: remedy for remedy in found.remedies}
    assert named["checkpointing"].peak is not None
    assert named["checkpointing"].peak < found.use.peak
    impossible = set() if hasattr(torch.optim, "Adafactor") else {"optimizer adafactor"}  # it came with torch 2.5
    assert {remedy.name for remedy in found.remedies if remedy.problem} == impossible


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "name"),
    [
        ("8x3x224x224", (8, 3, 224, 224), None, None),
        ("8x512:long", (8, 512), "int64", None),
        ("mask=2x4:bool", (2, 4), "bool", "mask"),
        ("16:bf16", (16,), "bfloat16", None),
    ],
)
def test_inputs(text: str, shape: tuple[int, ...], dtype: str | None, name: str | None) -> None:
    assert Input.parse(text) == Input(shape, dtype, name)
    assert Input.parse(str(Input.parse(text))) == Input(shape, dtype, name)


@pytest.mark.parametrize("text", ["", "x3", "8x", "8x3:nothing", "8,3", "a b=3"])
def test_what_is_no_input(text: str) -> None:
    with pytest.raises(ValueError, match=r"input|dtype"):
        Input.parse(text)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "small_models.py").write_text(
        "import torch\n\ndef model():\n    return torch.nn.Linear(64, 8)\n\ndef number():\n    return 1\n"
        "def embedding():\n    return torch.nn.Embedding(100, 16)\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command(project: Path) -> None:
    result = CliRunner().invoke(cli, ["estimate", "small_models:model", "--input", "32x64", "--no-alternatives"])
    assert result.exit_code == 0, result.output
    assert "520 parameters" in result.output
    assert "peak allocated" in result.output
    assert "no GPU was used" in " ".join(result.output.split())


def test_the_command_as_json(project: Path) -> None:
    arguments = ["estimate", "small_models:embedding", "--input", "4x16:int64", "--batch", "8", "--no-alternatives"]
    result = CliRunner().invoke(cli, [*arguments, "--output-format", "json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.output)
    assert told["use"]["parameters"] == 1600
    assert told["plan"]["inputs"][0]["shape"] == [8, 16]
    assert set(told) == {*Estimate.__dataclass_fields__, "needed", "fits"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["small_models:missing", "--input", "8x64"], "missing"),
        (["no_such_module:model", "--input", "8x64"], "no_such_module"),
        (["small_models", "--input", "8x64"], "module:callable"),
        (["small_models:number", "--input", "8x64"], "not a torch.nn.Module"),
        (["small_models:model", "--input", "8x63"], "could not be run with 8x63"),
        (["small_models:model", "--input", "8xyz"], "not an input"),
        (["small_models:model", "--input", "8x64", "--card", "voodoo2"], "unknown card"),
        (["small_models:model", "--input", "8x64", "--dtype", "int64"], "not a floating-point dtype"),
    ],
)
def test_what_is_wrong_is_said(project: Path, arguments: list[str], message: str) -> None:
    from torchmemlint.cli.main import main  # the exit code is decided there

    result = CliRunner().invoke(cli, ["estimate", *arguments])
    assert result.exit_code != 0
    assert message in result.output
    assert main(["estimate", *arguments]) == 2


def test_a_factory_must_be_callable() -> None:
    with pytest.raises(NoSuchFactoryError, match="not callable"):
        estimate("json:__doc__", plan("1x1"))
