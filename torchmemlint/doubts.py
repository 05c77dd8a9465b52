"""Doubts: what could not be determined, in words for those who read the report."""

from __future__ import annotations

import enum
from collections.abc import Iterable


class Doubt(enum.Enum):
    """A reason why a finding may be wrong, as a sentence."""

    NETWORK_BY_USE = "the class of the network was not seen, only how it is used"
    METHOD = "the method was not seen, and may return something other than a tensor with a graph"
    FORMULA = "the value is computed from another network's output, and may be a formula without parameters"
    TENSOR_BY_USE = "what the value is was not seen, only that it is used like a tensor with a graph"
    PASSED_ON = "the value goes through code that was not seen, which is assumed to keep the graph"
    UNSEEN_CALL = "the value goes through a call that was not seen, which may return something without a graph"
    MODE = "a value decides whether gradients are enabled here"
    CALLER = "a caller outside this project may call backward on the result"
    EVALUATED = "the network is in eval mode, but code that was not seen may call backward on the result"
    EVALUATED_ONCE = (
        "the network is in eval mode for a single pass, and code that was not seen may call backward on the result"
    )
    PART = "the value is one part of a result, and it was not seen whether that part has a graph"
    AMONG = "backward runs on the value together with others, and the graph may belong to one of those"
    BESIDE = (
        "backward runs on the value together with other parts of one result, and the graph may belong to one of those"
    )
    GIVEN = "the result is handed to code that was not seen"
    HANDED = "the result is detached, but also handed to code that was not seen"
    UNDIFFERENTIATED = "no backward was seen: callers may run this with gradients disabled"
    BASE = "a base class that was not seen calls this method, perhaps with gradients disabled"
    UNCALLED = "nothing in this project calls this method: its callers may disable gradients"
    UNMADE = "nothing in this project creates an object of this class, so its arguments were not seen"
    BY_NAME = "the object that the method is called on was not seen, and may be of another class"
    MENTIONED = "other code refers to this function, and may disable gradients around it"
    ROLE = "the function looks like evaluation or prediction, because it trains nothing"
    INSIDE = "some networks of this project call backward inside forward, and this may be one of them"
    TURN = "the framework disables gradients for networks that it is not training at the time"
    READER = "code that was not seen may read the value and call backward on it"
    TRAINER = "code that was not seen gets the graph later, and may call backward on it again"
    GRADIENTS = "the gradients have a graph, and code that was not followed may call backward on it"
    OPTIMIZER = "an optimizer steps here, but it was not seen which parameters it holds"
    ORIGIN = "it was not seen where the network is created: it may be frozen there, or trained"
    FREEZER = "code that was not seen gets the network or its optimizer, and may freeze or train it"
    BATCHES = "it was not seen whether each iteration works on its own batch"
    LAYERS = "the loop is in the code of a network, and may run over its layers in one pass"
    STATE = "the class of the network was not seen: it may keep a state, with its graph, for the next iteration"
    ITEM = "the value is stored in an object that was not seen, which may be another one next time"
    RESET = "what holds the graphs is emptied or replaced, but only under a condition"
    CUT = "the code that leads here was too long to be followed to its end"
    ORDER = "a value decides whether samples are read in order, in which case the workers share one copy"
    HEAD = "the class of the network was not seen: it may already compute only the logits that are used"
    INTENDED = "the later read may want the new value"
    LITTLE = "saves less than 64 KiB, by the sizes in the source"
    SIZE = "only worth a change where much is at stake, and nothing in the source shows that it is"
    UNSEEN_INPUT = "a caller that was not seen decides whether the argument has a graph"
    CHOICE = "a value decides what is stored there: it may be something else"
    COLLECTED = "the garbage collector may run often enough to free the memory in time"
    WANTED = "the value may be kept on purpose, for code that was not seen"
    PENDING = "another value is computed from the result, and nothing uses it yet: the code that does may be missing"
    LATER = "what happens to the network later was seen only in part: its parameters may be read or saved"
    ENVIRONMENT = "the environment that the program is started with was not seen, and may set the allocator up"
    ONCE = "nothing in this project calls this function repeatedly: it may run only once"

    @property
    def label(self) -> str:
        """Its name in reports, as rules have theirs."""
        return self.name.lower().replace("_", "-")

    def to_json(self) -> dict[str, str]:
        """As JSON's types."""
        return {"name": self.label, "message": self.value}


