"""What frameworks promise: names, tables, a user's own framework, two programs for each that we know."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from torchmemlint.config.contracts import TERMS, read_framework, read_frameworks
from torchmemlint.config.errors import ConfigError
from torchmemlint.config.layers import read_layer
from torchmemlint.config.resolver import Resolver
from torchmemlint.doubts import Confidence
from torchmemlint.engine import pool
from torchmemlint.engine.checking import check_text
from torchmemlint.engine.runner import Request, run
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.program import Program
from torchmemlint.knowledge.contracts import Contracts, Names, contracts, shipped_frameworks
from torchmemlint.rules import cases
from torchmemlint.rules.registry import by_code
from torchmemlint.syntax.source_module import SourceModule

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOLD = ("TML1", "TML2", "TML502", "TML7")  # rules that ask the contracts of frameworks
CODES = frozenset(code for code, rule in by_code().items() if rule.on and code.startswith(TOLD))
PROGRAMS = sorted((Path(__file__).parent.parent.parent / "fixtures" / "frameworks").glob("*.py"))
LIBRARIES = frozenset({"python", "libraries", "pyro", "gpytorch", "fairseq", "apex"})  # lists of names only
AROUND = LIBRARIES | {"tensorboardX", "trl", "peft"}


# -- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("acme.frozen", "acme.frozen", True),
        ("acme.frozen", "acme.frozenset", False),
        ("acme.*.Task", "acme.Task", True),
        ("acme.*.Task", "acme.core.task.Task", True),
        ("acme.*.Task", "acmes.Task", False),
        ("acme.*.Task", "acme.SubTask", False),
        ("*.Task.run", "Task.run", True),
        ("*.Task.run", ".tasks.Task.run", True),
        ("*.Task.run", "acme.task.run", False),
        ("acme.*", "acme", True),
        ("acme.*", "acme.a.b", True),
        ("acme.*", "acmes", False),
        ("acme.nn.*.[A-Z]*", "acme.nn.Linear", True),
        ("acme.nn.*.[A-Z]*", "acme.nn.layers.Linear", True),
        ("acme.nn.*.[A-Z]*", "acme.nn.linear", False),
        ("acme.*Model", "acme.BigModel", True),
        ("acme.*Model", "acme.big.Model", False),
        ("*.descend", "acme.descend", False),  # a method, and no function
        ("*.Task", "acme.core.Task", True),
        ("*.Task", "Task", True),
        ("*.Task", "acme.Task.run", False),
    ],
)
def test_names(pattern: str, name: str, matches: bool) -> None:
    assert (name in Names([pattern])) is matches


def test_an_exception_counts_whatever_its_place() -> None:
    for patterns in (["acme.*", "!acme.*.Config"], ["!acme.*.Config", "acme.*"]):
        names = Names(patterns)
        assert "acme.Network" in names
        assert "acme.nn.Config" not in names


def test_methods_of_a_class_and_of_any_object() -> None:
    names = Names(["*.descend", "acme.*.Engine.turn"])
    assert names.has_method("descend")
    assert names.has_method("turn", ["acme.core.Engine"])
    assert not names.has_method("turn")
    assert not names.has_method("turn", ["acme.core.Motor"])


def test_alternatives() -> None:
    assert dict(read_framework("acme", {"keeps": ["acme.{Log,Store}.{put,add}"]}).names)["keeps"] == (
        "acme.Log.put",
        "acme.Log.add",
        "acme.Store.put",
        "acme.Store.add",
    )


def test_only_what_makes_objects_is_an_owner() -> None:
    owners = Contracts(
        (read_framework("acme", {"wrappers": ["acme.*.wrap"], "keeps": ["acme.*.Log.put"], "reads": ["acme.show.*"]}),)
    ).owners
    assert "acme.Log" in owners
    assert "acme.core.Log" in owners
    assert "acme.wrap" not in owners
    assert "acme.show" not in owners


# -- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"acme": {"no-gard": []}}, "`acme`: `no-gard`: there is no such key. Did you mean `no-grad`?"),
        ({"acme": {"no-grad": "acme.frozen"}}, "`acme`: `no-grad`: expected a list of names, or a table from names to"),
        ({"acme": {"no-grad": [3]}}, "`acme`: `no-grad`: expected a string, found an integer"),
        ({"acme": {"keeps": ["acme record"]}}, "`acme`: `keeps`: `acme record` is no dotted name such as `acme.Log."),
        ({"acme": {"keeps": ["acme..record"]}}, "`acme..record` is no dotted name"),
        ({"acme": {"keeps": {"acme.Log.record": True}}}, "`acme`: `keeps`: expected a string, found a boolean"),
        ({"acme": {"operations": ["acme.norm"]}}, "`acme`: `operations`: expected a table, found a list"),
        (
            {"acme": {"operations": {"acme.norm": {"grpah": True}}}},
            "`acme.norm`: `grpah`: there is no such key.",
        ),
        ({"acme": {"operations": {"acme.norm": {"graph": "yes"}}}}, "`graph`: expected true or false, found a string"),
        ({"acme": {"operations": {"acme.norm": {"result": "tensr"}}}}, 'found "tensr". Did you mean `tensor`?'),
        ({"acme": {"operations": {"norm": {}}}}, "expected a dotted name such as `acme.fused_norm`"),
        ({"acme": ["acme.frozen"]}, "`acme`: expected a table, found a list"),
        (["acme"], "expected a table, found a list"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(table: object, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_layer({"contracts": table}, "pyproject.toml")
    assert str(error.value).startswith("pyproject.toml: `contracts`: ")
    assert message in str(error.value)


def test_every_contract_of_ours_says_where_it_is_written() -> None:
    known = shipped_frameworks()
    assert len({framework.name for framework in known}) == len(known)
    for framework in known:
        if framework.name in LIBRARIES:
            continue
        assert framework.version, framework.name
        told = {term for term, _, _ in framework.sources}
        untold = {term for term, _ in framework.names} - told - {"packages", "neutral"}
        assert not untold, (framework.name, untold)


def test_every_term_is_used_or_explained() -> None:
    for term in TERMS.values():
        assert term.doc.endswith(".")
        assert read_framework("acme", {term.key: [term.example]}).of(term.key)


# -- the frameworks that we know -------------------------------------------------------------------------------------


def found(path: Path, promised: Contracts) -> list[tuple[int, str]]:
    source = SourceModule(path.read_text(encoding="utf-8"), path)
    facts = FileFacts(path, source, Program(source, None, promised))
    told = [one for code in CODES for one in by_code()[code].check(facts)]
    told += [one for one in cases.findings(facts, CODES, told) if one.confidence is not Confidence.POSSIBLE]
    return sorted((one.span.start.row, one.code) for one in told)


def expected(path: Path) -> list[tuple[int, str]]:
    rows = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    return [(row, code) for row, line in rows for code in re.findall(r"# expect: (TML\d{3})", line)]


ONLY_POSSIBLE = {"bad_composer", "bad_fastai"}  # nobody makes an object of their class
MISSED = {"bad_ignite"}  # a library's function that keeps is not modelled


def _as_known(path: Path) -> object:
    missed = path.stem in ONLY_POSSIBLE | MISSED
    why = "only possible: nobody makes its class" if path.stem in ONLY_POSSIBLE else "what the library keeps is unknown"
    return pytest.param(path, marks=pytest.mark.xfail(reason=why, strict=True) if missed else (), id=path.stem)


@pytest.mark.parametrize("path", map(_as_known, PROGRAMS))
def test_programs_of_frameworks(path: Path) -> None:
    assert bool(expected(path)) is path.stem.startswith("bad_")
    assert found(path, contracts()) == expected(path)


def test_each_framework_has_a_program_that_speaks_and_one_that_is_silent() -> None:
    names = {path.stem.partition("_")[2] for path in PROGRAMS}
    assert {path.stem for path in PROGRAMS} == {f"{kind}_{name}" for name in names for kind in ("bad", "good")}
    assert {framework.name for framework in shipped_frameworks()} - AROUND - {"torch"} <= names


@pytest.mark.parametrize(
    "name",
    [
        "accelerate",
        "composer",
        "diffusers",
        "fastai",
        "lightning",
        "timm",
        "torchmetrics",
    ],
)
def test_the_contracts_decide(name: str) -> None:
    """Without the framework's table, the two programs are not told apart."""
    without = Contracts(tuple(framework for framework in shipped_frameworks() if framework.name != name))
    own = [path for path in PROGRAMS if path.stem.partition("_")[2] == name]
    assert any(found(path, without) != expected(path) for path in own)


