"""Generation of texts without values: the first step, then the last one, with the cache that it has by then.

Each step of `generate` runs the network on one token. Only its cache of keys and values is longer than in the step
before, so the last step needs most. What happens to the cache in between is all that is done of the others: each grows
it by a token, layer after layer. So what the allocator keeps of the shorter ones is right as well.

Only where nothing else is kept of each step, and the cache is the one that grows. In the child process, with `--fake`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

_CACHES = ("cache", "past_key_values")  # the first since transformers 5
_OF_TOKENS = ("attention_mask", "position_ids"), ("decoder_attention_mask", "decoder_position_ids")
"""What has an entry for each token: of a decoder by itself, and of one with an encoder, whose own are the others."""
_KNOWN = frozenset((*_CACHES, *_OF_TOKENS[0], *_OF_TOKENS[1], "use_cache", "encoder_outputs", "logits_to_keep"))
_KEPT = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")
_FEWEST = 4  # steps of a generation that is shortened
_changes: list[Callable[[int], int]] = []


def change(number: Callable[[int], int]) -> None:
    """Have a function say how many tokens each generation makes that would make so many."""
    _changes.append(number)


def shorten(module: Any) -> None:
    """Replace what `generate` of transformers calls without beams, in its module `transformers.generation.utils`."""
    mixin = module.GenerationMixin
    sample = getattr(mixin, "_sample", None)
    if sample is None:  # a release that has it elsewhere
        return

    @functools.wraps(sample)
    def sampled(this: Any, input_ids: Any, *given: Any, **named: Any) -> Any:
        length = _length(named.get("stopping_criteria"))
        if given or length is None:
            return sample(this, input_ids, *given, **named)
        steps = length - input_ids.shape[1]
        for number in _changes:
            steps = number(steps)
        length = input_ids.shape[1] + steps
        named["stopping_criteria"] = _until(module, length)  # it would wait in vain for a token that ends a text
        if steps < _FEWEST or not _is_plain(named):
            return sample(this, input_ids, **named)
        config = copy.copy(named["generation_config"])
        config.return_dict_in_generate = True
        only_first = {"generation_config": config, "stopping_criteria": _until(module, input_ids.shape[1] + 1)}
        began = sample(this, input_ids, **{**named, **only_first})
        name = next((one for one in _CACHES if getattr(began, one, None) is not None), "")
        cache = getattr(began, name, None)
        layers = list(_growing(cache))
        if not layers or any(layer.keys.shape[-2] != input_ids.shape[1] for layer in layers):
            return sample(this, input_ids, **named)
        del began
        for _ in range(steps - 2):
            for layer in layers:
                layer.update(layer.keys[..., -1:, :], layer.values[..., -1:, :])
        names = _OF_TOKENS[bool(this.config.is_encoder_decoder)]
        tokens = _longer(input_ids, steps - 1)
        return sample(this, tokens, **{**_lengthened(named, names, tokens.shape[1], steps - 1), name: cache})

    mixin._sample = sampled


def _length(criteria: Any) -> int | None:
    """The number of tokens, with the prompt's, at which a generation ends."""
    return min((one.max_length for one in criteria or () if hasattr(one, "max_length")), default=None)


def _until(module: Any, length: int) -> Any:
    return module.StoppingCriteriaList([module.MaxLengthCriteria(max_length=length)])


def _is_plain(named: dict[str, Any]) -> bool:
    config = named.get("generation_config")
    inputs = named.keys() - {"logits_processor", "stopping_criteria", "generation_config", "synced_gpus", "streamer"}
    return (
        config is not None
        and bool(config.use_cache)
        and named.get("streamer") is None
        and not any(getattr(config, name, None) for name in _KEPT)
        and {name for name in inputs if named[name] is not None} <= _KNOWN
    )


def _growing(cache: Any) -> Iterator[Any]:
    """The layers of a cache that grow by what they are given; none where there is another kind among them."""
    cache = getattr(cache, "self_attention_cache", cache)
    layers = getattr(cache, "layers", None) or []
    if all(type(layer).__name__ == "DynamicLayer" and layer.is_initialized for layer in layers):
        yield from layers


def _longer(tokens: Any, by: int) -> Any:
    return torch.cat([tokens, tokens[:, -1:].expand(-1, by)], dim=1)


def _lengthened(named: dict[str, Any], names: tuple[str, str], length: int, by: int) -> dict[str, Any]:
    """What a generation is given, for so many tokens in all, which are some more."""
    changed = dict(named)
    mask, positions = (named.get(name) for name in names)
    if mask is not None:
        changed[names[0]] = _longer(mask, by)
    else:  # transformers 5 looks here for the length where no mask hides anything
        changed["generation_config"] = copy.copy(named["generation_config"])
        changed["generation_config"]._mask_length = length
    if positions is not None:
        more = torch.arange(1, by + 1, device=positions.device, dtype=positions.dtype)
        changed[names[1]] = torch.cat([positions, positions[..., -1:] + more], dim=-1)
    return changed
