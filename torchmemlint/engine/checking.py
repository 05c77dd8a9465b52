"""One decoded text in, the raw findings of the chosen rules out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from torchmemlint.config.contracts import Framework
from torchmemlint.config.limits import MAX_NESTING
from torchmemlint.engine.guarding import RuleFailure, guarded
from torchmemlint.engine.stack import deep
from torchmemlint.findings import Finding
from torchmemlint.flow import revising
from torchmemlint.flow.analysis import Analysis, analysis
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.project import Project
from torchmemlint.flow.revising import TooMuch
from torchmemlint.knowledge.contracts import contracts
from torchmemlint.rules import cases
from torchmemlint.rules.registry import known
from torchmemlint.source.decoding import LimitReached
from torchmemlint.syntax.source_module import SourceModule
from torchmemlint.syntax.trees import Trees, UnlikeTree

T = TypeVar("T")


class Check:
    """A text that was analysed, as long as it may be asked about or changed; `release` ends that.

    `around` gives the context; `additions` are contracts of frameworks besides the linter's own, which count where
    the file stands alone: a project has its own.

    `target` is the oldest torch release that the code supports; None stands for the newest.

    `extend` names plugins, besides those that are installed, whose rules may be among the codes asked for.

    `pulse` is called again and again on the way; what it raises ends the check and is passed on. `nesting` is how deep
    statements and expressions may be in each other. `codes`: the only ones that are asked for; None for any.

    Raises UnreadableFile where the text is not Python 3, or nested too deeply.
    """

    def __init__(
        self,
        text: str,
        path: Path,
        around: Project | None = None,
        *,
        additions: tuple[Framework, ...] = (),
        target: str | None = None,
        extend: tuple[str, ...] = (),
        pulse: Callable[[], None] | None = None,
        nesting: int = MAX_NESTING,
        codes: frozenset[str] | None = None,
    ) -> None:
        self._rules = known(extend)
        self._stops: list[Exception] = []  # what `pulse` has raised
        pulse = None if pulse is None else _watched(pulse, self._stops)
        self._trees = Trees() if around is None else around.files.trees
        self._trees.nesting = nesting
        self._around = around
        self._promised = None if around is not None else contracts(additions)
        self._target = target
        self._analysis = self._analysed(text, path, pulse)

    def _analysed(self, text: str, path: Path, pulse: Callable[[], None] | None) -> Analysis:
        def analysed() -> Analysis:
            known = self._around.parsed(path, text) if self._around is not None else None
            source = SourceModule(text, path, trees=self._trees, like=known)
            return analysis(source, self._around, self._promised, pulse)

        try:
            found = _deep(analysed)
        except UnlikeTree as unlike:
            self._distrust(unlike)
            return self._analysed(text, path, pulse)
        found.facts.target_torch = self._target
        found.facts.pulse = pulse
        return found

    def _distrust(self, unlike: UnlikeTree) -> None:
        """Have libcst parse a piece, in the file itself or in one of its context."""
        self._trees.distrust(unlike)
        if self._around is not None:
            self._around.let_go(unlike.path)

    def findings(self, codes: frozenset[str]) -> list[Finding]:
        """Findings of the rules in `codes`, before suppressions, in order of position."""
        try:
            return _deep(lambda: self._findings(codes))
        except UnlikeTree as unlike:
            self._distrust(unlike)
            known = self._analysis
            self._analysis = self._analysed(known.facts.source.text, known.facts.path, known.interpreter.pulse)
            return self.findings(codes)

    def _findings(self, codes: frozenset[str]) -> list[Finding]:
        facts = self._analysis.facts
        found = [finding for code in sorted(codes) for finding in self._of_rule(code, facts)]
        found = [finding for finding in found if finding.filename == facts.path]  # the others are their own file's
        found += cases.findings(facts, codes, found)
        return sorted(found, key=lambda f: (f.span, f.code))

    def _of_rule(self, code: str, facts: FileFacts) -> Iterable[Finding]:
        rule, plugin = self._rules.by_code[code], self._rules.brought_by.get(code)
        if plugin is None:
            return rule.check(facts)
        try:
            return guarded(rule, plugin, facts)
        except RuleFailure as failure:
            for stop in self._stops:
                if failure.__cause__ is stop:
                    raise stop from None
            raise

    def revise(self, text: str, pulse: Callable[[], None]) -> None:
        """Look at what an edit has changed. Raises what `flow.revising.revise` raises."""
        try:
            deep(lambda: revising.revise(self._analysis, text, _watched(pulse, self._stops)))
            self._analysis.facts.forget_cases()
        except (RecursionError, UnlikeTree):
            raise TooMuch from None

    def release(self) -> None:
        """Let go of the text, and of its context where that has become large."""
        program = self._analysis.facts.program
        if self._around is not None:
            self._around.keep_sketch(program)
            self._around.trim()
        program.release()


def check_text(
    text: str,
    path: Path,
    codes: frozenset[str],
    around: Project | None = None,
    *,
    additions: tuple[Framework, ...] = (),
    target: str | None = None,
    extend: tuple[str, ...] = (),
    pulse: Callable[[], None] | None = None,
    nesting: int = MAX_NESTING,
) -> list[Finding]:
    """The findings of a `Check` that nothing more is asked of."""
    check = Check(
        text,
        path,
        around,
        additions=additions,
        target=target,
        extend=extend,
        pulse=pulse,
        nesting=nesting,
        codes=codes,
    )
    try:
        return check.findings(codes)
    finally:
        check.release()


def _watched(pulse: Callable[[], None], stops: list[Exception]) -> Callable[[], None]:
    """The same, but what it raises is known again.

    The analysis keeps it: it must not lead to the `Check`, or only the garbage collector could take both away.
    """

    def watched() -> None:
        try:
            pulse()
        except Exception as stop:
            stops.append(stop)
            raise

    return watched


def _deep(work: Callable[[], T]) -> T:
    """`deep`, for what is to be said of the file where that is not deep enough."""
    try:
        return deep(work)
    except RecursionError:
        raise LimitReached("nesting", "it is nested too deeply to be analysed") from None
