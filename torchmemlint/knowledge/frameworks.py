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

# Functions that return their first argument's values with its graph (horovod: allreduce has a registered gradient).
PASSING_GRAPHS = frozenset(
    {"horovod.torch.allreduce", "horovod.torch.allgather", "horovod.torch.broadcast", "torch.distributed.nn.all_reduce"}
)
# Never looked into, also where the library itself is analysed.
KNOWN_CALLABLES = LOADERS | GUARDED_CALLABLES | PASSING_GRAPHS
# Methods, of whatever object, that hand their first argument on: GradScaler.scale, Accelerator.gather (one process).
PASSING_METHODS = frozenset({"scale", "gather_for_metrics", "scale_loss"})

# diffusers: a pipeline's components are modules in evaluation mode, and `__call__` runs inference by contract.
# Source: the DiffusionPipeline documentation ("Generate" section; `from_pretrained` sets every component to eval).
PIPELINE_BASES = ("DiffusionPipeline", "StableDiffusionPipeline", "StableDiffusionXLPipeline", "FluxPipeline")
PIPELINE_MODULES = frozenset(
    "unet transformer transformer_2 vae vqvae text_encoder text_encoder_2 text_encoder_3 image_encoder controlnet "
    "prior "
    "safety_checker vocoder movq adapter unet_1 unet_2".split()
)
PIPELINE_INFERENCE = frozenset({"__call__", "invert"})
PIPELINE_BEHAVIOUR = frozenset({"set_progress_bar_config", "enable_model_cpu_offload", "load_lora_weights"})


def is_pipeline_class(qualified: str) -> bool:
    """Is this the name of a diffusers pipeline class?"""
    last = qualified.rpartition(".")[2]
    if last in PIPELINE_BASES:
        return True
    return last.endswith("Pipeline") and ("diffusers" in qualified or ".pipeline" in qualified)
