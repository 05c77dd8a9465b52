"""Functions that read tensors from files, and what has a state without tensors."""

from __future__ import annotations

# Where `map_location` stands among the positional arguments (documentation of torch 2.13).
LOADERS: dict[str, int] = {
    "torch.load": 1,
    "torch.serialization.load": 1,
    "torch.hub.load_state_dict_from_url": 2,
    "torch.utils.model_zoo.load_url": 2,
}
# Files that somebody published. What torchvision publishes lies on the host.
PUBLISHED = frozenset({"torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url"})
PUBLISHED_ON_HOST = "download.pytorch.org"
# Objects with a `load_state_dict` whose state is numbers. Where the object itself is not in view, its name keeps the
# linter silent (it never makes it speak).
WITHOUT_TENSORS = ("sched", "scaler", "loader", "sampler", "meter", "tokenizer", "callback", "dataset", "rng")
