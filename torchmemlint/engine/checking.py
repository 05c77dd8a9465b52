"""One decoded text in, the raw findings of the chosen rules out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from torchmemlint.config.contracts import Framework
from torchmemlint.config.limits import MAX_NESTING
from torchmemlint.engine.guarding import guarded
from torchmemlint.engine.run import RuleFailure
from torchmemlint.engine.stack import deep
from torchmemlint.findings import Finding
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.program import Program
from torchmemlint.flow.project import Project
from torchmemlint.knowledge.contracts import contracts
from torchmemlint.rules import cases
from torchmemlint.rules.registry import known
from torchmemlint.source.decoding import LimitReached
from torchmemlint.syntax.source_module import SourceModule
from torchmemlint.syntax.trees import Trees

T = TypeVar("T")


class Check:
    """A text that was read, as long as it may be asked about; `release` ends that.

    `around` gives the context; `additions` are contracts of frameworks besides the linter's own, which count where
    the file stands alone: a project has its own.

    `target` is the oldest torch release that the code supports; None stands for the newest.

    `plugins` names plugins, besides those that are installed, whose rules may be among the codes asked for.

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
        plugins: tuple[str, ...] = (),
        pulse: Callable[[], None] | None = None,
        nesting: int = MAX_NESTING,
        codes: frozenset[str] | None = None,
    ) -> None:
        self._rules = known(plugins)
        self._stops: list[Exception] = []  # what `pulse` has raised
        pulse = None if pulse is None else _watched(pulse, self._stops)
        self._trees = Trees() if around is None else around.files.trees
        self._trees.nesting = nesting
        self._around = around
        self._promised = None if around is not None else contracts(additions)
        self._target = target
        self.facts = self._facts(text, path, pulse)

    def _facts(self, text: str, path: Path, pulse: Callable[[], None] | None) -> FileFacts:
        def known() -> FileFacts:
            program = Program(SourceModule(text, path, trees=self._trees), self._around, self._promised)
            for piece in program.source.pieces:
                piece.refuse_if_deeper(program.outline_of(piece).depth)
            return FileFacts(path, program.source, program, self._target, pulse)

        return _deep(known)

    def findings(self, codes: frozenset[str]) -> list[Finding]:
        """Findings of the rules in `codes`, before suppressions, in order of position."""
        return _deep(lambda: self._findings(codes))

    def _findings(self, codes: frozenset[str]) -> list[Finding]:
        facts = self.facts
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

    def release(self) -> None:
        """Let go of the text's trees, without waiting for the garbage collector."""
        for piece in self.facts.source.pieces:
            piece.release()


def check_text(
    text: str,
    path: Path,
    codes: frozenset[str],
    around: Project | None = None,
    *,
    additions: tuple[Framework, ...] = (),
    target: str | None = None,
    plugins: tuple[str, ...] = (),
    pulse: Callable[[], None] | None = None,
    nesting: int = MAX_NESTING,
    ask: Callable[[FileFacts], None] = lambda facts: None,
) -> list[Finding]:
    """The findings of a `Check` that nothing more is asked of but by `ask`, before."""
    check = Check(
        text,
        path,
        around,
        additions=additions,
        target=target,
        plugins=plugins,
        pulse=pulse,
        nesting=nesting,
        codes=codes,
    )
    try:
        _deep(lambda: ask(check.facts))
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
