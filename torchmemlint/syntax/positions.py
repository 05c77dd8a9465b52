"""Where the nodes of a libcst tree stand, without the metadata wrapper's deep copy of the tree."""

from __future__ import annotations

from typing import TypeAlias

import libcst as cst
from libcst.metadata import CodePosition, CodeRange, PositionProvider
from libcst.metadata.position_provider import PositionProvidingCodegenState

CodeRanges: TypeAlias = dict[cst.CSTNode, tuple[CodePosition, CodePosition]]


class _Recorder(PositionProvider):
    """Collects positions while the tree is written out once."""

    def record(self, module: cst.Module) -> CodeRanges:
        state = PositionProvidingCodegenState(
            default_indent=module.default_indent, default_newline=module.default_newline, provider=self
        )
        module._codegen(state)
        return {
            node: (found.start, found.end) for node, found in self._computed.items() if isinstance(found, CodeRange)
        }


def code_ranges(module: cst.Module) -> CodeRanges:
    """Start and end of every node of a tree that no node occurs in twice (as parsing makes them).

    Lines count from 1, columns from 0.
    """
    return _Recorder().record(module)
