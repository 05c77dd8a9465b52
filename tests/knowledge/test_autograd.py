"""What autograd promises, shown by torch: one proof for each contract of the data file."""

from __future__ import annotations

import gc
import inspect
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from torchmemlint.knowledge import autograd

torch = pytest.importorskip("torch")
checkpoint = pytest.importorskip("torch.utils.checkpoint")
nn, func = torch.nn, torch.func

PROOFS: dict[str, Callable[[], None]] = {}


def proves(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def note(proof: Callable[[], None]) -> Callable[[], None]:
        PROOFS[name] = proof
        return proof

    return note


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    """What only the garbage collector frees stays for the time of a test."""
    gc.disable()
    yield
    gc.enable()


def leaf(*shape: int) -> Any:
    return torch.rand(*(shape or (4,)), requires_grad=True)


class Doubled(torch.autograd.Function):
    """An operation that saves as it should, and notes the modes in which it runs."""

    modes: list[bool] = []
    given: list[Any] = []

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        Doubled.modes.append(torch.is_grad_enabled())
        ctx.save_for_backward(x * 1)
        Doubled.given.append(weakref.ref(ctx))
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        Doubled.modes.append(torch.is_grad_enabled())
        return grad * 2


class OnContext(torch.autograd.Function):
    """An operation that keeps its own tensors as attributes."""

    @staticmethod
    def forward(ctx: Any, x: Any, output: bool) -> Any:
        made = x.exp()
        ctx.held = made if output else x * 1
        return made

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.held, None


class Two(torch.autograd.Function):
    """An operation with two results."""

    seen: list[Any] = []
    materialize = True

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(Two.materialize)
        return x + 1, x + 2

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any) -> Any:
        Two.seen.append(second)
        return first


@proves("create-graph-keeps-graph-in-grad")
def _() -> None:
    x = leaf()
    (x**3).sum().backward(create_graph=True)
    assert x.grad.grad_fn is not None
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is not None
    alive().grad = None
    assert alive() is None


