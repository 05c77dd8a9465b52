"""Loop forms: how an iteration is repeated."""

from __future__ import annotations

from collections.abc import Callable

from tests.truth.forms import Lines, Loop, indented


def _around(*head: str, before: Lines = (), levels: int = 1) -> Callable[[list[str]], list[str]]:
    """The lines of the iteration below a head."""
    return lambda body: [*before, *head, *indented(body, levels)]


def _only(*lines: str) -> Callable[[list[str]], list[str]]:
    """Lines that call the iteration."""
    return lambda _: list(lines)


_BATCHES: Lines = ("batches = iter(loader)",)

_BODY: dict[str, Loop] = {
    "for": Loop(_around("for x, y in loader:")),
    "batch": Loop(_around("for batch in loader:", "    x, y = batch")),
    "starred": Loop(_around("for x, *rest in loader:", "    y = rest[0]")),
    "indexed": Loop(_around("for batch in loader:", "    x = batch[0]", "    y = batch[1]")),
    "enumerate": Loop(_around("for i, (x, y) in enumerate(loader):")),
    "zip": Loop(_around("for i, (x, y) in zip(range(100), loader):")),
    "chain": Loop(_around("for x, y in itertools.chain(loader):")),
    "islice": Loop(_around("for x, y in itertools.islice(loader, 12):")),
    "map_batches": Loop(_around("for x, y in map(tuple, loader):")),
    "generator_expression": Loop(_around("for x, y in (batch for batch in loader):")),
    "while_next": Loop(
        _around(
            "while True:",
            "    try:",
            "        x, y = next(batches)",
            "    except StopIteration:",
            "        break",
            before=_BATCHES,
        )
    ),
    "while_counter": Loop(
        _around(
            "while done < len(loader):", "    x, y = next(batches)", "    done += 1", before=(*_BATCHES, "done = 0")
        )
    ),
    "while_walrus": Loop(
        _around("while (batch := next(batches, None)) is not None:", "    x, y = batch", before=_BATCHES)
    ),
    "range_next": Loop(_around("for i in range(len(loader)):", "    x, y = next(batches)", before=_BATCHES)),
    "sentinel": Loop(_around("for x, y in iter(lambda: next(batches, None), None):", before=_BATCHES)),
    "progress": Loop(
        _around("for x, y in progress(loader):"),
        top=("def progress(batches):", "    for item in batches:", "        yield item"),
    ),
    "progress_object": Loop(
        _around("for x, y in Progress_(loader):"),
        top=(
            "class Progress_:",
            "    def __init__(self, batches):",
            "        self.batches = batches",
            "",
            "    def __iter__(self):",
            "        return iter(self.batches)",
        ),
    ),
    "epochs": Loop(_around("for epoch in range(2):", "    for x, y in loader:", levels=2)),
    "inner_loop": Loop(_around("for batch in loader:", "    for x, y in [batch]:", levels=2)),
    "context_progress": Loop(
        lambda body: ["with Bar(loader) as bar:", "    for x, y in bar.batches:", *indented(body, 2)],
        top=(
            "class Bar:",
            "    def __init__(self, batches):",
            "        self.batches = batches",
            "",
            "    def __enter__(self):",
            "        return self",
            "",
            "    def __exit__(self, *exception):",
            "        return None",
        ),
    ),
    "for_else": Loop(lambda body: ["for x, y in loader:", *indented(body), "else:", '    print("done")']),
    "try_finally": Loop(
        lambda body: ["try:", "    for x, y in loader:", *indented(body, 2), "finally:", '    print("done")']
    ),
}

