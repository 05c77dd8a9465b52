"""Sources: where the graph comes from."""

from __future__ import annotations

from tests.truth.forms import Source

_STEP = ("{o}.zero_grad()", "loss.backward()", "{o}.step()")
_LOSS = ("pred = {m}(x) #@pass", "loss = F.mse_loss(pred, y)")
_FIT = (*_LOSS, *_STEP)
_UNMARKED_FIT = ("pred = {m}(x)", "loss = F.mse_loss(pred, y)", *_STEP)
_TUPLE_CUTS = {
    "detach": "tuple(part.detach() for part in {v})",
    "detach_cpu": "tuple(part.detach().cpu() for part in {v})",
    "clone": "tuple(part.clone() for part in {v})",
}
_LIST_CUTS = {
    "detach": "[part.detach() for part in {v}]",
    "detach_clone": "[part.detach().clone() for part in {v}]",
    "clone": "[part.clone() for part in {v}]",
}
_DICT_CUTS = {
    "detach": "{n: part.detach() for n, part in {v}.items()}",
    "data": "{n: part.data for n, part in {v}.items()}",
    "clone": "{n: part.clone() for n, part in {v}.items()}",
}

_LOSSES: dict[str, Source] = {
    "loss_after_backward": Source(_FIT, "loss", live=False),
    "loss_before_backward": Source(
        _LOSS, "loss", live=False, after=("{o}.zero_grad()", "{v}.backward()", "{o}.step()")
    ),
    "train_loss": Source(("loss = F.mse_loss({m}(x), y) #@pass",), "loss"),
    "eval_loss": Source(
        ("pred = {m}(x) #@pass", "loss = CRITERION(pred, y)"),
        "loss",
        setup=("{m}.eval()",),
        top=("CRITERION = nn.MSELoss()",),
    ),
    "per_sample_losses": Source(
        (
            "pred = {m}(x) #@pass",
            'losses = F.mse_loss(pred, y, reduction="none").mean(1)',
            "loss = losses.mean()",
            *_STEP,
        ),
        "losses",
        scalar=False,
        live=False,
    ),
    "gradients_of_none": Source(
        (*_LOSS, "for p in {m}.parameters():", "    p.grad = None", "loss.backward()", "{o}.step()"), "loss", live=False
    ),
    "accumulated_gradients": Source(
        (
            "pred = {m}(x) #@pass",
            "loss = F.mse_loss(pred, y) / 4",
            "loss.backward()",
            "if next(BATCHES) % 4 == 3:",
            "    {o}.step()",
            "    {o}.zero_grad()",
        ),
        "loss",
        live=False,
        top=("BATCHES = itertools.count()",),
    ),
    "microbatches": Source(
        (
            "{o}.zero_grad()",
            "for xs, ys in zip(x.chunk(2), y.chunk(2)):",
            "    loss = F.mse_loss({m}(xs), ys) / 2 #@pass",
            "    loss.backward()",
            "{o}.step()",
        ),
        "loss",
        live=False,
    ),
    "closure": Source(
        (
            "def closure():",
            "    {o}.zero_grad()",
            "    inner = F.mse_loss({m}(x), y) #@pass",
            "    inner.backward()",
            "    return inner",
            "loss = {o}.step(closure)",
        ),
        "loss",
        live=False,
    ),
    "autocast": Source(
        (
            "with torch.autocast(x.device.type, dtype=torch.bfloat16):",
            "    pred = {m}(x) #@pass",
            "loss = F.mse_loss(pred.float(), y)",
            *_STEP,
        ),
        "loss",
        live=False,
    ),
    "scaled_gradients": Source(
        (
            *_LOSS,
            "{o}.zero_grad()",
            "scaler.scale(loss).backward()",
            "scaler.step({o})",
            "scaler.update()",
        ),
        "loss",
        live=False,
        movable=False,
        setup=("scaler = torch.amp.GradScaler(DEVICE.type)",),
    ),
    "autograd_grad": Source(
        (
            *_LOSS,
            "gradients = torch.autograd.grad(loss, list({m}.parameters()))",
            "for p, gradient in zip({m}.parameters(), gradients):",
            "    p.data.sub_(0.01 * gradient)",
        ),
        "loss",
        live=False,
    ),
    "gradient_penalty": Source(
        (
            *_LOSS,
            "gradients = torch.autograd.grad(loss, list({m}.parameters()), create_graph=True)",
            "penalty = sum(gradient.pow(2).sum() for gradient in gradients)",
            "{o}.zero_grad()",
            "(loss + 0.1 * penalty).backward()",
            "{o}.step()",
        ),
        "penalty",
        live=False,
    ),
    "two_optimizers": Source(
        (
            "feature = {m}(x) #@pass",
            "loss = head(feature).pow(2).mean()",
            "{o}.zero_grad()",
            "head_opt.zero_grad()",
            "loss.backward()",
            "{o}.step()",
            "head_opt.step()",
        ),
        "loss",
        live=False,
        movable=False,
        setup=(
            "head = nn.Linear(1000, 1).to(DEVICE)",
            "head_opt = torch.optim.Adam(head.parameters(), lr=0.01)",
        ),
    ),
    "two_passes": Source(
        (
            "one_view = {m}(x) #@pass",
            "other_view = {m}(x + 0.1 * torch.randn_like(x)) #@pass",
            "loss = F.mse_loss(one_view, other_view)",
            *_STEP,
        ),
        "loss",
        live=False,
    ),
    "checkpointed": Source(
        ("pred = checkpoint({m}, x, use_reentrant=False) #@pass", "loss = F.mse_loss(pred, y)", *_STEP),
        "loss",
        live=False,
    ),
}

