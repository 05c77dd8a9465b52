"""TML802 hook-never-removed."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.flow.fact.owners import Registered
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class HookNeverRemoved(TellingRule):
    """A module is given another hook each time, and nothing removes one."""

    def tell(self, told: Told) -> Finding:
        """Say what comes to hold more and more hooks."""
        owner = told.callee_of(told.case.place).removesuffix(f".{told.about(Registered).kind}")
        each = "iteration" if told.case.loop is not None else "call"
        return told.finding(
            self,
            f"every {each} adds a hook to `{owner}`, and none is ever removed: all are kept and run",
            [
                told.here("the hook stays, with all that it holds, until `handle.remove()`"),
                *told.around("repeated by this loop, for the same module"),
                *told.called(),
            ],
            hint="Keep the handle, and call `handle.remove()` when the hook has done its work",
        )