_NESTED: dict[str, Loop] = {  # an iteration is a function
    "called": Loop(_only("for x, y in loader:", "    one(x, y)"), "nested"),
    "comprehension": Loop(_only("[one(x, y) for x, y in loader]"), "nested"),
    "map": Loop(_only("list(map(lambda batch: one(*batch), loader))"), "nested"),
    "starmap": Loop(_only("for _ in itertools.starmap(one, loader):", "    pass"), "nested"),
    "any": Loop(_only("any(one(x, y) for x, y in loader)"), "nested"),
    "recursion": Loop(
        _only(
            "def go(batches):",
            "    batch = next(batches, None)",
            "    if batch is not None:",
            "        one(*batch)",
            "        go(batches)",
            "go(iter(loader))",
        ),
        "nested",
    ),
    "driven": Loop(
        _only("drive(one, loader)"),
        "nested",
        ("def drive(function, batches):", "    for x, y in batches:", "        function(x, y)"),
    ),
    "callbacks": Loop(
        _only(
            "callbacks = [one]",
            "for x, y in loader:",
            "    for callback in callbacks:",
            "        callback(x, y)",
        ),
        "nested",
    ),
    "dispatched": Loop(_only('phases = {"train": one}', "for x, y in loader:", '    phases["train"](x, y)'), "nested"),
    "events": Loop(
        _only("engine = Engine()", 'engine.on("batch", one)', "engine.go(loader)"),
        "nested",
        (
            "class Engine:",
            "    def __init__(self):",
            "        self.handlers = defaultdict(list)",
            "",
            "    def on(self, event, handler):",
            "        self.handlers[event].append(handler)",
            "",
            "    def go(self, batches):",
            "        for batch in batches:",
            '            for handler in self.handlers["batch"]:',
            "                handler(*batch)",
        ),
    ),
    "asynchronous": Loop(
        _only(
            "async def all_batches():",
            "    for x, y in loader:",
            "        one(x, y)",
            "asyncio.run(all_batches())",
        ),
        "nested",
    ),
    "thread_pool": Loop(
        _only(
            "with ThreadPoolExecutor(max_workers=1) as pool:",
            "    for x, y in loader:",
            "        list(pool.map(one, [x], [y]))",
        ),
        "nested",
        threaded=True,
    ),
    "submitted": Loop(
        _only(
            "pool = ThreadPoolExecutor(max_workers=1)",
            "for x, y in loader:",
            "    pool.submit(one, x, y).result()",
            "pool.shutdown()",
        ),
        "nested",
        threaded=True,
    ),
    "thread": Loop(
        _only(
            "for x, y in loader:",
            "    worker = threading.Thread(target=one, args=(x, y))",
            "    worker.start()",
            "    worker.join()",
        ),
        "nested",
        threaded=True,
    ),
}

_STEP_METHOD: Lines = ("def training_step(self, batch, index):", "x, y = batch")
_METHOD: dict[str, Loop] = {  # an iteration is a method of the host's class
    "own_method": Loop(
        _only("for x, y in loader:", "    self.iteration(x, y)"), "method", method=("def iteration(self, x, y):",)
    ),
    "method_by_name": Loop(
        _only("for batch in loader:", '    getattr(self, "on_batch")(batch)'),
        "method",
        method=("def on_batch(self, batch):", "x, y = batch"),
    ),
    "framework": Loop(
        _only("Fitter(1).go(self, loader)"),
        "method",
        (
            "class Fitter:",
            "    def __init__(self, epochs):",
            "        self.epochs = epochs",
            "",
            "    def go(self, task, batches):",
            "        for epoch in range(self.epochs):",
            "            for index, batch in enumerate(batches):",
            "                task.training_step(batch, index)",
        ),
        _STEP_METHOD,
    ),
    "framework_without_gradients": Loop(
        _only("Validator().go(self, loader)"),
        "method",
        (
            "class Validator:",
            "    def go(self, task, batches):",
            "        training = torch.is_grad_enabled()",
            "        with torch.set_grad_enabled(training):",
            "            for index, batch in enumerate(batches):",
            "                task.validation_step(batch, index)",
        ),
        ("def validation_step(self, batch, index):", "x, y = batch"),
    ),
    "framework_callbacks": Loop(
        _only("Epoch([Callback(), self]).go(loader)"),
        "method",
        (
            "class Callback:",
            "    def on_batch_end(self, batch):",
            "        pass",
            "",
            "",
            "class Epoch:",
            "    def __init__(self, callbacks):",
            "        self.callbacks = callbacks",
            "",
            "    def go(self, batches):",
            "        for batch in batches:",
            "            for callback in self.callbacks:",
            "                callback.on_batch_end(batch)",
        ),
        ("def on_batch_end(self, batch):", "x, y = batch"),
    ),
}

