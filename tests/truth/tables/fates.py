"""Fates: what becomes of what was kept."""

from __future__ import annotations

from tests.truth.forms import Fate

_FOLD_BACKWARD = ("{o}.zero_grad()", "({f}).backward()", "{o}.step()")
_SEQUENCES = ("list", "deque", "tuple")
_STACKED = "torch.stack([torch.as_tensor(e).float().sum() for e in {t}]).mean()"

FATE: dict[str, Fate] = {
    "never": Fate(needs_fold=False),
    "number": Fate(after=('print("mean", float({f}) / 12)',)),
    "number_each": Fate(body=("if y.sum() > 9.0:", '    print("now", float({s}))'), needs_fold=False),
    "number_by_caller": Fate(returns="{f}", main=('print("mean", float(result) / 12)',)),
    "number_in_dict": Fate(returns='{"loss": {f}}', main=('print("mean", float(result["loss"]) / 12)',)),
    "number_by_helper": Fate(
        after=('print("mean", mean_of({f}, 12))',),
        top=("def mean_of(summed, n):", "    return float(summed) / n"),
    ),
    "formatted": Fate(after=("final = float({f}) / 12", 'print(f"mean {final:.4f}")')),
    "stacked": Fate(after=(f'print("mean", float({_STACKED}))',), kinds=_SEQUENCES, needs_fold=False),
    "looped_over": Fate(
        after=("for e in {t}:", "    print(float(torch.as_tensor(e).float().mean()))"),
        kinds=_SEQUENCES,
        needs_fold=False,
    ),
    "deleted_after": Fate(after=('print("mean", float({f}) / 12)', "del loader"), needs_fold=True),
    # a later backward goes through all of it
    "diff_here": Fate(after=_FOLD_BACKWARD, differentiates=True),
    "diff_scaled": Fate(after=("loss = ({f}) / 12", "loss.backward()", "{o}.step()"), differentiates=True),
    "diff_if": Fate(after=("if ({f}).requires_grad:", "    ({f}).backward()", "{o}.step()"), differentiates=True),
    "diff_caller": Fate(
        returns="{f}", main=("opt.zero_grad()", "result.backward()", "opt.step()"), differentiates=True
    ),
    "diff_caller_dict": Fate(
        returns='{"loss": {f}}',
        main=("opt.zero_grad()", 'result["loss"].backward()', "opt.step()"),
        differentiates=True,
    ),
    "diff_function": Fate(
        after=("improve({o}, {f})",),
        differentiates=True,
        top=(
            "def improve(opt, goal):",
            "    opt.zero_grad()",
            "    goal.backward()",
            "    opt.step()",
        ),
    ),
    "diff_object": Fate(
        after=("Finisher({o}).finish({f})",),
        differentiates=True,
        top=(
            "class Finisher:",
            "    def __init__(self, opt):",
            "        self.opt = opt",
            "",
            "    def finish(self, goal):",
            "        goal.backward()",
            "        self.opt.step()",
        ),
    ),
    "diff_grad": Fate(
        after=(
            "gradients = torch.autograd.grad({f}, list({m}.parameters()), allow_unused=True)",
            "print(len(gradients))",
        ),
        differentiates=True,
    ),
    "diff_stacked": Fate(
        after=(f"{_STACKED}.backward()", "{o}.step()"), differentiates=True, kinds=_SEQUENCES, needs_fold=False
    ),
    "diff_one_by_one": Fate(
        after=("for e in {t}:", "    e.sum().backward()", "{o}.step()"),
        differentiates=True,
        kinds=_SEQUENCES,
        needs_fold=False,
    ),
    "diff_each": Fate(body=(*_FOLD_BACKWARD, "{clear}"), differentiates=True, window=True),
    # whoever calls is not among the files
    "unseen_reads": Fate(returns="{f}", drive="float({r})"),
    "unseen_differentiates": Fate(returns="{f}", drive="({r}).backward()", differentiates=True),
}
