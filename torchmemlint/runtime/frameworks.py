"""Frameworks that own the loop: what they write is kept away from the user's files, and their passes are cut short.

Lightning's trainers write checkpoints through one class; safetensors writes files without `torch.save`; Hugging Face's
`Trainer` writes folders, and deletes older ones beside them. Lightning and Ignite are told how many batches a pass
has, so that their epochs end as they would: with evaluation, callbacks and schedules. Each is replaced as its module is
imported: nothing here imports a framework.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

from torchmemlint.runtime.aside import Aside
from torchmemlint.runtime.loops import ACCUMULATED, LoopWatch

_LIMITS = ("limit_train_batches", "limit_val_batches", "limit_test_batches", "limit_predict_batches")
"""What Lightning's trainer calls the numbers of batches of its passes."""


class Frameworks:
    """While entered, what is imported of them is replaced."""

    def __init__(self, aside: Aside, loops: LoopWatch, fake: bool = False) -> None:
        self._aside = aside
        self._loops = loops
        self._after: dict[str, Callable[[Any], None]] = {
            "lightning.fabric.plugins.io.torch_io": self._lightning,
            "lightning_fabric.plugins.io.torch_io": self._lightning,
            "safetensors.torch": self._safetensors,
            "transformers.modeling_utils": self._pretrained,
            "transformers.trainer": self._trainer,
            "lightning.pytorch.trainer.trainer": self._limited,
            "pytorch_lightning.trainer.trainer": self._limited,
            "ignite.engine.engine": self._ignite,
        }
        if fake:
            self._after["transformers.generation.utils"] = self._generation
        self._finding = False

    def __enter__(self) -> Frameworks:
        """Watch imports."""
        sys.meta_path.insert(0, cast(Any, self))
        return self

    def __exit__(self, *exception: object) -> None:
        """No longer."""
        sys.meta_path.remove(cast(Any, self))

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec that the others find, with a replacement to follow; None for what is no framework's."""
        replace = self._after.get(name)
        if replace is None or self._finding:
            return None
        self._finding = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._finding = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                replace(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _generation(self, module: Any) -> None:
        from torchmemlint.runtime import decoding  # it needs torch

        decoding.shorten(module)

    def _lightning(self, module: Any) -> None:
        checkpoints = module.TorchCheckpointIO
        _redirect(checkpoints, "save_checkpoint", "path", self._aside.target)
        _redirect(checkpoints, "load_checkpoint", "path", self._aside.source)
        _redirect(checkpoints, "remove_checkpoint", "path", self._aside.source)

    def _limited(self, module: Any) -> None:
        loops, trainer = self._loops, module.Trainer
        construct = trainer.__init__

        @functools.wraps(construct)
        def constructed(this: Any, *arguments: Any, **keywords: Any) -> None:
            construct(this, *arguments, **keywords)
            for name in _LIMITS:
                steps = loops.steps
                if name == "limit_train_batches":
                    steps *= min(getattr(this, "accumulate_grad_batches", 1) or 1, ACCUMULATED)
                given = getattr(this, name, None)
                if (given == 1.0 and isinstance(given, float)) or (isinstance(given, int) and given > steps):
                    setattr(this, name, steps)
            every = getattr(this, "val_check_interval", None)
            if isinstance(every, int) and isinstance(this.limit_train_batches, int):
                this.val_check_interval = min(every, this.limit_train_batches)

        trainer.__init__ = constructed

    def _ignite(self, module: Any) -> None:
        loops, engine = self._loops, module.Engine
        run = engine.run

        @functools.wraps(run)
        def limited(
            this: Any,
            data: Any = None,
            max_epochs: int | None = None,
            max_iters: int | None = None,
            epoch_length: int | None = None,
            **keywords: Any,
        ) -> Any:
            whole = epoch_length if epoch_length is not None or data is None else _length(data)
            if whole is not None and whole > loops.steps:
                epoch_length = loops.steps
                loops.cut_passes += 1
            return run(this, data, max_epochs, max_iters, epoch_length, **keywords)

        engine.run = limited

    def _safetensors(self, module: Any) -> None:
        _redirect(module, "save_file", "filename", self._aside.target)
        _redirect(module, "load_file", "filename", self._aside.source)

    def _pretrained(self, module: Any) -> None:
        _redirect(module.PreTrainedModel, "save_pretrained", "save_directory", self._aside.folder, self._aside.gather)

    def _trainer(self, module: Any) -> None:
        aside, trainer = self._aside, module.Trainer
        where, save = trainer._get_output_dir, trainer.save_model

        @functools.wraps(where)
        def output_dir(this: Any, *arguments: Any, **keywords: Any) -> str:
            return aside.apart(where(this, *arguments, **keywords))

        @functools.wraps(save)
        def save_model(this: Any, output_dir: Any = None, *arguments: Any, **keywords: Any) -> Any:
            folder = aside.folder(this.args.output_dir if output_dir is None else output_dir)
            result = save(this, folder, *arguments, **keywords)
            aside.gather(folder)
            return result

        trainer._get_output_dir, trainer.save_model = output_dir, save_model


def _length(data: Any) -> int | None:
    try:
        return len(data)
    except TypeError:
        return None


def _redirect(
    owner: Any, name: str, argument: str, through: Callable[[Any], Any], after: Callable[[Any], None] | None = None
) -> None:
    """Have a function's argument go through another; what it became is told `after` the call."""
    original = getattr(owner, name, None)
    if original is None:  # a release that has it elsewhere
        return
    signature = inspect.signature(original)

    @functools.wraps(original)
    def redirected(*arguments: Any, **keywords: Any) -> Any:
        bound = signature.bind(*arguments, **keywords)
        if argument not in bound.arguments:
            return original(*arguments, **keywords)
        bound.arguments[argument] = through(bound.arguments[argument])
        result = original(*bound.args, **bound.kwargs)
        if after is not None:
            after(bound.arguments[argument])
        return result

    setattr(owner, name, redirected)
