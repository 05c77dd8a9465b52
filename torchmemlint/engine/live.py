"""A file that is being edited: checked as a whole, and between two such checks edit by edit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torchmemlint.engine.checking import Check
from torchmemlint.engine.one_file import Profile, is_relevant, reported
from torchmemlint.findings import Finding
from torchmemlint.flow.project import Project
from torchmemlint.flow.revising import TooMuch
from torchmemlint.syntax.source_module import UprootedNode


class LiveFile:
    """A text that was checked and may change. To be used by one thread."""

    def __init__(self, path: Path, profile: Profile, around: Project) -> None:
        self._path = path
        self._profile = profile
        self._around = around
        self._check: Check | None = None

    @property
    def follows(self) -> bool:
        """May `revise` be asked?"""
        return self._check is not None

    def check(self, text: str, pulse: Callable[[], None], *, relevant: bool) -> list[Finding]:
        """The findings of a whole check. `pulse` is called again and again; what it raises ends the check."""

        def find(codes: frozenset[str]) -> list[Finding]:
            self._check = Check(
                text,
                self._path,
                self._around,
                target=self._profile.target_torch,
                extend=self._profile.extend,
                pulse=pulse,
                nesting=int(self._profile.limits.nesting),
            )
            return self._check.findings(codes)

        return reported(find, text, self._path, self._profile, relevant=relevant).findings

    def revise(self, text: str, pulse: Callable[[], None]) -> list[Finding] | None:
        """The findings of a text that the last one was edited to, from another look at what the edit touched.

        They are those of a whole check as far as the edited function is concerned; what changes for others through it
        they may lack. Of a text that cannot be read that is said, and the next is held against the last that could be.
        None where more changed than one function: it is to be checked as a whole. So it is after any exception.
        """
        check, self._check = self._check, None
        if check is None or not is_relevant(text.encode("utf-8", "surrogatepass"), self._profile.contracts):
            return None

        def find(codes: frozenset[str]) -> list[Finding]:
            check.revise(text, pulse)
            return check.findings(codes)

        try:
            found = reported(find, text, self._path, self._profile, relevant=True).findings
        except (TooMuch, UprootedNode):
            check.release()
            return None
        self._check = check
        return found

    def release(self) -> None:
        """Let go of the file and of all that was read for its sake."""
        if self._check is not None:
            self._check.release()
            self._check = None
        self._around.release()
