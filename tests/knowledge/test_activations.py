"""The tables about in-place activations, derived again from torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from torchmemlint.knowledge import activations

torch = pytest.importorskip("torch")

Layer = Callable[[Any], Any]
UNIT = 4 * 8 * 16 * 16 * 4  # bytes of one activation


def build(kind: str, inplace: bool) -> Layer:
    if kind == "Threshold":
        return torch.nn.Threshold(0.1, 0.0, inplace=inplace)
    layer = getattr(torch.nn, kind)(inplace=inplace)
    if kind == "Dropout1d":
        return lambda value: layer(value.flatten(2)).view_as(value)
    return layer


def saved(kind: str, *, inplace: bool, normed: bool, before: str) -> float:
    """Activations that backward keeps of convolution (, norm), activation and what follows, in units of one."""
    torch.manual_seed(0)
    first, norm = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8) if normed else torch.nn.Identity()
    last = torch.nn.Conv2d(8, 8, 3, padding=1)
    inputs = torch.randn(4, 3, 16, 16)
    layers = [p for layer in (first, norm, last) for p in layer.parameters()]
    foreign = {tensor.untyped_storage().data_ptr() for tensor in (*layers, inputs)}
    held: dict[int, Any] = {}

    def pack(tensor: Any) -> Any:
        held[tensor.untyped_storage().data_ptr()] = tensor  # held: its address is not given away again
        return tensor

    activation = build(kind, inplace)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        value = activation(norm(first(inputs)))
        result = last(value) if before == "convolution" else value + 1
    total = sum(t.untyped_storage().nbytes() for address, t in held.items() if address not in foreign)
    result.sum().backward()
    return round(total / UNIT, 1)


@pytest.mark.parametrize("normed", [False, True], ids=["conv", "conv-bn"])
@pytest.mark.parametrize("kind", sorted(activations.WITH_INPLACE))
def test_what_the_inplace_form_saves_before_a_convolution(kind: str, normed: bool) -> None:
    out_of_place = saved(kind, inplace=False, normed=normed, before="convolution")
    in_place = saved(kind, inplace=True, normed=normed, before="convolution")
    assert out_of_place - in_place == (1 if kind in activations.SAVES_ONE else 0)


@pytest.mark.parametrize("kind", sorted(activations.WITH_INPLACE))
def test_before_an_addition_no_inplace_form_saves_anything(kind: str) -> None:
    out_of_place = saved(kind, inplace=False, normed=True, before="addition")
    assert out_of_place == saved(kind, inplace=True, normed=True, before="addition")


@pytest.mark.parametrize("kind", sorted(activations.WITH_INPLACE))
def test_without_gradients_the_inplace_form_needs_no_second_tensor(kind: str) -> None:
    with torch.no_grad():
        value = torch.randn(2, 4, 8, 8)
        assert build(kind, True)(value).data_ptr() == value.data_ptr()
        assert build(kind, False)(value).data_ptr() != value.data_ptr()


@pytest.mark.parametrize("kind", sorted(activations.TRANSIENT | activations.SAVES_NOTHING))
def test_transient_means_that_backward_does_not_copy_the_input(kind: str) -> None:
    """What the in-place form allocates while it runs, in training: nothing of the activation's size, or a copy."""
    if "Dropout" in kind:
        pytest.skip("dropouts allocate a mask, whose size differs by kind")
    leaf = torch.randn(4, 8, 16, 16, requires_grad=True)
    value = leaf * 1
    held: dict[int, Any] = {}

    def pack(tensor: Any) -> Any:
        held[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        build(kind, True)(value)
    copied = set(held) - {value.untyped_storage().data_ptr()}
    assert bool(copied) == (kind in activations.SAVES_NOTHING)


def test_the_groups_are_apart() -> None:
    assert not activations.SAVES_ONE & activations.TRANSIENT
    assert not (activations.SAVES_ONE | activations.TRANSIENT) & activations.SAVES_NOTHING


@pytest.mark.parametrize("kind", sorted(activations.WITH_INPLACE))
def test_where_inplace_stands(kind: str) -> None:
    parameters = [name for name in inspect.signature(getattr(torch.nn, kind).__init__).parameters if name != "self"]
    assert parameters.index("inplace") == activations.INPLACE_POSITION[kind]


@pytest.mark.parametrize("name", sorted(activations._FUNCTIONAL))
def test_where_inplace_stands_in_functions(name: str) -> None:
    function = getattr(torch.nn.functional, name)
    function = inspect.unwrap(function)
    try:
        parameters = list(inspect.signature(function).parameters)
    except ValueError:
        pytest.skip("no signature")
    if "inplace" not in parameters:
        pytest.skip("dispatched")
    kind = activations._FUNCTIONAL[name]
    assert parameters.index("inplace") == activations.function_inplace_position(kind)


def test_every_activation_of_torch_with_an_inplace_form_is_known() -> None:
    modules = {n: c for n, c in vars(torch.nn).items() if isinstance(c, type) and issubclass(c, torch.nn.Module)}
    found = {name for name, cls in modules.items() if "inplace" in inspect.signature(cls.__init__).parameters}
    assert found == activations.WITH_INPLACE | activations.IGNORES_INPLACE


@pytest.mark.parametrize("kind", sorted(activations.IGNORES_INPLACE))
def test_some_modules_take_inplace_and_do_not_use_it(kind: str) -> None:
    with torch.no_grad():
        value = torch.randn(2, 4, 8, 8)
        assert build(kind, True)(value).data_ptr() != value.data_ptr()
