"""The fixtures that need more than the conventions, and those that cannot run."""

from __future__ import annotations

import io
import os
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.runtime.proving.running import Play, Stage
from tests.runtime.proving.stands_in import (
    BATCH,
    CLASSES,
    WIDTH,
    Calling,
    Heads,
    Items,
    LightningModule,
    Loader,
    Loss,
    Model,
    RankCorrelation,
    WithLoss,
    module,
    passing,
)
from tests.runtime.proving.world import Given, World, batches, constant, model

CANNOT_RUN: dict[str, str] = {}
"""Why a fixture with a safe fix is not proven here."""
CANNOT_RUN["TML206/bad_lightning_teacher"] = "loads pretrained weights with torchvision, which the tests do without"
CANNOT_RUN["TML311/bad_reranker"] = "loads pretrained weights with transformers, which the tests do without"
if find_spec("numpy") is None:
    for _name in ("TML201/bad_feature_extraction", "TML203/bad_on_the_host"):
        CANNOT_RUN[_name] = "makes NumPy arrays of tensors, and NumPy is not installed"
if not hasattr(torch.amp, "GradScaler"):
    CANNOT_RUN["TML101/bad_mixed_precision"] = "uses torch.amp.GradScaler, which came with torch 2.3"

_SECOND_BACKWARD = ("RuntimeError: Trying to backward through the graph a second time",)
_NOT_ENTERED = ("TypeError: 'type' object does not support the context manager", "AttributeError: __enter__")
_OVERWRITTEN = ("RuntimeError: one of the variables needed for gradient computation has been modified",)
RAISES: dict[str, tuple[str, ...]] = {
    "TML104/bad_gru": _SECOND_BACKWARD,
    "TML104/bad_while_loop": _SECOND_BACKWARD,
    "TML202/bad_uncalled": _NOT_ENTERED,
    "TML202/bad_uncalled_among_others": _NOT_ENTERED,
    "TML302/bad_needs_its_input": _OVERWRITTEN,
    "TML302/bad_needs_its_output": _OVERWRITTEN,
    "TML302/bad_sum_goes_on": _OVERWRITTEN,
}
"""Fixtures that raise as they stand, and how. The fixed ones run, and agree with them up to there."""

NOT_REACHED: dict[str, list[str]] = {
    "TML501/bad_masks": ["return torch.empty(count, 1024, device=1)"],
}
"""What a fix wrote that is not run: a tensor without values to compare, on a second GPU."""

LOWER = frozenset(
    (
        "TML201/bad_numbers_beside_graphs",
        "TML102/bad_kept_by_training_and_evaluation",
        "TML103/bad_class_attribute",
        "TML107/bad_critic_steps",
        "TML107/bad_script",
        "TML107/bad_trainer_class",
        "TML107/bad_walked_networks",
        "TML113/bad_no_boxes",
        "TML114/bad_gathered",
        "TML114/bad_rows",
        "TML114/bad_class_token",
        "TML114/bad_first_head",
        "TML114/bad_last_state",
        "TML201/bad_beside_a_graph_of_the_caller",
        "TML201/bad_beside_train",
        "TML201/bad_diffusion",
        "TML201/bad_feature_extraction",
        "TML201/bad_function",
        "TML201/bad_images_written",
        "TML201/bad_method",
        "TML201/bad_mode_restored",
        "TML201/bad_predict_image",
        "TML201/bad_sampling",
        "TML201/bad_shared_helper",
        "TML201/bad_torch_not_imported",
        "TML203/bad_chain",
        "TML203/bad_several_in_a_function",
        "TML203/bad_data",
        "TML203/bad_distillation",
        "TML203/bad_fake_for_critic",
        "TML203/bad_teacher",
        "TML203/bad_teacher_in_a_helper",
        "TML203/bad_two_outputs",
        "TML206/bad_actor_and_critic_targets",
        "TML206/bad_distillation",
        "TML206/bad_encoder_of_latents",
        "TML206/bad_features_of_the_target",
        "TML206/bad_groups_of_parameters",
        "TML206/bad_mean_teacher",
        "TML206/bad_only_the_head_is_trained",
        "TML206/bad_reference_policy",
        "TML206/bad_target_of_an_agent",
    )
)
"""The fixtures of rules about graphs whose peak the fix lowers; elsewhere it stays the same."""


