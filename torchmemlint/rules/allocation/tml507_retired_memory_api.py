"""TML507 retired-memory-api."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Position, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.knowledge.versions import Retirement
from torchmemlint.rules.allocation import retired
from torchmemlint.rules.allocation.retired import RetiredName
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report

_NAMES = (  # the retired names that have to do with memory; when, and what came instead, is in the data file
    "torch.cuda.memory_cached",
    "torch.cuda.max_memory_cached",
    "torch.cuda.reset_max_memory_allocated",
    "torch.cuda.reset_max_memory_cached",
    "torch.cuda.memory.memory_cached",
    "torch.cuda.memory.max_memory_cached",
    "torch.cuda.memory.reset_max_memory_allocated",
    "torch.cuda.memory.reset_max_memory_cached",
    "torch.backends.cuda.sdp_kernel",
)


class RetiredMemoryApi(Rule):
    """A memory function under a name that torch has retired."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield uses of retired names."""
        for use in retired.uses(facts, _NAMES):
            yield report(
                self,
                facts,
                use.span,
                f"`{use.text}` {_since(use.retirement)}: use `{use.retirement.instead}`",
                [Evidence(f"torch says: {use.retirement.says}", use.span)],
                fix=_fix(use),
            )


def _since(retirement: Retirement) -> str:
    if retirement.deprecated is None or retirement.deprecated == (2, 0):
        return "is deprecated"
    return "is deprecated since torch {}.{}".format(*retirement.deprecated)


def _fix(use: RetiredName) -> Fix | None:
    new, (path, _, old) = use.retirement.instead, use.text.rpartition(".")
    if not path or new is None or not use.retirement.same:
        return None
    owner, _, name = new.rpartition(".")
    if use.retirement.name.rpartition(".")[0] not in (owner, f"{owner}.memory"):
        return None  # the successor lives elsewhere
    end = use.span.end
    last = Span(Position(end.row, end.column - len(old)), end)
    return Fix(f"Use `{path}.{name}`", Applicability.SAFE, (Edit(last, name),))
