"""torchmemlint: a static linter for GPU-memory anti-patterns in PyTorch code."""

__version__ = "0.1.0"