_OUTPUTS: dict[str, Source] = {
    "eval_output": Source(("pred = {m}(x) #@pass",), "pred", setup=("{m}.eval()",), scalar=False),
    "train_output": Source(_FIT, "pred", scalar=False, live=False),
    "metric": Source((*_FIT, "error = (pred - y).abs().mean()"), "error", live=False),
    "param_norm": Source(
        ("loss = F.mse_loss({m}(x), y) #@pass", *_STEP, "norm = sum(p.pow(2).sum() for p in {m}.parameters())"), "norm"
    ),
    "hook_output": Source(
        ("loss = F.mse_loss({m}(x), y) #@pass", *_STEP, 'feature = SEEN["out"].mean()'),
        "feature",
        live=False,
        top=("SEEN = {}", "", "", "def remember(module, args, out):", '    SEEN["out"] = out'),
        setup=("{m}.register_forward_hook(remember)",),
    ),
    "feature_of_tuple": Source(
        ("pred, feature = {m}(x) #@pass", "loss = F.mse_loss(pred, y)", *_STEP),
        "feature",
        scalar=False,
        live=False,
        network="tuple",
    ),
    "tuple_in_eval": Source(
        ("pred, feature = {m}(x) #@pass", "loss = F.mse_loss(pred, y)"),
        "loss",
        setup=("{m}.eval()",),
        network="tuple",
    ),
    "dict_loss": Source(
        ("out = {m}(x) #@pass", 'loss = F.mse_loss(out["logits"], y)', *_STEP), "loss", live=False, network="dict"
    ),
    "dict_in_eval": Source(
        ("out = {m}(x) #@pass",), 'out["logits"]', setup=("{m}.eval()",), scalar=False, network="dict"
    ),
    "output_object": Source(
        ("out = {m}(x) #@pass", "loss = F.mse_loss(out.logits, y)", *_STEP),
        "out.logits",
        scalar=False,
        live=False,
        network="dataclass",
    ),
    "loss_of_model": Source(
        ("out = {m}(x, targets=y) #@pass", "{o}.zero_grad()", "out.loss.backward()", "{o}.step()"),
        "out.loss",
        live=False,
        network="computes_loss",
    ),
    "loss_of_model_in_eval": Source(
        ("out = {m}(x, targets=y) #@pass",), "out.loss", setup=("{m}.eval()",), network="computes_loss"
    ),
}

