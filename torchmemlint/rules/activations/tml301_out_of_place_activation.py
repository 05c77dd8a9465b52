"""TML301 out-of-place-activation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity, Span
from torchmemlint.flow.facts import Activation, FileFacts, LayerAdded, SequentialBuilt
from torchmemlint.flow.overwriting import module_flag
from torchmemlint.flow.values import ModuleValue, Tensor, Value
from torchmemlint.knowledge import activations, saved_tensors
from torchmemlint.rules.activations.places import inplace_argument, kind_of
from torchmemlint.rules.activations.scripting import is_scripted
from torchmemlint.rules.arguments import adding
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import Link, is_test, report
from torchmemlint.rules.loading.loaders import tests_live_here
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import text_of


@dataclass(frozen=True, slots=True)
class Use:
    """One place where an activation is applied: may it work in place there, and would that gain anything?"""

    site: Site
    safe: bool
    gains: bool
    producer: str  # what makes its input
    made: Site | None  # and where


class OutOfPlaceActivation(Rule):
    """An activation makes a new tensor where it could overwrite its input.

    ## What it does
    Reports activations and feature dropouts without `inplace=True` whose input is the fresh, otherwise unused output
    of an operation that does not need it for backward (convolution, linear, norms, addition): neighbours in
    `nn.Sequential`, and calls in `forward`. A module that is applied in several places is reported only where it is
    safe in all of them. A layer that a parameter names the class of (`norm_layer=nn.BatchNorm2d`) counts as the
    default.

    ## Why it costs memory
    Measured, in training, after a convolution and after convolution and batch norm: `LeakyReLU`, `ELU`, `SELU`, `CELU`
    and `RReLU` keep their input for backward, next to the output that the following layer keeps. In place they keep
    one full activation less per layer (six LeakyReLU layers: 20.0 to 14.0 MiB). `ReLU` and the feature dropouts save
    nothing for backward: in place they only do without a second tensor while the layer itself runs, which counts where
    the peak lies just there (often in inference, hardly ever in training). Other activations have in-place forms that
    save nothing in training and are not reported.

    ## Example
    ```python
    nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.LeakyReLU(0.1), nn.Conv2d(64, 64, 3))
    ```

    ## Use instead
    ```python
    nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.LeakyReLU(0.1, inplace=True), nn.Conv2d(64, 64, 3))
    ```

    ## Fix safety
    Unsafe: results and gradients stay the same, but what is not in view may still look at the overwritten tensor: a
    hook that someone registers, a subclass, a caller that takes the Sequential apart or gives another class of norm
    that needs its output. `LeakyReLU` with a negative slope
    cannot work in place.

    ## When it stays silent
    `inplace` is given, also as `False`; the input comes from outside (the first layer, an argument of `forward`), is
    read or kept elsewhere, or belongs to an operation that needs it (sigmoid, softmax, tanh, exp, another ReLU: there
    it would be TML302); what follows keeps nothing of the output (an addition, an interpolation), so that nothing is
    gained; forward hooks are registered in the file; the module is handed to code that is not in view; the
    activation is called in a function for TorchScript, which merges it with its neighbours itself; files of a test
    suite.

    ## References
    - [torch.nn.LeakyReLU](https://docs.pytorch.org/docs/stable/generated/torch.nn.LeakyReLU.html)
    - [Autograd mechanics: in-place operations](https://docs.pytorch.org/docs/stable/notes/autograd.html)
    """

    code = "TML301"
    name = "out-of-place-activation"
    severity = Severity.ADVICE
    fix = Applicability.UNSAFE
    why = "the activation's input stays in memory beside its output"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield activations that could work in place: first those that save something for backward."""
        if any("forward" in hook.kind for hook in facts.hooks) or is_test(facts) or tests_live_here(facts.path):
            return
        kinds: dict[Site, str] = {}
        uses: dict[Site, list[Use]] = {}
        unsafe = set(facts.shared_activations)
        for activation in facts.activations:
            kind = activation.kind.rpartition(".")[2]
            if activation.inplace is not False or kind in activations.SAVES_NOTHING:
                unsafe.update([activation.made] if activation.made is not None else [])
                continue
            place = activation.made or activation.site
            kinds[place] = kind
            uses.setdefault(place, []).append(_call(facts, activation))
        for built in facts.sequentials:
            for place, kind, use in _children(built):
                kinds[place] = kind
                uses.setdefault(place, []).append(use)
        for added in facts.layers_added:
            for place, kind, use in _added(added):
                kinds[place] = kind
                uses.setdefault(place, []).append(use)
        first = [place for place in kinds if kinds[place] in activations.SAVES_ONE]
        rest = [place for place in kinds if kinds[place] not in activations.SAVES_ONE]
        for place in (*first, *rest):
            found = uses[place]
            if place in unsafe or inplace_argument(place) is not None or not all(use.safe for use in found):
                continue
            if any(use.gains for use in found) and _can(place, kinds[place]):
                yield self._report(facts, place, kinds[place], found)

    def _report(self, facts: FileFacts, place: Site, kind: str, found: list[Use]) -> Finding:
        if kind in activations.SAVES_ONE:
            gain = "it would keep one activation less for backward (under `no_grad`: need one tensor less as it runs)"
        else:
            gain = "it would need no second tensor as it runs (under `no_grad`, too), and keep as much for backward"
        links: list[Link] = []
        for use in found:
            name = saved_tensors.short(use.producer)
            name = {"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "MatrixMultiply": "@"}.get(name, name)
            if use.made is not None:
                links.append((use.made, f"`{name}` makes its input, and does not need it for backward"))
            if use.site is not place:
                links.append((use.site, "it is applied here, and nothing else reads the input"))
        links.append((place, f"`{kind}` is built without `inplace=True`"))
        edits = _edits(facts, place)
        fix = Fix("Work in place", Applicability.UNSAFE, edits) if edits else None
        return report(self, facts, place, f"`{kind}` makes a new tensor: in place {gain}", evidence=links, fix=fix)


def _can(place: Site, kind: str) -> bool:
    """Is it a call of the activation by its own name (`getattr(nn, name)()` may be anything)?"""
    return isinstance(place.node, cst.Call) and kind_of(place) == kind


def _edits(facts: FileFacts, place: Site) -> tuple[Edit, ...]:
    call = place.node
    if not isinstance(call, cst.Call):
        return ()
    if text_of(call.func).rpartition(".")[0] == "torch":  # torch.relu takes no `inplace`; torch.relu_ does it
        end = place.piece.span(call.func).end
        return (Edit(Span(end, end), "_"),)
    return adding(facts, place, "inplace=True")


def _call(facts: FileFacts, activation: Activation) -> Use:
    """An activation applied by a call."""
    value, kind = activation.input, activation.kind.rpartition(".")[2]
    safe = isinstance(value, Tensor) and _is_fresh(facts, activation, value)
    safe = safe and not is_scripted(activation.scope.function)
    producer, made = (value.producer, value.made) if isinstance(value, Tensor) else ("", None)
    return Use(activation.site, safe, kind not in activations.SAVES_ONE or _is_kept(facts, activation), producer, made)


def _is_fresh(facts: FileFacts, activation: Activation, value: Tensor) -> bool:
    """Is the input the output of an operation that does not need it, made here and read nowhere else?"""
    function = activation.scope.function
    if value.made is None or not value.exact or not value.certain or function is None:
        return False
    if not saved_tensors.output_is_free(value.producer) or value.parameter_of:
        return False
    made = value.made
    if made.piece is not activation.site.piece:
        return False
    if isinstance(activation.input_node, cst.Name):
        reads = facts.reads.get(made, {})
        if len(reads) != 1 or next(iter(reads)).node is not activation.input_node:
            return False
    elif activation.input_node is not made.node:
        return False
    if not activation.site.piece.span(function.node).contains(made.span):
        return False
    return not isinstance(activation.input_node, cst.Name) or not _repeats_without(activation, made)


def _repeats_without(activation: Activation, made: Site) -> bool:
    """Does a loop around the activation run again without making its input anew?"""
    for mark in activation.scope.loops:
        if mark.node is not None and not made.piece.span(mark.node).contains(made.span):
            return True
    return False


def _is_kept(facts: FileFacts, activation: Activation) -> bool:
    """Does what follows keep the activation's output? Where it is not seen what follows, it is taken to."""
    followers = facts.followers.get(activation.site, {})
    others = len(facts.reads.get(activation.site, ())) > len(followers)
    return not followers or others or any(not saved_tensors.keeps_nothing(name) for name in followers.values())


def _added(added: LayerAdded) -> Iterator[tuple[Site, str, Use]]:
    """An activation that is put behind the other layers of a Sequential."""
    kind = activations.module_kind(added.layer.qualified)
    if kind is None or kind in activations.SAVES_NOTHING or added.layer.made is None:
        return
    if module_flag(added.layer, kind) is False:
        producer, made = (added.before.qualified, added.before.made) if added.before is not None else ("", None)
        yield added.layer.made, kind, Use(added.layer.made, added.free, True, producer, made)


def _children(built: SequentialBuilt) -> Iterator[tuple[Site, str, Use]]:
    """The activations of a Sequential, each with its place there."""
    children = built.children
    for index, child in enumerate(children):
        if not isinstance(child, ModuleValue) or child.made is None:
            continue
        kind = activations.module_kind(child.qualified)
        if kind is None or kind in activations.SAVES_NOTHING or module_flag(child, kind) is not False:
            continue
        before = children[index - 1] if index > 0 else None
        after: Value | None = children[index + 1] if index + 1 < len(children) else None
        fresh = isinstance(before, ModuleValue) and saved_tensors.output_is_free(before.qualified)
        made = before.made if isinstance(before, ModuleValue) else None
        producer = before.qualified if isinstance(before, ModuleValue) else ""
        unkept = isinstance(after, ModuleValue) and saved_tensors.keeps_nothing(after.qualified)
        yield child.made, kind, Use(child.made, fresh, kind not in activations.SAVES_ONE or not unkept, producer, made)
