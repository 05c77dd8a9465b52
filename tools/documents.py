"""Fill the marked places of README.md and docs/ with what the program itself says, and write the rules' pages.

    python tools/documents.py                      # rewrite them
    python tools/documents.py --check              # exit 1 if one is stale
    python benchmarks/speed.py --json > speed.json
    python tools/documents.py --benchmark speed.json # keep a run of the benchmark

A place lies between `<!-- NAME: written by TOOL -->` and `<!-- end of NAME -->`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import importlib.util
import inspect
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "mkdocs.yml")
EXAMPLE = "fixtures/TML201-eval-without-no-grad/bad_diffusion.py"
SHORT_EXAMPLE = "fixtures/TML202-no-op-grad-mode/bad_uncalled.py"
FOR_PROGRAMS = "json json-lines json-report github azure gitlab junit pylint rdjson markdown".split()
NOTEBOOK = "examples/leaky_notebook.ipynb"
FOLDED_EXAMPLE = (
    SHORT_EXAMPLE,
    "fixtures/TML401-loader-without-workers/bad_plain.py",
    "fixtures/TML301-out-of-place-activation/bad_sequential.py",
)
PLACE = re.compile(  # in YAML it lies between comments
    r"(?P<begin><!-- (?P<name>[a-z-]+): written by [\w./]+ -->\n)(?P<text>.*?)"
    r"(?P<end>(?: *# )?<!-- end of (?P=name) -->)",
    re.DOTALL,
)


def shown(*arguments: str) -> str:
    """A command and its output, as a reader in the repository's folder sees it."""
    return f"```text\n$ torchmemlint {' '.join(arguments)}\n{printed(ROOT, *arguments)}\n```\n"


def printed(folder: Path, *arguments: str) -> str:
    """What a command prints, run in a folder."""
    from torchmemlint.cli.main import main

    output, before = io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            main((*arguments, "--isolated", "--color=never"))
    finally:
        os.chdir(before)
    return output.getvalue().rstrip().replace(str(ROOT), "/home/me/project")


def out_of_memory() -> str:
    """What is said of a snapshot: the request that failed, the lines that had most, and what would have fitted."""
    text = printed(ROOT / "examples", "oom", "out_of_memory.pickle", "out_of_memory.py")
    failed = text[text.index("out of memory  ") :]
    lines = failed.splitlines()
    live = next(number for number, line in enumerate(lines) if line.startswith("Live at"))
    fit = next(number for number, line in enumerate(lines) if line.startswith("What would have made it fit"))
    return "```text\n" + "\n".join([*lines[: live + 6], "…", *lines[fit:]]) + "\n```\n"


def options() -> str:
    """The configuration options."""
    from torchmemlint.config.options import OPTIONS

    parts = []
    for option in OPTIONS:
        example = option.example if option.example.startswith("[") else f"[tool.torchmemlint]\n{option.example}"
        parts += [f"### `{option.key}`", option.doc]
        parts += [f"Type: {option.type}. Default: `{option.default}`.", f"```toml\n{example}\n```"]
    return "\n\n".join(parts) + "\n"


def doubts() -> str:
    """What findings may leave undetermined."""
    from torchmemlint.doubts import Claim, Doubt, confidence, is_guess

    lines = []
    for doubt in Doubt:
        alone = frozenset({doubt})
        alone_is = confidence(alone).value
        guesses = is_guess(alone, Claim.KEPT), any(is_guess(alone, one) for one in (Claim.WASTED, Claim.HELD))
        shown = ["not reported" if guess else alone_is for guess in guesses]
        lines.append(f"| `{doubt.label}` | {doubt.value} | {' | '.join(shown)} |")
    head = "| name | what could not be determined | a graph is kept | others |\n|---|---|---|---|\n"
    return "\n" + head + "\n".join(lines) + "\n\n"


def presets() -> str:
    """The presets, with the rules that each has."""
    from torchmemlint.config.presets import PRESETS
    from torchmemlint.rules.registry import all_rules, own

    default = PRESETS[0].codes(own())
    parts = []
    for preset in PRESETS:
        on = preset.codes(own())
        parts += [f"### `{preset.name}`", preset.doc, preset.reason]
        listed = [rule.code for rule in all_rules() if rule.code in on]
        more = [code for code in listed if code not in default]
        if preset.name == "default":
            parts.append(f"On: {', '.join(listed)}.")
        elif on >= default:
            parts.append(f"Besides the default: {', '.join(more)}.")
        else:
            parts.append(f"On: {', '.join(listed)}.")
        parts.append(f"Fails on: {preset.fail_on.value}.")
    return "\n\n".join(parts) + "\n"