# --- data


def _triples(one: Given, other: Given) -> Given:
    return batches(lambda world: (torch.rand(BATCH, WIDTH), one(world), other(world)))


def _normal(*shape: int) -> Given:
    return lambda world: torch.randn(shape)


def _classes(count: int = CLASSES) -> Given:
    return lambda world: torch.randint(0, count, (BATCH,))


def _pairs_of(*shapes: tuple[int, ...]) -> Given:
    return batches(lambda world: tuple(torch.randn(shape) for shape in shapes))


def _heads(*outputs: int, inputs: int = WIDTH) -> Given:
    return lambda world: Heads(*outputs, inputs=inputs)


def _calling(made: Given, function: Any) -> Given:
    return lambda world: Calling(made(world), function)


def _transitions(action: Given) -> Given:
    def make(world: World) -> Any:
        rewards, done = torch.randn(BATCH), torch.randint(0, 2, (BATCH,))
        return torch.randn(BATCH, WIDTH), action(world), rewards, torch.randn(BATCH, WIDTH), done

    return make


def _action(world: World) -> torch.Tensor:
    return torch.randint(0, CLASSES, (BATCH, 1))


def _columns(transition: Any) -> Any:
    return tuple(part.reshape(BATCH, -1) for part in transition)


# --- ways to call


def _rollout(world: World) -> types.SimpleNamespace:
    return types.SimpleNamespace(
        states=torch.randn(BATCH, WIDTH),
        log_probs=torch.randn(BATCH, CLASSES),
        advantages=torch.randn(BATCH, CLASSES),
    )


def _conv_net(world: World) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3), nn.Flatten(), nn.Linear(32, CLASSES))


def _chunks(world: World) -> Any:
    made = torch.randn(5, 4, 1, 8)
    return lambda step: made[step % 5]


def _translate(stage: Stage) -> Any:
    made = stage.call("ImageTranslation")
    for _ in range(3):
        made.set_input((torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8)))
        made.optimize_parameters()
    return made


def _explaining(world: World) -> dict[str, types.ModuleType]:
    """A library whose explanations are gradients: of the label's score, by the input."""

    class Explainer:
        def __init__(self, network: nn.Module, steps: int) -> None:
            self.network, self.steps = network, steps

        def __call__(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return _slope(self.network, inputs, labels) / self.steps

    return {"explaining": module("explaining", Explainer=Explainer)}


def _slope(network: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    inputs = inputs.clone().requires_grad_()
    (slope,) = torch.autograd.grad(network(inputs).gather(-1, labels[:, None]).sum(), inputs)
    return slope


def _networks(world: World) -> dict[str, types.ModuleType]:
    def generator(channels: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(channels, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, channels, 1))

    def discriminator(channels: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(2 * channels, 4, 3), nn.LeakyReLU(0.2), nn.Conv2d(4, 1, 3))

    return {"networks": module("networks", UNetGenerator=generator, PatchDiscriminator=discriminator)}


def _faces(world: World) -> dict[str, types.ModuleType]:
    faces = world.seeded("faces", lambda _: Items(*torch.randn(6, 784)))
    return {"data": module("data", faces=faces)}


def _saving(world: World) -> Any:
    return lambda *values: world.saved.append(values)


def _export(stage: Stage) -> Any:
    layers = stage.world.seeded("weights", lambda _: nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)))
    torch.save(layers.state_dict(), stage.feed("path"))
    stage.call("export_scores")
    return stage.feed("out").read_text()


def _numbered(world: World) -> Any:
    return [(f"item{number}", torch.randn(1, 32)) for number in range(4)]


def _vision(world: World) -> dict[str, types.ModuleType]:
    def save_image(images: torch.Tensor, path: Any) -> None:
        world.saved.append((path.name, images))

    return {"torchvision": module("torchvision"), "torchvision.utils": module("utils", save_image=save_image)}


