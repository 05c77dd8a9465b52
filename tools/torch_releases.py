"""Derive from torch's own releases which names and arguments came, went or were deprecated; writes a data file.

    python tools/torch_releases.py FOLDER --download 2.0.0 2.1.0 ...  # fetch releases with pip, keep their sources
    python tools/torch_releases.py FOLDER            # write torchmemlint/knowledge/torch_releases.json
    python tools/torch_releases.py FOLDER --check    # exit 1 if these releases say otherwise

FOLDER holds a folder for each release, named after it ("2.4.0"), with the `torch` package inside. Nothing is imported
or run: the sources and stub files are parsed. A name is public where its module's `__all__` has it or, without one,
where it does not begin with an underscore and is defined in torch. It is deprecated from the first release on whose
own source says so: by a `@deprecated` decorator, or by a warning that each call gives. The oldest release compared
stands for itself and all before it. The first release of a minor version (2.4.0) speaks for all of it.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "torchmemlint" / "knowledge" / "torch_releases.json"
MODULES = (  # whose names training code uses, and memory rules could speak about
    "torch torch.accelerator torch.accelerator.memory torch.amp torch.autograd torch.autograd.forward_ad "
    "torch.autograd.functional torch.autograd.graph torch.autograd.profiler torch.backends.cuda torch.backends.cudnn "
    "torch.backends.mps torch.compiler torch.cpu torch.cpu.amp torch.cuda torch.cuda.amp torch.cuda.memory "
    "torch.cuda.random torch.distributed.fsdp torch.func torch.functional torch.hub torch.jit torch.linalg torch.mps "
    "torch.nn torch.nn.attention torch.nn.functional torch.nn.init torch.nn.parallel torch.nn.utils "
    "torch.nn.utils.rnn torch.nn.utils.parametrizations torch.nn.utils.stateless torch.optim torch.optim.lr_scheduler "
    "torch.optim.swa_utils torch.profiler torch.random torch.serialization torch.utils.checkpoint torch.utils.data "
    "torch.xpu"
).split()
CLASSES = (  # whose methods and their arguments are compared too
    "torch.Tensor torch.nn.Module torch.optim.Optimizer torch.autograd.Function torch.utils.data.DataLoader"
).split()
_ONLY_IN_SOURCES = frozenset(  # what a running torch 2.13 has not: names of stub files, type variables, locals
    "BatchNormBackend CapturedTraceback GreenContext JitTypeT K P ReturnVal T_co TensorBase current_module "
    "gather_traceback get_num_thread symbolize_tracebacks".split()
)
VARIABLES = re.compile(rb"PYTORCH_(?:[A-Z]+_)?ALLOC_CONF")  # of the environment, in the compiled libraries
PLATFORMS = (("macosx_11_0_arm64", "310"), ("macosx_14_0_arm64", "310"), ("macosx_14_0_arm64", "312"))  # the smallest

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True, slots=True)
class Name:
    """A public name of one release."""

    parameters: tuple[str, ...] | None = None  # of a function, method or constructor; None where they are not seen
    warning: str | None = None  # what every use says that the release deprecates


@dataclass
class Module:
    """What the source of one module defines and imports from elsewhere in torch."""

    listed: frozenset[str]  # `__all__`; empty without one
    defined: dict[str, Definition] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)  # name: module, name there
    starred: list[str] = field(default_factory=list)


@dataclass
class Release:
    """The sources of one release of torch."""

    folder: Path  # that holds the package
    _modules: dict[str, Module] = field(default_factory=dict)
    _described: dict[str, Name | None] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """The minor version ("2.4")."""
        return ".".join(self.folder.name.split(".")[:2])

    @cached_property
    def names(self) -> set[str]:
        """The public names of `MODULES` and the methods of `CLASSES`, qualified."""
        found = {f"{module}.{name}" for module in MODULES for name in self._public(module)}
        methods = {f"{cls}.{method}" for cls in CLASSES for method in self.methods(cls)}
        return (found | methods) - {f"torch.{name}" for name in _ONLY_IN_SOURCES}

    def described(self, qualified: str) -> Name | None:
        """What the release says of a name; None where it has it not, public or not."""
        if qualified not in self._described:
            owner, _, name = qualified.rpartition(".")
            node = self.methods(owner).get(name) if owner in CLASSES else self._definition(owner, name)
            self._described[qualified] = _described(node) if node is not None else None
        return self._described[qualified]

    def same(self, one: str, other: str) -> bool:
        """Are these two names of one thing?"""
        return self._definition(*_parted(one)) is self._definition(*_parted(other))

    @cached_property
    def variables(self) -> set[str]:
        """Environment variables that its libraries read."""
        path = self.folder / "variables.txt"
        return set(path.read_text(encoding="utf-8").split()) if path.is_file() else set()

    def _public(self, module: str, within: frozenset[str] = frozenset()) -> set[str]:
        """Names that `from module import *` would give; of torch, which adds to its `__all__` as it runs, all."""
        if module in within:
            return set()
        read = self._module(module)
        if read.listed and module != "torch":
            return set(read.listed)
        names = {*read.defined, *(read.imported if module not in _COMPILED else ())}
        for source in (*read.starred, *(_COMPILED if module == "torch" else ())):
            names |= self._public(source, within | {module})
        return {name for name in names if not name.startswith("_")}

    def _definition(self, module: str, name: str, within: frozenset[str] = frozenset()) -> Definition | None:
        """Where a name of a module is defined, imports followed; None where that is not in torch's sources."""
        if module in within:
            return None
        read = self._module(module)
        if name in read.defined:
            return read.defined[name]
        if name in read.imported:
            source, there = read.imported[name]
            found = self._definition(source, there, within | {module} if there == name else within)
            return found or (_UNSEEN if source.startswith("torch._C") else None)
        for source in (*read.starred, *(_COMPILED if module == "torch" else ())):
            if name in self._public(source) and (found := self._definition(source, name, within | {module})):
                return found
        return None

    def methods(self, cls: str) -> dict[str, ast.FunctionDef]:
        """The public methods that a class defines itself."""
        module, name = _parted(cls)
        classes = [self._definition(module, name)]
        if name == "Tensor":
            classes = [self._definition("torch._C", base) for base in ("_TensorBase", "TensorBase")]
            classes.append(self._definition("torch._tensor", name))
        body = [node for cls in classes if isinstance(cls, ast.ClassDef) for node in cls.body]
        return {n.name: n for n in body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")}

    def _module(self, module: str) -> Module:
        if module not in self._modules:
            base = self.folder.joinpath(*module.split("."))
            package = [base / "__init__.py", base / "__init__.pyi"]
            files = [*package, base.with_name(base.name + ".py"), base.with_name(base.name + ".pyi")]
            path = next((path for path in files if path.is_file()), None)
            text = path.read_text(encoding="utf-8") if path is not None else ""
            self._modules[module] = _read(ast.parse(text), module if path in package else module.rpartition(".")[0])
        return self._modules[module]


def _parted(qualified: str) -> tuple[str, str]:
    owner, _, name = qualified.rpartition(".")
    return owner, name


_UNSEEN = ast.AnnAssign(ast.Name("compiled"), ast.Name("Any"), None, 1)  # stub files have not everything
_COMPILED = ("torch._C", "torch._C._VariableFunctions")  # stub files; torch gives their names as its own


def _read(tree: ast.Module, package: str) -> Module:
    read = Module(frozenset(_listed(tree)))
    for node in _statements(tree.body):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                read.defined[name] = node
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if node in tree.body:
                assert isinstance(node, ast.Assign | ast.AnnAssign)
                read.defined.setdefault(name, node)
            case ast.ImportFrom(module=source, level=level):
                parents = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                full = ".".join([*parents, *([source] if source else [])])
                if full.split(".")[0] != "torch":
                    continue
                for alias in node.names:
                    if alias.name == "*":
                        read.starred.append(full)
                    else:
                        read.imported[alias.asname or alias.name] = (full, alias.name)
    return read


def _listed(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=parts) | ast.Tuple(elts=parts))
                | ast.AugAssign(target=ast.Name(id="__all__"), value=ast.List(elts=parts))
            ):
                yield from (part.value for part in parts if isinstance(part, ast.Constant))


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, also those under conditions but for what only type checkers see."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and _last(node.test) != "TYPE_CHECKING":
            yield from _statements((*node.body, *node.orelse))
        elif isinstance(node, ast.Try):
            yield from _statements((*node.body, *(s for h in node.handlers for s in h.body), *node.orelse))


