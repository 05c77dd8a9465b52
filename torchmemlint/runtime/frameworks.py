"""Checkpoints that frameworks write in their own ways, kept away from the user's as those of `torch.save` are.

Lightning's trainers write through one class; safetensors writes files without `torch.save`; Hugging Face's `Trainer`
writes folders, and deletes older ones beside them. Each is replaced as its module is imported: nothing here imports a
framework.
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


class Frameworks:
    """While entered, what is imported of them is replaced."""

    def __init__(self, aside: Aside) -> None:
        self._aside = aside
        self._after: dict[str, Callable[[Any], None]] = {
            "lightning.fabric.plugins.io.torch_io": self._lightning,
            "lightning_fabric.plugins.io.torch_io": self._lightning,
            "safetensors.torch": self._safetensors,
            "transformers.modeling_utils": self._pretrained,
            "transformers.trainer": self._trainer,
        }
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

    def _lightning(self, module: Any) -> None:
        checkpoints = module.TorchCheckpointIO
        _redirect(checkpoints, "save_checkpoint", "path", self._aside.target)
        _redirect(checkpoints, "load_checkpoint", "path", self._aside.source)
        _redirect(checkpoints, "remove_checkpoint", "path", self._aside.source)

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
