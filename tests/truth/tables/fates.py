"""Fates: what becomes of what was kept."""

from __future__ import annotations

from tests.truth.forms import Fate

_FOLD_BACKWARD = ("{o}.zero_grad()", "({f}).backward()", "{o}.step()")

FATE: dict[str, Fate] = {
    "never": Fate(needs_fold=False),
    "number": Fate(after=('print("mean", float({f}) / 12)',)),
    "number_each": Fate(body=("if y.sum() > 9.0:", '    print("now", float({s}))'), needs_fold=False),
    "number_by_caller": Fate(returns="{f}", main=('print("mean", float(result) / 12)',)),
    # a later backward goes through all of it
    "diff_here": Fate(after=_FOLD_BACKWARD, differentiates=True),
    "diff_caller": Fate(
        returns="{f}", main=("opt.zero_grad()", "result.backward()", "opt.step()"), differentiates=True
    ),
    "diff_object": Fate(
        after=("Finisher({o}).finish({f})",),
        differentiates=True,
        top=(
            "class Finisher:",
            "    def __init__(self, opt):",
            "        self.opt = opt",
            "",
            "    def finish(self, objective_):",
            "        objective_.backward()",
            "        self.opt.step()",
        ),
    ),
    "diff_each": Fate(body=(*_FOLD_BACKWARD, "{clear}"), differentiates=True, window=True),
    # whoever calls is not among the files
    "unseen_reads": Fate(returns="{f}", drive="float({r})"),
    "unseen_differentiates": Fate(returns="{f}", drive="({r}).backward()", differentiates=True),
}
