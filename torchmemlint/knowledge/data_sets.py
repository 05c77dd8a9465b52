"""Data sets: those of libraries that read and decode items when they are asked for, and what costs no work."""

from __future__ import annotations

READING = (
    "torchvision.datasets.",
    "torchaudio.datasets.",
    "torchgeo.datasets.",
    "timm.data.create_dataset",
    "timm.data.ImageDataset",
    "datasets.load_dataset",
    "datasets.load_from_disk",
    "datasets.Dataset.",
    "h5py.File",
    "zarr.open",
    "lmdb.open",
)
BASES = ("torchvision.datasets.", "torchaudio.datasets.", "torchgeo.datasets.")
PARTS = frozenset(f"torch.utils.data.{name}" for name in ("Subset", "random_split", "ConcatDataset"))
ITERABLE = frozenset({"IterableDataset", "IterDataPipe"})
HELPERS = ("concurrent.futures.", "threading.Thread", "multiprocessing.Process", "multiprocessing.Pool")
# Methods of a data set of Hugging Face's that give another one of the same items.
DERIVING = frozenset(
    "filter map select shuffle train_test_split with_format with_transform set_format remove_columns rename_column "
    "cast_column add_column shard flatten_indices".split()
)
RUNNING = frozenset({"map", "filter"})  # those that run a function for every row or batch
# Functions that leave a worker nothing to do.
TRIVIAL = frozenset(
    "torch.tensor torch.as_tensor torch.from_numpy torch.LongTensor torch.FloatTensor torch.Tensor torch.BoolTensor "
    "torch.IntTensor torch.stack torch.argmax numpy.array numpy.asarray numpy.stack numpy.float32 numpy.float64 "
    "numpy.int32 numpy.int64 "
    "len int float str bool slice range min max dict list tuple zip enumerate isinstance type".split()
)
# Methods of arrays, tensors and dictionaries that do little more.
CONVERTING = frozenset(
    "argmax astype bool clone contiguous copy detach dim double flatten float get int item items keys long max mean "
    "min numpy permute reshape size squeeze sum t to tolist transpose unsqueeze values view".split()
)
EXCEPTIONS = ("Error", "Exception")

# The images of torchvision's data sets in which all are alike, as `ToTensor` gives them: channels, height, width.
IMAGES = {
    **dict.fromkeys(("EMNIST", "FashionMNIST", "KMNIST", "MNIST", "QMNIST"), (1, 28, 28)),
    **dict.fromkeys(("CIFAR10", "CIFAR100", "SVHN"), (3, 32, 32)),
    "STL10": (3, 96, 96),
    "USPS": (1, 16, 16),
}
# What makes them larger, as networks for larger images need it.
ENLARGING = frozenset({"RandomResizedCrop", "RandomSizedCrop", "Resize", "Scale", "v2"})
# What may give them another shape.
RESIZING = frozenset(
    "CenterCrop FiveCrop Grayscale Pad RandomCrop RandomResizedCrop RandomSizedCrop Resize Scale TenCrop v2".split()
)
