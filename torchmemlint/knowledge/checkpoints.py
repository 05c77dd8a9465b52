"""Functions that read tensors from files, save and copy them, and what has a state without tensors."""

from __future__ import annotations

# Where `map_location` stands among the positional arguments (documentation of torch 2.13).
LOADERS: dict[str, int] = {
    "torch.load": 1,
    "torch.serialization.load": 1,
    "torch.hub.load_state_dict_from_url": 2,
    "torch.utils.model_zoo.load_url": 2,
}
SAVING = "torch.save"
RESTORING = "load_state_dict"  # a method of modules, optimizers and others: it copies what it is given
BUILDING = "from_pretrained"  # a method of classes: what is given as `state_dict` is copied into the new object
WORDS = frozenset({RESTORING, "state_dict"})  # by which a function shows that it does so
READING = frozenset({"torch", "load"})  # a function that says both may read a file of tensors
# Keywords by which FSDP, and `torch.distributed.checkpoint.state_dict`, put states on the host.
TO_HOST = frozenset({"offload_to_cpu", "cpu_offload"})
# Files that somebody published. What torchvision publishes lies on the host.
PUBLISHED = frozenset({"torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url"})
PUBLISHED_ON_HOST = "download.pytorch.org"
# Objects with a `load_state_dict` whose state is numbers. Where the object itself is not in view, its name keeps the
# linter silent (it never makes it speak).
WITHOUT_TENSORS = ("sched", "scaler", "loader", "sampler", "meter", "tokenizer", "callback", "dataset", "rng")
OPTIMIZER = "optim"  # likewise, in the name of an optimizer that is not in view: it takes over what lies on its device
