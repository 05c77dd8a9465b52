"""All programs."""

from __future__ import annotations

from . import Program, read
from .bounded import BOUNDED
from .caches import CACHES
from .closing import CLOSING
from .collecting import COLLECTING
from .containers import CONTAINERS
from .control import CONTROL
from .deferred import DEFERRED
from .discarded import DISCARDED
from .failing import FAILING
from .frameworks import FRAMEWORKS
from .functions import FUNCTIONS
from .hooks import HOOKS
from .keeping_more import KEEPING_MORE
from .libraries import LIBRARIES
from .lives import LIVES
from .loading import LOADING
from .modes import MODES
from .needed import NEEDED
from .objects import OBJECTS
from .operations import OPERATIONS
from .parts import PARTS
from .passes import PASSES
from .past_autograd import PAST_AUTOGRAD
from .placing import PLACING
from .practice import PRACTICE
from .projects import PROJECTS
from .retained import RETAINED
from .serving import NOT_SERVING, SERVING
from .spent import SPENT
from .states import STATES
from .sums import SUMS
from .torch_things import TORCH_THINGS
from .trainers import TRAINERS
from .uncalled import UNCALLED
from .unseen import UNSEEN
from .untrained import UNTRAINED
from .workers import WORKERS

LARGER = (
    *(SUMS, STATES, CACHES, CONTAINERS, BOUNDED, KEEPING_MORE, CONTROL, FUNCTIONS, OBJECTS, LIVES),
    *(MODES, PASSES, HOOKS, LIBRARIES, PARTS, TORCH_THINGS, FRAMEWORKS, PRACTICE, PROJECTS, UNCALLED, UNSEEN),
    *(NEEDED, UNTRAINED, SPENT, RETAINED, DISCARDED, DEFERRED, WORKERS),
)
BESIDE = (CLOSING, PAST_AUTOGRAD, COLLECTING, TRAINERS, FAILING, SERVING, NOT_SERVING, LOADING, PLACING)


def programs() -> list[Program]:
    """Every program, with the twins."""
    return larger() + _all_of(OPERATIONS)


def larger() -> list[Program]:
    """Programs that differ by more than one expression."""
    return [program for table in LARGER for program in _all_of(table)]


def beside() -> list[Program]:
    """Programs for rules that are off by default."""
    return [program for table in BESIDE for program in _all_of(table)]


def _all_of(table: dict[str, str]) -> list[Program]:
    return [program for name, text in table.items() for program in read(name, text)]