class Confidence(enum.Enum):
    """How sure a finding is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"

    @property
    def rank(self) -> int:
        """0 for possible, 1 for likely, 2 for certain."""
        return ("possible", "likely", "certain").index(self.value)


class Claim(enum.Enum):
    """What a finding claims: doubts weigh differently for each."""

    KEPT = "a graph is kept"
    SPENT = "a graph is kept through which backward has run"
    WASTED = "a pass records one for nothing"
    BACKWARD = "a backward pass keeps or waits for more than it needs"
    HELD = "something is held that nothing needs"


OF_WORTH = frozenset({Doubt.LITTLE, Doubt.SIZE, Doubt.COLLECTED, Doubt.LATER})
"""Doubts whether what is found is worth a change, not whether it is so."""


_LIKELY = frozenset(
    {Doubt.NETWORK_BY_USE, Doubt.PASSED_ON, Doubt.GIVEN, Doubt.BESIDE, Doubt.BY_NAME, Doubt.HEAD, Doubt.STATE}
)
_SLIGHT = frozenset({Doubt.EVALUATED, Doubt.HANDED})  # with one of those, a finding is still likely


# With what findings were nearly never right (docs/precision.md has the figures) they are guesses, and not told.
_GUESSES_OF_KEPT = frozenset(  # whether there is a graph at all, whether others need it, what the rest of the run does
    {
        Doubt.METHOD,
        Doubt.TENSOR_BY_USE,
        Doubt.UNSEEN_CALL,
        Doubt.PART,
        Doubt.AMONG,
        Doubt.CALLER,
        Doubt.READER,
        Doubt.CUT,
        Doubt.LAYERS,
    }
)
_GUESSES_OF_SPENT = _GUESSES_OF_KEPT - {Doubt.CUT}  # nothing that follows can differentiate it once more
_GUESSES_OF_PASSES = (
    frozenset({Doubt.METHOD}),  # most methods of networks that are not forward compute other things
    frozenset({Doubt.MODE}),  # who has a switch for gradients turns them off to evaluate
    frozenset({Doubt.UNDIFFERENTIATED}),  # only what nothing calls runs it with gradients
    frozenset({Doubt.ROLE, Doubt.BASE}),  # and so does a framework that has a method for it
    frozenset({Doubt.UNCALLED}),  # who writes a method for others calls it without gradients, if at all
    frozenset({Doubt.MENTIONED}),  # who runs what is not seen to be trained turns gradients off
    frozenset({Doubt.INSIDE, Doubt.NETWORK_BY_USE}),  # nothing was seen of what may differentiate
    frozenset({Doubt.CUT, Doubt.UNMADE}),  # neither is it seen what becomes of it there, nor who calls
    frozenset({Doubt.CUT, Doubt.BASE}),
    frozenset({Doubt.CUT, Doubt.EVALUATED}),
)
_GUESSES_OF_BACKWARDS = frozenset(  # what else comes of the graph, or whether one step needs all that it waits for
    {
        Doubt.METHOD,
        Doubt.PART,
        Doubt.UNSEEN_CALL,
        Doubt.GRADIENTS,
        Doubt.BATCHES,
        Doubt.LAYERS,
        Doubt.CUT,
    }
)


def confidence(doubts: frozenset[Doubt]) -> Confidence:
    """Return the confidence of a finding with these doubts."""
    if not doubts:
        return Confidence.CERTAIN
    serious = doubts - _SLIGHT
    return Confidence.LIKELY if len(serious) <= 1 and serious <= _LIKELY else Confidence.POSSIBLE


def is_sure(doubts: Iterable[Doubt]) -> bool:
    """Is what a finding says beyond doubt, whatever it is worth? Only then its fix is safe."""
    return OF_WORTH.issuperset(doubts)


def is_guess(doubts: frozenset[Doubt], claim: Claim) -> bool:
    """Is a finding with these doubts none?"""
    if confidence(doubts) is not Confidence.POSSIBLE:
        return False
    if claim is Claim.WASTED:
        return any(guess <= doubts for guess in _GUESSES_OF_PASSES)
    if claim is Claim.BACKWARD:
        return not doubts.isdisjoint(_GUESSES_OF_BACKWARDS)
    if claim is Claim.HELD:
        return Doubt.WANTED in doubts  # who holds it may have a reason that was not seen
    guesses = _GUESSES_OF_SPENT if claim is Claim.SPENT else _GUESSES_OF_KEPT
    return len(doubts - _SLIGHT) > 1 or not doubts.isdisjoint(guesses)


def ordered(doubts: Iterable[Doubt]) -> tuple[Doubt, ...]:
    """Return these doubts, each once, in the order in which `Doubt` lists them."""
    found = set(doubts)
    return tuple(doubt for doubt in Doubt if doubt in found)


def rank(doubts: frozenset[Doubt]) -> tuple[int, int, list[str]]:
    """Return a key by which the surest of several sets of doubts is the least."""
    return -confidence(doubts).rank, len(doubts), sorted(doubt.name for doubt in doubts)
