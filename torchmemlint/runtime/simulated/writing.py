"""What an operation writes to, by its schema."""

from __future__ import annotations

from typing import Any

import torch

from torchmemlint.runtime.tracker import tensors_in


def written_returns(operation: Any) -> list[Any]:
    """The results that are arguments which the operation changes."""
    return [one for one in operation._schema.returns if one.alias_info is not None and one.alias_info.is_write]


def written(operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors that an operation changes."""
    schema = operation._schema
    if not schema.is_mutable:
        return []
    changed: list[torch.Tensor] = []
    for number, one in enumerate(schema.arguments):
        if one.alias_info is None or not one.alias_info.is_write:
            continue
        changed += tensors_in(arguments[number] if number < len(arguments) else keywords.get(one.name))
    return changed


def aliases(operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The arguments that an operation which changes them gives back."""
    found = []
    for wanted in operation._schema.returns:
        for number, one in enumerate(operation._schema.arguments):
            info = one.alias_info
            if info is not None and info.is_write and info.before_set == wanted.alias_info.before_set:
                found.append(arguments[number] if number < len(arguments) else keywords.get(one.name))
    if not found:
        return None
    return found[0] if len(found) == 1 else tuple(found)
