"""Forward and backward of many operations make the same storages with values and without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from torchmemlint.runtime import track_memory  # noqa: E402

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="simulates what is there")

Tensor = torch.Tensor


def made(run: Callable[[], object], fake: bool) -> Counter[tuple[str, int]]:
    """The storages on the GPU, by operation and bytes."""
    torch.manual_seed(0)
    with track_memory("simulated", fake=fake) as memory:
        result = run()
        for one in result if isinstance(result, tuple) else (result,):
            if isinstance(one, Tensor) and one.requires_grad and one.is_floating_point():
                one.float().sum().backward(retain_graph=True)
    ledger = memory.ledger
    records = ledger.records(range(len(ledger)))
    return Counter((record.operation, record.nbytes) for record in records if record.device == "cuda:0")


def value(*size: int) -> Tensor:
    return torch.randn(*size, device="cuda", requires_grad=True)


def labels(count: int, below: int) -> Tensor:
    return torch.randint(0, below, (count,), device="cuda")


OPERATIONS: dict[str, Callable[[], object]] = {
    "mse_loss": lambda: functional.mse_loss(value(64, 80), value(64, 80)),
    "mse_loss sum": lambda: functional.mse_loss(value(64, 80), value(64, 80), reduction="sum"),
    "smooth_l1_loss": lambda: functional.smooth_l1_loss(value(64, 80), value(64, 80)),
    "huber_loss": lambda: functional.huber_loss(value(64, 80), value(64, 80)),
    "l1_loss": lambda: functional.l1_loss(value(64, 80), value(64, 80)),
    "binary_cross_entropy": lambda: functional.binary_cross_entropy(value(64, 80).sigmoid(), torch.rand(64, 80).cuda()),
    "with_logits": lambda: functional.binary_cross_entropy_with_logits(value(64, 80), torch.rand(64, 80).cuda()),
    "cross_entropy": lambda: functional.cross_entropy(value(64, 80), labels(64, 80)),
    "cross_entropy smoothed": lambda: functional.cross_entropy(value(64, 80), labels(64, 80), label_smoothing=0.1),
    "cross_entropy 2d": lambda: functional.cross_entropy(
        value(2, 5, 32, 32), torch.zeros(2, 32, 32, dtype=torch.int64, device="cuda")
    ),
    "kl_div": lambda: functional.kl_div(value(64, 80).log_softmax(1), value(64, 80).softmax(1), reduction="batchmean"),
    "nll_loss none": lambda: functional.nll_loss(value(64, 80), labels(64, 80), reduction="none"),
    "cosine_embedding": lambda: functional.cosine_embedding_loss(
        value(64, 80), value(64, 80), torch.ones(64, device="cuda")
    ),
    "triplet": lambda: functional.triplet_margin_loss(value(64, 80), value(64, 80), value(64, 80)),
    "ctc_loss": lambda: functional.ctc_loss(
        value(50, 8, 100).log_softmax(2), torch.randint(1, 100, (8, 10)).cuda(), (50,) * 8, (10,) * 8
    ),
    "linear": lambda: functional.linear(value(64, 80), value(90, 80), value(90)),
    "bilinear": lambda: functional.bilinear(value(64, 80), value(64, 80), value(9, 80, 80)),
    "einsum": lambda: torch.einsum("bij,bkj->bik", value(4, 40, 80), value(4, 50, 80)),
    "conv1d": lambda: functional.conv1d(value(4, 8, 100), value(16, 8, 3), value(16)),
    "conv2d": lambda: functional.conv2d(value(4, 8, 32, 32), value(16, 8, 3, 3), value(16), stride=2, padding=1),
    "conv2d grouped": lambda: functional.conv2d(value(4, 8, 32, 32), value(16, 1, 3, 3), groups=8),
    "conv2d channels last": lambda: functional.conv2d(
        value(4, 8, 32, 32).to(memory_format=torch.channels_last), value(16, 8, 3, 3)
    ),
    "conv3d": lambda: functional.conv3d(value(2, 4, 8, 16, 16), value(8, 4, 3, 3, 3)),
    "conv_transpose2d": lambda: functional.conv_transpose2d(value(4, 8, 16, 16), value(8, 16, 2, 2), stride=2),
    "unfold": lambda: functional.unfold(value(4, 8, 32, 32), 3),
    "max_pool2d": lambda: functional.max_pool2d(value(4, 8, 32, 32), 2),
    "avg_pool2d": lambda: functional.avg_pool2d(value(4, 8, 32, 32), 2),
    "adaptive_avg_pool2d": lambda: functional.adaptive_avg_pool2d(value(4, 8, 32, 32), 3),
    "adaptive_max_pool2d": lambda: functional.adaptive_max_pool2d(value(4, 8, 32, 32), 3),
    "interpolate": lambda: functional.interpolate(value(4, 8, 32, 32), scale_factor=2),
    "interpolate bilinear": lambda: functional.interpolate(value(4, 8, 32, 32), size=40, mode="bilinear"),
    "grid_sample": lambda: functional.grid_sample(value(4, 8, 32, 32), value(4, 16, 16, 2), align_corners=False),
    "pixel_shuffle": lambda: functional.pixel_shuffle(value(4, 16, 32, 32), 2),
    "reflection_pad": lambda: functional.pad(value(4, 8, 32, 32), (1, 1, 1, 1), mode="reflect"),
    "constant_pad": lambda: functional.pad(value(4, 8, 32, 32), (1, 1, 1, 1)),
    "batch_norm": lambda: nn.BatchNorm2d(8).cuda()(value(4, 8, 32, 32)),
    "batch_norm eval": lambda: nn.BatchNorm2d(8).cuda().eval()(value(4, 8, 32, 32)),
    "instance_norm": lambda: nn.InstanceNorm2d(8).cuda()(value(4, 8, 32, 32)),
    "group_norm": lambda: nn.GroupNorm(4, 8).cuda()(value(4, 8, 32, 32)),
    "layer_norm": lambda: nn.LayerNorm(80).cuda()(value(64, 80)),
    "dropout": lambda: functional.dropout(value(64, 80)),
    "relu": lambda: value(64, 80).relu(),
    "leaky_relu": lambda: functional.leaky_relu(value(64, 80)),
    "gelu": lambda: functional.gelu(value(64, 80)),
    "silu": lambda: functional.silu(value(64, 80)),
    "softplus": lambda: functional.softplus(value(64, 80)),
    "prelu": lambda: nn.PReLU().cuda()(value(64, 80)),
    "glu": lambda: functional.glu(value(64, 80)),
    "softmax": lambda: value(64, 80).softmax(-1),
    "logsumexp": lambda: value(64, 80).logsumexp(-1),
    "normalize": lambda: functional.normalize(value(64, 80)),
    "norm": lambda: value(64, 80).norm(),
    "var": lambda: value(64, 80).var(0),
    "std_mean": lambda: torch.std_mean(value(64, 80), 1),
    "cumsum": lambda: value(64, 80).cumsum(1),
    "sort": lambda: value(64, 80).sort(1),
    "topk": lambda: value(64, 80).topk(5),
    "max": lambda: value(64, 80).max(1),
    "amax": lambda: value(64, 80).amax(1),
    "prod": lambda: value(64, 80).prod(1),
    "gather": lambda: value(64, 80).gather(1, torch.zeros(64, 70, dtype=torch.int64, device="cuda")),
    "scatter_add": lambda: value(64, 80).scatter_add(
        1, torch.zeros(64, 70, dtype=torch.int64, device="cuda"), value(64, 70)
    ),
    "index_select": lambda: value(640, 80).index_select(0, labels(100, 640)),
    "indexing": lambda: value(640, 80)[labels(100, 640)],
    "slicing": lambda: value(64, 80)[::2, 10:20].contiguous(),
    "masked_fill": lambda: value(64, 80).masked_fill(torch.ones(64, 80, device="cuda") > 0, 0.0),
    "where": lambda: torch.where(torch.ones(64, 80, device="cuda") > 0, value(64, 80), value(64, 80)),
    "embedding": lambda: functional.embedding(labels(200, 640), value(640, 80)),
    "embedding_bag": lambda: functional.embedding_bag(labels(200, 640).view(20, 10), value(640, 80)),
    "one_hot": lambda: functional.one_hot(labels(100, 64), 64),
    "cat": lambda: torch.cat([value(64, 80), value(64, 80)], 1),
    "stack": lambda: torch.stack([value(64, 80), value(64, 80)]),
    "repeat": lambda: value(64, 80).repeat(2, 3),
    "repeat_interleave": lambda: value(64, 80).repeat_interleave(3, 0),
    "flip": lambda: value(64, 80).flip(0),
    "roll": lambda: value(64, 80).roll(3, 1),
    "tril": lambda: value(80, 80).tril(),
    "permute and reshape": lambda: value(4, 8, 80).permute(1, 0, 2).reshape(8, 320),
    "baddbmm": lambda: torch.baddbmm(value(4, 40, 50), value(4, 40, 80), value(4, 80, 50)),
    "cdist": lambda: torch.cdist(value(64, 80), value(70, 80)),
    "pow": lambda: value(64, 80) ** 3,
    "sqrt": lambda: value(64, 80).abs().sqrt(),
    "clamp": lambda: value(64, 80).clamp(-1, 1),
    "addcmul": lambda: torch.addcmul(value(64, 80), value(64, 80), value(64, 80)),
    "lerp": lambda: torch.lerp(value(64, 80), value(64, 80), 0.3),
    "svd": lambda: torch.linalg.svd(value(64, 40), full_matrices=False),
    "cholesky": lambda: torch.linalg.cholesky(torch.eye(64, device="cuda") * 2),
    "inverse": lambda: torch.linalg.inv(value(64, 64) + 100 * torch.eye(64, device="cuda")),
    "fft": lambda: torch.fft.rfft(value(64, 80)).abs(),
    "complex": lambda: torch.view_as_real(torch.view_as_complex(value(64, 80, 2)) * 2),
    "attention": lambda: functional.scaled_dot_product_attention(
        value(2, 4, 64, 16), value(2, 4, 64, 16), value(2, 4, 64, 16), is_causal=True
    ),
    "attention with a mask": lambda: functional.scaled_dot_product_attention(
        value(2, 4, 64, 16),
        value(2, 4, 64, 16),
        value(2, 4, 64, 16),
        attn_mask=torch.ones(64, 64, device="cuda").tril() > 0,
    ),
    "multi-head attention": lambda: nn.MultiheadAttention(64, 4, batch_first=True).cuda()(*[value(2, 70, 64)] * 3)[0],
    "lstm": lambda: nn.LSTM(32, 64, 2).cuda()(value(20, 8, 32))[0],
    "gru": lambda: nn.GRU(32, 64).cuda()(value(20, 8, 32))[0],
    "lstm cell": lambda: nn.LSTMCell(80, 64).cuda()(value(64, 80))[0],
    "in place": lambda: (value(64, 80) * 1).add_(1).mul_(2).relu_(),
    "in place on a slice": lambda: (value(64, 80) * 1)[:, :40].zero_(),
    "to half and back": lambda: value(64, 80).half().float(),
    "weight norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(80, 90)).cuda()(value(64, 80)),
    "spectral norm": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(80, 90)).cuda()(value(64, 80)),
}


VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
UNRULED: set[str] = set()
if VERSION < (2, 7):  # gradients' strides after a convolution
    UNRULED.add("conv2d channels last")
if VERSION < (2, 4):  # the fused attention's small results
    UNRULED.add("attention")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in UNRULED])
def test_the_same_storages(name: str) -> None:
    run = OPERATIONS[name]
    real, fake = made(run, fake=False), made(run, fake=True)
    assert fake - real == real - fake == Counter()
    assert real