def terms() -> str:
    """The keys of a framework's contracts."""
    from torchmemlint.config.contracts import VOCABULARY

    lines = ["| key | names | such as |", "|---|---|---|"]
    lines += [f"| `{term.key}` | {term.doc} | `{term.example}` |" for term in VOCABULARY]
    return "\n" + "\n".join(lines) + "\n\n"


def operations() -> str:
    """What a framework's contracts may say of an operation."""
    from torchmemlint.config.contracts import OF_OPERATIONS

    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{key}` | {kind} | `{default}` | {doc} |" for key, (kind, default, doc) in OF_OPERATIONS.items()]
    return "\n" + "\n".join(lines) + "\n\n"


def frameworks() -> str:
    """The frameworks of the linter's own data, with what is known of each."""
    from torchmemlint.knowledge.contracts import shipped_frameworks

    lines = ["| framework | checked against | contracts |", "|---|---|---|"]
    for framework in shipped_frameworks():
        keys = ", ".join(f"{key} ({len(names)})" for key, names in framework.names)
        lines.append(f"| {framework.name} | {framework.version} | {keys} |")
    return "\n" + "\n".join(lines) + "\n\n"


def sarif() -> str:
    """A result of a SARIF log, as its format writes it."""
    text = shown(SHORT_EXAMPLE, "--output-format", "sarif")
    log = json.loads(text.partition("\n")[2].partition("\n")[2].removesuffix("```\n"))
    return f"```json\n{json.dumps(log['runs'][0]['results'][0], indent=2)}\n```\n"


def schema() -> str:
    """The JSON schema of the findings."""
    return "```json\n" + (ROOT / "torchmemlint/report/schema.json").read_text().strip() + "\n```\n"


def coverage() -> str:
    """How much of torch the data file covers, and what it says of that."""
    data = json.loads((ROOT / "torchmemlint/knowledge/torch.json").read_text(encoding="utf-8"))
    lines = ["| of the public callables of | covered | of | |", "|---|---:|---:|---:|"]
    for part, (covered, of) in data["coverage"].items():
        lines.append(f"| `{part}` | {covered} | {of} | {covered / of:.0%} |")
    operations = [*data["functions"].values(), *data["methods"].values(), *data["modules"].values()]
    facts = {
        "give no tensor, or one without a graph whatever they are given": lambda line: not _carries(line),
        "give several results, not all with a graph": lambda line: isinstance(line.get("graph"), list),
        "keep their input for backward": lambda line: "input" in line.get("saves", ()),
        "keep their output": lambda line: "output" in line.get("saves", ()),
        "keep nothing": lambda line: _carries(line) and not line["saves"],
        "have an in-place form": lambda line: "inplace" in line,
        "make tensors from none": lambda line: line.get("factory", False),
        "may return a view of their input": lambda line: line.get("view", False),
        "may move to another device": lambda line: line.get("moves", False),
    }
    lines += ["", f"Of these {len(operations)} functions, methods and layers (torch {data['torch']}):", ""]
    lines += ["| what they do | how many |", "|---|---:|"]
    lines += [f"| {what} | {sum(map(is_so, operations))} |" for what, is_so in facts.items()]
    return "\n" + "\n".join(lines) + "\n\n"


def promises() -> str:
    """What autograd promises, each with the page that says so."""
    from torchmemlint.knowledge.autograd import contracts

    lines = [f"- {one['says']} ([source]({one['source']})){_about(one)}" for one in contracts().values()]
    return "\n" + "\n".join(lines) + "\n\n"


def _about(contract: dict[str, Any]) -> str:
    named = ", ".join(f"`{name}`" for name in contract.get("names", ()))
    return f"<br>{named}" if named else ""


def api() -> str:
    """The Python API: signatures, what the docstrings say, and the data types as they are written."""
    import torchmemlint

    parts = []
    for name in ("check_source", "fix_source", "check_paths"):
        function = getattr(torchmemlint, name)
        parts += [f"### `{name}`", f"```python\n{_signature(function)}\n```", inspect.cleandoc(function.__doc__)]
    for name in ("FixedSource", "RolledBack", "CheckError", "ConfigError"):
        parts += [f"### `{name}`", *_described(getattr(torchmemlint, name))]
    parts += ["### `Finding`", *_described(torchmemlint.Finding), "And what it is made of:"]
    parts += [
        _fields(getattr(torchmemlint, name))
        for name in ("Severity", "Confidence", "Position", "Span", "Evidence", "Fix")
    ]
    parts += [_fields(getattr(torchmemlint, name)) for name in ("Applicability", "Edit")]
    return "\n" + "\n\n".join(part for part in parts if part) + "\n\n"


