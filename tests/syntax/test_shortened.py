"""Code in messages is short, and never cut within a name."""

from __future__ import annotations

import pytest

from torchmemlint.syntax.text import one_line, shortened


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("model(x)", "model(x)"),
        ("model.pi(torch.from_numpy(s).float(), h_in)", "model.pi(…)"),
        ("total += train_step(model, optimizer, scaler, batch)", "total += train_step(…)"),
        ("criterion(model(x[i : i + 3]), y[i : i + 3]).backward()", "criterion(…).backward()"),
        ("net(x)[:, first_position:last_position].mean(dim=1)", "net(x)[…].mean(dim=1)"),
        ('table["a ( in a text that is quite long"].append(x)', "table[…].append(x)"),
        ("self.controlnet(\n    latents,  # a comment (\n    t,\n)", "self.controlnet(latents, t)"),
        ("torch.cuda.memory._record_memory_history(1)", "torch.cuda.memory._record_memory_history(1)"),
        (
            "one.name.that.goes.on.and.on.and.on.until.it.is.too.long.to.show",
            "one.name.that.goes.on.and.….to.show",
        ),
    ],
)
def test_what_is_within_brackets_goes_first(code: str, shown: str) -> None:
    assert shortened(code, 40) == shown


def test_code_that_is_no_expression_is_put_on_one_line_too() -> None:
    assert one_line("def f(\n    a,\n):") == "def f( a, ):"