def _pictures(world: World) -> dict[str, types.ModuleType]:
    """PIL and torchvision as far as a script that predicts uses them: a picture is its tensor."""

    class Picture:
        def convert(self, mode: str) -> torch.Tensor:
            return torch.full((3, 8, 8), 0.5)

    def network(weights: str) -> nn.Module:
        body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
        return world.seeded("resnet", lambda _: body)

    steps = {name: lambda *_: None for name in ("Resize", "CenterCrop", "ToTensor")}
    transforms = module("torchvision.transforms", **steps, Compose=lambda steps: lambda picture: picture)
    models = module("torchvision.models", resnet50=network)
    return {
        "PIL": module("PIL", Image=types.SimpleNamespace(open=lambda path: Picture())),
        "torchvision": module("torchvision", models=models, transforms=transforms),
        "torchvision.models": models,
        "torchvision.transforms": transforms,
    }


def _acting(stage: Stage) -> Any:
    agent = stage.call("Agent")
    return [agent.act([0.1 * number] * WIDTH) for number in range(5)]


def _labelled_images(world: World) -> Any:
    return torch.randn(BATCH, 3, 8, 8), _classes()(world)


def _masked_images(world: World) -> Any:
    return torch.randn(BATCH, 3, 8, 8), torch.randint(0, 10, (BATCH, 4, 4))


def _averaging(stage: Stage) -> Any:
    averaging = stage.call("Averaging")
    return [averaging.update(*batch) for batch in stage.feed("loader")]


def _clipping(stage: Stage) -> Any:
    return stage.apply(stage.module.clip_weights), stage.feed("critic")


def _distilling(stage: Stage) -> Any:
    return [stage.learn(stage.call("Distillation")) for _ in range(2)]


def _lightning(name: str, end: str = "") -> Any:
    """What a framework does with a module: steps, and the hook at the end of an epoch, if it has one."""

    def act(stage: Stage) -> Any:
        made, outputs = stage.call(name), []
        for index, batch in enumerate(stage.feed("loader")):
            output = made.training_step(batch, index)
            if not getattr(made, "automatic_optimization", True):
                continue
            optimizer = made.optimizers()
            optimizer.zero_grad()
            (output["loss"] if isinstance(output, dict) else output).backward()
            optimizer.step()
            outputs.append(output)
        if end:
            getattr(made, end)(*([outputs] if end == "training_epoch_end" else []))
        return made

    return act


def _lightning_modules(world: World) -> dict[str, types.ModuleType]:
    made = module("pytorch_lightning", LightningModule=LightningModule)
    return {
        "pytorch_lightning": made,
        "lightning": module("lightning", pytorch=made, LightningModule=LightningModule),
        "lightning.pytorch": made,
        "torchmetrics": module("torchmetrics", SpearmanCorrCoef=RankCorrelation),
    }


def _project(**contents: Given) -> Any:
    """`project.data` and `project.model`, the modules that fixtures about loaders import."""

    def modules(world: World) -> dict[str, types.ModuleType]:
        made = {name: world.seeded(name, factory) for name, factory in contents.items()}
        data, network = module("project.data", **made), module("project.model", **made)
        project = module("project", data=data, model=network)
        return {
            "project": project,
            "project.data": data,
            "project.model": network,
            "tqdm": module("tqdm", tqdm=passing),
        }

    return modules


def _data_set(*make: Given) -> Given:
    """A class of data sets: its items are made so, and are tuples where there are several parts."""

    def factory(world: World) -> Any:
        items = [tuple(part(world) for part in make) for _ in range(4)]
        return lambda *_: Items(*(item if len(make) > 1 else item[0] for item in items))

    return factory


_IMAGE, _LABEL = _normal(WIDTH), (lambda world: torch.randint(0, CLASSES, ()))


def _cifar(world: World) -> dict[str, types.ModuleType]:
    data = world.seeded("images", _data_set(_normal(3, 32, 32), lambda world: torch.randint(0, 10, ())))
    datasets = module("torchvision.datasets", CIFAR10=lambda *_, **__: data())
    transforms = module("torchvision.transforms", ToTensor=lambda: None)
    return {"torchvision": module("torchvision", datasets=datasets, transforms=transforms)}


def _named(world: World) -> dict[str, torch.Tensor]:
    return {"frames": torch.randn(CLASSES), "labels": torch.randn(CLASSES)}