_OBJECTS: dict[str, Source] = {  # more than a tensor is kept
    "whole_dict": Source(
        ("out = {m}(x) #@pass", 'loss = F.mse_loss(out["logits"], y)', *_STEP),
        "out",
        scalar=False,
        live=False,
        network="dict",
        cuts=_DICT_CUTS,
        opaque=True,
    ),
    "whole_tuple": Source(
        ("out = {m}(x) #@pass",),
        "out",
        setup=("{m}.eval()",),
        scalar=False,
        network="tuple",
        cuts=_TUPLE_CUTS,
        opaque=True,
    ),
    "whole_object": Source(
        ("out = {m}(x) #@pass", "loss = F.mse_loss(out.logits, y)", *_STEP),
        "out",
        scalar=False,
        live=False,
        network="dataclass",
        cuts={"detach": "Output({v}.logits.detach())", "clone": "Output({v}.logits.clone())"},
        opaque=True,
    ),
}

_IDLE: dict[str, Source] = {  # a pass whose graph nobody needs
    "eval_between_steps": Source(
        (*_UNMARKED_FIT, "{m}.eval()", "check = F.mse_loss({m}(x), y) #@pass", "{m}.train()"), "check", idle=True
    ),
    "distillation": Source(
        ("target = teacher(x) #@pass", "loss = F.mse_loss({m}(x), target.detach())", *_STEP),
        "loss",
        live=False,
        movable=False,
        setup=("teacher = copy.deepcopy({m})",),
        idle=True,
    ),
    "target_network": Source(
        (
            "future = frozen_copy(x) #@pass",
            "wanted = (y + 0.9 * future).detach()",
            "loss = F.smooth_l1_loss({m}(x), wanted)",
            *_STEP,
        ),
        "loss",
        live=False,
        movable=False,
        setup=("frozen_copy = copy.deepcopy({m})",),
        idle=True,
    ),
    "discriminator": Source(
        (
            "fake = {m}(x) #@pass",
            "loss = F.softplus(judge(fake.detach())).mean() + F.softplus(-judge(y)).mean()",
            "judge_opt.zero_grad()",
            "loss.backward()",
            "judge_opt.step()",
        ),
        "loss",
        live=False,
        movable=False,
        setup=(
            "judge = nn.Sequential(nn.Linear(1000, 4096), nn.ReLU(), nn.Linear(4096, 1)).to(DEVICE)",
            "judge_opt = torch.optim.Adam(judge.parameters(), lr=0.01)",
        ),
        idle=True,
    ),
}

_UNTRAINED: dict[str, Source] = {  # a pass that takes part in the loss, through a network that no optimizer holds
    "teacher_in_loss": Source(
        ("target = teacher(x) #@pass", "loss = F.mse_loss({m}(x), target)", *_STEP),
        "loss",
        live=False,
        movable=False,
        setup=("teacher = copy.deepcopy({m})", "teacher.eval()"),
        idle=True,
    ),
    "moving_average": Source(
        (
            "future = averaged(x) #@pass",
            "loss = F.smooth_l1_loss({m}(x), y + 0.9 * future)",
            *_STEP,
            "for old, new in zip(averaged.parameters(), {m}.parameters()):",
            "    old.data.mul_(0.9).add_(new.data, alpha=0.1)",
        ),
        "loss",
        live=False,
        movable=False,
        setup=("averaged = copy.deepcopy({m})",),
        idle=True,
    ),
    "latent_encoder": Source(
        ("codes = encoder(x) #@pass", "loss = F.mse_loss({m}(codes), y)", *_STEP),
        "loss",
        live=False,
        movable=False,
        setup=("encoder = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()).to(DEVICE)",),
        idle=True,
    ),
    "reference_policy": Source(
        (
            "before = F.log_softmax(reference(x), -1) #@pass",
            "loss = -F.logsigmoid(F.log_softmax({m}(x), -1) - before).mean()",
            *_STEP,
        ),
        "loss",
        live=False,
        movable=False,
        setup=("reference = copy.deepcopy({m})",),
        idle=True,
    ),
}