@proves("grad-fills-nothing")
def _() -> None:
    x = leaf()
    (grad,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert grad.requires_grad
    assert x.grad is None


@proves("create-graph-retains")
def _() -> None:
    x = leaf()
    y = (x**3).sum()
    y.backward(create_graph=True)
    y.backward(create_graph=False)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


@proves("grad-accumulates")
def _() -> None:
    for creates in (False, True):
        x = leaf()
        (x**3).sum().backward(create_graph=creates)
        before = x.grad
        (x**3).sum().backward(create_graph=creates)
        assert (x.grad is before) is not creates


@proves("backward-frees-saved")
def _() -> None:
    x = leaf()
    inner = x * 2
    y = inner.exp().sum()
    alive = weakref.ref(inner)
    del inner
    y.backward()
    assert alive() is None
    assert y.grad_fn.next_functions[0][0] is not None
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


@proves("derivatives-without-graph")
def _() -> None:
    x = leaf()
    for name, place in autograd.places("derivatives-without-graph").items():
        derive = getattr(torch.autograd.functional, name.rpartition(".")[2])
        assert place is not None
        vector = [torch.ones(4)] if place == 3 else []
        whole = name.endswith(("vjp", "jvp", "jacobian"))
        given = [(lambda v: v**3) if whole else (lambda v: (v**3).sum()), x, *vector]
        plain, creating = derive(*given), derive(*given, True)
        for found, expected in ((plain, False), (creating, True)):
            result = found[1] if isinstance(found, tuple) else found
            assert result.requires_grad is expected, name


@proves("backward-options")
def _() -> None:
    x = leaf()
    options = dict.fromkeys(autograd.names("backward-options"))
    (x * 2).sum().backward(**options | {"create_graph": False})
    assert x.grad is not None


@proves("retain-grad")
def _() -> None:
    x = leaf()
    y, z = x * 2, x * 3
    y.retain_grad()
    (y + z).sum().backward()
    assert y.grad is not None
    with pytest.warns(UserWarning, match="not a leaf"):
        assert z.grad is None


@proves("zero-grad-sets-none")
def _() -> None:
    layer = nn.Linear(2, 2)
    for owner in (layer, torch.optim.SGD(layer.parameters(), 0.1)):
        layer(torch.ones(1, 2)).sum().backward()
        owner.zero_grad(set_to_none=False)
        assert layer.weight.grad is not None
        owner.zero_grad()
        assert layer.weight.grad is None


@proves("leaf-in-place-raises")
def _() -> None:
    x = leaf()
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.add_(1)
    with torch.no_grad():
        x.add_(1)
    assert x.is_leaf
    assert x.requires_grad


@proves("buffer-takes-graph")
def _() -> None:
    layer = nn.BatchNorm1d(4)
    nodes = []
    for _ in range(3):
        layer.running_mean.mul_(0.9).add_(leaf())
        nodes.append(layer.running_mean.grad_fn)
    assert layer.running_mean.requires_grad
    assert _depth(nodes[2]) > _depth(nodes[0])
    other = nn.BatchNorm1d(4)
    with torch.no_grad():
        other.running_mean.mul_(0.9).add_(leaf())
    assert not other.running_mean.requires_grad


def _depth(node: Any) -> int:
    return 1 + max((_depth(after) for after, _ in node.next_functions if after is not None), default=0)


@proves("slice-write-takes-graph")
def _() -> None:
    whole = torch.zeros(8)
    whole[:4] = leaf() * 2
    assert whole.grad_fn is not None


@proves("overwritten-saved-raises")
def _() -> None:
    x = leaf() * 1
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@proves("detach-shares-version")
def _() -> None:
    x = leaf()
    noticed, unnoticed = x.exp(), x.exp()
    noticed.detach().add_(1)
    unnoticed.data.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        noticed.sum().backward()
    unnoticed.sum().backward()


@proves("view-keeps-storage")
def _() -> None:
    shown = torch.zeros(1000)[:1]
    assert shown.untyped_storage().nbytes() == 4000
    assert shown.clone().untyped_storage().nbytes() == 4


@proves("function-forward-records-nothing")
def _() -> None:
    Doubled.modes.clear()
    assert Doubled.apply(leaf()).grad_fn is not None
    assert Doubled.modes == [False]


@proves("function-saved-is-freed")
def _() -> None:
    Doubled.given.clear()
    result = Doubled.apply(leaf())
    result.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        _ = Doubled.given[0]().saved_tensors
    kept = OnContext.apply(leaf(), False)
    alive = weakref.ref(kept.grad_fn.held)
    kept.sum().backward()
    assert alive() is not None
    del kept
    assert alive() is None


@proves("function-output-on-ctx")
def _() -> None:
    made = OnContext.apply(leaf(), True)
    alive = weakref.ref(made.grad_fn)
    made.sum().backward()
    del made
    assert alive() is not None
    gc.collect()
    assert alive() is None


@proves("function-backward-mode")
def _() -> None:
    for creates in (False, True):
        Doubled.modes.clear()
        Doubled.apply(leaf()).sum().backward(create_graph=creates)
        assert Doubled.modes == [False, creates]


@proves("function-marks")
def _() -> None:
    for name in autograd.names("function-marks"):
        assert hasattr(torch.autograd.function.FunctionCtx, name)

    class Marked(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            made = x * 2
            ctx.mark_non_differentiable(made)
            return x + 1, made

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            return first

    first, second = Marked.apply(leaf())
    assert (first.requires_grad, second.requires_grad) == (True, False)
    alive = weakref.ref(second)
    del second
    assert alive() is None


@proves("function-materializes")
def _() -> None:
    for Two.materialize in (True, False):
        Two.apply(leaf(100))[0].sum().backward()
    zeros, nothing = Two.seen[-2:]
    assert zeros.shape == (100,)
    assert nothing is None


def _kept(run: Callable[[], Any]) -> int:
    sizes = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (sizes.append(t.numel()), t)[1], lambda t: t):
        run()
    return sum(sizes)


def _layers() -> Any:
    return nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Sigmoid()) for _ in range(4)))


