"""All programs."""

from __future__ import annotations

from . import Program, read
from .containers import CONTAINERS
from .control import CONTROL
from .functions import FUNCTIONS
from .hooks import HOOKS
from .modes import MODES
from .objects import OBJECTS
from .operations import OPERATIONS
from .projects import PROJECTS
from .states import STATES
from .sums import SUMS

TABLES = (SUMS, STATES, CONTAINERS, OPERATIONS, CONTROL, FUNCTIONS, OBJECTS, MODES, HOOKS, PROJECTS)


def programs() -> list[Program]:
    """Every program, with the twins."""
    return [program for table in TABLES for name, text in table.items() for program in read(name, text)]
