"""TML107 undetached-generator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import libcst as cst

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import Backward, FileFacts, LiveInput, ModuleCall, TrainingEvent, Use, WeakCall
from torchmemlint.flow.interpreter import KEPT
from torchmemlint.flow.values import Container, Origin, Tensor
from torchmemlint.rules.arguments import removing
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import Link, detach_fix, is_test, report
from torchmemlint.rules.gradient_mode.guarding import wrap
from torchmemlint.syntax.text import shortened, text_of


@dataclass(frozen=True, slots=True)
class _Step:
    """A discriminator's step through the generator's graph."""

    judged: ModuleCall  # the discriminator's call
    fake: LiveInput  # what it is given
    generated: ModuleCall  # the generator's call
    backward: TrainingEvent
    taken: TrainingEvent  # the discriminator's optimizer steps
    zeroed: TrainingEvent  # the generator's gradients are thrown away


class UndetachedGenerator(Rule):
    """A discriminator's step differentiates the generator as well, for gradients that are thrown away.

    ## What it does
    Reports the discriminator's step of an adversarial pair that is given the generator's output with its graph: the
    backward runs on through the generator, and the gradients that it leaves there are zeroed before the generator's
    optimizer steps.

    ## Why it costs memory
    The discriminator's loss needs the values of the generated samples only. With their graph, every activation that
    the generator saved stays until backward has run through it, on top of the discriminator's own, and gradients of
    all the generator's parameters are allocated and filled. A graph retained for the generator's step holds the
    discriminator's activations as well. Measured for a small DCGAN, peak of a training step: 98.8 MB with the retained
    graph, 64.5 detached; 64.5 MB with samples made for the discriminator alone, 49.8 where they are made without
    gradients.

    ## Example
    ```python
    fake = generator(noise)
    d_loss = criterion(discriminator(real), ones) + criterion(discriminator(fake), zeros)
    d_loss.backward(retain_graph=True)
    optimizer_d.step()
    generator.zero_grad()
    g_loss = criterion(discriminator(fake), ones)
    g_loss.backward()
    optimizer_g.step()
    ```

    ## Use instead
    ```python
    d_loss = criterion(discriminator(real), ones) + criterion(discriminator(fake.detach()), zeros)
    d_loss.backward()
    ```
    Where the discriminator alone sees the samples, `with torch.no_grad():` around the generator's call saves the graph
    altogether.

    ## Fix safety
    Safe: the samples keep their values, and the gradients that are no longer computed were zeroed unread. Where only
    the discriminator's step uses the samples, they are made under `no_grad`; otherwise what it is given is detached,
    which is unsafe where that could be something else than a tensor. Not applied where the generator is called in the
    discriminator's own argument, or a penalty differentiates with respect to the samples.

    ## When it stays silent
    The samples are detached, the generator is frozen or runs without gradients; its optimizer steps, or could step,
    before its gradients are zeroed (one combined step, gradient reversal); one optimizer holds both; it is not known
    whose parameters an optimizer holds; or code out of view is given the generator.

    ## References
    - [PyTorch: DCGAN tutorial](https://pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html)
    """

    code = "TML107"
    name = "undetached-generator"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    why = "the generator's activations are kept, and differentiated, for gradients that nobody uses"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield what discriminators are given with a graph that leads into the generator."""
        if is_test(facts) or not facts.training:
            return
        reported: set[object] = set()
        for step in _steps(facts):
            if step.fake.site in reported:
                continue
            reported.add(step.fake.site)
            generator, discriminator = step.generated.callee, step.judged.callee
            fake = shortened(text_of(step.fake.site.node), 40)
            yield report(
                self,
                facts,
                step.fake.site,
                f"`{discriminator}` is given `{fake}` with the graph of `{generator}`: backward "
                f"fills gradients of `{generator}` that are zeroed unused",
                evidence=_evidence(step),
                fix=_fix(facts, step),
            )


def _evidence(step: _Step) -> list[Link]:
    generator, discriminator = step.generated.callee, step.judged.callee
    return [
        (step.generated.site, f"`{generator}` runs with gradients on"),
        (step.judged.site, f"`{discriminator}` is given its output, with the graph"),
        (step.backward.site, f"backward runs through `{discriminator}` and on through `{generator}`"),
        (step.taken.site, f"this step updates `{discriminator}`, and not `{generator}`"),
        (step.zeroed.site, f"the gradients of `{generator}` are zeroed before its own optimizer steps"),
    ]


def _steps(facts: FileFacts) -> Iterator[_Step]:
    events = list(facts.training.values())
    backwards = [event for event in events if event.kind == "backward"]
    generators = {call.origin: call for call in facts.module_calls if call.module is not None}
    for call in facts.module_calls:
        if call.module is None:
            continue
        for fake in call.live_inputs:
            makers = [generators[origin] for origin in fake.value.origins if origin in generators]
            through = [event for event in backwards if call.origin in event.origins]
            if not makers or not through:
                continue
            for backward in through:
                step = _step(facts, events, call, fake, makers, backward, through)
                if step is not None:
                    yield step
                    break


def _step(
    facts: FileFacts,
    events: list[TrainingEvent],
    call: ModuleCall,
    fake: LiveInput,
    makers: list[ModuleCall],
    backward: TrainingEvent,
    through: list[TrainingEvent],
) -> _Step | None:
    """The discriminator's step that `backward` belongs to, where everything it does to the generator is thrown away."""
    discriminator = _oid(call)
    steps = [event for event in events if event.kind == "step"]
    after = (s for s in steps if s.root is backward.root and s.order > backward.order)
    taken = next((s for s in after if discriminator in (s.modules or ())), None)
    if taken is None or any(_oid(maker) == discriminator for maker in makers):
        return None
    if any(s.modules is None and _beside(s, backward) for s in steps) or _leaf(facts, fake, call):
        return None
    generated: ModuleCall | None = None
    zeroed: TrainingEvent | None = None
    for maker in sorted(makers, key=lambda maker: maker.site.span, reverse=True):
        module = _oid(maker)
        updates = [s for s in steps if s.modules is not None and module in s.modules]
        if not updates:
            if _inside(maker):
                continue
            return None  # who trains it is not in view
        if module in (taken.modules or ()) or _handed(events, module, backward):
            return None
        generated, zeroed = maker, _thrown_away(events, module, updates, through)
        if zeroed is None:
            return None
    if generated is None or zeroed is None:
        return None
    return _Step(call, fake, generated, backward, taken, zeroed)


def _oid(call: ModuleCall) -> int:
    assert call.module is not None
    return call.module.oid


def _beside(event: TrainingEvent, other: TrainingEvent) -> bool:
    """In the same function, or another method of its class."""
    if event.root is other.root:
        return True
    if event.root is None or other.root is None:
        return False
    return event.root.cls is not None and event.root.cls is other.root.cls


def _leaf(facts: FileFacts, fake: LiveInput, call: ModuleCall) -> bool:
    """Does a gradient for an input (a latent code that is optimised) run through the generator?"""
    for origin in facts.leaves & fake.value.origins:
        piece = origin.site.piece
        if piece.top is call.site.piece.top or (call.scope.function is None and piece.kind == "code"):
            return True
    return False


def _inside(maker: ModuleCall) -> bool:
    """A layer called in a module's forward: its parameters are that module's."""
    function = maker.scope.function
    return function is not None and function.cls is not None and function.cls.is_module


def _handed(events: list[TrainingEvent], module: int, backward: TrainingEvent) -> bool:
    """Is the generator given to code that is not understood, in what repeats the backward?"""
    loop = backward.loops[-1] if backward.loops else None
    return any(
        event.kind == "handed"
        and (event.modules is None or module in event.modules)
        and event.root is backward.root
        and (loop is None or loop in event.loops)
        for event in events
    )


def _thrown_away(
    events: list[TrainingEvent], module: int, updates: list[TrainingEvent], through: list[TrainingEvent]
) -> TrainingEvent | None:
    """What zeroes a module's gradients before its optimizer steps, or right after each of these backwards."""
    before = [_zero_before(events, module, update, through) for update in updates]
    if None not in before:
        return before[0]
    after = [_zero_after(events, module, backward, updates) for backward in through]
    return after[0] if None not in after else None


def _zero_before(
    events: list[TrainingEvent], module: int, update: TrainingEvent, through: list[TrainingEvent]
) -> TrainingEvent | None:
    """What zeroes a module's gradients on every way to its optimizer's step, after the discriminator's backward."""
    zeroing = [event for event in _zeroing(events, module, update) if event.order < update.order]
    found = max(zeroing, key=lambda event: event.order, default=None)
    if found is None:
        return None
    between = any(b.root is update.root and found.order < b.order < update.order for b in through)
    return None if between else found


def _zero_after(
    events: list[TrainingEvent], module: int, backward: TrainingEvent, updates: list[TrainingEvent]
) -> TrainingEvent | None:
    """What zeroes a module's gradients each time that this backward has run, before its optimizer steps."""
    zeroing = [event for event in _zeroing(events, module, backward) if event.order > backward.order]
    found = min(zeroing, key=lambda event: event.order, default=None)
    if found is None:
        return None
    between = any(s.root is backward.root and backward.order < s.order < found.order for s in updates)
    return None if between else found


def _zeroing(events: list[TrainingEvent], module: int, around: TrainingEvent) -> Iterator[TrainingEvent]:
    """What zeroes a module's gradients whenever `around` is reached: in the same loops, under no further condition."""
    for event in events:
        if (
            event.kind == "zero"
            and module in (event.modules or ())
            and event.root is around.root
            and event.loops == around.loops
            and around.tests[: len(event.tests)] == event.tests
        ):
            yield event


def _fix(facts: FileFacts, step: _Step) -> Fix | None:
    """Detach what the discriminator is given; generate without gradients where nobody else wants the graph."""
    origin, made = step.generated.origin, step.generated.made
    events = facts.training.values()
    if any(event.kind == "inputs" and origin in event.origins for event in events):
        return Fix("Detach the samples, and call `requires_grad_()` on what is left", Applicability.HINT)
    differentiated = any(
        event.kind == "backward" and origin in event.origins and step.judged.origin not in event.origins
        for event in events
    )
    if differentiated or not made or any((origin, site) in facts.leaving for site in made):
        return _detached(facts, step)
    statement = step.generated.statement
    if isinstance(statement.node, cst.Assign) and statement.node.value is step.generated.site.node:
        return wrap(facts, statement.span, Applicability.UNSAFE)
    return Fix("Generate the samples under `torch.no_grad()`, in a statement of its own", Applicability.HINT)


def _detached(facts: FileFacts, step: _Step) -> Fix | None:
    """`.detach()` on the argument; a backward that kept the graph for the generator's sake need not do so any more."""
    fix = detach_fix(step.fake.site, safe=step.fake.value.exact and step.fake.value.certain)
    backward = next((b for b in facts.backwards if b.site is step.backward.site), None)
    if fix is None or backward is None or backward.retain is None:
        return fix
    rest = replace(backward, origins=backward.origins - step.fake.value.origins)
    if backward.create is not None or not _is_last(facts, rest):
        return fix
    return replace(fix, edits=(*fix.edits, *removing(backward.site, [backward.retain])))


def _is_last(facts: FileFacts, backward: Backward) -> bool:
    """Can nothing differentiate a part of this graph again?"""
    value = backward.value
    if isinstance(value, Container) or not backward.origins:
        return False
    if backward.create is not None and backward.scope.function is not None and backward.scope.function.parent:
        return False  # the gradient that a nested function returns is differentiated by whoever calls it
    loops = [mark for mark in backward.scope.loops if mark.node is not None]
    given = {origin for origin in backward.origins if isinstance(origin.site.node, cst.Param)}
    made = frozenset(
        o
        for o in backward.origins - given - facts.leaves
        if o in facts.makers or (o in facts.weak_makers and _same_function(backward, o))
    )
    if not made or (given and not loops and _others_anywhere(facts, backward)):
        return False  # what callers hand in may be differentiated by the other backward
    function = backward.scope.function
    if loops and function is not None and not facts.handed_in.get(function, set()).isdisjoint(made):
        return False  # handed in once, differentiated in every iteration
    if any(origin.index == KEPT for origin in backward.origins - facts.leaves):
        return False
    if isinstance(value, Tensor) and (value.carried or not value.carries_graph):
        return False
    if _others(facts, backward) or _feeds_itself(facts, made) or _handed_on(facts, backward, made):
        return False
    if facts.use(made) & (Use.RETURNED | Use.STORED):
        return False
    own = frozenset(o for o in made if o.site is backward.value_site)
    if facts.use(own) & Use.PASSED:
        return False
    unknown = {o for o in backward.origins - facts.leaves - made if isinstance(o.site.node, cst.Call)}
    return all(_inside_loop(backward, origin) for origin in made | unknown)


def _others(facts: FileFacts, backward: Backward) -> bool:
    """Another, later differentiation of a part of the same graph, or of what may be one."""
    shared = backward.origins & (facts.makers | facts.weak_makers)
    shared |= {origin for origin in backward.origins if _is_made_in_the_loop(backward, origin)}
    return any(
        other.site is not backward.site
        and other.origins & shared
        and (other.scope.function is not backward.scope.function or other.order > backward.order)
        for other in facts.backwards
        if other.scope.function is backward.scope.function or other.origins & shared
    )


def _is_made_in_the_loop(backward: Backward, origin: Origin) -> bool:
    """Is it what a call gives in the same iteration: `self.model.base(x)`, if nothing else is known of it?"""
    loops = [mark.site for mark in backward.scope.loops if mark.node is not None and mark.site is not None]
    if not isinstance(origin.site.node, cst.Call) or not _same_function(backward, origin):
        return False
    return not loops or loops[-1].span.contains(origin.site.span)


def _handed_on(facts: FileFacts, backward: Backward, made: frozenset[Origin]) -> bool:
    """Does code out of view get a part of the graph afterwards? `self.critic.step(loss)` may differentiate it."""
    return any(
        call.scope.function is backward.scope.function
        and call.site.piece is backward.site.piece
        and call.site.span.start > backward.site.span.end
        and call.input_origins & made
        for call in facts.weak_calls
    )


def _feeds_itself(facts: FileFacts, made: frozenset[Origin]) -> bool:
    """Does a state come back into the call that made it, with its graph?"""
    calls: list[ModuleCall | WeakCall] = [*facts.module_calls, *facts.weak_calls]
    return any(call.origin in made and any(o.site is call.origin.site for o in call.input_origins) for call in calls)


def _others_anywhere(facts: FileFacts, backward: Backward) -> bool:
    return any(other.scope.function is not backward.scope.function for other in facts.backwards)


def _same_function(backward: Backward, origin: Origin) -> bool:
    function = backward.scope.function
    if origin.site.piece.top is not backward.site.piece.top:
        return False
    return function is None or function.piece.span(function.node).contains(origin.site.span)


def _inside_loop(backward: Backward, origin: Origin) -> bool:
    """Is a new graph built in each iteration of the innermost loop around the backward?"""
    loops = [mark.site for mark in backward.scope.loops if mark.node is not None and mark.site is not None]
    if not loops or not _same_function(backward, origin):
        return True  # made in a function that is called from here
    return loops[-1].span.contains(origin.site.span)