def scaffold() -> str:
    """The rule that `torchmemlint new-rule` makes."""
    from torchmemlint.scaffold import plugin

    files = plugin("ACM101", "unbounded-history", Path("there-is-no-such-folder")).files
    return "```python\n" + next(text for path, text in files.items() if path.name.startswith("acm101")) + "```\n"


def plugins() -> str:
    """What the module for plugins has besides the data types of the API."""
    from torchmemlint import plugins

    parts = []
    questions = ("calls", "carries_graph", "gradients_on", "made_by")
    for name in (*questions, "report", "add_argument", "append_call", "wrap_in", "span_of"):
        function = getattr(plugins, name)
        parts += [f"### `{name}`", f"```python\n{_signature(function)}\n```", inspect.cleandoc(function.__doc__)]
    parts += ["### `Call`", *_described(plugins.Call)]
    for name in ("in_loop", "argument"):
        member = getattr(plugins.Call, name)
        text = f"@property\n{_signature(member.fget)}" if isinstance(member, property) else _signature(member)
        parts += [f"```python\n{text}\n```", inspect.cleandoc(member.__doc__)]
    others = ", ".join(f"`{name}`" for name in plugins.__all__ if name in vars(torchmemlint_types()))
    parts += ["### `Retention`", *_described(plugins.Retention)]
    parts.append(f"Besides, it has `Rule`, `Stage`, `Tag`, `FileFacts`, and of the [API](api.md#finding) {others}.")
    return "\n" + "\n\n".join(part for part in parts if part) + "\n\n"


def torchmemlint_types() -> ModuleType:
    from torchmemlint import findings

    return findings


def _signature(function: Callable[..., Any]) -> str:
    """A function's signature, a line for each parameter."""
    signature = inspect.signature(function)
    lines, starred = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            lines.append("*")
            starred = True
        lines.append(str(parameter).replace("'", ""))
    listed = "".join(f"    {line},\n" for line in lines)
    return f"def {function.__name__}(\n{listed}) -> {signature.return_annotation}: ..."


def _described(kind: type) -> list[str]:
    fields = _fields(kind) if dataclasses.is_dataclass(kind) else ""
    return [inspect.cleandoc(kind.__doc__ or ""), fields]


def _fields(kind: type) -> str:
    """A data type as it is written, without its docstring and methods."""
    lines = inspect.getsource(kind).splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("class "))
    stop = next((i for i, line in enumerate(lines) if re.match(r"    (@|def )", line)), len(lines))
    docstring = re.compile(r'\n    """.*?"""\n', re.DOTALL)
    text = docstring.sub("\n", "\n".join(lines[begin:stop]) + "\n", count=1)
    return "```python\n" + re.sub(r":\n\n+", ":\n", text).strip() + "\n```"


def _carries(line: dict[str, Any]) -> bool:
    graph = line.get("graph", False)
    return any(graph) if isinstance(graph, list) else bool(graph)


def retirements() -> str:
    """The names of torch that were deprecated, with what took their place."""
    data = json.loads((ROOT / "torchmemlint/knowledge/torch_releases.json").read_text(encoding="utf-8"))
    lines = [f"Releases compared: {', '.join(data['releases'])}.", ""]
    lines += ["| name | deprecated | use | which came with |", "|---|---|---|---|"]
    for name, line in data["names"].items():
        if "deprecated" in line and "instead" in line:
            first = "2.0 or before" if line["deprecated"] == data["releases"][0] else line["deprecated"]
            given = f"({line['with']}, …)" if "with" in line else ""
            came = data["names"].get(line["instead"], {}).get("since", "2.0 or before")
            lines.append(f"| `{name}` | {first} | `{line['instead']}{given}` | {came} |")
    return "\n" + "\n".join(lines) + "\n\n"