_MORE_MODELS: dict[str, Source] = {
    "constant_teacher": Source(
        ("target = teacher(x)", "loss = F.mse_loss({m}(x), target) #@pass", *_STEP),
        "loss",
        live=False,
        movable=False,
        setup=("teacher = copy.deepcopy({m})", "for p in teacher.parameters():", "    p.detach_()"),
    ),
    "late_group": Source(
        ("codes = encoder(x) #@pass", "loss = F.mse_loss({m}(codes), y)", *_STEP),
        "loss",
        live=False,
        movable=False,
        setup=(
            "encoder = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()).to(DEVICE)",
            '{o}.add_param_group({"params": encoder.parameters()})',
        ),
    ),
    "perceptual": Source(
        (
            "with torch.no_grad():",
            "    wanted = features(y)",
            "loss = F.l1_loss(features({m}(x)), wanted) #@pass",
            *_STEP,
        ),
        "loss",
        live=False,
        movable=False,
        setup=("features = nn.Sequential(nn.Linear(1000, 4096), nn.ReLU()).to(DEVICE)",),
    ),
    "consistency": Source(
        ("with torch.no_grad():", "    target = teacher(x)", "loss = F.mse_loss({m}(x), target) #@pass", *_STEP),
        "loss",
        live=False,
        movable=False,
        setup=("teacher = copy.deepcopy({m})",),
    ),
    "frozen_teacher": Source(
        ("target = teacher(x)", "loss = F.mse_loss({m}(x), target) #@pass", *_STEP),
        "loss",
        live=False,
        movable=False,
        setup=("teacher = copy.deepcopy({m}).eval()", "teacher.requires_grad_(False)"),
    ),
    "generator": Source(
        (
            "fake = {m}(x) #@pass",
            "judge_loss = F.softplus(judge(fake.detach())).mean() + F.softplus(-judge(y)).mean()",
            "judge_opt.zero_grad()",
            "judge_loss.backward()",
            "judge_opt.step()",
            "loss = F.softplus(-judge(fake)).mean()",
            *_STEP,
        ),
        "loss",
        live=False,
        movable=False,
        setup=_IDLE["discriminator"].setup,
    ),
    "judge_loss": Source(
        (
            "fake = {m}(x) #@pass",
            "judge_loss = F.softplus(judge(fake)).mean() + F.softplus(-judge(y)).mean()",
            "judge_opt.zero_grad()",
            "judge_loss.backward()",
            "judge_opt.step()",
        ),
        "judge_loss",
        live=False,
        movable=False,
        setup=_IDLE["discriminator"].setup,
    ),
}

_STATES: dict[str, Source] = {  # that the next iteration starts from
    "hidden_state": Source(
        ("hidden = torch.tanh({m}(x, {t})) #@pass",),
        "hidden",
        scalar=False,
        initial="0.0",
        movable=False,
        network="stateful",
    ),
    "gru_state": Source(
        ("pred, hidden = {m}(x, {t}) #@pass",), "hidden", scalar=False, initial="None", movable=False, network="gru"
    ),
    "lstm_state": Source(
        ("pred, hidden = {m}(x, {t}) #@pass",),
        "hidden",
        scalar=False,
        initial="None",
        movable=False,
        network="lstm",
        cuts=_TUPLE_CUTS,
        folded="{t}[0]",
    ),
    "list_of_states": Source(
        ("pred, hidden = {m}(x, {t}) #@pass",),
        "hidden",
        scalar=False,
        initial="None",
        movable=False,
        network="layered",
        cuts=_LIST_CUTS,
        folded="{t}[0]",
    ),
    "smoothed_loss": Source((*_FIT, "smooth = 0.9 * {t} + 0.1 * loss"), "smooth", initial="0.0", movable=False),
    "averaged_weights": Source(
        (*_FIT, "averaged = {n: 0.9 * {t}[n] + 0.1 * p for n, p in {m}.named_parameters()}"),
        "averaged",
        scalar=False,
        initial="{n: p.detach().clone() for n, p in {m}.named_parameters()}",
        movable=False,
        cuts=_DICT_CUTS,
        folded="sum(part.sum() for part in {t}.values())",
    ),
}

SOURCE: dict[str, Source] = {**_LOSSES, **_OUTPUTS, **_OBJECTS, **_IDLE, **_UNTRAINED, **_MORE_MODELS, **_STATES}
