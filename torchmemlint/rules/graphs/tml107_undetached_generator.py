"""TML107 undetached-generator."""

from __future__ import annotations

from dataclasses import replace

from torchmemlint.doubts import Confidence
from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.flow.domain.manners import Stored
from torchmemlint.flow.fact.outcomes import Discarding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import detach_fix
from torchmemlint.rules.guarding import without_gradients
from torchmemlint.rules.told import Told
from torchmemlint.syntax.source_module import Site


class UndetachedGenerator(TellingRule):
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
    Safe where all of this was seen: the samples keep their values, and the gradients that are no longer computed were
    zeroed unread. Where only the discriminator's step uses the samples, they are made under `no_grad`; otherwise what
    the discriminator is given is detached, and a `retain_graph=True` that only the generator's graph needed is removed.
    Unsafe where what is detached could be something other than a tensor. Not applied where a penalty differentiates
    with respect to the samples, or where it was not seen which argument has the graph.

    ## When it stays silent
    - The samples are detached, the generator is frozen or runs without gradients.
    - Its optimizer steps, or could step, before its gradients are zeroed (one combined step, gradient reversal).
    - One optimizer holds both networks.
    - No optimizer was seen that holds the generator.

    The finding is only possible, and not shown by default, where

    - an optimizer steps, and it was not seen whose parameters it holds;
    - code that was not seen is given the generator or its optimizer, and may freeze it;
    - a framework freezes networks in turn (`toggle_optimizer`).

    ## References
    - [PyTorch: DCGAN tutorial](https://pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html)
    """

    code = "TML107"
    name = "undetached-generator"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    why = "the generator's activations are kept, and differentiated, for gradients that nobody uses"

    def tell(self, told: Told) -> Finding:
        """Say into which networks backward goes on."""
        case, how = told.case, told.about(Discarding)
        assert case.backward is not None
        makers = " and ".join(f"`{told.text_of(place)}`" for place in case.graphs[:2])
        return told.finding(
            self,
            f"`{told.text_of(case.place)}` back-propagates into {makers}, whose gradients are zeroed unused",
            [
                *told.begun(),
                told.link(case.backward, "backward runs through both networks"),
                told.link(how.step, "this step does not use the gradients of the first network"),
                told.link(how.zeroed, "they are zeroed here, before its own optimizer steps"),
                *told.called(),
            ],
            fix=_fix(told),
        )


def _fix(told: Told) -> Fix | None:
    """Generate without gradients where nothing else wants the graph, or detach what the discriminator is given."""
    how, certain = told.about(Discarding), told.confidence is Confidence.CERTAIN
    if how.alone is not None and how.alone.path == told.facts.path:
        made = Told(told.facts, replace(told.case, place=how.alone))
        if not made.statement.contains(told.span):
            return without_gradients(made, wholly=False)
    given, call = how.argument, told.call
    value = call.given_at(given.position) if call is not None and given is not None else None
    if call is None or given is None or value is None:
        return Fix("Detach what is passed, and call `requires_grad_()` on it where its gradient is wanted", _HINT)
    fix = detach_fix(Site(call.piece, value), safe=certain and given.stored is Stored.TENSOR)
    return replace(fix, edits=(*fix.edits, *_without_retaining(told)))


def _without_retaining(told: Told) -> tuple[Edit, ...]:
    """Take `retain_graph=True` out of a backward that kept the graph for the generator's sake alone."""
    call = told.call_at(told.case.backward)
    return call.without("retain_graph") if call is not None and told.about(Discarding).spares else ()


_HINT = Applicability.HINT
