"""Presets: selections for an occasion, each with its reason. `docs/configuration.md` is written from `PRESETS`."""

from __future__ import annotations

from torchmemlint.codes import OWN, begun_by, is_own
from torchmemlint.findings import Severity
from torchmemlint.immutable import immutable
from torchmemlint.rules.registry import RuleSet


@immutable()
class Preset:
    """Which rules are on where nothing else is said, and what fails a run."""

    name: str
    doc: str  # for whom it is
    reason: str  # why these rules
    fail_on: Severity = Severity.WARNING
    only: tuple[str, ...] = ()  # beginnings of the codes of our rules that are on; empty: those on by default
    besides: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    plugins: bool = True  # are rules of plugins on that are on by default?

    def codes(self, rules: RuleSet) -> frozenset[str]:
        """The codes of the rules that are on."""
        default = {rule.code for rule in rules.rules if rule.on}
        theirs = {code for code in default if not is_own(code) and self.plugins}
        ours = _begun(self.only, rules) if self.only else {code for code in default if is_own(code)}
        return frozenset((ours | _begun(self.besides, rules) | theirs) - _begun(self.without, rules))


def _begun(prefixes: tuple[str, ...], rules: RuleSet) -> frozenset[str]:
    return frozenset(code for prefix in prefixes for code in begun_by(prefix, rules.by_code))


class _Strict(Preset):
    def codes(self, rules: RuleSet) -> frozenset[str]:
        return frozenset(rules.by_code)


_RUN = f"{OWN}0"  # unreadable files, and what is wrong with suppressions

PRESETS = (
    Preset(
        "default",
        "What you get without a preset.",
        "Errors and warnings fail the run. Advice is shown where it is of use to most; the rest is off, because it "
        "depends on what only you know: the sizes, the precision that is needed, what else uses the memory.",
    ),
    _Strict(
        "strict",
        "For code that is being tuned, or reviewed line by line.",
        "Every rule is on, those of plugins too, and advice fails the run.",
        fail_on=Severity.ADVICE,
    ),
    Preset(
        "leaks-only",
        "For a first look at old code, and for a check that has to be quiet: what grows until the memory is full.",
        "The rules whose pattern takes more memory with every step or batch, as their experiments measure "
        "(`torchmemlint verify --rule CODE`), and those whose pattern keeps a graph beyond its step. What is only "
        "larger or slower than it could be is off, and so are the rules of plugins.",
        only=(
            _RUN,
            "TML101",
            "TML102",
            "TML103",
            "TML104",
            "TML106",
            "TML109",
            "TML111",
            "TML112",
            "TML114",
            "TML512",
            "TML701",
            "TML702",
            *("TML802", "TML803", "TML804", "TML805", "TML807"),
        ),
        plugins=False,
    ),
    Preset(
        "training",
        "For code that trains.",
        "The default, and the advice about the training step itself: what stays alive into the next forward pass "
        "(TML602), precision (TML603), and what the optimizer keeps (TML604).",
        besides=("TML602", "TML603", "TML604"),
    ),
    Preset(
        "inference",
        "For code that evaluates or serves.",
        "No backward runs. So the rules about graphs that wait for a backward, about what layers save for it, and "
        "about the training step are off, and `inference_mode` is advised (TML204). The rules that are on are about "
        "graphs that are never used, results that are kept, and tensors that are larger than they need to be.",
        only=(
            _RUN,
            *("TML101", "TML102", "TML103", "TML106", "TML109", "TML110", "TML114"),
            *("TML201", "TML202", "TML203", "TML204", "TML206", "TML207"),
            *("TML304", "TML307", "TML308", "TML311"),
            "TML4",
            *("TML501", "TML502", "TML503", "TML504", "TML506", "TML507", "TML508", "TML509", "TML510"),
            *("TML511", "TML512"),
            "TML605",
            "TML702",
            *("TML801", "TML802", "TML803", "TML804", "TML805", "TML806", "TML807"),
        ),
    ),
)
BY_NAME = {preset.name: preset for preset in PRESETS}
