"""The families of our rules, whose codes begin alike."""

from __future__ import annotations

from torchmemlint.codes import OWN
from torchmemlint.immutable import immutable


@immutable()
class Family:
    """The rules whose codes begin alike."""

    digit: str
    title: str
    page: str  # what the page about the memory behind them is called
    about: str

    @property
    def prefix(self) -> str:
        """What their codes begin with, which is a selector."""
        return OWN + self.digit


FAMILIES = (
    Family("0", "The run itself", "suppressions", "Files that cannot be read, and comments that silence nothing."),
    Family("1", "Graphs", "graphs", "Autograd graphs, and samples, that outlive the step they were made for."),
    Family("2", "Gradient mode", "gradient-mode", "Graphs that are made and never differentiated."),
    Family("3", "Activations", "activations", "Tensors that are written out and kept, and need not be."),
    Family("4", "Data loading", "loading", "Loaders, their workers, and the way to the device."),
    Family("5", "Allocation", "allocation", "What is put on the device, in which type, and how long it stays there."),
    Family("6", "The training step", "training-step", "Gradients, optimizers and precision."),
    Family("7", "Frameworks", "frameworks", "What frameworks keep, or keep running, on your behalf."),
    Family("8", "Owners", "owners", "What holds networks and tensors, and is no graph: caches and the like."),
)
