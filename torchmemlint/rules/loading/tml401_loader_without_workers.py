"""TML401 loader-without-workers."""

from __future__ import annotations

import ast

from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.flow.fact.details import Feeding
from torchmemlint.rules.arguments import shown
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.loading.alike import workers_beside
from torchmemlint.rules.told import Told
from torchmemlint.source.loading import is_notebook
from torchmemlint.syntax import statements
from torchmemlint.syntax.text import shortened

WORKERS = 4  # what the fix asks for if no loader beside it does; the right number depends on the machine and the data


class LoaderWithoutWorkers(TellingRule):
    """A loader prepares its batches in the training process."""

    def tell(self, told: Told) -> Finding:
        """Say how it comes that a loader has no workers."""
        feeding = told.about(Feeding)
        text = shown(told.call.argument("num_workers", 5)) if told.call is not None else ""
        how = "`num_workers` is not given (default 0)"
        if feeding.chosen:
            how = f"`num_workers={shortened(text, 40)}` is 0 by default" if text else "`num_workers` is 0 by default"
        elif text:
            how = "`num_workers` is 0" if text == "0" else f"`num_workers={shortened(text, 40)}` is 0 here"
        return told.finding(
            self,
            f"`{told.callee_of(told.case.place)}` loads batches in the training process: {how}",
            [told.here(how), *told.called()],
            fix=_fix(told, text),
        )


def _fix(told: Told, given: str) -> Fix:
    """Ask for workers where the call says nothing of them: a number that is written, 0 too, is somebody's decision."""
    workers = workers_beside(told) or str(WORKERS)
    title = f"Pass `num_workers={workers}`"
    if told.call is None or given or told.about(Feeding).given:
        return Fix(title, Applicability.HINT)
    if _runs_on_import(told):
        return Fix(f'{title}, and create the loader below `if __name__ == "__main__":`', Applicability.HINT)
    return Fix(title, Applicability.UNSAFE, told.call.adding(f"num_workers={workers}"))


def _runs_on_import(told: Told) -> bool:
    """Is the loader made whenever the script is imported, as each worker does where processes are spawned?"""
    outermost = told.case.calls[-1] if told.case.calls else told.case.place
    if is_notebook(outermost.path):
        return False
    rows, body = told.rows_of(outermost.path), told.statements_of(outermost.path)
    around = statements.around(body, told.span_of(outermost), rows)
    is_within = any(isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for one in around)
    return not is_within and not any(isinstance(one, ast.If) and "__name__" in ast.unparse(one.test) for one in around)