def _videos(stage: Stage) -> Any:
    """Two functions want batches that are dictionaries, and two want tuples."""
    with_loss = stage.world.seeded("with loss", lambda _: WithLoss(2 * CLASSES))
    stage.module.dictionaries(with_loss)
    plain = stage.world.seeded("plain", lambda _: Model(CLASSES, CLASSES))
    stage.module.subscripts(plain)
    stage.module.loader = stage.world.seeded("tuples", _pairs_of((2, CLASSES), (2, CLASSES)))
    loss = stage.world.seeded("loss", lambda _: Loss(2 * CLASSES))
    stage.module.lists(loss)
    stage.module.positional(loss)
    return with_loss, loss


def _on_device(world: World) -> Any:
    return Loader((inputs.to(world.device), targets.to(world.device)) for inputs, targets in batches(World.pair)(world))


def _translating(stage: Stage) -> Any:
    return stage.module.Translator(11, WIDTH).continue_from(torch.randint(0, 11, (4, 5)), torch.arange(5).expand(4, 5))


def _in_place(stage: Stage) -> Any:
    """Each network of the file learns. Either all can or none, as the file says."""
    networks = [stage.call("Attention"), stage.call("Hidden"), stage.module.broken]
    inputs = [(2, 5, WIDTH), (2, WIDTH, 4, 4), (BATCH, WIDTH)]
    errors = []
    for number, (network, shape) in enumerate(zip(networks, inputs, strict=True)):
        x = stage.world.seeded(f"input {number}", _normal(*shape))
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        try:
            (network(x, None) if number == 0 else network(x)).square().mean().backward()
        except RuntimeError as error:
            errors.append(error)
        else:
            optimizer.step()
    assert len(errors) in (0, len(networks)), errors
    if errors:
        raise errors[0]
    return networks


def _notes(world: World) -> dict[str, types.ModuleType]:
    plain, with_length = _data_set(_IMAGE)(world), _data_set(_IMAGE, constant(3.0))(world)
    return _project(Notes=constant(lambda part: plain() if part == "a" else with_length()))(world)


def _decoding(stage: Stage) -> Any:
    """All but `empty`, whose tensor has no values to compare and is for a second GPU."""
    decoder = stage.call("Decoder").to(stage.world.device)
    stage.world.made["x"] = stage.feed("x").to(stage.world.device)
    return [[stage.learn(decoder) for _ in range(2)], stage.call("pad")]


def _every_batch(stage: Stage) -> Any:
    stage.call("train")
    stage.call("train_from_anything")
    for name in ("batches", "dataset"):  # now without targets, on the device
        stage.world.made[name] = [inputs.to(stage.world.device) for inputs, _ in stage.feed("again")]
    stage.call("predict")
    stage.world.made["dataset"] = Items(*torch.randn(3, WIDTH))
    stage.call("evaluate")


