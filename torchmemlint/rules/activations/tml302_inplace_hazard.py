"""TML302 inplace-hazard."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity, Span
from torchmemlint.flow.facts import FileFacts, Hazard, Scope, SequentialBuilt
from torchmemlint.flow.overwriting import module_flag
from torchmemlint.flow.values import ModuleValue
from torchmemlint.knowledge import activations, saved_tensors
from torchmemlint.rules.activations.places import inplace_argument
from torchmemlint.rules.arguments import replacing
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import Link, is_test, report
from torchmemlint.rules.gradient_mode.evaluation import evaluates
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import shortened, text_of
from torchmemlint.syntax.walking import inside

_RAISES = "one of the variables needed for gradient computation has been modified by an inplace operation"


class InplaceHazard(Rule):
    """A tensor is overwritten in place although it is still needed.

    ## What it does
    Reports in-place activations (`inplace=True`, `relu_`), in-place operators (`x += y`, `x.mul_(y)`) and assigned
    elements whose target

    - a later line reads under its old name, which then sees the new values;
    - is needed for backward by the operation that made it (sigmoid, softmax, tanh, exp, ReLU, ...) or by one that it
      was given to (convolution, linear, norms, ...);
    - is a parameter that requires gradients, or an expanded view, which torch refuses to overwrite.

    What torch refuses is an error, and so is what backward will refuse in the forward of a module and where the
    function runs a backward itself; elsewhere, and in tests, it is a warning, since it may be that nothing is ever
    differentiated. A value that is read after it was overwritten is a warning: nothing fails.

    ## Why it costs memory
    The result is silently wrong in the first case, and backward (or the operation itself) raises in the others. Either
    way it is how people come to turn in-place operations off everywhere, also where they save an activation per layer.

    ## Example
    ```python
    self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.conv(self.relu(x))
        return out + x  # x has been overwritten: this adds relu(x)
    ```

    ## Use instead
    ```python
    self.relu = nn.ReLU(inplace=False)
    ```

    ## Fix safety
    Safe where the program raises today once gradients are wanted: `inplace=True` becomes `inplace=False`, `x += y`
    becomes `x = x + y`, `x.mul_(y)` as a statement `x = x.mul(y)`. Unsafe where it silently computes something else:
    results change, and weights that were trained with the old ones may not like the new. No fix is offered for
    parameters, views and assigned elements.

    ## When it stays silent
    Nothing is known to need the old value; the result is bound to the same name, or to one that nobody reads, or the
    call stands alone as a statement (in place on purpose); gradients are off; the tensor was cloned; the ways exclude
    each other; only the shape, device or type is looked at afterwards; `state.copy_(state * decay)` outside of a
    forward and of training; where the module is not training (`else` of `if self.training`) and only its backward
    would need the value. Tests that read what was overwritten do so to see that it was.
    `out += identity; out = relu(out)` of a residual block is fine: neither batch norm nor addition needs what it made.
    The rule is off by default: code that has been trained with hardly ever has such a hazard, and of what was found in
    published projects little was true (docs/precision.md). It is for code that is being written, as in an editor.

    ## References
    - [Autograd mechanics: in-place operations](https://docs.pytorch.org/docs/stable/notes/autograd.html)
    - [pytorch#5687](https://github.com/pytorch/pytorch/issues/5687)
    - [vision#807](https://github.com/pytorch/vision/issues/807)
    """

    code = "TML302"
    name = "inplace-hazard"
    severity = Severity.ERROR
    on = False
    fix = Applicability.SAFE
    why = "a value that is still needed is overwritten: wrong results or errors, which get in-place turned off for good"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield what is overwritten too early."""
        seen: set[Site] = set()
        order = {"leaf": 0, "expanded": 1, "output": 2, "input": 3, "read": 4}
        for hazard in sorted(facts.hazards, key=lambda h: order[h.kind]):
            if hazard.kind == "read" and hazard.other.span < hazard.site.span:
                continue  # in another iteration, in which the name may stand for something else
            if hazard.site not in seen:
                seen.add(hazard.site)
                needs_graph = hazard.kind in ("leaf", "output", "input")
                if hazard.kind == "read" and (is_test(facts) or _means_the_same(facts, hazard) or _is_meant(hazard)):
                    continue
                if needs_graph and (
                    _updates_state(facts, hazard)
                    or evaluates(facts.tests.get(hazard.site, ()))
                    or _is_off(facts, hazard)
                ):
                    continue
                yield self._hazard(facts, hazard)
        for built in facts.sequentials:
            yield from self._sequential(facts, built)

    def _hazard(self, facts: FileFacts, hazard: Hazard) -> Finding:
        target = shortened(hazard.overwrite.target, 30)
        operation = hazard.overwrite.operation
        links: list[Link] = [(hazard.site, f"`{target}` is overwritten in place here")]
        if hazard.overwrite.construction is not None:
            links.insert(0, (hazard.overwrite.construction, "the activation is built to work in place"))
        match hazard.kind:
            case "read":
                message = f"`{operation}` overwrites `{target}`, which is read afterwards"
                links.append((hazard.other, "the overwritten value is read here"))
            case "output":
                message = f"`{operation}` overwrites the output of `{hazard.what}`, which its backward needs"
                links.insert(0, (hazard.other, f"`{hazard.what}` keeps its output for backward"))
            case "input":
                message = f"`{operation}` overwrites `{target}`, which `{hazard.what}` keeps for backward"
                links.insert(0, (hazard.other, f"`{hazard.what}` keeps `{target}` for backward"))
            case "leaf":
                message = f"`{operation}` overwrites a parameter that requires gradients, which torch refuses"
                links.insert(0, (hazard.other, "the parameter is made here"))
            case _:
                message = f"`{operation}` overwrites an expanded view, in which elements share memory"
                links.insert(0, (hazard.other, "the view is made here"))
        severity = _severity(facts, hazard)
        return report(self, facts, hazard.site, message, severity=severity, evidence=links, fix=_fix(hazard))

    def _sequential(self, facts: FileFacts, built: SequentialBuilt) -> Iterator[Finding]:
        for before, child in zip(built.children, built.children[1:], strict=False):
            if not isinstance(before, ModuleValue) or not isinstance(child, ModuleValue):
                continue
            kind = activations.module_kind(child.qualified)
            if kind is None or child.made is None or before.made is None or not module_flag(child, kind):
                continue
            if not before.qualified.startswith("torch.nn.") or not keeps_output(before):
                continue
            name = saved_tensors.short(before.qualified)
            edits = _not_in_place(child.made)
            yield report(
                self,
                facts,
                child.made,
                f"in-place `{kind}` overwrites the output of `{name}`, which its backward needs",
                severity=Severity.WARNING if is_test(facts) else None,
                evidence=[
                    (before.made, f"`{name}` keeps its output for backward"),
                    (child.made, "the next layer of the Sequential overwrites it"),
                ],
                fix=Fix("Do not work in place", Applicability.SAFE, edits) if edits else None,
            )


def _severity(facts: FileFacts, hazard: Hazard) -> Severity:
    """An error where torch refuses it, or where a backward that refuses it is to be expected."""
    if is_test(facts):
        return Severity.WARNING
    if hazard.kind == "read":
        return Severity.WARNING
    function = hazard.scope.function
    trains = "backward" in facts.effects.get(function, ())
    refused = hazard.kind in ("leaf", "expanded")
    return Severity.ERROR if refused or trains or _in_forward(hazard.scope) else Severity.WARNING


def _updates_state(facts: FileFacts, hazard: Hazard) -> bool:
    """`state.copy_(state * decay + x)`, outside of a forward and of training: whoever decodes does not differentiate.

    What a tensor holds is replaced as a whole for those who hold it too, a cache or an average. With a backward behind
    it, it would raise in the first step.
    """
    function = hazard.scope.function
    if hazard.kind != "input" or hazard.overwrite.operation != ".copy_()" or function is None:
        return False
    return function.name != "forward" and "backward" not in facts.effects.get(function, ())


_IDEMPOTENT = ("ReLU", "ReLU6")


def _is_off(facts: FileFacts, hazard: Hazard) -> bool:
    """Do all callers of the function that it happens in run it with gradients off?"""
    function = hazard.scope.function
    node = function.syntax if function is not None else None
    if node is None or node.end_lineno is None or node.end_col_offset is None:
        return False
    return facts.runs_without_gradients((node.lineno, node.col_offset, node.end_lineno, node.end_col_offset))


def _means_the_same(facts: FileFacts, hazard: Hazard) -> bool:
    """Does an in-place ReLU stand before a module of the project, which may begin with one of its own?

    Twice applied it gives what it gives once: cells of searched architectures begin so, all of them.
    """
    built = hazard.overwrite.construction
    if built is None or not isinstance(built.node, cst.Call) or not text_of(built.node.func).endswith(_IDEMPOTENT):
        return False
    function = hazard.scope.function
    taking = _call_that_takes(function.node, hazard.other.node) if function is not None else None
    return taking is not None and not any(
        call.site.node is taking and call.module is not None and call.module.qualified.startswith("torch.nn.")
        for call in facts.module_calls
    )


def _is_meant(hazard: Hazard) -> bool:
    """`out = relu(x)`, where nobody reads `out`: the new value is what those who read `x` want."""
    function, call = hazard.scope.function, hazard.site.node
    if function is None:
        return False
    nodes = list(inside(function.node))
    for node in nodes:
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value) if value is call:
                return sum(isinstance(other, cst.Name) and other.value == name for other in nodes) == 1
    return False


def _call_that_takes(function: cst.CSTNode, value: cst.CSTNode) -> cst.Call | None:
    """The call that has a name of the function for an argument."""
    calls = (node for node in inside(function) if isinstance(node, cst.Call))
    return next((call for call in calls if any(argument.value is value for argument in call.args)), None)


def keeps_output(module: ModuleValue) -> bool:
    """Does a layer keep its output for backward? In-place LeakyReLU and its kin do, having nothing else."""
    kind = activations.module_kind(module.qualified)
    if kind in activations.SAVES_ONE:
        return module_flag(module, kind) is True
    return saved_tensors.output_is_kept(module.qualified)


def _fix(hazard: Hazard) -> Fix | None:
    if hazard.kind in ("leaf", "expanded"):
        return None
    applicability = Applicability.UNSAFE if hazard.kind == "read" else Applicability.SAFE
    construction = hazard.overwrite.construction
    edits = _not_in_place(construction) if construction is not None else _out_of_place(hazard.site, hazard.kind)
    return Fix("Do not work in place", applicability, edits) if edits else None


def _not_in_place(call: Site) -> tuple[Edit, ...]:
    """`inplace=True` becomes `inplace=False` in the call that builds or applies an activation."""
    found = inplace_argument(call)
    if isinstance(found, cst.Name) and found.value == "True":
        return replacing(call, found, "False")
    return ()


def _out_of_place(site: Site, kind: str) -> tuple[Edit, ...]:
    match site.node:
        case cst.AugAssign(target=cst.Name() as target, value=value, operator=operator):
            sign = text_of(operator).strip().removesuffix("=")
            right = site.piece.written(value)
            if not isinstance(value, cst.Name | cst.Attribute | cst.Call | cst.Subscript | cst.Integer | cst.Float):
                right = f"({right})"
            return (Edit(site.span, f"{target.value} = {target.value} {sign} {right}"),)
        case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=attribute)) if _has_twin(attribute.value):
            span = site.piece.span(attribute)
            start = site.span.start
            rebinding = (Edit(Span(start, start), f"{name} = "),) if _is_statement(site) else ()
            return (*rebinding, Edit(span, attribute.value.rstrip("_"))) if rebinding else ()
        case cst.Call():
            return _not_in_place(site)
    return ()


# In-place methods that have no twin which returns a new tensor.
_WITHOUT_TWIN = frozenset(
    "apply_ cauchy_ copy_ exponential_ fill_ fill_diagonal_ geometric_ log_normal_ map_ map2_ normal_ random_ "
    "set_ share_memory_ uniform_ zero_".split()
)


def _has_twin(method: str) -> bool:
    return method.endswith("_") and method not in _WITHOUT_TWIN


def _is_statement(site: Site) -> bool:
    """Does the expression make up the whole of its statement?"""
    return site.piece.statement_span(site.span) == site.span


def _in_forward(scope: Scope) -> bool:
    """The forward of an `nn.Module`: what it computes with is wanted with its graph by whoever runs it."""
    function = scope.function
    if function is None or function.cls is None:
        return False
    return function.name == "forward" and function.cls.is_module
