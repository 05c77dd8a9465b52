"""Loop forms: how an iteration is repeated."""

from __future__ import annotations

from tests.truth.forms import Loop, indented

LOOP: dict[str, Loop] = {
    "for": Loop(lambda body: ["for x, y in loader:", *indented(body)]),
    "while_next": Loop(
        lambda body: [
            "batches = iter(loader)",
            "while True:",
            "    try:",
            "        x, y = next(batches)",
            "    except StopIteration:",
            "        break",
            *indented(body),
        ]
    ),
    "enumerate": Loop(lambda body: ["for i, (x, y) in enumerate(loader):", *indented(body)]),
    "while_counter": Loop(
        lambda body: [
            "batches = iter(loader)",
            "done = 0",
            "while done < len(loader):",
            "    x, y = next(batches)",
            "    done += 1",
            *indented(body),
        ]
    ),
    "zip": Loop(lambda body: ["for i, (x, y) in zip(range(100), loader):", *indented(body)]),
    "progress": Loop(
        lambda body: ["for x, y in progress(loader):", *indented(body)],
        top=("def progress(batches):", "    for item in batches:", "        yield item"),
    ),
    "epochs": Loop(lambda body: ["for epoch in range(2):", "    for x, y in loader:", *indented(body, 2)]),
    # the iteration is a function
    "comprehension": Loop(lambda _: ["[one(x, y) for x, y in loader]"], "nested"),
    "recursion": Loop(
        lambda _: [
            "def go(batches):",
            "    batch = next(batches, None)",
            "    if batch is not None:",
            "        one(*batch)",
            "        go(batches)",
            "go(iter(loader))",
        ],
        "nested",
    ),
    "driven": Loop(
        lambda _: ["drive(one, loader)"],
        "nested",
        top=("def drive(function, batches):", "    for x, y in batches:", "        function(x, y)"),
    ),
    "callbacks": Loop(
        lambda _: [
            "callbacks = [one]",
            "for x, y in loader:",
            "    for callback in callbacks:",
            "        callback(x, y)",
        ],
        "nested",
    ),
}