# -- a framework that nobody knows, from a configuration file ----------------------------------------------------------

CONFIGURATION = """
[contracts.acme]
packages = ["acme"]
no-grad = ["acme.frozen"]
differentiates = ["acme.Engine.descend"]
keeps = { "acme.History.record" = "acme 1.2: history.py" }
modules = ["acme.Network"]
called-without-gradients = ["acme.Task.on_eval"]

[contracts.acme.operations]
"acme.ops.{best,worst}" = { discrete = true }
"acme.ops.fused_norm" = {}
"""
ACME = """
import acme


def kept(model, batches, optimizer):
    engine, history = acme.Engine(model), acme.History()
    for batch in batches:
        loss = model(batch).mean()
        optimizer.zero_grad()
        engine.descend(loss)
        optimizer.step()
        history.record(loss)  # KEPT


def let_go(model, batches, optimizer):
    engine, history = acme.Engine(model), acme.History()
    for batch in batches:
        loss = model(batch).mean()
        optimizer.zero_grad()
        engine.descend(loss)
        optimizer.step()
        history.record(loss.item())


def guarded(model, batches):
    model.eval()
    total = 0.0
    with acme.frozen():
        for batch in batches:
            total += model(batch).mean().item()
    return total


@acme.frozen
def decorated(model, batches):
    model.eval()
    return [model(batch).argmax(1).tolist() for batch in batches]


def unguarded(batches):
    network = acme.Network(3)
    total = 0.0
    for batch in batches:
        total += network(batch).mean().item()  # UNGUARDED
    return total


class Task(acme.Task):
    def on_eval(self, batch):
        self.net.eval()
        return self.net(batch).argmax(1).cpu().numpy()  # ON EVAL


def normed(model, batches, optimizer):
    total = worst = 0
    for batch in batches:
        out = model(batch)
        loss = acme.ops.fused_norm(out).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss  # NORMED
        worst += acme.ops.worst(out)
    return total.item(), worst.item()
"""


