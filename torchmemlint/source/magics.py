"""What is Python in the text of a notebook's cell, row by row.

IPython's commands (magics, shell lines, questions) are no Python. A row that stands for one ends in a comment that
stands for no other row of the cell, so that it can be told, when the program was changed, which row of the cell it is.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache

from torchmemlint.findings import Position
from torchmemlint.immutable import immutable

NEWLINE = re.compile(r"\r\n|\r|\n")
_WHOLE_CELL = re.compile(r"%%(?P<name>\w+)(?!\w*\?)")
# Cell magics whose cell is Python that runs in the notebook's own name space.
_PYTHON_CELLS = frozenset("capture debug ipytest memit mprun prun scalene snakeviz time timeit wandb".split())
_COMMAND = re.compile(r"(?P<indent>\s*)(?=\S)(?:[%!?,;/].*|[^#]*[\w*\]]\?{1,2}\s*)$")
_ASSIGNED_COMMAND = re.compile(r"(?P<target>[^=#]*[^=#!<>+\-*/%&|^@:\s]\s*=\s*)(?:!|%[^\W\d]).*$")
# Of a cell of one row IPython looks for these before it looks for Python ("automagic").
_BARE_COMMAND = re.compile(
    r"(?:cat|cd|clear|conda|config|cp|env|less|load|load_ext|ls|mamba|man|matplotlib|micromamba|mkdir|more|mv|pip|pwd"
    r"|reload_ext|rm|rmdir|run|uv)\s"
)
_EARLIER_COMMAND = re.compile(r"\s*[%!?]")
_UNENDED = "expected 'except' or 'finally' block"
_TIMED = re.compile(r"(?P<magic>\s*%time\s+)(?P<statement>[^\s%!?-].*)$")
_PROMPT = re.compile(r"\s*>>>|In \[\d+\]: ")
_PROMPTS = re.compile(r"\s*(?:>>>|\.\.\.)(?![:.])[ \t]?|In \[\d+\]: |\s*\.{3,}: ?")
_NO_ROWS: Mapping[str, str] = {}


@immutable()
class Problem:
    """Why a cell cannot be read, and where in it."""

    message: str
    position: Position


@immutable()
class PythonCell:
    """The Python of a cell: as many rows as the cell has."""

    rows: tuple[str, ...]
    own: tuple[str, ...]  # the rows of the cell itself
    stand_ins: Mapping[str, str] = field(default_factory=lambda: _NO_ROWS)  # rows that stand for rows of the cell
    offsets: Mapping[int, int] = field(default_factory=dict)  # characters left out at the beginning of a row, from 0
    margin: str = ""  # the same for all rows, which new ones need, too
    rigid: bool = False  # nothing in it can be changed
    problem: Problem | None = None


@lru_cache(maxsize=256)  # of the cells of a notebook that is being written, one changes
def python_of(cell: str) -> PythonCell:
    """The Python of the text of a cell."""
    own = tuple(NEWLINE.split(cell))
    margin = _margin(own)
    rows = [row[len(margin) :] if row.strip() else row for row in own]
    head = next((number for number, row in enumerate(rows) if row.strip()), 0)
    magic = _WHOLE_CELL.match(rows[head])
    if magic is not None and magic["name"] not in _PYTHON_CELLS:
        return PythonCell(("",) * len(own), own, rigid=True)
    if magic is not None and head + 1 < len(rows):
        return _below(own, head + 1, margin, python_of("\n".join(rows[head + 1 :])))
    reading = _Reading(rows, margin)
    if magic is not None:
        reading.stand_in(head, "", own[head])
    problem = reading.read(own)
    if problem is not None and _PROMPT.match(rows[head]):
        return _prompted(own, problem)
    if problem is not None:
        problem = None if _below_comments(own) else problem
        return PythonCell(("",) * len(own), own, rigid=True, problem=problem)
    offsets = {number: len(margin) for number, row in enumerate(own) if row.strip()} if margin else {}
    offsets.update(reading.offsets)
    return PythonCell(tuple(reading.rows), own, reading.stand_ins, offsets, margin)


def _below_comments(rows: Sequence[str]) -> bool:
    """Is the cell another language's by a magic below comments: what Google's Colab lets pass, and IPython does not?"""
    first = next((row for row in rows if row.strip() and not row.lstrip().startswith("#")), "")
    magic = _WHOLE_CELL.match(first.lstrip())
    return magic is not None and magic["name"] not in _PYTHON_CELLS


def _below(own: tuple[str, ...], first: int, margin: str, body: PythonCell) -> PythonCell:
    """A cell whose rows from `first` on are a cell themselves, which the magic above them runs."""
    problem = body.problem
    if problem is not None:
        problem = Problem(problem.message, Position(problem.position.row + first, problem.position.column))
    before = _Reading(list(own[:first]), "")
    for number in range(first):
        before.stand_in(number, "", own[number])
    stand_ins = {row: margin + old if old.strip() else old for row, old in body.stand_ins.items()}
    offsets = {first + number: len(margin) + offset for number, offset in body.offsets.items()}
    if margin:
        offsets.update({n: len(margin) for n in range(first, len(own)) if own[n].strip() and n not in offsets})
    return PythonCell(
        (*before.rows, *body.rows),
        own,
        {**before.stand_ins, **stand_ins},
        offsets,
        margin + body.margin,
        body.rigid,
        problem,
    )


def _margin(rows: Sequence[str]) -> str:
    """The indentation that all rows of a cell have, which IPython takes off."""
    first = next((row for row in rows if row.strip()), "")
    if first[:1] not in (" ", "\t"):
        return ""
    dedented = textwrap.dedent("\n".join(rows)).split("\n")
    number = rows.index(first)
    return first[: len(first) - len(dedented[number])]


def _prompted(own: tuple[str, ...], problem: Problem) -> PythonCell:
    """A cell that was copied with the prompts of a session."""
    found = [_PROMPTS.match(row) for row in own]
    offsets = {number: match.end() for number, match in enumerate(found) if match is not None}
    reading = _Reading([row[offsets.get(number, 0) :] for number, row in enumerate(own)], "")
    if reading.read(own) is not None:
        return PythonCell(("",) * len(own), own, rigid=True, problem=problem)
    return PythonCell(tuple(reading.rows), own, offsets=offsets, rigid=True)


class _Reading:
    """The rows of a cell while what is no Python in them is replaced."""

    def __init__(self, rows: list[str], margin: str) -> None:
        self.rows = rows
        self.stand_ins: dict[str, str] = {}
        self.offsets: dict[int, int] = {}
        self._margin = margin
        self._written = frozenset(rows)
        self._done: set[int] = set()

    def read(self, own: Sequence[str]) -> Problem | None:
        """Replace the commands; why the rest cannot be read, if it cannot.

        A `%` may be an operator and a `!` stand in a string: only where Python cannot go on is it a command.
        """
        while (problem := problem_of(self.rows)) is not None:
            row = problem.position.row - 1
            if not (0 <= row < len(self.rows) and self._replace(row, own)):
                # What a command leaves open, a quotation mark say, Python sees the end of further down only.
                earlier = range(min(row, len(self.rows)))
                if not any(self._may_begin(one) and self._replace(one, own) for one in earlier):
                    return None if self._is_bare_command(own) else problem
        return None

    def _is_bare_command(self, own: Sequence[str]) -> bool:
        """Replace the only row where it is a command without a sign."""
        alone = [number for number, row in enumerate(self.rows) if row.strip()]
        if len(alone) != 1 or not _BARE_COMMAND.match(self.rows[alone[0]]):
            return False
        self.stand_in(alone[0], "pass  ", own[alone[0]])
        return True

    def stand_in(self, number: int, text: str, own: str) -> None:
        """Have a row of Python stand for one of the cell's own rows."""
        mark = zlib.crc32(own.encode("utf-8", "surrogatepass"))
        while (row := f"{text}#{mark:08x}") in self._written or self.stand_ins.get(row, own) != own:
            mark += 1
        self.rows[number] = row
        self.stand_ins[row] = own
        self._done.add(number)

    def _may_begin(self, number: int) -> bool:
        """Does a row look like a command, where a statement may begin?"""
        row = self.rows[number]
        match = _EARLIER_COMMAND.match(row) or _ASSIGNED_COMMAND.match(row)
        if match is None or number in self._done:
            return False
        indent = row[: len(row) - len(row.lstrip())]
        problem = problem_of([*self.rows[:number], f"{indent}pass"])
        return problem is None or _UNENDED in problem.message  # within a `try`, whose end is further down

    def _replace(self, number: int, own: Sequence[str]) -> bool:
        """Replace the command that a row holds; False where it holds none."""
        row = self.rows[number]
        if number in self._done:
            return False
        if (timed := _TIMED.match(row)) and not row.endswith("\\") and problem_of([timed["statement"]]) is None:
            indent = row[: len(row) - len(row.lstrip())]
            self.offsets[number] = len(self._margin) + len(timed["magic"]) - len(indent)
            self.stand_in(number, f"{indent}{timed['statement']}  ", own[number])
            return True
        if command := _COMMAND.match(row):
            plain = f"{command['indent']}pass  "
        elif command := _ASSIGNED_COMMAND.match(row):
            plain = f"{command['target']}get_ipython()  "
        else:
            return False
        last = number
        while last + 1 < len(self.rows) and self.rows[last].endswith("\\"):
            last += 1
        self.stand_in(number, plain, own[number])
        for continued in range(number + 1, last + 1):
            self.stand_in(continued, "", own[continued])
        return True


def problem_of(rows: Sequence[str]) -> Problem | None:
    """What Python cannot read in these rows; None where it reads all."""
    text = "\n".join(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text if text.endswith("\n") else text + "\n")  # after a `\`, another line end would make it whole
        except SyntaxError as error:
            row, column = error.lineno or 1, error.offset or 1
            return Problem(f"Syntax error: {error.msg}", Position(min(max(row, 1), len(rows)), max(column, 1)))
        except (RecursionError, MemoryError):
            return Problem("Nested too deeply to be parsed", Position(1, 1))
        except ValueError as error:  # a null byte, half a surrogate pair
            return Problem(f"Cannot be parsed: {error}", Position(1, 1))
    return None
