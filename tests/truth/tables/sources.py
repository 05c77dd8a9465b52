"""Sources: where the graph comes from."""

from __future__ import annotations

from tests.truth.forms import Source

_STEP = ("{o}.zero_grad()", "loss.backward()", "{o}.step()")
_FIT = ("pred = {m}(x) #@pass", "loss = F.mse_loss(pred, y)", *_STEP)
_STATE = "0.0"

SOURCE: dict[str, Source] = {
    # a loss, and an output
    "loss_after_backward": Source(_FIT, "loss", live=False),
    "loss_before_backward": Source(
        _FIT[:2], "loss", live=False, after=("{o}.zero_grad()", "{v}.backward()", "{o}.step()")
    ),
    "train_loss": Source(("loss = F.mse_loss({m}(x), y) #@pass",), "loss"),
    "eval_output": Source(("pred = {m}(x) #@pass",), "pred", setup=("{m}.eval()",), scalar=False),
    "eval_loss": Source(
        ("pred = {m}(x) #@pass", "loss = CRITERION(pred, y)"),
        "loss",
        setup=("{m}.eval()",),
        top=("CRITERION = nn.MSELoss()",),
        movable=False,
    ),
    "train_output": Source(_FIT, "pred", scalar=False, live=False),
    "metric": Source((*_FIT, "error = (pred - y).abs().mean()"), "error", live=False),
    "param_norm": Source(
        ("loss = F.mse_loss({m}(x), y) #@pass", *_STEP, "norm = sum(p.pow(2).sum() for p in {m}.parameters())"), "norm"
    ),
    "hook_output": Source(
        ("loss = F.mse_loss({m}(x), y) #@pass", *_STEP, 'feature = SEEN["out"].mean()'),
        "feature",
        live=False,
        movable=False,
        top=("SEEN = {}", "", "def remember(module, args, out):", '    SEEN["out"] = out'),
        setup=("{m}.register_forward_hook(remember)",),
    ),
    # a state that the next iteration starts from
    "hidden_state": Source(
        ("hidden = torch.tanh({m}(x, {t})) #@pass",),
        "hidden",
        scalar=False,
        initial=_STATE,
        movable=False,
        network="stateful",
    ),
}
