"""numpy's functions that make arrays of float64 unless they are told otherwise (numpy 1.26 and 2.x)."""

from __future__ import annotations

from torchmemlint.immutable import immutable


@immutable()
class Maker:
    """Where such a function takes its size and its dtype: a keyword, and a position (-1: by keyword only).

    `dims`: all positional arguments are the sizes, and without any the result is a single number.
    """

    size: str = "shape"
    at: int = 0
    dtype_at: int = -1
    dims: bool = False
    optional: bool = False  # without a size the result is a single number


_SIZED = Maker("size", 0, optional=True)
_DRAWN = Maker("size", 2, optional=True)  # of two parameters
_DIMS = Maker("", 0, dims=True, optional=True)
_OF_RANDOM = {
    "rand": _DIMS,
    "randn": _DIMS,
    "random": _SIZED,
    "random_sample": _SIZED,
    "standard_normal": _SIZED,
    "normal": _DRAWN,
    "uniform": _DRAWN,
    "laplace": _DRAWN,
    "gumbel": _DRAWN,
    "beta": _DRAWN,
    "lognormal": _DRAWN,
}
MAKERS = {
    "numpy.zeros": Maker(dtype_at=1),
    "numpy.ones": Maker(dtype_at=1),
    "numpy.empty": Maker(dtype_at=1),
    "numpy.identity": Maker("n", 0, 1),
    "numpy.eye": Maker("N", 0, 3),
    "numpy.linspace": Maker("num", 2, 5),
    "numpy.hanning": Maker("M"),
    "numpy.hamming": Maker("M"),
    "numpy.blackman": Maker("M"),
    **{f"numpy.random.{name}": maker for name, maker in _OF_RANDOM.items()},
}
GENERATORS = frozenset({"numpy.random.default_rng", "numpy.random.RandomState"})
OF_GENERATORS = _OF_RANDOM
# Methods that leave the dtype as it is.
KEEPING = frozenset("reshape copy transpose squeeze ravel flatten repeat swapaxes clip round take".split())
# torch's functions that keep an array's dtype.
TAKING = frozenset({"from_numpy", "tensor", "as_tensor", "asarray"})