@proves("checkpoint-recomputes")
def _() -> None:
    layers, x, runs = _layers(), leaf(16, 8), []
    layers.register_forward_pre_hook(lambda *_: runs.append(1))
    whole = _kept(lambda: layers(x))
    assert _kept(lambda: checkpoint.checkpoint(layers, x, use_reentrant=False)) * 4 < whole
    runs.clear()
    checkpoint.checkpoint(layers, x, use_reentrant=False).sum().backward()
    assert len(runs) == 2
    for name, place in autograd.places("checkpoint-recomputes").items():
        called = getattr(checkpoint, name.rpartition(".")[2])
        _expect_place(called, place)


def _expect_place(called: Any, place: int | None) -> None:
    parameters = list(inspect.signature(inspect.unwrap(called)).parameters.values())
    at = [parameter.name for parameter in parameters].index("use_reentrant")
    if place is None:
        assert parameters[at].kind is inspect.Parameter.KEYWORD_ONLY
    else:
        assert at == place


@proves("checkpoint-options")
def _() -> None:
    given: list[Any] = []

    def run(x: Any, **options: Any) -> Any:
        given.append(options)
        return x * 2

    values = {"use_reentrant": False, "preserve_rng_state": True, "determinism_check": "default", "early_stop": True}
    assert values.keys() == autograd.names("checkpoint-options")
    if "early_stop" not in inspect.signature(inspect.unwrap(checkpoint.checkpoint)).parameters:  # releases before 2.7
        values.pop("early_stop")
    checkpoint.checkpoint(run, leaf(), **values, more=3)
    assert given == [{"more": 3}]


@proves("checkpoint-options-not-reentrant")
def _() -> None:
    values = {"context_fn": lambda: (torch.no_grad(), torch.no_grad()), "debug": True}
    assert values.keys() == autograd.names("checkpoint-options-not-reentrant")
    for name, value in values.items():
        with pytest.raises(ValueError, match="use_reentrant"):
            checkpoint.checkpoint(torch.exp, leaf(), use_reentrant=True, **{name: value})


@proves("checkpoint-reentrant-needs-input")
def _() -> None:
    layer, x = nn.Linear(4, 4), torch.ones(1, 4)
    with pytest.warns(UserWarning, match="None of the inputs"):
        assert not checkpoint.checkpoint(layer, x, use_reentrant=True).requires_grad
    assert checkpoint.checkpoint(layer, x, use_reentrant=False).requires_grad


@proves("functional-call")
def _() -> None:
    for name in autograd.names("functional-call"):
        module: Any = torch
        for part in name.split(".")[1:]:
            module = getattr(module, part)
        layer, weight = nn.Linear(2, 2, bias=False), leaf(2, 2)
        own = layer.weight
        module(layer, {"weight": weight}, (torch.ones(1, 2),)).sum().backward()
        assert layer.weight is own
        assert (own.grad is None, weight.grad is None) == (True, False)


def _cubes(x: Any) -> Any:
    return (x**3).sum()


@proves("func-gradients-without-graph")
def _() -> None:
    x = torch.rand(4)
    for name in autograd.names("func-gradients-without-graph"):
        transform = getattr(func, name.rpartition(".")[2])
        result = transform(_cubes)(x)
        assert all(not one.requires_grad for one in (result if isinstance(result, tuple) else (result,)))
    assert func.grad(lambda y: _cubes(func.grad(_cubes)(y)))(x).abs().sum() > 0
    held = leaf()
    assert func.grad(lambda y: (y * held).sum())(x).requires_grad


@proves("func-ignores-outer-no-grad")
def _() -> None:
    def within(x: Any) -> Any:
        with torch.no_grad():
            return (x**3).sum()

    x = torch.ones(4)
    with torch.no_grad():
        assert func.grad(_cubes)(x).tolist() == [3.0] * 4
    assert func.grad(within)(x).tolist() == [0.0] * 4