def impact() -> str:
    """What each rule's experiment gave, on each backend it was run on."""
    from torchmemlint.runtime.experiments import table
    from torchmemlint.runtime.experiments.outcome import Outcome

    kept = json.loads((ROOT / "docs" / "impact.json").read_text(encoding="utf-8"))
    parts: list[str] = []
    for backend in ("cpu", "simulated", "cuda"):
        parts += ["", f"## {backend}", ""]
        if backend not in kept:
            parts.append("Not yet measured.")
            continue
        run = kept[backend]
        parts += [f"{run['backend']}, torch {run['torch']}, {run['machine']}, {run['date']}.", ""]
        parts += ["| rule | program | figure | bad → good | peak | step |", "|---|---|---|--:|--:|--:|"]
        for outcome in map(Outcome.from_json, run["outcomes"]):
            note = f" ({outcome.note})" if outcome.note else ""
            cells = outcome.code, outcome.title + note, outcome.effect.value, table.change(outcome)
            parts.append(f"| {' | '.join(cells)} | {table.share_of_peak(outcome)} | {table.time_per_step(outcome)} |")
    return "\n".join(parts[1:]) + "\n\n"


def versions() -> str:
    """The last run of the verifier's tests with each release of torch."""
    kept = json.loads((ROOT / "docs" / "runtime-versions.json").read_text(encoding="utf-8"))
    lines = ["| torch | Python | passed | failed | skipped | date |", "|---|---|--:|--:|--:|---|"]
    for run in kept.values():
        failed = run["failed"] + run["error"]
        lines.append(
            f"| {run['torch']} | {run['python']} | {run['passed']} | {failed} | {run['skipped']} | {run['date']} |"
        )
    return "\n" + "\n".join(lines) + "\n\n"


def trainers() -> str:
    """The last run of the verifier's tests of training frameworks with these installed."""
    run = json.loads((ROOT / "docs" / "runtime-frameworks.json").read_text(encoding="utf-8"))
    names = ", ".join(f"{name} {version}" for name, version in run["frameworks"].items())
    counts = f"{run['passed']} passed, {run['failed'] + run['error']} failed, {run['skipped']} skipped"
    return f"\n{names}, torch {run['torch']}, Python {run['python']}: {counts} ({run['date']}).\n\n"


def file(path: str) -> str:
    """A file of the repository, as it is."""
    text = (ROOT / path).read_text(encoding="utf-8").strip()
    return f"```{FENCES[Path(path).suffix]}\n{text}\n```\n"


FENCES = {
    "": "groovy",
    ".yml": "yaml",
    ".lua": "lua",
    ".el": "elisp",
    ".toml": "toml",
    ".json": "json",
    ".sublime-settings": "json",
}

# The configurations of editors, which are files that tests use.
EDITORS = {
    "neovim": "editors/neovim/lsp/torchmemlint.lua",
    "older-neovim": "editors/neovim/torchmemlint.lua",
    "helix": "editors/helix/languages.toml",
    "emacs": "editors/emacs/torchmemlint.el",
    "zed": "editors/zed/settings.json",
    "pycharm": "editors/pycharm/template.json",
    "sublime": "editors/sublime/LSP.sublime-settings",
    "jupyterlab": "editors/jupyterlab/torchmemlint.json",
}

# What services for CI are told, which are files that tests use, too.
SERVICES = {
    "github-workflow": "integrations/github/workflow.yml",
    "github-new-since": "integrations/github/new-since.yml",
    "github-plain": "integrations/github/plain.yml",
    "gitlab-job": "integrations/gitlab/torchmemlint.gitlab-ci.yml",
    "jenkins-pipeline": "integrations/jenkins/Jenkinsfile",
}


def action_inputs() -> str:
    """The inputs and outputs of the GitHub Action."""
    import yaml

    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    lines = ["| input | default | |", "|---|---|---|"]
    for name, one in action["inputs"].items():
        default = f" `{one['default']}` |" if one["default"] else " |"
        lines.append(f"| `{name}` |{default} {one['description']} |")
    lines += ["", "| output | |", "|---|---|"]
    lines += [f"| `{name}` | {one['description']} |" for name, one in action["outputs"].items()]
    return "\n" + "\n".join(lines) + "\n\n"


def beside(name: str) -> ModuleType:
    """A module beside this one, however this one was come to."""
    specification = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # where dataclasses look for it
    specification.loader.exec_module(module)
    return module


