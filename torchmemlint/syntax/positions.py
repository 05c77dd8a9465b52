"""Where the nodes of a libcst tree stand, without the metadata wrapper's deep copy of the tree."""

from __future__ import annotations

from types import TracebackType
from typing import TypeAlias

import libcst as cst
from libcst._nodes.internal import CodegenState

_Place: TypeAlias = tuple[int, int]  # row, counted from 1, and column, from 0
CodeRanges: TypeAlias = dict[int, tuple[_Place, _Place, cst.CSTNode]]  # by the node's identity: nodes hash slowly


def code_ranges(module: cst.Module) -> CodeRanges:
    """Start and end of every node of a tree that no node occurs in twice (as parsing makes them)."""
    recorder = _Recorder(module)
    module._codegen(recorder)
    return recorder.ranges


class _Recorder(CodegenState):
    """Writes a tree out, and notes where: what `PositionProvider` does, in a third of the time.

    A node stands where it says that its syntax does (`record_syntactic_position`), and other nodes, with their blanks,
    from where they begin to be written to where that ends.
    """

    __slots__ = ("column", "line", "ranges", "starts")

    def __init__(self, module: cst.Module) -> None:
        super().__init__(module.default_indent, module.default_newline, tokens=[""])  # not empty, as far as it is told
        self.line = 1
        self.column = 0
        self.starts: list[_Place] = []  # of the nodes being written
        self.ranges: CodeRanges = {}

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.add_token(token)

    def add_token(self, value: str) -> None:
        if "\n" not in value and "\r" not in value:
            self.column += len(value)
            return
        lines = value.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self.line += len(lines) - 1
        self.column = len(lines[-1])

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.starts.append((self.line, self.column))

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self.starts.pop()
        if id(node) not in self.ranges:
            self.ranges[id(node)] = (start, (self.line, self.column), node)

    def record_syntactic_position(  # type: ignore[override]
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _Syntactic:
        return _Syntactic(self, node, start_node, end_node)


class _Syntactic:
    """While the syntax of a node is written, without the blanks around it."""

    __slots__ = ("first", "last", "node", "recorder", "start")

    def __init__(
        self, recorder: _Recorder, node: cst.CSTNode, first: cst.CSTNode | None, last: cst.CSTNode | None
    ) -> None:
        self.recorder, self.node, self.first, self.last = recorder, node, first, last

    def __enter__(self) -> None:
        self.start = (self.recorder.line, self.recorder.column)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        recorder, ranges = self.recorder, self.recorder.ranges
        start = ranges[id(self.first)][0] if self.first is not None else self.start
        end = ranges[id(self.last)][1] if self.last is not None else (recorder.line, recorder.column)
        ranges[id(self.node)] = (start, end, self.node)