@proves("func-vmap-keeps-graph")
def _() -> None:
    sizes: list[Any] = []

    def run(x: Any) -> Any:
        sizes.append(1)
        return x.exp()

    x = leaf(6, 3)
    assert func.vmap(run)(x).requires_grad
    assert len(sizes) == 1
    func.vmap(run, chunk_size=2)(x)
    assert len(sizes) == 4


@proves("mode-is-per-thread")
def _() -> None:
    seen: list[bool] = []
    with torch.no_grad():
        worker = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        worker.start()
        worker.join()
    assert seen == [True]


@proves("inference-tensors-are-not-saved")
def _() -> None:
    with torch.inference_mode():
        made = torch.ones(4)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        _ = leaf() * made


class _Held:
    """What a hook closes over."""


@proves("module-hooks")
def _() -> None:
    for name in autograd.names("module-hooks"):
        layer, held = nn.Linear(2, 2), _Held()
        handle = getattr(layer, name)(lambda *given, held=held: None)
        alive = weakref.ref(held)
        del held
        assert alive() is not None, name
        handle.remove()
        assert alive() is None, name


@proves("forward-hooks")
def _() -> None:
    for name in autograd.names("forward-hooks"):
        layer, modes = nn.Linear(2, 2), []
        owner = nn.modules.module if name == "register_module_forward_hook" else layer

        def hook(*given: Any, modes: list[bool] = modes) -> Any:
            modes.append(torch.is_grad_enabled())
            return torch.zeros(1, 2)

        handle = getattr(owner, name)(hook)
        with torch.no_grad():
            result = layer(torch.ones(1, 2))
        handle.remove()
        assert modes == [False]
        expected = torch.zeros(1, 2) if name.endswith("forward_hook") else layer(torch.zeros(1, 2))
        assert torch.equal(result, expected.detach())


@proves("tensor-hooks")
def _() -> None:
    for name in autograd.names("tensor-hooks"):
        x, held, ran = leaf(), _Held(), []
        handle = getattr(x, name)(lambda grad, held=held, ran=ran: ran.append(1))
        alive = weakref.ref(held)
        del held
        (x * 2).sum().backward()
        assert ran == [1]
        assert alive() is not None
        handle.remove()
        assert alive() is None


@proves("accumulate-hooks-are-of-leaves")
def _() -> None:
    x = leaf()
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).register_post_accumulate_grad_hook(lambda tensor: None)
    x.register_post_accumulate_grad_hook(lambda tensor: setattr(tensor, "grad", None))
    (x * 2).sum().backward()
    assert x.grad is None


@proves("saved-tensors-hooks")
def _() -> None:
    x = leaf()
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: "packed", lambda packed: torch.zeros(4)):
        y = x * 1
        made = y.exp()
    alive = weakref.ref(made)
    result = made.sum()
    del made
    assert alive() is None
    result.backward()
    assert x.grad.tolist() == [0.0] * 4
    host = torch.autograd.graph.save_on_cpu()
    assert isinstance(host, torch.autograd.graph.saved_tensors_hooks)


@proves("compile-runs-in-callers-mode")
def _() -> None:
    compiled = torch.compile(lambda x: x * 2, backend="eager")
    x = leaf()
    assert compiled(x).requires_grad
    with torch.no_grad():
        assert not compiled(x).requires_grad


_SLOW = {"compile-runs-in-callers-mode"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in _SLOW else []) for name in sorted(PROOFS)]
)
def test_torch_keeps_the_contract(name: str) -> None:
    PROOFS[name]()


def test_each_contract_has_a_source_and_a_proof() -> None:
    assert PROOFS.keys() == autograd.contracts().keys()
    for contract in autograd.contracts().values():
        assert contract["says"].endswith(".")
        assert contract["source"].startswith("https://docs.pytorch.org/")