_METHOD |= {
    "inherited_loop": Loop(
        _only("self.go(loader)"),
        "method",
        (
            "class Loops:",
            "    def go(self, batches):",
            "        for index, batch in enumerate(batches):",
            "            self.training_step(batch, index)",
        ),
        _STEP_METHOD,
        bases="Loops",
    ),
    "module_of_callbacks": Loop(
        _only("Events(self).all(loader)"),
        "method",
        (
            "class Events:",
            "    def __init__(self, target):",
            '        self.names = ["on_start", "on_batch"]',
            "        self.target = target",
            "",
            "    def all(self, batches):",
            "        for batch in batches:",
            "            for name in self.names:",
            "                handler = getattr(self.target, name, None)",
            "                if handler is not None:",
            "                    handler(batch)",
        ),
        ("def on_batch(self, batch):", "x, y = batch"),
    ),
}

_SPLIT: dict[str, Loop] = {  # an iteration gives the value, and the loop keeps it
    "stream": Loop(
        _around("for got in stream(one, loader):"),
        "split",
        ("def stream(function, batches):", "    for x, y in batches:", "        yield function(x, y)"),
    ),
    "lazy_map": Loop(_around("for got in map(lambda batch: one(*batch), loader):"), "split"),
    "lazy_comprehension": Loop(_around("for got in (one(x, y) for x, y in loader):"), "split"),
    "numbered_results": Loop(
        _around("for i, got in enumerate(one(x, y) for x, y in loader):"),
        "split",
    ),
}

_EACH = "one(x, y) for x, y in loader"
_COLLECT: dict[str, Loop] = {  # one expression makes all that is kept
    "collected": Loop(
        _only(),
        "collect",
        collects={
            "sum": f"sum({_EACH})",
            "list": f"[{_EACH}]",
            "dict": "{i: one(x, y) for i, (x, y) in enumerate(loader)}",
            "deque": f"deque({_EACH})",
            "tuple": f"tuple({_EACH})",
            "set": f"{{{_EACH}}}",
        },
    ),
    "collected_by_map": Loop(
        _only(),
        "collect",
        collects={
            "sum": "sum(map(lambda batch: one(*batch), loader))",
            "list": "list(map(lambda batch: one(*batch), loader))",
            "tuple": "tuple(itertools.starmap(one, loader))",
        },
    ),
    "collected_by_accumulate": Loop(
        _only(),
        "collect",
        collects={
            "sum": f"list(itertools.accumulate({_EACH}))[-1]",
        },
    ),
    "collected_by_reduce": Loop(
        _only(),
        "collect",
        collects={
            "sum": "functools.reduce(lambda past, batch: past + one(*batch), loader, 0.0)",
            "list": "functools.reduce(lambda past, batch: [*past, one(*batch)], loader, [])",
        },
    ),
}

_COLLECT |= {
    "collected_by_framework": Loop(
        _only(),
        "collect",
        (
            "class Collector:",
            "    def go(self, function, batches):",
            "        gathered = []",
            "        for x, y in batches:",
            "            gathered.append(function(x, y)) #@put",
            "        return gathered",
        ),
        collects={"list": "Collector().go(one, loader)", "tuple": "tuple(Collector().go(one, loader))"},
    ),
}

LOOP: dict[str, Loop] = {**_BODY, **_NESTED, **_METHOD, **_SPLIT, **_COLLECT}
