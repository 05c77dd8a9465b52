"""What came and went between torch's releases: the reader, and the data against an installed torch."""

from __future__ import annotations

import importlib
import json
import warnings
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.engine.one_file import Profile, check_source
from torchmemlint.knowledge import versions

DATA: dict[str, dict[str, Any]] = json.loads(
    (files("torchmemlint.knowledge") / "torch_releases.json").read_text(encoding="utf-8")
)["names"]


def test_names_and_arguments_come_with_a_release() -> None:
    assert versions.has("torch.nn.attention.sdpa_kernel", "2.3")
    assert not versions.has("torch.nn.attention.sdpa_kernel", "2.2.2")
    assert versions.has("torch.nn.attention.sdpa_kernel", None)
    assert versions.has("torch.inference_mode", "2.0")
    assert versions.has("torch.nn.Module.load_state_dict", "2.0")
    assert not versions.has("torch.nn.Module.load_state_dict", "2.0", "assign")
    assert versions.has("torch.nn.Module.load_state_dict", "2.1", "assign")
    assert versions.since("torch.accelerator.empty_cache") == (2, 9)
    assert versions.since("torch.zeros") is None


def test_releases_are_numbers_not_text() -> None:
    assert versions.release("2.10") > versions.release("2.9.1")
    assert versions.newest() >= (2, 13)


def test_a_retired_name_is_retired_where_the_target_can_do_without_it() -> None:
    kernel = versions.retirement("torch.backends.cuda.sdp_kernel", "2.3")
    assert kernel is not None
    assert (kernel.instead, kernel.deprecated, kernel.same) == ("torch.nn.attention.sdpa_kernel", (2, 3), False)
    assert versions.retirement("torch.backends.cuda.sdp_kernel", "2.2") is None
    assert versions.retirement("torch.cuda.memory_reserved", None) is None
    assert versions.retirement("torch.no_such_name", None) is None


def test_a_rename_with_an_argument() -> None:
    scaler = versions.retirement("torch.cuda.amp.GradScaler", None)
    assert scaler is not None
    assert (scaler.instead, scaler.given, scaler.same) == ("torch.amp.GradScaler", '"cuda"', True)
    assert versions.retirement("torch.cuda.amp.GradScaler", "2.2") is None  # torch.amp.GradScaler came with 2.3
    assert versions.retirement("torch.cuda.amp.GradScaler", "2.3") is not None  # and warns from 2.4 on
    autocast = versions.retirement("torch.cuda.amp.autocast", None)
    assert autocast is not None
    assert not autocast.same  # `dtype` and `enabled` change places


@pytest.mark.parametrize(("target", "count"), [(None, 1), ("2.3", 1), ("2.2", 0), ("2.0", 0)])
def test_advice_fits_the_target(target: str | None, count: int) -> None:
    text = "import torch\n\n\ndef kernels():\n    return torch.backends.cuda.sdp_kernel(enable_math=False)\n"
    assert len(check_text(text, Path("a.py"), frozenset({"TML507"}), target=target)) == count
    profile = Profile(frozenset({"TML507"}), target_torch=target)
    assert len(check_source(text, Path("a.py"), profile)) == count


def test_the_data_against_the_installed_torch() -> None:
    """The sources say what a running torch shows: which names are there, and which arguments they take."""
    torch = pytest.importorskip("torch")
    here = versions.release(torch.__version__)
    if here > versions.newest():
        pytest.skip("newer than the data file")
    differing = [name for name, line in DATA.items() if _is_there(name) != _should_be_there(line, here)]
    assert differing == []


def _should_be_there(line: dict[str, str], here: versions.Release) -> bool:
    came, went = line.get("since"), line.get("removed")
    return (came is None or versions.release(came) <= here) and (went is None or versions.release(went) > here)


def _is_there(name: str) -> bool:
    parts = name.split(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for length in range(len(parts) - 1, 0, -1):
            try:
                found: Any = importlib.import_module(".".join(parts[:length]))
            except ImportError:
                continue
            for part in parts[length:]:
                if not hasattr(found, part):
                    return False
                found = getattr(found, part)
            return True
    return False


@pytest.mark.parametrize("name", ["torch.cuda.memory_cached", "torch.cuda.amp.GradScaler", "torch.cuda.amp.autocast"])
def test_what_is_called_deprecated_warns(name: str) -> None:
    torch = pytest.importorskip("torch")
    deprecated = versions.release(DATA[name]["deprecated"])
    if versions.release(torch.__version__) < deprecated:
        pytest.skip("older than the deprecation")
    owner, _, last = name.rpartition(".")
    with pytest.warns(FutureWarning, match="renamed|deprecated"):
        getattr(importlib.import_module(owner), last)()


def test_every_successor_is_known() -> None:
    for name, line in DATA.items():
        if "instead" in line:
            assert versions.retirement(name, None) is not None, name