def _described(node: Definition) -> Name:
    match node:
        case ast.FunctionDef():
            return Name(_parameters(node, method=False), _warning(node))
        case ast.ClassDef(body=body):
            made = next((n for n in body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
            own = _warning(node)
            if made is None:
                return Name(None, own)
            return Name(_parameters(made, method=True), own or _warning(made))
    return Name()


def _parameters(node: ast.FunctionDef, *, method: bool) -> tuple[str, ...] | None:
    """Names of the parameters, keyword-only ones after a star; None for overloads, whose last one is not the whole."""
    if any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list):
        return None
    given = node.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    if given.vararg is not None or given.kwarg is not None:
        return None
    if given.kwonlyargs:
        names += ["*", *(argument.arg for argument in given.kwonlyargs)]
    return tuple(names[1:] if names[:1] == ["self"] or method else names)


def _warning(node: ast.FunctionDef | ast.ClassDef) -> str | None:
    """What every use of it warns of; None where it is not deprecated."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _last(decorator.func).lstrip("_") == "deprecated" and decorator.args:
            text = _text(decorator.args[0])
            return text if text and _RETIRED.search(text) else None
    if isinstance(node, ast.ClassDef):
        return None
    for statement in node.body:
        match statement:
            case ast.Expr(value=ast.Call(func=called, args=[message, *_])) if _last(called) == "warn":
                text = _text(message)
                if text and _RETIRED.search(text):
                    return text
            case ast.Expr(value=ast.Constant()) | ast.Assign() | ast.AnnAssign():
                continue
            case _:
                return None
    return None


_RETIRED = re.compile(r"\b(deprecated|renamed|will be removed|now calls)\b")


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return " ".join(text.split())
        case ast.JoinedStr(values=parts):
            return " ".join("".join(p.value for p in parts if isinstance(p, ast.Constant)).split())
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _text(left), _text(right)
            return f"{first} {second}" if first and second else first or second
    return None


# -- what changed ------------------------------------------------------------------------------------------------------


def derive(releases: list[Release]) -> dict[str, Any]:
    """The content of the data file, from releases in their order."""
    changes: dict[str, dict[str, Any]] = {}
    for name in sorted(set().union(*(release.names for release in releases))):
        line = _change(name, releases)
        if line:
            changes[name] = line
    variables = {
        name: next(release.version for release in releases if name in release.variables)
        for name in sorted(releases[-1].variables)
    }
    return {"releases": [release.version for release in releases], "names": changes, "variables": variables}


def _change(name: str, releases: list[Release]) -> dict[str, Any]:
    seen = [(release, described) for release in releases if (described := release.described(name)) is not None]
    line: dict[str, Any] = {}
    if not seen:  # an `__all__` with names that are made as torch runs
        return line
    if seen[0][0] is not releases[0]:
        line["since"] = seen[0][0].version
    if seen[-1][0] is not releases[-1] and seen[-1][1] != Name():  # what is assigned may be a local of the module
        line["removed"] = releases[releases.index(seen[-1][0]) + 1].version
    last = seen[-1][1]
    if last.warning:
        first = next(release for release, described in seen if described.warning)
        line |= {"deprecated": first.version, "says": last.warning} | _instead(name, last, releases)
    arguments = _arguments(seen)
    if arguments:
        line["arguments"] = arguments
    return line


def _arguments(seen: list[tuple[Release, Name]]) -> dict[str, str]:
    """Arguments that came after the first release that has the name."""
    if any(described.parameters is None for _, described in seen):
        return {}
    first = set(seen[0][1].parameters or ())
    return {
        argument: next(release.version for release, described in seen if argument in (described.parameters or ()))
        for argument in seen[-1][1].parameters or ()
        if argument not in first and argument != "*"
    }


_NAMED = re.compile(r"\b(?P<name>(?:torch|nn)(?:\.\w+)+)(?:\((?P<arguments>[^()]*)\))?")


def _instead(name: str, old: Name, releases: list[Release]) -> dict[str, Any]:
    """What its warning names in its place, what that takes besides, and whether the other arguments stay the same."""
    for found in _NAMED.finditer(old.warning or ""):
        other = found["name"] if found["name"].startswith("torch") else f"torch.{found['name']}"
        new = releases[-1].described(other)
        if new is None or releases[-1].same(name, other):
            continue  # no name, or its own
        line: dict[str, Any] = {"instead": other}
        given = [part.strip().replace("'", '"') for part in (found["arguments"] or "").split(",")]
        besides = [part for part in given if '"' in part]
        if besides:
            line["with"] = besides[0]
        if old.parameters is not None and new.parameters is not None:
            first = sum("=" not in part for part in besides)
            line["takes"] = list(old.parameters)
            line["same"] = old.parameters == new.parameters[first : first + len(old.parameters)]
        return line
    return {}


def text_of(data: dict[str, Any]) -> str:
    """JSON with one name a line."""
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(line)}" for name, line in data["names"].items())
    return (
        f'{{\n  "releases": {json.dumps(data["releases"])},\n  "variables": {json.dumps(data["variables"])},\n'
        f'  "names": {{\n{lines}\n  }}\n}}\n'
    )


# -- getting the releases ------------------------------------------------------------------------------------------


def download(folder: Path, versions: Iterable[str]) -> None:
    """Fetch releases with pip and keep their Python sources, stubs, and the variables their libraries read."""
    for version in versions:
        with tempfile.TemporaryDirectory() as temporary:
            for platform, python in PLATFORMS:
                command = [sys.executable, "-m", "pip", "download", "--quiet", f"torch=={version}", "--no-deps"]
                command += ["--platform", platform, "--python-version", python, "--only-binary=:all:"]
                if subprocess.run([*command, "--dest", temporary], check=False).returncode == 0:
                    break
            for wheel in Path(temporary).glob("*.whl"):
                unpack(wheel, folder / version)


def unpack(wheel: Path, folder: Path) -> None:
    """Keep of a wheel what is read here."""
    variables: set[str] = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith("torch/") and name.endswith((".py", ".pyi")):
                archive.extract(name, folder)
            elif name.endswith((".so", ".dylib")):
                variables |= {found.decode() for found in VARIABLES.findall(archive.read(name))}
    (folder / "variables.txt").write_text("\n".join(sorted(variables)), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the releases are")
    parser.add_argument("--download", nargs="+", metavar="VERSION", help="fetch these releases into the folder")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    if options.download:
        download(options.folder, options.download)
        return 0
    folders = [path for path in options.folder.iterdir() if re.fullmatch(r"\d+\.\d+\.\d+", path.name)]
    folders.sort(key=lambda path: [int(part) for part in path.name.split(".")])
    text = text_of(derive([Release(path) for path in folders]))
    if options.check:
        stale = text != DATA.read_text(encoding="utf-8")
        print("the data file differs from these releases" if stale else "the data file says what these releases say")
        return int(stale)
    DATA.write_text(text, encoding="utf-8")
    print(f"{DATA}: {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
