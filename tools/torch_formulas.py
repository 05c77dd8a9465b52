"""What operations keep that no CPU can run: read off torch's own derivative formulas, for `torch_knowledge.py`.

torch's code generator, which its packages contain, parses `derivatives.yaml` and says which inputs and outputs a
formula needs; those are what autograd saves. A formula may leave some of them out as it runs, so all are `sometimes`
saved. What has a schema and no formula saves nothing: its backward raises. Also here: which functions are no
operations at all, by the types that torch's stub files give their results.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

_NOT_PLAIN = re.compile(r"(Tensor|Any|Callable|object|Module|Graph|Capsule|Future)\b|~")
_PLAIN = "builtin_function_or_method"


def by_formula(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The lines of functions of torch that are operations of its library, by name."""
    formulas = _formulas()
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        schemas = [s for s in torch._C._jit_get_schemas_for_operator(f"aten::{name}") if "out" not in s.overload_name]
        line = _line(schemas, formulas.get(name, [])) if schemas and not _is_composite(name) else None
        if line is not None:
            found[name] = line
    return found


def _is_composite(name: str) -> bool:
    """Is it made of others, so that what these save is what it saves, or is it gone from the library?"""
    try:
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CompositeImplicitAutograd"))
    except RuntimeError:
        return True


def _formulas() -> dict[str, list[Any]]:
    import torchgen
    from torchgen.packaged.autograd.load_derivatives import load_derivatives

    root = Path(torchgen.__file__).parent / "packaged"
    native = root / "ATen" / "native"
    infos, _ = load_derivatives(
        str(root / "autograd" / "derivatives.yaml"), str(native / "native_functions.yaml"), str(native / "tags.yaml")
    )
    found: dict[str, list[Any]] = {}
    for by_key in infos.values():
        for info in by_key.values():
            found.setdefault(str(info.func.func.name.name.base), []).append(info)
    return found


def _line(schemas: list[Any], formulas: list[Any]) -> dict[str, Any] | None:
    given = [a for schema in schemas for a in schema.arguments if "Tensor" in str(a.type)]
    if not given:
        return None
    returns = [[r for r in schema.returns if "Tensor" in str(r.type)] for schema in schemas]
    if not any(returns):
        plain = all(str(r.type) in ("int", "float", "bool", "str") for schema in schemas for r in schema.returns)
        return {"result": "value"} if plain else None
    single = {len(r) == 1 and str(r[0].type) == "Tensor" for r in returns}
    result = "varies" if len(single) > 1 else "tensor" if True in single else "tensors"
    carries = [info.output_differentiability or [True] for info in formulas]
    graph = (
        [any(one[i] if i < len(one) else one[-1] for one in carries) for i in range(max(map(len, carries)))]
        if carries
        else [True]
    )
    saves = {role for info in formulas for role in _roles(info)}
    line: dict[str, Any] = {"result": result, "graph": graph[0] if len(set(graph)) == 1 else graph}
    line["saves"] = sorted(saves)
    if saves:
        line["sometimes"] = sorted(saves)
    line["formula"] = True
    return line


def _roles(info: Any) -> Iterable[str]:
    tensors = [a.name for a in info.func.func.arguments.flat_all if "Tensor" in str(a.type)]
    for saved in info.all_saved_inputs:
        if saved.nctype.name in tensors:
            yield "input" if saved.nctype.name == tensors[0] else "operand"
    for saved in info.all_saved_outputs:
        first = saved.nctype.name in ("result", "result0")
        yield "output" if first else "other"


def settings(names: Iterable[str]) -> list[str]:
    """Functions of `torch` that neither take part in computing nor give tensors: settings, random state, files."""
    stubs = [Path(torch._C.__file__).with_name("_C") / name for name in ("__init__.pyi", "_VariableFunctions.pyi")]
    text = "\n".join(stub.read_text(encoding="utf-8") for stub in stubs if stub.exists())
    return sorted(name for name in names if _gives_no_tensor(getattr(torch, name), name, text))


def _gives_no_tensor(made: Callable[..., Any], name: str, stubs: str) -> bool:
    given = _signatures(made, name, stubs)
    if not given:
        return False
    return all(not _NOT_PLAIN.search(result) and "tensor" not in taken.lower() for taken, result in given)


def _signatures(made: Callable[..., Any], name: str, stubs: str) -> list[tuple[str, str]]:
    """What it takes and gives, as text; of all of its forms."""
    if type(made).__name__ == _PLAIN:
        forms = re.findall(rf"^def {name}\(((?:[^()]|\([^()]*\))*)\) -> ([^:]+?):", stubs, re.MULTILINE)
        said = re.match(rf"{name}\((.*)\) -> (.+)", made.__doc__ or "")
        return forms or ([(said[1], said[2])] if said else [])
    try:
        signature = inspect.signature(made)
    except (TypeError, ValueError):
        return []
    if signature.return_annotation is inspect.Signature.empty:
        return []
    taken = " ".join(str(p.annotation) for p in signature.parameters.values())
    return [(taken, str(signature.return_annotation))]


def only_raises(made: Callable[..., Any]) -> bool:
    """Is a function left only to say that it is gone?"""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(made)))
    except (OSError, TypeError, SyntaxError):
        return False
    body = tree.body[0].body if isinstance(tree.body[0], ast.FunctionDef) else []
    return any(isinstance(one, ast.Raise) for one in body) and all(
        isinstance(one, ast.Raise | ast.Expr | ast.ImportFrom) for one in body
    )
