"""Names that tell that a file may have to do with PyTorch."""

from __future__ import annotations

# A file whose text contains none of these is not parsed: nothing in it can be about GPU memory.
RELEVANT_WORDS: tuple[str, ...] = (
    "torch",
    "lightning",
    "accelerate",
    "transformers",
    "diffusers",
    "timm",
    "fastai",
    "ignite",
    "composer",
    "deepspeed",
    "pyro",
    "skorch",
    ".backward(",
)

# Classes that are built and iterated like `torch.utils.data.DataLoader`.
LOADERS = frozenset(
    {
        "torch_geometric.loader.DataLoader",
        "torch_geometric.data.DataLoader",
        "torch_geometric.loader.NeighborLoader",
        "torchdata.stateful_dataloader.StatefulDataLoader",
        "monai.data.DataLoader",
    }
)

# Factories whose objects turn gradients off themselves when they are called.
GUARDED_CALLABLES = frozenset({"transformers.pipeline", "transformers.pipelines.pipeline"})
