"""TML106 hook-keeps-graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.flow.facts import AttributeStore, Collection, FileFacts, Hook, Use
from torchmemlint.flow.program import Function
from torchmemlint.flow.values import Mode, Origin, Tensor
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import Link, detach_fix, history, is_test, report
from torchmemlint.rules.graphs.lifetime import LEAVES_VIEW, in_lambda_hook, is_bounded
from torchmemlint.syntax.outline import dotted
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import shortened, text_of


class HookKeepsGraph(Rule):
    """A module hook stores outputs together with their graph.

    ## What it does
    Reports a forward or backward hook, or a closure registered as one, that puts what it is given into a list, dict or
    attribute without detaching it, where nothing in the file differentiates it later.

    ## Why it costs memory
    The stored output holds the graph of the whole forward pass up to that module: measured, 524,288 bytes per step for
    one small layer in a list that grows (severity `error`, where a training loop is in view). Under a key or in an
    attribute it lives until the next pass puts another in its place (severity `warning`).

    ## Example
    ```python
    def hook(module, inputs, output):
        features.append(output)

    model.layer4.register_forward_hook(hook)
    ```

    ## Use instead
    ```python
    def hook(module, inputs, output):
        features.append(output.detach())
    ```

    ## Fix safety
    Safe: the hook's own output is untouched, only the stored reference is detached. No fix is offered where the
    output may be a tuple.

    ## When it stays silent
    The captured features are differentiated (style and perceptual losses, attribution), or handed on to code that may
    do so (a backbone whose hooks collect what its head works on), or gradients are off while the hooked module runs;
    it is not in view what runs it: the file has no backward, and the function that registers the hook runs no module;
    tests. An advice where the next output takes the place of the last: that is one graph, and whoever reads it in
    between may want it.

    ## References
    - [torch.nn.Module.register_forward_hook](https://pytorch.org/docs/stable/generated/torch.nn.Module.html)
    - [pytorch#46386](https://github.com/pytorch/pytorch/issues/46386)
    """

    code = "TML106"
    name = "hook-keeps-graph"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "each stored output holds the graph of the forward pass that made it"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield what hooks store with a graph."""
        hooks = {hook.function: hook for hook in facts.hooks}
        for collection in facts.collections:
            if in_lambda_hook(collection) and runs_with_graphs(facts, collection.scope.function):
                grows = not is_bounded(facts, collection)
                yield from self._stored(
                    facts, None, collection.element, collection.value, collection.container, collection.kept, grows
                )
        for collection in facts.collections:
            hook = hooks.get(collection.scope.function) if collection.scope.function else None
            if hook is not None and not (_made_inside(hook, collection) or _is_handed_on(facts, hook, collection)):
                yield from self._stored(
                    facts,
                    hook,
                    collection.element,
                    collection.value,
                    collection.container,
                    collection.kept,
                    collection.how in _GROWING and not is_bounded(facts, collection),
                )
        for store in facts.attribute_stores:
            hook = hooks.get(store.scope.function) if store.scope.function else None
            if hook is not None and not _is_read_from_outside(facts, store):
                yield from self._stored(facts, hook, store.value_site, store.value, store.target, store.kept, False)

    def _stored(
        self,
        facts: FileFacts,
        hook: Hook | None,
        element: Site,
        value: Tensor,
        where: str,
        kept: Origin,
        grows: bool,
    ) -> Iterator[Finding]:
        use = facts.uses.get(kept, Use.NOTHING)
        if use & (LEAVES_VIEW | Use.DIFFERENTIATED) or is_test(facts):
            return
        if hook is not None and not runs_with_graphs(facts, hook.scope.function):
            return  # what runs the hooked modules is not in view
        if hook is not None and facts.enters_without_gradients(hook.scope.function):
            return
        if hook is not None and not grows and _gradients_are_hooked(facts, hook):
            return  # attribution: the stored output is one of a pass that is differentiated and then let go
        text = shortened(text_of(element.node), 40)
        yield report(
            self,
            facts,
            element,
            f"the hook stores `{text}` in `{where}` with its autograd graph"
            + ("" if grows else ", which lives until the next one takes its place"),
            severity=_severity(facts, grows),
            evidence=[*history(value.history), *_registration(hook)],
            fix=detach_fix(element) if value.exact and value.certain else None,
        )


def _severity(facts: FileFacts, grows: bool) -> Severity:
    """What the next pass replaces is one graph, and who reads it in between may want it."""
    if not grows:
        return Severity.ADVICE
    return Severity.ERROR if trains_in_a_loop(facts) else Severity.WARNING


def runs_with_graphs(facts: FileFacts, registering: Function | None) -> bool:
    """Does the file train, or the function that registers a hook run a module with gradients on?

    Elsewhere it is not in view what runs the hooked module, and in which mode; nor who reads what the hook has stored.
    """
    if facts.backwards:
        return True
    return any(call.scope.function is registering and call.scope.mode is Mode.ON for call in facts.module_calls)


def trains_in_a_loop(facts: FileFacts) -> bool:
    """Does a backward run again and again, so that what hooks put into a list grows from step to step?"""
    return any(mark.node is not None for backward in facts.backwards for mark in backward.scope.loops)


def _made_inside(hook: Hook, collection: Collection) -> bool:
    """Is the container the hook's own, gone when it returns?"""
    made = collection.made
    if made is None or made.piece.top is not hook.function.piece.top:
        return False
    return hook.function.piece.span(hook.function.node).contains(made.span)


_GROWING = ("append", "extend", "add", "+=")


def _is_handed_on(facts: FileFacts, hook: Hook, collection: Collection) -> bool:
    """Does what one pass fills go to others, who may differentiate it?

    The function that registers the hook returns it; or a function of the file does so with a container of the module,
    puts it on an object, or gives it to a call: features that the rest of the model works on.
    """
    function, root = hook.scope.function, collection.container.partition(".")[0].partition("[")[0]
    if collection.how in _GROWING:
        return False
    if function is not None and _may_differentiate(facts, function, root, facts.uses.get(collection.kept, Use.NOTHING)):
        return True
    made = collection.made
    if made is not None and made.piece.kind not in ("def", "class"):
        return any(_hands_on(node, root) for outline in facts.program.outlines() for node in outline.nodes)
    return function is not None and any(
        isinstance(node, ast.Return) and _hands_on(node, root) for node in function.outline.nodes
    )


def _may_differentiate(facts: FileFacts, function: Function, name: str, use: Use) -> bool:
    """Does a function that runs a backward take an entry whose numbers nobody reads: `loss = -seen[0].norm()`?"""
    if use & (Use.READ | Use.DETACHED) or "backward" not in facts.effects.get(function, set()):
        return False
    entries = (node for node in function.outline.nodes if isinstance(node, ast.Subscript))
    return any(isinstance(node.ctx, ast.Load) and _is(node.value, name) for node in entries)


def _is_read_from_outside(facts: FileFacts, store: AttributeStore) -> bool:
    """Does code of the file take it from an object that is not followed: `hooks[layer].features`?"""
    nodes = (node for outline in facts.program.outlines() for node in outline.nodes)
    return store.target.startswith("self.") and any(
        isinstance(node, ast.Attribute)
        and node.attr == store.attribute
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Subscript | ast.Call)
        for node in nodes
    )


def _hands_on(node: ast.AST, name: str) -> bool:
    """Is the container itself (not one of its entries) returned, put on an object, or an argument?"""
    match node:
        case ast.Return(value=ast.expr() as value):
            return _is(value, name)
        case ast.Assign(targets=[ast.Attribute()], value=value):
            return _is(value, name)
        case ast.Call(args=args, keywords=keywords):
            given = [*args, *(keyword.value for keyword in keywords)]
            return any(_is(value, name) for value in given) and dotted(node.func) not in _LOOKING
    return False


def _is(value: ast.expr, name: str) -> bool:
    parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


_LOOKING = frozenset("dict enumerate len list print reversed sorted tuple type zip".split())


def _registration(hook: Hook | None) -> list[Link]:
    return [] if hook is None else [(hook.site, f"`{hook.function.name}` is registered as a hook here")]


def _gradients_are_hooked(facts: FileFacts, hook: Hook) -> bool:
    """Does a gradient hook stand beside this one (Grad-CAM and its kin), or is put on a tensor by another hook?"""
    scope = hook.scope.function
    if scope is not None and any(
        "gradient hook" in effects and function is not scope and _is_within(function, scope)
        for function, effects in facts.effects.items()
    ):
        return True
    return any(
        other.kind in _GRADIENT_HOOKS
        and (other.scope.function is scope or (scope is not None and _same_class(other.scope.function, scope)))
        for other in facts.hooks
    )


def _is_within(function: Function | None, scope: Function | None) -> bool:
    """Is it the same function, or one that is defined in it?"""
    while function is not None and function is not scope:
        function = function.parent
    return function is scope


def _same_class(a: Function | None, b: Function) -> bool:
    return a is not None and a.cls is not None and a.cls is b.cls


_GRADIENT_HOOKS = frozenset({"register_hook", "register_full_backward_hook", "register_backward_hook"})