def _resuming(stage: Stage) -> Any:
    network, linear = stage.feed("model"), nn.Linear(WIDTH, WIDTH).to(stage.world.device)
    results = []
    optimizer = torch.optim.AdamW(linear.parameters())
    linear(torch.rand(BATCH, WIDTH, device=stage.world.device)).sum().backward()
    optimizer.step()
    path = stage.feed("path")
    torch.save({"model": linear.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, path)
    results.append(stage.call("resume"))
    state = {key: value.clone() for key, value in network.state_dict().items()}
    for saved, name in (({"state_dict": state}, "resume_renamed"), (state, "partly"), (state, "evaluate")):
        torch.save(saved, path)
        nn.init.zeros_(network.head.weight)
        results.append((stage.call(name), network.head.weight.detach().clone()))
    return results


def _continuing(stage: Stage) -> Any:
    """Each function goes on from a checkpoint made for it."""
    device, path, made = stage.world.device, stage.feed("path"), stage.world.made
    wide = nn.Linear(512, 512).to(device)
    optimizer = torch.optim.Adam(wide.parameters())
    wide(torch.rand(2, 512, device=device)).sum().backward()
    optimizer.step()
    torch.save({"model": wide.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 98}, path)
    made["loader"] = [(torch.randn(2, 512, device=device), torch.randn(2, 512, device=device)) for _ in range(2)]
    before = Path.cwd()
    os.chdir(stage.world.folder)  # where it saves
    try:
        stage.call("main")
        results: list[Any] = [torch.load("last.pt")]
    finally:
        os.chdir(before)
    network = stage.feed("model")
    state = {key: value.clone() for key, value in network.state_dict().items()}
    made["loader"] = [inputs.to(device) for inputs, _ in batches(World.pair)(stage.world)]
    made["options"] = types.SimpleNamespace(resume=path)
    torch.save({"model": state, "optimizer": torch.optim.SGD(network.parameters(), lr=0.2).state_dict()}, path)
    stage.call("resume")
    results.append({key: value.clone() for key, value in network.state_dict().items()})
    torch.save(state, path)
    stage.call("score")
    stage.call("compared")
    torch.save({"model": state, "epoch": 3}, path)
    stage.call("continued")
    results.append({key: value.clone() for key, value in network.state_dict().items()})
    torch.save({f"module.{key}": value for key, value in state.items()}, path)
    stage.call("evaluate")
    results.append({key: value.clone() for key, value in network.state_dict().items()})
    stage.call("without_a_prefix")
    results.append({key: value.clone() for key, value in network.state_dict().items()})
    return results


def _reporting(stage: Stage) -> Any:
    with stage.module.PeakTracker() as tracker:
        held = torch.ones(300, device="cuda")
    log: list[Any] = []
    report = stage.module.report(torch.device("cuda", 0), types.SimpleNamespace(info=lambda *line: log.append(line)))
    return tracker.peak, log, report, held


def _steps() -> tuple[torch.Tensor, torch.Tensor]:
    """Steps of a sequence, and what should come out at its end."""
    return torch.randn(2, 3, 64), torch.randn(2, 64)


PLAYS: dict[str, Play] = {
    "TML101/bad_counted_batches": Play({"data": _normal(96, WIDTH), "labels": _normal(96, 1)}),
    "TML101/bad_items_of_losses": Play(
        {"detector": _heads(4, CLASSES), "loader": _triples(_normal(BATCH, 4), _classes())}
    ),
    "TML201/bad_numbers_beside_graphs": Play(
        {
            "model": _calling(model(2 * WIDTH, CLASSES), lambda scores: (scores, scores.cumsum(0))),
            "loader": _triples(_normal(BATCH, WIDTH), _classes()),
            "weight": constant(True),
        }
    ),
    "TML101/bad_several_totals": Play(
        {
            "vae": _calling(_heads(WIDTH, 2, 2), lambda parts: (parts[0].sigmoid(), *parts[1:])),
            "loader": batches(World.pair),
        }
    ),
    "TML101/bad_sums_by_name": Play(
        {"loaders": lambda world: {name: batches(World.pair)(world) for name in ("colour", "shape")}}
    ),
    "TML102/bad_critic_scores": Play(
        {"generator": model(64, WIDTH), "critic": model(WIDTH, 1), "loader": batches(_normal(BATCH, WIDTH))}
    ),
    "TML102/bad_defaultdict": Play({"model": _heads(4, CLASSES), "loader": _triples(_normal(BATCH, 4), _classes())}),
    "TML102/bad_setdefault": Play({"loader": batches(lambda world: ("depth", *world.pair()))}),
    "TML103/bad_class_attribute": Play({"loader": _pairs_of((BATCH, 32), (BATCH, 1))}),
    "TML103/bad_gate_statistics": Play({"loader": _pairs_of((BATCH, WIDTH), (BATCH, WIDTH))}),
    "TML103/bad_last_output": Play({"loader": _pairs_of((2, 5, 64), (2, 5, 64))}),
    "TML103/bad_put_in_by_another_method": Play({"loader": _pairs_of((BATCH, 4), (BATCH, 4))}),
    "TML103/bad_temperature": Play(
        {
            "actor": _calling(_heads(2, 1), lambda parts: (parts[0].tanh(), parts[1])),
            "critic": model(WIDTH + 2, 1),
            "target_entropy": constant(-2.0),
            "batches": batches(_normal(BATCH, WIDTH)),
        }
    ),
    "TML104/bad_gru": Play(
        {"stream": batches(lambda world: (torch.randint(0, 11, (16, 5)), torch.randint(0, 11, (16, 5))))}
    ),
    "TML104/bad_while_loop": Play({"read_chunk": _chunks}),
    "TML106/bad_factory": Play({"model": _conv_net, "loader": batches(_labelled_images)}),
    "TML107/bad_critic_steps": Play(
        {"critic_steps": constant(2), "penalty": constant(None), "loader": batches(_normal(BATCH, 784))}
    ),
    "TML107/bad_script": Play(modules=_faces),
    "TML107/bad_trainer_class": Play(
        {"options": constant(types.SimpleNamespace(channels=3, lr=0.01))}, modules=_networks, act=_translate
    ),
    "TML107/bad_walked_networks": Play({"save": _saving, "loader": batches(_normal(BATCH, 1, 28, 28))}),
    "TML201/bad_averaged_in_a_step": Play({"loader": batches(_labelled_images)}, act=_averaging),
    "TML201/bad_forward_gives_picks": Play(
        {"loader": batches(_labelled_images), "held_out": batches(_labelled_images)}
    ),
    "TML201/bad_options_overwrite_defaults": Play(
        {"loader": batches(_masked_images), "held_out": batches(_masked_images)},
        argv=("--network", "narrow", "--epochs", "2"),
    ),
    "TML201/bad_act": Play({"q": lambda world: nn.Linear(WIDTH, CLASSES), "actions": constant(CLASSES)}, act=_acting),
    "TML201/bad_beside_a_librarys_explainer": Play(
        {"attack": constant(lambda network, inputs, labels: inputs + 10 * _slope(network, inputs, labels).sign())},
        modules=_explaining,
    ),
    "TML201/bad_diffusion": Play(
        {
            "unet": _calling(model(WIDTH + 1, WIDTH), lambda made: made),
            "betas": lambda world: torch.linspace(0.01, 0.2, 5),
            "shape": constant((BATCH, WIDTH)),
        }
    ),
    "TML201/bad_eval_method_chain": Play(
        {"loader": _numbered, "out": lambda world: world.folder / "scores.tsv"}, act=_export
    ),
    "TML203/bad_forward_of_a_wrapper": Play(
        {"spectrograms": lambda world: [torch.randn(BATCH, 20, 80) for _ in range(2)]}
    ),
    "TML201/bad_images_written": Play(
        {
            "generator": model(),
            "noise_batches": batches(_normal(BATCH, WIDTH)),
            "folder": lambda world: world.folder,
        },
        modules=_vision,
    ),
    "TML201/bad_mode_restored": Play(
        {"model": lambda world: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES))}
    ),
    "TML201/bad_network_with_a_memory": Play(
        {
            "batches": lambda world: [_steps() for _ in range(BATCH)],
            "held_out": lambda world: _steps(),
            "log": lambda world: io.StringIO(),
        }
    ),
    "TML201/bad_predict_image": Play(modules=_pictures, argv=("one.png", "two.png")),
    "TML201/bad_sampling": Play({"prompt": lambda world: torch.randint(0, 11, (2, 3)), "length": constant(6)}),
    "TML202/bad_uncalled": Play({"bound": constant(0.1)}, act=_clipping),
    "TML202/bad_uncalled_among_others": Play(
        {"source": model(), "target": model(), "lock": lambda world: __import__("threading").Lock()}
    ),
    "TML203/bad_on_the_host": Play({"features": _normal(BATCH, 8), "targets": _normal(BATCH, 1)}),
    "TML203/bad_chain": Play(
        {
            "actor": model(WIDTH, 2),
            "critic": model(WIDTH + 2, 1),
            "batches": batches(
                lambda world: (
                    torch.randn(BATCH, WIDTH),
                    torch.randn(BATCH, 2),
                    torch.randn(BATCH, 1),
                    torch.randn(BATCH, WIDTH),
                )
            ),
        }
    ),
    "TML203/bad_data": Play({"loader": _pairs_of((BATCH, WIDTH), (BATCH, WIDTH))}),
    "TML203/bad_distillation": Play({"images": _normal(BATCH, WIDTH), "labels": _classes()}, act=_distilling),
    "TML203/bad_fake_for_critic": Play(
        {"generator": model(128, WIDTH), "critic": model(WIDTH, 1), "real": _normal(BATCH, WIDTH)}
    ),
    "TML203/bad_max_of_detached": Play(
        {
            "state": _normal(BATCH, WIDTH),
            "action": _action,
            "reward": _normal(BATCH),
            "next_state": _normal(BATCH, WIDTH),
        }
    ),
    "TML203/bad_max_then_detach": Play(
        {"experiences": lambda world: _columns(_transitions(_action)(world)), "gamma": constant(0.9)}
    ),
    "TML203/bad_rebound": Play(
        {
            "actor": model(WIDTH, 2),
            "critic": model(WIDTH + 2, 1),
            "target_critic": model(WIDTH + 2, 1),
            "batches": batches(
                lambda world: (
                    torch.randn(BATCH, WIDTH),
                    torch.randn(BATCH, 2),
                    torch.randn(BATCH, 1),
                    torch.randn(BATCH, WIDTH),
                )
            ),
        }
    ),
    "TML203/bad_target_network": Play({"batches": batches(_transitions(_action))}),
    "TML203/bad_modes_of_a_forward": Play(act=_translating),
    "TML203/bad_teacher_in_a_helper": Play(
        {"model": model(WIDTH, 1), "teacher": model(WIDTH, 1), "data": _pairs_of((BATCH, WIDTH), (BATCH, 1))}
    ),
    "TML203/bad_two_outputs": Play({"student": _heads(CLASSES, 16), "teacher": _heads(CLASSES, 16)}),
    "TML302/bad_needs_its_input": Play({"tokens": _normal(BATCH, 5, WIDTH)}),
    "TML302/bad_needs_its_output": Play(act=_in_place),
    "TML302/bad_sum_goes_on": Play(
        {
            "policy": _calling(_heads(1, 1, 1, 1), lambda parts: ([one.sigmoid() for one in parts[:3]], parts[3])),
            "data": batches(_normal(BATCH, WIDTH)),
        }
    ),
    "TML402/bad_argparse": Play(modules=_notes),
    "TML402/bad_plain": Play(modules=_cifar),
    "TML402/bad_shapes": Play(
        modules=_project(
            Points=_data_set(_IMAGE), Voxels=_data_set(_IMAGE, _LABEL), build=lambda world: lambda: world.feed("model")
        )
    ),
    "TML402/bad_trainer": Play({"model": lambda world: WithLoss(2 * CLASSES)}, _project(Pairs=_data_set(_named))),
    "TML403/bad_plain": Play(modules=_project(Cars=_data_set(_IMAGE, _LABEL))),
    "TML403/bad_shapes": Play(modules=_project(Videos=_data_set(_named)), act=_videos),
    "TML403/bad_together": Play({"model": lambda world: Loss(2 * WIDTH)}, _project(Maps=_data_set(_IMAGE, _IMAGE))),
    "TML501/bad_masks": Play({"x": _normal(2, 5, WIDTH), "batches": batches(_normal(2, 3))}, act=_decoding),
    "TML502/bad_every_batch": Play(
        {
            "dataset": lambda world: _data_set(_IMAGE, _LABEL)(world)(),
            "criterion": constant(nn.CrossEntropyLoss()),
            "batches": _on_device,
            "again": batches(World.pair),
        },
        act=_every_batch,
    ),
    "TML504/bad_resume": Play({"step": constant(3)}, act=_resuming),
    "TML506/bad_before_training": Play(act=_continuing),
    "TML507/bad_reports": Play(act=_reporting),
    "TML701/bad_appended": Play(
        {"net": model()}, modules=_lightning_modules, act=_lightning("Classifier", "on_train_epoch_end")
    ),
    "TML701/bad_epoch_end": Play(
        {
            "net": lambda world: nn.Conv2d(3, 2, 3, padding=1),
            "loader": batches(lambda world: (torch.randn(2, 3, 8, 8), torch.rand(2, 2, 8, 8))),
        },
        modules=_lightning_modules,
        act=_lightning("Segmenter", "training_epoch_end"),
    ),
}