BENCHMARK = beside("benchmark_tables")
PRECISION = beside("precision_tables")
STAGES = beside("rule_stages")
RULE_PAGES = beside("rule_pages")
CHARTS = beside("cost_chart")
MAKERS: dict[str, Callable[[], str]] = {
    **beside("accuracy_tables").MAKERS,
    **beside("adoption_example").MAKERS,
    **beside("card_tables").MAKERS,
    **beside("gpu_tables").MAKERS,
    **beside("option_table").MAKERS,
    **beside("memory_tables").MAKERS,
    **beside("program_tables").MAKERS,
    **PRECISION.MAKERS,
    **beside("suite_tables").MAKERS,
    "benchmark": BENCHMARK.tables,
    "rules-navigation": RULE_PAGES.navigation,
    **{name: functools.partial(file, path) for name, path in {**EDITORS, **SERVICES}.items()},
    "action-inputs": action_inputs,
    "example": lambda: shown(EXAMPLE),
    "first": lambda: shown("examples/leaky_training.py", "--select", "TML201"),
    "options": options,
    "doubts": doubts,
    "presets": presets,
    "terms": terms,
    "operations": operations,
    "frameworks": frameworks,
    "preview": STAGES.preview,
    "full": lambda: shown(SHORT_EXAMPLE),
    "notebook": lambda: shown(NOTEBOOK),
    "notebook-diff": lambda: shown(NOTEBOOK, "--diff"),
    "out-of-memory": out_of_memory,
    "folded": lambda: shown(*FOLDED_EXAMPLE),
    "concise": lambda: shown(EXAMPLE, "--output-format", "concise"),
    **{name: functools.partial(shown, SHORT_EXAMPLE, "--output-format", name) for name in FOR_PROGRAMS},
    "grouped": lambda: shown(EXAMPLE, "--output-format", "grouped"),
    "sarif": sarif,
    "schema": schema,
    "api": api,
    "scaffold": scaffold,
    "plugins": plugins,
    "coverage": coverage,
    "autograd": promises,
    "retirements": retirements,
    "impact": impact,
    "versions": versions,
    "trainers": trainers,
}


# Documents that are written whole, by their path.
PAGES: dict[str, Callable[[], str]] = {**RULE_PAGES.pages(PRECISION.told)}


def settings_schema() -> str:
    """The JSON Schema of the settings, without plugins."""
    from torchmemlint.config.schema import settings_schema
    from torchmemlint.rules.registry import own

    return json.dumps(settings_schema(own()), indent=2) + "\n"


# Files that are written as a whole.
FILES: dict[Path, Callable[[], str]] = {
    ROOT / "docs" / "torchmemlint.schema.json": settings_schema,
    ROOT / "torchmemlint" / "rules" / "costs.json": RULE_PAGES.measured_costs,
    ROOT / "docs" / "images" / "costs.svg": CHARTS.chart,
    ROOT / "docs" / "images" / "growth.svg": functools.partial(CHARTS.chart_of, "growth"),
    ROOT / "docs" / "images" / "peak.svg": functools.partial(CHARTS.chart_of, "peak"),
    ROOT / "docs" / "images" / "terminal.svg": beside("terminal_picture").picture,
}


def filled(text: str, made: dict[str, str]) -> str:
    """A document with its places filled; a place that nothing is made for stays as it is."""

    def fill(place: re.Match[str]) -> str:
        name = place["name"]
        if name not in made and name in MAKERS:
            made[name] = MAKERS[name]()
        return place["begin"] + made.get(name, place["text"]) + place["end"]

    return PLACE.sub(fill, text)


def written(made: dict[str, str]) -> Iterator[tuple[Path, str]]:
    """Every document as it should be."""
    for document in DOCUMENTS:
        yield document, filled(document.read_text(encoding="utf-8"), made)
    for name, make in PAGES.items():
        yield ROOT / name, make()


def left_over() -> list[Path]:
    """Pages of rules that are no more."""
    return [path for path in (ROOT / "docs" / "rules").glob("*") if path.relative_to(ROOT).as_posix() not in PAGES]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a document is stale")
    parser.add_argument("--benchmark", type=Path, help="the output of benchmarks/speed.py --json")
    choices = parser.parse_args()
    os.environ.pop("FORCE_COLOR", None)
    made: dict[str, str] = {}
    if choices.benchmark is not None:
        BENCHMARK.keep(json.loads(choices.benchmark.read_text(encoding="utf-8")))
    stale = []
    for path, make in FILES.items():  # first, as pages of rules say what they cost
        text = make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.relative_to(ROOT))
            if not choices.check:
                path.write_text(text, encoding="utf-8")
    for document, after in written(made):
        if not document.is_file() or after != document.read_text(encoding="utf-8"):
            stale.append(document.relative_to(ROOT))
            if not choices.check:
                document.write_text(after, encoding="utf-8")
    for document in left_over():
        stale.append(document.relative_to(ROOT))
        if not choices.check:
            document.unlink()
    for name in stale:
        print(f"{name}: {'stale; run python tools/documents.py' if choices.check else 'rewritten'}")
    return int(choices.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
