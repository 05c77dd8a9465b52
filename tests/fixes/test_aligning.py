"""Lines that a fix makes too long are broken as the other lines of their file are."""

from __future__ import annotations

import ast

import pytest

from torchmemlint.config.formatting import USUAL, Formatting
from torchmemlint.fixes.edits import Replacement, replace
from torchmemlint.fixes.tidying import tidied

ALIGNED = "names = dict(one=1,\n             two=2)\n"
ALONE = "names = dict(\n    one=1,\n    two=2,\n)\n"
STATEMENTS = {  # what `<>` becomes, another statement of the file, and what becomes of the first
    "a tuple gets brackets": (
        "image, label, weight = image.to(device<>), label.to(device<>), weight.to(device<>)",
        ", non_blocking=True",
        ALIGNED,
        "image, label, weight = (image.to(device, non_blocking=True),\n"
        "                        label.to(device, non_blocking=True),\n"
        "                        weight.to(device, non_blocking=True))",
    ),
    "a tuple that is returned gets brackets": (
        "return image.to(device<>), label.to(device<>), weight.to(device<>)",
        ", non_blocking=True",
        ALIGNED,
        "return (image.to(device, non_blocking=True), label.to(device, non_blocking=True),\n"
        "        weight.to(device, non_blocking=True))",
    ),
    "a call is broken twice": (
        "loader = DataLoader(data, batch_size=batch_size, shuffle=is_training<>)",
        ", num_workers=workers_wanted, pin_memory=torch.cuda.is_available(), persistent_workers=workers_wanted > 0",
        ALIGNED,
        "loader = DataLoader(data, batch_size=batch_size, shuffle=is_training,\n"
        "                    num_workers=workers_wanted, pin_memory=torch.cuda.is_available(),\n"
        "                    persistent_workers=workers_wanted > 0)",
    ),
    "as most of the file": (
        "state = torch.load(os.path.join(folder, name), weights_only=True, mmap=True<>)",
        ", map_location='cpu'",
        ALIGNED + ALIGNED + ALONE,
        "state = torch.load(os.path.join(folder, name), weights_only=True, mmap=True,\n"
        "                   map_location='cpu')",
    ),
    "as most of another file": (
        "state = torch.load(os.path.join(folder, name), weights_only=True, mmap=True<>)",
        ", map_location='cpu'",
        ALONE + ALIGNED + ALONE,
        "state = torch.load(\n    os.path.join(folder, name), weights_only=True, mmap=True, map_location='cpu'\n)",
    ),
    "what was long stays on its line": (
        "state = torch.load(os.path.join(folder, name, 'of', 'the'), weights_only=True, mmap=True<>)",
        ", map_location='cpu'",
        ALIGNED,
        "state = torch.load(os.path.join(folder, name, 'of', 'the'), weights_only=True, mmap=True, map_location='cpu')",
    ),
    "what was far too long stays on its line": (
        f"state = torch.load(os.path.join(folder, name, {'of, ' * 20}), weights_only=True<>)",
        ", map_location='cpu'",
        ALIGNED,
        f"state = torch.load(os.path.join(folder, name, {'of, ' * 20}), weights_only=True, map_location='cpu')",
    ),
    "what gets far too long is broken": (
        "state = torch.load(os.path.join(folder, name, 'of', 'the', 'last', 'run'), weights_only=True, mmap=True<>)",
        ", map_location='cpu'",
        ALIGNED,
        "state = torch.load(os.path.join(folder, name, 'of', 'the', 'last', 'run'), weights_only=True, mmap=True,\n"
        "                   map_location='cpu')",
    ),
    "a file that was formatted with lines of 120": (
        "state = torch.load(os.path.join(folder, name, 'of', 'the', 'last', 'run'), weights_only=True, mmap=True<>)",
        ", strict=True",
        ALONE,
        "state = torch.load(os.path.join(folder, name, 'of', 'the', 'last', 'run'), weights_only=True, mmap=True, "
        "strict=True)",
    ),
    "what was long stays where nothing is broken": (
        "state = torch.load(os.path.join(folder, name, 'of', 'the', 'last', 'run'), weights_only=True, mmap=True<>)",
        ", strict=True",
        "names = dict(one=1, two=2)\n",
        "state = torch.load(os.path.join(folder, name, 'of', 'the', 'last', 'run'), weights_only=True, mmap=True, "
        "strict=True)",
    ),
    "the names of a for are in no brackets": (
        "for number, (image, label) in enumerate(DataLoader(data, batch_size=size<>)):",
        ", pin_memory=True",
        ALIGNED,
        "for number, (image, label) in enumerate(DataLoader(data, batch_size=size,\n"
        "                                                   pin_memory=True)):",
    ),
    "a comment stays in its column": (
        "zeros = torch.zeros(n, m<>)                    # of the images",
        ", device=device",
        ALIGNED,
        "zeros = torch.zeros(n, m, device=device)     # of the images",
    ),
    "a comment that is near stays near": (
        "zeros = torch.zeros(n, m<>)  # of the images",
        ", device=device",
        ALIGNED,
        "zeros = torch.zeros(n, m, device=device)  # of the images",
    ),
}


def inserted(before: str, added: str, formatting: Formatting = USUAL) -> str:
    """What becomes of a text if something is put in where `<>` is."""
    pieces = before.split("<>")
    places = [sum(map(len, pieces[: n + 1])) for n in range(len(pieces) - 1)]
    text = "".join(pieces)
    return replace(text, tidied(text, tuple(Replacement(at, at, added) for at in places), formatting))


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_line_is_broken_as_a_person_would(name: str) -> None:
    before, added, beside, after = STATEMENTS[name]
    assert inserted(f"{beside}{before}\n", added) == f"{beside}{after}\n"


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("length", [30, 40, 60])
def test_breaking_lines_changes_nothing_else(name: str, length: int) -> None:
    before, added, beside, _ = STATEMENTS[name]
    body = "        pass\n" if before.startswith("for") else ""
    text = f"{beside}def f():\n    {before}\n{body}"
    plain = text.replace("<>", added)
    assert ast.dump(ast.parse(inserted(text, added, Formatting(length)))) == ast.dump(ast.parse(plain))
