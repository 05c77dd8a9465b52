"""Generation without values: the first and the last step need what all of them need."""

from __future__ import annotations

import json
import os
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torchmemlint.cli.main import main  # noqa: E402

PACKAGE = Path("site-packages", "transformers", "generation")
STANDS_IN = '''
"""What stands in for transformers: a network with a cache that grows, and a loop over tokens."""

import torch
from torch import nn


class DynamicLayer:
    is_initialized = False

    def update(self, keys, values):
        if self.is_initialized:
            keys, values = torch.cat([self.keys, keys], dim=-2), torch.cat([self.values, values], dim=-2)
        self.keys, self.values, self.is_initialized = keys, values, True
        return keys, values


class Cache:
    def __init__(self, depth):
        self.layers = [DynamicLayer() for _ in range(depth)]


class Output:
    pass


class MaxLengthCriteria:
    def __init__(self, max_length):
        self.max_length = max_length

    def __call__(self, tokens):
        return tokens.shape[1] >= self.max_length


class EosCriteria:
    def __call__(self, tokens):
        return bool((tokens[:, -1] == 2).all())


class StoppingCriteriaList(list):
    def __call__(self, tokens):
        return any(one(tokens) for one in self)


class Config:
    is_encoder_decoder = False


class GenerationConfig:
    use_cache, return_dict_in_generate, output_scores = True, False, False


class GenerationMixin:
    def generate(self, tokens, max_new_tokens, scores=False):
        config = GenerationConfig()
        config.output_scores = scores
        stopping = StoppingCriteriaList([MaxLengthCriteria(tokens.shape[1] + max_new_tokens), EosCriteria()])
        with torch.no_grad():
            return self._sample(
                tokens,
                logits_processor=None,
                stopping_criteria=stopping,
                generation_config=config,
                attention_mask=torch.ones_like(tokens),
                past_key_values=Cache(len(self.blocks)),
            )

    def _sample(self, tokens, logits_processor, stopping_criteria, generation_config, attention_mask, past_key_values):
        kept = ()
        while True:
            assert attention_mask.shape == tokens.shape
            seen = past_key_values.layers[0].keys.shape[-2] if past_key_values.layers[0].is_initialized else 0
            scores = self(tokens[:, seen:], past_key_values)[:, -1]
            if generation_config.output_scores:
                kept += (scores,)
            tokens = torch.cat([tokens, scores.argmax(-1, keepdim=True)], dim=1)
            attention_mask = torch.ones_like(tokens)
            if stopping_criteria(tokens):
                break
        if not generation_config.return_dict_in_generate:
            return tokens
        output = Output()
        output.sequences, output.past_key_values = tokens, past_key_values
        return output
'''
PROGRAM = """
import torch
from torch import nn
from transformers.generation.utils import Config, GenerationMixin


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.key, self.value = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x, layer):
        keys, values = layer.update(self.key(x)[:, None], self.value(x)[:, None])
        return x + nn.functional.scaled_dot_product_attention(x[:, None], keys, values)[:, 0]


class Model(nn.Module, GenerationMixin):
    config = Config()

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(100, 64), nn.Linear(64, 100)
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, tokens, cache):
        x = self.embed(tokens)
        for block, layer in zip(self.blocks, cache.layers):
            x = block(x, layer)
        with open("calls", "a") as file:
            print(*tokens.shape, file=file)
        return self.head(x)


model = Model().to("cuda").eval()
prompt = torch.zeros(64, 32, dtype=torch.long, device="cuda")
for _ in range(2):
    assert model.generate(prompt, NEW).shape == (64, 32 + TOLD)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / PACKAGE
    package.mkdir(parents=True)
    for one in (package.parent, package):
        (one / "__init__.py").touch()
    (package / "utils.py").write_text(STANDS_IN)
    monkeypatch.chdir(tmp_path)
    before = [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site-packages"), *before]))
    return tmp_path


def fitted(capsys: pytest.CaptureFixture[str], folder: Path, program: str, *options: str) -> tuple[dict[str, Any], int]:
    """What `fit` says, and how often the network was called in each of two generations."""
    (folder / "calls").write_text("")
    (folder / "generate.py").write_text(program)
    code = main(["fit", "--quiet", "--output-format", "json", *options, "generate.py"])
    told = capsys.readouterr()
    assert code == 0, told.err
    values: dict[str, Any] = json.loads(told.out)
    return values, len((folder / "calls").read_text().splitlines()) // 2


def written(new: int, *, made: str = "NEW", told: int | None = None) -> str:
    return PROGRAM.replace("NEW", made).replace("NEW", str(new)).replace("TOLD", str(new if told is None else told))


def test_two_steps_need_what_all_need(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short, calls = fitted(capsys, folder, written(40))
    assert calls == 2
    unknown = STANDS_IN.replace("_sample", "_every").replace(", EosCriteria()", "")
    (folder / PACKAGE / "utils.py").write_text(unknown)
    whole, calls = fitted(capsys, folder, written(40))
    assert calls == 40
    assert short["given"]["peak"] == pytest.approx(whole["given"]["peak"], rel=0.001)
    assert short["given"]["reserved"] == pytest.approx(whole["given"]["reserved"], abs=2 << 20)  # a segment


def test_longer_answers_need_more(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs = [fitted(capsys, folder, written(new))[0]["given"]["peak"] for new in (200, 400)]
    cache = 3 * 2 * 200 * 64 * 64 * 4  # of the 200 tokens more
    assert needs[1] - needs[0] == pytest.approx(cache * 4 / 3, rel=0.1)  # and the old one of a layer, as it grows


def test_what_is_kept_of_each_step_needs_each_step(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, calls = fitted(capsys, folder, written(12, made="NEW, scores=True"))
    assert calls == 12


def test_half_as_many_tokens(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = written(400).replace(
        "assert model.generate(prompt, 400).shape == (64, 32 + 400)", "model.generate(prompt, 400)"
    )
    values, _ = fitted(capsys, folder, whole, "--what-if", "half-answer", "--what-if", "bf16")
    needed = {one["name"]: one["tried"]["peak"] for one in values["changes"]}
    half, _ = fitted(capsys, folder, written(200))
    assert needed["half-answer"] == half["given"]["peak"]
    assert needed["bf16"] == pytest.approx(values["given"]["peak"] / 2, rel=0.2)


REAL = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration

SMALL = dict(vocab_size=500, pad_token_id=0, eos_token_id=2)
llama = LlamaConfig(
    hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, **SMALL
)
t5 = T5Config(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0, **SMALL)
model = {"LlamaForCausalLM": lambda: LlamaForCausalLM(llama), "T5": lambda: T5ForConditionalGeneration(t5)}[KIND]()
model = model.to("cuda").eval()
prompt = torch.ones(32, 64, dtype=torch.long, device="cuda")
model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NEW, KEPT)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["LlamaForCausalLM", "T5"])
def test_as_transformers_does_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    program = REAL.replace("KIND", repr(kind)).replace("NEW", "60")
    short = fitted(capsys, tmp_path, program.replace(", KEPT", ""))[0]["given"]
    every = "return_dict_in_generate=True, output_scores=False, output_logits=False, streamer=Streamer()"
    streamer = dedent("""
    class Streamer:
        def put(self, tokens): pass
        def end(self): pass
    """)
    whole = fitted(capsys, tmp_path, streamer + program.replace("KEPT", every))[0]["given"]
    assert short["peak"] == pytest.approx(whole["peak"], rel=0.05)
    assert short["reserved"] == pytest.approx(whole["reserved"], abs=2 << 20)
