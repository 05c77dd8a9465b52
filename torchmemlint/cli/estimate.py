"""`torchmemlint estimate`: the memory of a model before it is run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from torchmemlint.cli.cards import card_options
from torchmemlint.cli.parameters import refusing
from torchmemlint.runtime.estimates.fitting import MOST
from torchmemlint.runtime.estimates.plan import FLOATING, Input, Plan, dtype_name
from torchmemlint.sizes import format_size

if TYPE_CHECKING:
    from rich.console import Console

    from torchmemlint.runtime.estimates.estimate import Estimate

OPTIMIZERS = ("adam", "adamw", "adamw8bit", "adafactor", "adagrad", "momentum", "rmsprop", "sgd")
_LAYERS = 20


def _parsed(context: click.Context, parameter: click.Parameter, written: tuple[str, ...]) -> tuple[Input, ...]:
    with refusing(context, parameter):
        return tuple(Input.parse(one) for one in written)


def _floating(context: click.Context, parameter: click.Parameter, written: str | None) -> str | None:
    if written is None:
        return None
    with refusing(context, parameter):
        name = dtype_name(written)
    if name not in FLOATING:
        raise click.BadParameter(f"{written} is not a floating-point dtype", context, parameter)
    return name


@click.command(short_help="Estimate the memory of a model before it is run.")
@click.argument("factory", metavar="MODULE:FACTORY")
@click.option(
    "--input",
    "inputs",
    callback=_parsed,
    metavar="SHAPE",
    multiple=True,
    required=True,
    help="An input, batch first: 8x3x224x224, 8x512:int64, mask=8x512:bool. Repeat it for several.",
)
@click.option("--optimizer", type=click.Choice(OPTIMIZERS), default="adamw", show_default=True)
@click.option("--inference", is_flag=True, help="Estimate a forward under no_grad instead of training.")
@click.option(
    "--dtype",
    metavar="DTYPE",
    callback=_floating,
    default="float32",
    show_default=True,
    help="The dtype of parameters and inputs.",
)
@click.option("--amp", callback=_floating, metavar="DTYPE", help="Autocast to this dtype: bf16 or fp16.")
@click.option("--checkpoint", is_flag=True, help="Compute the longest sequence of layers again in backward.")
@click.option("--accumulate", type=click.IntRange(1), default=1, show_default=True, help="Micro-batches for each step.")
@click.option("--batch", type=click.IntRange(1), help="The first dimension of the inputs, instead of theirs.")
@card_options
@click.option("--alternatives/--no-alternatives", default=True, help="Look for the largest batch, and try remedies.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text")
def estimate(
    factory: str,
    inputs: tuple[Input, ...],
    optimizer: str,
    inference: bool,
    dtype: str,
    amp: str | None,
    checkpoint: bool,
    accumulate: int,
    batch: int | None,
    card: str | None,
    memory: int | None,
    alternatives: bool,
    output_format: str,
) -> int:
    """Estimate the memory of a training step of the model that MODULE:FACTORY creates.

    Tensors have no values and nothing is allocated, so the model may be larger than this machine's memory. FACTORY is
    any callable without arguments that returns a torch.nn.Module: `torchmemlint estimate models:resnet --input
    32x3x224x224`.
    """
    from torchmemlint.runtime.launch import import_torch, missing_torch

    missing = missing_torch()
    if missing is not None:
        raise click.ClickException(f"torchmemlint estimate {missing}")
    import_torch()
    from torchmemlint.runtime.estimates.estimate import NoSuchFactoryError
    from torchmemlint.runtime.estimates.estimate import estimate as estimated

    plan = Plan(inputs, None if inference else optimizer, dtype, amp, checkpoint, accumulate, card, memory)
    if batch is not None:
        plan = plan.with_batch(batch)
    try:
        found = estimated(factory, plan, alternatives=alternatives)
    except (NoSuchFactoryError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    except Exception as error:
        raise click.ClickException(
            f"the model could not be run with {', '.join(map(str, plan.inputs))}: {type(error).__name__}: {error}"
        ) from error
    if output_format == "json":
        click.echo(json.dumps(found.to_json(), indent=2))
    else:
        from rich.console import Console

        show(found, Console(highlight=False))
    return 0


def show(found: Estimate, console: Console) -> None:
    """The estimate in the terminal."""
    from rich.table import Table

    use = found.use
    low, high = found.needed
    console.print(
        f"[bold]{found.factory}[/bold] with {', '.join(map(str, found.plan.inputs))}: {_training(found.plan)}"
    )
    console.print(f"{use.parameters:,} parameters, {use.trainable:,} of them trained. {use.backend}.\n")

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for kind, nbytes in use.by_kind.items():
        table.add_row(kind.label, format_size(nbytes), _bar(nbytes, use.peak))
    table.add_row("workspace, rounding", format_size(use.workspace), _bar(use.workspace, use.peak))
    table.add_row("[bold]peak allocated[/bold]", f"[bold]{format_size(use.peak)}[/bold]", f"in the {use.phase}")
    table.add_row("peak reserved", format_size(use.reserved), "the allocator's segments")
    table.add_row("with a CUDA context", f"{format_size(low)} to {format_size(high)}", _verdict(found))
    console.print(table)
    if found.largest_batch == MOST:
        console.print(f"\nMore than {MOST:,} examples fit in a batch.")
    elif found.largest_batch is not None:
        console.print(f"\nThe largest batch that fits: {found.largest_batch:,}.")
    elif found.remedies:
        console.print("\nNot even a batch of one fits.")
    _show_layers(found, console)
    _show_remedies(found, console)


def _training(plan: Plan) -> str:
    told = ["inference" if plan.optimizer is None else f"a training step with {plan.optimizer}", plan.dtype]
    if plan.amp is not None:
        told.append(f"autocast to {plan.amp}")
    if plan.checkpoint:
        told.append("checkpointed")
    if plan.accumulate > 1:
        told.append(f"{plan.accumulate} micro-batches")
    return ", ".join(told)


def _bar(nbytes: int, of: int, width: int = 24) -> str:
    return "█" * max(1, round(width * nbytes / of)) if nbytes and of else ""


def _verdict(found: Estimate) -> str:
    size = found.card if found.plan.memory is not None else f"{found.card} ({format_size(found.capacity)})"
    return f"fits {size}" if found.fits else f"does not fit {size}"


def _show_layers(found: Estimate, console: Console) -> None:
    from rich.table import Table

    layers = sorted(found.use.layers, key=lambda layer: -(layer.parameters + layer.saved))
    if not layers:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("layer")
    table.add_column("type")
    table.add_column("parameters", justify="right")
    table.add_column("saved for backward", justify="right")
    for layer in layers[:_LAYERS]:
        table.add_row(layer.name, layer.type, format_size(layer.parameters), format_size(layer.saved))
    console.print()
    console.print(table)
    if len(layers) > _LAYERS:
        console.print(f"… and {len(layers) - _LAYERS} more layers (--output-format json has all)")


def _show_remedies(found: Estimate, console: Console) -> None:
    from rich.table import Table

    if not found.remedies:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("what would change it")
    table.add_column("peak", justify="right")
    table.add_column("", justify="right")
    table.add_column("price")
    for remedy in found.remedies:
        if remedy.peak is None:
            table.add_row(remedy.name, "-", "", remedy.problem)
        else:
            difference = (remedy.peak - found.use.peak) / found.use.peak
            table.add_row(remedy.name, format_size(remedy.peak), f"{difference:+.0%}", remedy.price)
    console.print()
    console.print(table)
