"""Small made-up data in the folders where public programs look for it (`tools/programs.py`).

Each function is named in `tools/programs.toml` and writes into a folder of a checkout. Nothing is downloaded. The data
have the formats and shapes of the real ones, and noise for content: figures of memory do not depend on it.
"""

from __future__ import annotations

import json
import pickle
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORDS = [f"word{number}" for number in range(200)]


def sentence(source: random.Random, words: int) -> str:
    return " ".join(source.choices(WORDS, k=words))


def mnist(folder: Path, images: int = 1280, tests: int = 640) -> None:
    """Write MNIST's four files of images (28, 28) and labels, as torchvision has them unpacked."""
    source = random.Random(0)
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", images), ("t10k", tests)):
        labels = bytes(number % 10 for number in range(count))
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + labels)
        pixels = source.randbytes(count * 28 * 28)
        (raw / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + pixels)


def words(folder: Path) -> None:
    """Write a text for training, one for validation and one for a test, one sentence a line."""
    source = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("train", 2000), ("valid", 300), ("test", 300)):
        text = "".join(f"{sentence(source, 12)}\n" for _ in range(lines))
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")


def characters(folder: Path) -> None:
    """Write the tokens of a text by character, as nanoGPT's `prepare.py` does."""
    import numpy

    source = numpy.random.default_rng(0)
    for name, count in (("train", 50_000), ("val", 5_000)):
        source.integers(0, 65, count, dtype=numpy.uint16).tofile(folder / f"{name}.bin")
    letters = [chr(33 + number) for number in range(65)]
    meta = {"vocab_size": 65, "itos": dict(enumerate(letters)), "stoi": {one: at for at, one in enumerate(letters)}}
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta))


def planetoid(folder: Path, nodes: int = 2708, features: int = 1433) -> None:
    """Write a citation graph of Cora's size in the files of Planetoid: 140 nodes to train by, 1,000 to test."""
    import numpy
    import scipy.sparse

    raw = folder / "Cora" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    source = numpy.random.default_rng(0)
    tests, trained = 1000, 140
    table = scipy.sparse.random(nodes, features, 0.0127, "csr", dtype=numpy.float32, random_state=0)
    classes = numpy.eye(7, dtype=numpy.int32)[numpy.arange(nodes) % 7]
    rest = nodes - tests
    parts: dict[str, Any] = {
        "x": table[:trained],
        "allx": table[:rest],
        "tx": table[rest:],
        "y": classes[:trained],
        "ally": classes[:rest],
        "ty": classes[rest:],
        "graph": {node: source.integers(0, nodes, 2).tolist() for node in range(nodes)},
    }
    for name, part in parts.items():
        (raw / f"ind.cora.{name}").write_bytes(pickle.dumps(part))
    order = source.permutation(numpy.arange(rest, nodes))
    (raw / "ind.cora.test.index").write_text("".join(f"{node}\n" for node in order), encoding="utf-8")


def graphs(folder: Path, count: int = 400, nodes: int = 20) -> None:
    """Write graphs of two classes in the text files of TUDataset, named IMDB-BINARY."""
    source = random.Random(0)
    raw = folder / "IMDB-BINARY" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    edges = []
    for graph in range(count):
        first = graph * nodes + 1
        for node in range(1, nodes):
            other = source.randrange(node)
            edges += [(first + node, first + other), (first + other, first + node)]
    lines = {
        "A": [f"{one}, {other}" for one, other in edges],
        "graph_indicator": [str(graph + 1) for graph in range(count) for _ in range(nodes)],
        "graph_labels": [str(graph % 2) for graph in range(count)],
    }
    for name, content in lines.items():
        (raw / f"IMDB-BINARY_{name}.txt").write_text("\n".join(content) + "\n", encoding="utf-8")


def tokenizer(folder: Path) -> None:
    """Write a tokenizer that knows the made-up words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "eos_token": "[EOS]"}
    known = {word: number for number, word in enumerate([*special.values(), *WORDS])}
    core = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=core, **special).save_pretrained(folder)


def bert(folder: Path) -> None:
    """Write a BERT of two layers for two classes with random weights, its tokenizer, and labelled sentences."""
    from transformers import BertConfig, BertForSequenceClassification

    model = folder / "model"
    shape = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    BertForSequenceClassification(BertConfig(vocab_size=256, **shape)).save_pretrained(model)
    tokenizer(model)
    sentences(folder / "data", ("sentence",), ("train", "validation"))


def llama(folder: Path) -> None:
    """Write a Llama of two layers with random weights, its tokenizer, and instructions with answers."""
    from transformers import LlamaConfig, LlamaForCausalLM

    model = folder / "model"
    shape = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    LlamaForCausalLM(LlamaConfig(vocab_size=256, **shape)).save_pretrained(model)
    tokenizer(model)
    sentences(folder / "data", ("instruction", "input", "output"), ("train",))


def sentences(folder: Path, columns: tuple[str, ...], splits: tuple[str, ...]) -> None:
    """Write 640 rows of sentences a split, one JSON object a line; those of one column have labels 0 and 1."""
    source = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    for split in splits:
        lines = []
        for number in range(640):
            texts = {column: sentence(source, 12) for column in columns}
            label = {"label": number % 2} if len(columns) == 1 else {}
            lines.append(f"{json.dumps({**texts, **label})}\n")
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")


def pictures(folder: Path) -> None:
    """Write 64 images of (32, 32), and the configuration of a small U-Net for them."""
    from PIL import Image

    source = random.Random(0)
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    for number in range(64):
        Image.frombytes("RGB", (32, 32), source.randbytes(32 * 32 * 3)).save(images / f"{number:03}.png")
    shape = {"sample_size": 32, "in_channels": 3, "out_channels": 3, "layers_per_block": 1, "norm_num_groups": 8}
    blocks = {
        "block_out_channels": [16, 32],
        "down_block_types": ["DownBlock2D"] * 2,
        "up_block_types": ["UpBlock2D"] * 2,
    }
    network = {"_class_name": "UNet2DModel", **shape, **blocks}
    (folder / "config.json").write_text(json.dumps(network), encoding="utf-8")


MAKERS: dict[str, Callable[[Path], None]] = {
    one.__name__: one for one in (mnist, words, characters, planetoid, graphs, bert, llama, pictures)
}