def rows(text: str, *marks: str) -> list[int]:
    return [row for row, line in enumerate(text.splitlines(), 1) for mark in marks if line.endswith(f"# {mark}")]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_framework_is_added_from_a_configuration_file(
    tmp_path: Path, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_BYTES_PER_WORKER", 1)
    names = ("one.py", "two.py")
    for name in names:
        (tmp_path / name).write_text(ACME)

    def reported() -> dict[str, list[int]]:
        request = Request(tuple(tmp_path / name for name in names), Resolver(tmp_path, bounded=True), jobs=jobs)
        report = run(request)
        assert not report.errors
        return {name: [f.span.start.row for f in report.findings if f.filename.name == name] for name in names}

    (tmp_path / "torchmemlint.toml").write_text("")
    before = reported()["one.py"]
    assert set(rows(ACME, "ON EVAL")) <= set(before)  # nothing is known of acme.Task
    assert not set(rows(ACME, "KEPT", "UNGUARDED")) & set(before)
    (tmp_path / "torchmemlint.toml").write_text(CONFIGURATION)
    after = rows(ACME, "KEPT", "UNGUARDED", "NORMED")
    assert reported() == {"one.py": after, "two.py": after}


def test_a_file_is_read_for_the_words_of_a_framework(tmp_path: Path) -> None:
    text = ACME.replace("loss.backward()", "acme.ops.go(loss)").replace(".eval()", ".train(False)")
    (tmp_path / "one.py").write_text(text)
    for configuration, skipped in (("", 1), (CONFIGURATION, 0)):
        (tmp_path / "torchmemlint.toml").write_text(configuration)
        report = run(Request((tmp_path / "one.py",), Resolver(tmp_path, bounded=True)))
        assert report.files_skipped == skipped


def test_contracts_do_not_outlast_their_run() -> None:
    additions = read_frameworks(tomllib.loads(CONFIGURATION)["contracts"])
    path = Path("one.py")

    def reported(**options: object) -> list[int]:
        return [one.span.start.row for one in check_text(ACME, path, CODES, **options)]  # type: ignore[arg-type]

    before = reported()
    assert reported(additions=additions) == rows(ACME, "KEPT", "UNGUARDED", "NORMED")
    assert reported() == before
