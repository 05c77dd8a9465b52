"""Doubts: what could not be determined, in words for those who read the report."""

from __future__ import annotations

import enum
from collections.abc import Iterable


class Doubt(enum.Enum):
    """A reason why a finding may be wrong, as a sentence."""

    NETWORK_BY_USE = "taken for a network because of the methods that are called on it"
    METHOD = "a method of a network is called that was not seen: it may give something other than a tensor with a graph"
    FORMULA = "it is computed from what another network gave, and may be a formula without parameters"
    TENSOR_BY_USE = "taken for a tensor with a graph because of how its result is used"
    PASSED_ON = "what passes it on was not seen and is taken to keep the graph"
    UNSEEN_CALL = "a call that was not seen is given the graph, and may give something else"
    MODE = "a value decides whether gradients are enabled here"
    CALLER = "a caller outside this project may differentiate it"
    EVALUATED = (
        "the network is in evaluation mode for a task, but code that was not seen may differentiate what it gives"
    )
    EVALUATED_ONCE = "the network is in evaluation mode, but code that was not seen may differentiate what a pass gives"
    PART = "it is a part of a result, and whether that part has a graph was not seen"
    AMONG = "it is differentiated together with other values, and one of those may be the one with the graph"
    BESIDE = (
        "it is differentiated together with other parts of one result, and one of those may be the one with the graph"
    )
    GIVEN = "it is handed to code that was not seen"
    HANDED = "it is detached, but also handed to code that was not seen"
    UNDIFFERENTIATED = "nothing that was seen differentiates it: callers may run it with gradients disabled"
    BASE = "a base class that was not seen calls it, perhaps with gradients disabled"
    UNCALLED = "nothing in this project calls this method of a network: who does may turn gradients off"
    UNMADE = "nothing in this project makes an object of this class: what it is given was not seen"
    BY_NAME = "it is called by its name on a network whose class was not seen, and may be that of another"
    MENTIONED = "code that was not followed to here names what runs it, and may turn gradients off around it"
    ROLE = "what runs it evaluates or predicts, by its name and by what it does, and trains nothing"
    INSIDE = "networks of this project differentiate when they are run, and this may be one of those"
    TURN = "the framework switches gradients off for networks that it does not train at the time"
    READER = "it may be read, and differentiated, in code that was not seen"
    TRAINER = "code that was not seen is given the graph later, and may differentiate it again"
    GRADIENTS = "the gradients have a graph, and code that was not followed may differentiate that"
    OPTIMIZER = "an optimizer steps here, and whose parameters it holds was not seen"
    ORIGIN = "where the network comes from was not seen: it may be frozen there, or trained"
    FREEZER = "code that was not seen is given the network or its optimizer, and may freeze or train it"
    BATCHES = "it was not seen that each iteration works on a batch of its own"
    LAYERS = "the loop stands in the code of a network, and may run over its layers in one pass"
    ITEM = "an item of something that was not seen holds it, and the next time there may be other items"
    RESET = "it is emptied or replaced under a condition"
    CUT = "it is a part of a run that was too long to be followed to its end"
    ORDER = "a value decides whether samples are read in order, where the workers share one copy between them"
    INTENDED = "what reads it afterwards may want the new value"
    LITTLE = "it is little: less than 64 KiB, by the sizes that were seen"
    SIZE = "it is worth a change only where the tensors are large, and how large they are was not seen"
    UNSEEN_INPUT = "whether the argument has a graph is decided by a caller that was not seen"

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
    WASTED = "a pass records one for nothing"
    BACKWARD = "a backward pass keeps or waits for more than it needs"


OF_WORTH = frozenset({Doubt.LITTLE, Doubt.SIZE})
"""Doubts whether what is found is worth a change, not whether it is so."""


_LIKELY = frozenset({Doubt.NETWORK_BY_USE, Doubt.PASSED_ON, Doubt.GIVEN, Doubt.BESIDE, Doubt.BY_NAME})
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
_GUESSES_OF_PASSES = (
    frozenset({Doubt.METHOD}),  # most methods of networks that are not forward compute other things
    frozenset({Doubt.MODE}),  # who has a switch for gradients turns them off to evaluate
    frozenset({Doubt.UNDIFFERENTIATED}),  # only what nothing calls runs it with gradients
    frozenset({Doubt.ROLE, Doubt.BASE}),  # and so does a framework that has a method for it
    frozenset({Doubt.UNCALLED}),  # who writes a method for others calls it without gradients, if at all
    frozenset({Doubt.MENTIONED}),  # who runs what is not seen to be trained turns gradients off
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
    return len(doubts - _SLIGHT) > 1 or not doubts.isdisjoint(_GUESSES_OF_KEPT)


def ordered(doubts: Iterable[Doubt]) -> tuple[Doubt, ...]:
    """Return these doubts, each once, in the order in which `Doubt` lists them."""
    found = set(doubts)
    return tuple(doubt for doubt in Doubt if doubt in found)


def rank(doubts: frozenset[Doubt]) -> tuple[int, int, list[str]]:
    """Return a key by which the surest of several sets of doubts is the least."""
    return -confidence(doubts).rank, len(doubts), sorted(doubt.name for doubt in doubts)
