"""What each construct becomes."""

from __future__ import annotations

import ast
import sys
from textwrap import dedent

import pytest

from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import For, If
from torchmemlint.flow.ir.lower import lower

from .printing import blocks, lowered, names, names_of, printed, walk
from .verifying import problems

STATEMENTS = {
    "a": "t0 = a",
    "'text'": "",
    "pass": "",
    "a.b.c": "t0 = a / t1 = t0.b / t2 = t1.c",
    "a = b = 1": "t0 = 1 / a = t0 / b = t0",
    "a: int = 1": "t0 = 1 / a = t0",
    "a: int": "",
    "a.b = c": "t0 = c / t1 = a / t1.b = t0",
    "a[b] = c": "t0 = c / t1 = a / t2 = b / t1[t2] = t0  -> a",
    "a.b[0] = c": "t0 = c / t1 = a / t2 = t1.b / t2[0] = t0  -> t1.b",
    "a[0][1] = c": "t0 = c / t1 = a / t2 = t1[0] / t2[1] = t0  -> t1[0]",
    "a.data[0] = c": "t0 = c / t1 = a / t2 = t1.data / t2[0] = t0",
    "f()[0] = c": "t0 = c / t1 = f / t2 = t1() / t2[0] = t0",
    "a, (b, *c), d.e = f": "t0 = f / t1, t2, t3 = t0 / a = t1 / t4, *t5 = t2 / b = t4 / c = t5 / t6 = d / t6.e = t3",
    "[a, b] = c": "t0 = c / t1, t2 = t0 / a = t1 / b = t2",
    # Operations
    "a + b + c": "t0 = a / t1 = b / t2 = + t0, t1 / t3 = c / t4 = + t2, t3",
    "a - (b @ c)": "t0 = a / t1 = b / t2 = c / t3 = @ t1, t2 / t4 = - t0, t3",
    "-a, ~b, not c": "t0 = a / t1 = - t0 / t2 = b / t3 = ~ t2 / t4 = c / t5 = not t4 / t6 = tuple t1, t3, t5",
    "a += b": "t0 = a / t1 = b / t2 = + t0, t1  -> a",
    "a.b *= c": "t0 = a / t1 = t0.b / t2 = c / t3 = * t1, t2  -> t0.b",
    "a[b] -= c": "t0 = a / t1 = b / t2 = t0[t1] / t3 = c / t4 = - t2, t3  -> t0[t1]",
    "a < b": "t0 = a / t1 = b / t2 = < t0, t1",
    "a is not b < c": "t0 = a / t1 = b / t2 = c / t3 = < t0, t1, t2",
    "a is b is c": "t0 = a / t1 = b / t2 = c / t3 = is t0, t1, t2",
    "a not in b": "t0 = a / t1 = b / t2 = not in t0, t1",
    "a and b or c": "t0 = a / t1 = b / t2 = and t0, t1 / t3 = c / t4 = or t2, t3",
    "f'{a!r:>{b}} {c}'": "t0 = a / t1 = b / t2 = c / t3 = text t0, t1, t2",
    "(a := b)": "t0 = b / a = t0",
    # Items
    "a[0]; a['b']; a[-1]; a[None]": (
        "t0 = a / t1 = t0[0] / t2 = a / t3 = t2['b'] / t4 = a / t5 = t4[-1] / t6 = a / t7 = t6[None]"
    ),
    "a[1.5]": "t0 = a / t1 = 1.5 / t2 = t0[t1]",
    "a[b:c + 1:2]": "t0 = a / t1 = b / t2 = c / t3 = 1 / t4 = + t2, t3 / t5 = t0[slice t1, t4]",
    "a[:, 0]": "t0 = a / t1 = t0[slice]",
    "a[:, b]": "t0 = a / t1 = b / t2 = t0[slice t1]",
    "a[..., None]": "t0 = a / t1 = t0[slice]",
    "a[...]": "t0 = a / t1 = t0[slice]",
    "a[b, 1]": "t0 = a / t1 = b / t2 = 1 / t3 = tuple t1, t2 / t4 = t0[t3]",
    # Containers
    "[a, *b]": "t0 = a / t1 = b / t2 = list t0, *t1",
    "{a, b}": "t0 = a / t1 = b / t2 = set t0, t1",
    "{'a': b, c: d, **e}": "t0 = b / t1 = c / t2 = d / t3 = e / t4 = dict 'a': t0, t1: t2, **t3",
    "{(1, None): a}": "t0 = 1 / t1 = None / t2 = tuple t0, t1 / t3 = a / t4 = dict t2: t3",
    # Calls
    "f(a, *b, c=d, **e)": "t0 = f / t1 = a / t2 = b / t3 = d / t4 = e / t5 = t0(t1, *t2, c=t3, **t4)",
    "a.f(b)": "t0 = a / t1 = b / t2 = t0.f(t1)",
    "a.add_(b)": "t0 = a / t1 = b / t2 = t0.add_(t1)  -> a",
    "a.b.add_(c)": "t0 = a / t1 = t0.b / t2 = c / t3 = t1.add_(t2)  -> t0.b",
    "a[b].add_(c)": "t0 = a / t1 = b / t2 = t0[t1] / t3 = c / t4 = t2.add_(t3)  -> t0[t1]",
    "a.mul_(b).add_(c)": "t0 = a / t1 = b / t2 = t0.mul_(t1)  -> a / t3 = c / t4 = t2.add_(t3)  -> a",
    "a.data.mul_(b).add_(c)": "t0 = a / t1 = t0.data / t2 = b / t3 = t1.mul_(t2) / t4 = c / t5 = t3.add_(t4)",
    "f().add_(a)": "t0 = f / t1 = t0() / t2 = a / t3 = t1.add_(t2)",
    "a._private_()": "t0 = a / t1 = t0._private_()",
    "a.__len__()": "t0 = a / t1 = t0.__len__()",
    "super(a, b).f()": "t0 = super / t1 = a / t2 = b / t3 = t0(t1, t2) / t4 = t3.f()",
    "await_ = lambda x, y=a: x": "t0 = a / t1 = def <lambda>(y=t0) / await_ = t1",
    # Names
    "import a.b.c": "t0 = import a / a = t0",
    "import a.b as c": "t0 = import a.b / c = t0",
    "from a.b import c, d as e": "t0 = import a.b.c / c = t0 / t1 = import a.b.d / e = t1",
    "from . import a": "t0 = import .a / a = t0",
    "from ..a import b": "t0 = import ..a.b / b = t0",
    "from a import *": "",
    "del a, b.c, d[0], (e, f)": "del a / t0 = b / del t0.c / t1 = d / del t1[0] / del e / del f",
    "raise a from b": "t0 = a / t1 = b / raise t0",
    "assert a, 'text'": "t0 = a / assert t0  (a not none then)",
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_simple_statements(text: str) -> None:
    assert lowered(text).strip() == STATEMENTS[text].replace(" / ", "\n")


def body(text: str) -> str:
    """The operations of a function of which this is the body."""
    return lowered("def f(x, y):\n" + "\n".join("    " + line for line in dedent(text).splitlines()), "f")


def same(text: str, expected: str) -> None:
    assert body(text) == dedent(expected).lstrip("\n")


def test_a_conditional_expression_moves_into_one_temporary() -> None:
    same(
        "return y if x else 1",
        """
        t0 = x
        if t0:  (x not none then)
            t2 = y
            t1 = t2
        else:
            t3 = 1
            t1 = t3
        return t1
        """,
    )


def test_elif_is_a_branch_in_the_other_branch() -> None:
    same(
        """
        if x is None: a
        elif y: b
        else: c
        """,
        """
        t0 = x
        t1 = None
        t2 = is t0, t1
        if t2:  (x is none)
            t3 = a
        else:
            t4 = y
            if t4:  (y not none then)
                t5 = b
            else:
                t6 = c
        """,
    )


def test_a_long_chain_of_elif_or_of_terms_takes_no_recursion() -> None:
    chain = "if x == 0: pass\n" + "".join(f"elif x == {i}: pass\n" for i in range(800))
    terms = "a = " + " + ".join(["b"] * 800)
    operations = list(walk_flat(lower(chain + terms, "example").module.body))
    assert sum(isinstance(op, If) for op in operations) == 801
    assert sum(isinstance(op, ops.Operate) for op in operations) == 799


def walk_flat(block: list[ops.Op]) -> list[ops.Op]:
    """All operations, without recursion."""
    found: list[ops.Op] = []
    pending = [block]
    while pending:
        for op in pending.pop():
            found.append(op)
            pending += blocks(op)
    return found


def test_a_loop_binds_its_targets_first_and_knows_what_it_writes() -> None:
    same(
        """
        for i, a.b in x:
            with y as z:
                if i: z.add_(1); break
            w[0] = u = i
            y.k[0] = 2
            import m.n
            def g(): pass
        else:
            v = 1
        """,
        """
        t0 = x
        for t1 in t0:  {g, i, m, u, z}
            t2, t3 = t1
            i = t2
            t4 = a
            t4.b = t3
            t5 = y
            with t5:
                t6 = enter t5
                z = t6
                t7 = i
                if t7:  (i not none then)
                    t8 = z
                    t9 = 1
                    t10 = t8.add_(t9)  -> z
                    break
            t11 = i
            t12 = w
            t12[0] = t11  -> w
            u = t11
            t13 = 2
            t14 = y
            t15 = t14.k
            t15[0] = t13  -> t14.k
            t16 = import m
            m = t16
            t17 = def g()
            g = t17
        else:
            t18 = 1
            v = t18
        """,
    )


def test_places_of_locals_are_written() -> None:
    unit = lower("def f(x, y):\n for i in y: x[0] = y.add_(i); z += 1", "m")
    loop = next(op for op in walk(unit.functions[1].body) if isinstance(op, For))
    assert loop.writes == {"i", "x", "y", "z"}


def test_while_tests_in_its_head() -> None:
    same(
        """
        while (n := x.f()) > 0:
            y = n
        else:
            k = 1
        """,
        """
        while:
            t0 = x
            t1 = t0.f()
            n = t1
            t2 = 0
            t3 = > t1, t2
        while t3:  {n, y}
            t4 = n
            y = t4
        else:
            t5 = 1
            k = t5
        """,
    )


def test_names_of_handlers_are_unbound_at_the_end() -> None:
    same(
        """
        try: x()
        except (A, b.C) as e: y(e)
        except D: return
        else: k
        finally: l
        """,
        """
        try:
            t0 = x
            t1 = t0()
        except A b.C t2:
            e = t2
            t3 = y
            t4 = e
            t5 = t3(t4)
            del e
        except D t6:
            return -
        else:
            t7 = k
        finally:
            t8 = l
        """,
    )


def test_each_context_is_within_the_one_before() -> None:
    same(
        "with x as a, y(a): b",
        """
        t0 = x
        with t0:
            t1 = enter t0
            a = t1
            t2 = y
            t3 = a
            t4 = t2(t3)
            with t4:
                t5 = enter t4
                t6 = b
        """,
    )


def test_comprehensions_have_variables_of_their_own() -> None:
    same(
        "return [a * b for a, b in x if a for b in y(a)]",
        """
        t0 = x
        t1 = list
        for t2 in t0:  {a@1, b@1} comprehension
            t3, t4 = t2
            a@1 = t3
            b@1 = t4
            t5 = a@1
            if t5:  (a@1 not none then)
                t6 = y
                t7 = a@1
                t8 = t6(t7)
                for t9 in t8:  {b@1} comprehension
                    b@1 = t9
                    t10 = a@1
                    t11 = b@1
                    t12 = * t10, t11
                    t1 << t12
        return t1
        """,
    )
    same(
        "x = {a: (k := b) for a, b in x}",
        """
        t0 = x
        t1 = dict
        for t2 in t0:  {a@1, b@1, k} comprehension
            t3, t4 = t2
            a@1 = t3
            b@1 = t4
            t5 = a@1
            t6 = b@1
            k = t6
            t1[t5] << t6
        x = t1
        """,
    )


def test_lambdas_see_the_variables_of_comprehensions() -> None:
    unit = lower("def f(a):\n  return [lambda b: a + b + c for a in a for c in a]\n", "m")
    function, inner = unit.functions[1:]
    assert names(inner) == {"a@1": "cell 1", "b": "local", "c@1": "cell 1"}
    assert function.shared == {"a@1", "c@1"}
    assert names(function) == {"a": "local", "a@1": "cell", "c@1": "cell"}


def test_the_modules_variables_of_comprehensions_become_global_for_lambdas() -> None:
    unit = lower("k = [lambda: a for a in b]", "m")
    assert names(unit.functions[1]) == {"a@1": "global"}
    assert names(unit.module) == {"a@1": "global", "b": "builtin", "k": "global"}


def test_generators_and_coroutines() -> None:
    same("return (yield x), (yield)", "t0 = x\nt1 = yield t0\nt2 = yield -\nt3 = tuple t1, t2\nreturn t3\n")
    same("yield from x", "t0 = x\nt1 = yield from t0\n")
    unit = lower("async def f(x):\n  async with x as y: await y\n  async for z in y: pass\ndef g(): yield", "m")
    assert [(f.generator, f.coroutine) for f in unit.functions] == [(False, False), (False, True), (True, False)]
    assert printed(unit.functions[1]) == dedent(
        """\
        t0 = x
        with t0:
            t1 = enter t0
            y = t1
            t2 = y
            t3 = await t2
        t4 = y
        for t5 in t4:  {z}
            z = t5
        """
    )


def test_a_failing_assertions_message_is_made_where_it_fails() -> None:
    same(
        "assert x is not None, y.text()",
        """
        t0 = x
        t1 = None
        t2 = is not t0, t1
        if t2:
        else:
            t3 = y
            t4 = t3.text()
            raise t4
        assert t2  (x not none)
        """,
    )


def test_match_is_a_chain_of_branches() -> None:
    same(
        """
        match x:
            case 1 | 2: a
            case Loss(value=v, step=3): v
            case [p, *q] if p: q
            case {"k": r, **s}: r
            case None: b
            case other: other
        """,
        """
        t0 = x
        t1 = 1
        t2 = == t0, t1
        t3 = 2
        t4 = == t0, t3
        t5 = or t2, t4
        if t5:
            t6 = a
        else:
            t7 = Loss
            t8 = isinstance
            t9 = t8(t0, t7)
            t10 = t0.step
            t11 = 3
            t12 = == t10, t11
            t13 = and t9, t12
            if t13:
                t14 = t0.value
                t15 = t14
                v = t15
                t16 = v
            else:
                t17 = 1
                t18 = len
                t19 = t18(t0)
                t20 = >= t19, t17
                if t20:
                    t22 = t0[0]
                    t23 = t22
                    p = t23
                    t24 = t0[slice]
                    q = t24
                    t25 = p
                    t21 = t25
                else:
                    t26 = False
                    t21 = t26
                if t21:  (p not none then)
                    t27 = q
                else:
                    t28 = 'k'
                    t29 = in t28, t0
                    if t29:
                        t30 = t0['k']
                        t31 = t30
                        r = t31
                        t32 = t0
                        s = t32
                        t33 = r
                    else:
                        t34 = None
                        t35 = is t0, t34
                        if t35:  (x is none)
                            t36 = b
                        else:
                            t37 = t0
                            other = t37
                            t38 = other
        """,
    )


def test_patterns_of_classes_of_the_file_know_their_fields() -> None:
    text = """
    class P:
        x: int
        y: int
    def f(p):
        match p:
            case P(a, (b, c) | [c, b]): return a
            case int(d): return d
    """
    unit = lower(dedent(text), "m")
    assert not problems(unit)
    assert "= t0.x\n" in printed(unit.functions[1])
    assert "= t0.y\n" in printed(unit.functions[1])
    assert {"a", "b", "c", "d"} <= unit.functions[1].bound


TESTS = {
    "isinstance(x, torch.Tensor)": "x is tensor",
    "isinstance(x, (list, Tensor))": "x is tensor else",
    "isinstance(x, Tensor | torch.Tensor)": "x is tensor",
    "isinstance(x, list)": "",
    "torch.is_tensor(x)": "x is tensor",
    "hasattr(x, 'item')": "x is tensor",
    "hasattr(x, 'shape')": "",
    "not hasattr(x, 'grad_fn')": "x not tensor",
    "x is None": "x is none",
    "x is not None": "x not none",
    "x == None": "x is none",
    "x": "x not none then",
    "not x": "x is none else",
    "x.a is None": "x.a is none",
    "x['a'] is not None": "x.a not none",
    "isinstance(x['a'], torch.Tensor)": "x.a is tensor",
    "x[y] is None": "",
    "x.a.b is None": "",
    "x is None and y": "x is none then, y not none then",
    "not (x is None and y)": "x not none else, y is none else",
    "x is None or y is None": "x is none else, y is none else",
    "x or y": "",
    "(x := y) is not None": "x not none",
}


@pytest.mark.parametrize("test", TESTS)
def test_narrowings(test: str) -> None:
    expected = f"  ({TESTS[test]})" if TESTS[test] else ""
    assert any(
        line.startswith("if t") and line.endswith(":" + expected) for line in body(f"if {test}: pass").split("\n")
    )


def test_decorators() -> None:
    text = """
    import torch
    from torch import no_grad as ng
    from functools import lru_cache
    @ng()
    @mine(1, a, k=False)
    @torch.jit.script
    @other
    @lru_cache(None)
    def f(): pass
    """
    unit = lower(dedent(text), "m")
    assert [(d.name, d.called, d.arguments, d.applied) for d in unit.functions[1].decorators] == [
        ("torch.no_grad", True, (), False),
        ("mine", True, (1, ..., False), True),
        ("torch.jit.script", False, (), False),
        ("other", False, (), True),
        ("functools.lru_cache", True, (None,), False),
    ]
    assert "f" not in unit.once
    assert printed(unit.module).split("\n", 6)[-1] == dedent(
        """\
        t3 = mine
        t4 = 1
        t5 = a
        t6 = False
        t7 = t3(t4, t5, k=t6)
        t8 = other
        t9 = def f()
        t10 = t8(t9)
        t11 = t7(t10)
        f = t11
        """
    )


def test_a_decorator_of_the_file_itself_is_applied_whatever_its_name() -> None:
    unit = lower("def cache(f): return f\n@cache\ndef g(): pass\n@staticmethod\ndef h(): pass", "m")
    assert [d.applied for f in unit.functions for d in f.decorators] == [True, False]


def test_class_bodies_run_where_they_stand() -> None:
    text = """
    class A(nn.Module, Generic[T], make(1)):
        x = 1
        y: int = x
        z: "torch.Tensor"
        x += 1
        gone = 2
        del gone
        def plain(self, k=x): return x
        alias = plain
        @property
        def p(self): return self.q
        @p.setter
        def p(self, v): self.q = v
        @mine
        def made(self): return super().made()
        w = [x for x in x if y]
        class B:
            x = x
    """
    unit = lower("import torch.nn as nn\n" + dedent(text), "m")
    assert not problems(unit)
    assert printed(unit.module) == dedent(
        """\
        t0 = import torch.nn
        nn = t0
        t1 = make
        t2 = 1
        t3 = t1(t2)
        t5 = 1
        x@4 = t5
        t6 = x@4
        y@4 = t6
        t7 = x@4
        t8 = 1
        t9 = + t7, t8  -> x@4
        t10 = 2
        gone@4 = t10
        del gone@4
        t11 = x@4
        t12 = def plain(k=t11)
        plain@4 = t12
        t13 = plain@4
        alias@4 = t13
        t14 = def p()
        p@4 = t14
        t15 = def p()
        t16 = mine
        t17 = def made()
        t18 = t16(t17)
        made@4 = t18
        t19 = x@4
        t20 = list
        for t21 in t19:  {x@20} comprehension
            x@20 = t21
            t22 = y
            if t22:  (y not none then)
                t23 = x@20
                t20 << t23
        w@4 = t20
        t25 = x
        x@24 = t25
        t26 = x@24
        t24 = class B(x=t26)
        B@4 = t24
        t27 = x@4
        t28 = y@4
        t29 = alias@4
        t30 = made@4
        t31 = w@4
        t32 = B@4
        t4 = class A(x=t27, y=t28, alias=t29, made=t30, w=t31, B=t32)
        A = t4
        """
    )
    a, b = unit.classes
    assert a.bases == ("torch.nn.Module", "Generic", "make")
    assert (a.outer, b.outer, a.parent) == (None, a, unit.module)
    assert list(a.methods) == ["plain", "p", "made"]
    assert list(a.setters) == ["p"]
    assert all(f.cls is a for f in a.methods.values())
    assert a.fields == [("y", True), ("z", False)]
    assert a.annotations == {"y": "int", "z": "torch.Tensor"}
    assert names(a.methods["plain"]) == {"x": "builtin"}
    assert printed(a.methods["made"]) == "t0 = super()\nt1 = t0.made()\nreturn t1\n"
    assert unit.once == {"A": a}


def test_declarations_in_class_bodies() -> None:
    text = """
    def f():
        x = 1
        class A:
            global x
            x = 2
        return x
    def g(): return x
    """
    unit = lower(dedent(text), "m")
    assert not problems(unit)
    assert names(unit.functions[2]) == {"x": "global"}
    assert [name.scope.value for op in walk(unit.functions[1].body) for name in names_of(op)] == (
        ["local", "global", "local", "local"]
    )


def test_cells_count_functions() -> None:
    text = """
    def f(a, b):
        class C:
            def m(self):
                return lambda: (a, self, [a for _ in b])
        def g():
            nonlocal a
            global k
            a = k = 1
        def h(k): return k
        return k
    """
    unit = lower(dedent(text), "m")
    by_name = {f.name: f for f in unit.functions}
    assert not problems(unit)
    assert names(by_name["<lambda>"]) == {"a": "cell 2", "self": "cell 1", "b": "cell 2", "_@3": "local"}
    assert names(by_name["g"]) == {"a": "cell 1", "k": "global"}
    assert names(by_name["h"]) == {"k": "local"}
    assert names(by_name["f"])["k"] == "global"
    assert by_name["f"].shared == {"a", "b"}
    assert by_name["g"].bound == set()
    assert by_name["m"].shared == {"self"}
    assert unit.module.bound == {"f", "k"}


def test_names_that_keep_their_definition() -> None:
    text = """
    def a(): pass
    if x:
        def b(): pass
    else:
        def b(): pass
    try:
        def c(): pass
    except E: pass
    def d(): pass
    d = 1
    def e():
        global f
        f = 1
    def f(): pass
    class G: pass
    @dataclass
    class H: pass
    def i(): pass
    i += 1
    def j(): pass
    del j
    @overload
    def k(): pass
    def k(): pass
    """
    assert list(lower(dedent(text), "m").once) == ["a", "c", "e", "G", "H", "k"]


def test_imports_of_the_module() -> None:
    text = """
    import torch.nn as nn, os.path
    from . import a
    from .b.c import d as e
    from x import *
    from ..y import *
    try: import fast as impl
    except ImportError: import slow as impl
    def f(): import g
    """
    unit = lower(dedent(text), "m")
    assert unit.imports == {"nn": "torch.nn", "os": "os", "a": ".a", "e": ".b.c.d", "impl": "fast"}
    assert unit.stars == ["x", "..y"]


def test_parameters() -> None:
    text = """
    import torch.nn as nn
    from typing import Optional
    def f(a, b: nn.Module, /, c: "nn.Linear" = 1, *args: int, d: Optional[nn.ReLU], e: "nn.ReLU | None" = 2, **k): pass
    def g(a: list[int], b: None, c: "Union[A, B]", d: "not valid(", e: Annotated[A, 1]): pass
    """
    unit = lower(dedent(text), "m")
    assert [(p.name, p.passing.value, p.annotation, p.has_default) for p in unit.functions[1].parameters] == [
        ("a", "positional", "", False),
        ("b", "positional", "torch.nn.Module", False),
        ("c", "positional", "torch.nn.Linear", True),
        ("args", "*", "", False),
        ("d", "only named", "torch.nn.ReLU", False),
        ("e", "only named", "torch.nn.ReLU", True),
        ("k", "**", "", False),
    ]
    assert [p.annotation for p in unit.functions[2].parameters] == ["", "", "", "", "A"]


TESTED = {
    "if a: pass": "a",
    "if a == 'train' and not b: pass": "a b",
    "while a < b: pass": "a b",
    "return 1 if a else b": "a",
    "assert a": "a",
    "match a:\n  case 1: pass": "a",
    "with torch.set_grad_enabled(a == 'train'): pass": "a",
    "with torch.no_grad() if a else b: pass": "a",
    "torch.set_grad_enabled(a)": "a",
    "flag = a == 'train'\nif flag: pass": "a",
    "flag = a == 'train'\nother = not flag\nif other: pass": "a",
    "flag = a == 'train'\nflag = 1\nif flag: pass": "",
    "a and b.step()": "a",
    "if f(a): pass": "",
    "if a.b: pass": "",
    "if isinstance(a, str): pass": "a",
    "def g():\n  if a: pass": "a",
    "def g(a):\n  if a: pass": "",
    "b(a)": "",
}


@pytest.mark.parametrize("text", TESTED)
def test_parameters_that_tests_depend_on(text: str) -> None:
    indented = "\n".join("  " + line for line in text.split("\n"))
    assert lower(f"def f(a, b):\n{indented}", "m").functions[1].tested == set(TESTED[text].split())


def test_mentions_include_nested_functions() -> None:
    function = lower("def f(a):\n  b.c(k=1)\n  def g(): return d.e\n  return [h for h in a]", "m").functions[1]
    assert function.mentions == {"a", "b", "c", "k", "g", "d", "e", "h"}


def test_spans_leave_decorators_out() -> None:
    unit = lower("@a\ndef f():\n  pass\n@b\nclass C:\n  x = 1\n", "m")
    assert unit.functions[1].span == (2, 0, 3, 6)
    assert unit.classes[0].span == (5, 0, 6, 7)
    assert unit.module.span[:2] == (1, 0)
    assert [op.span for op in walk(unit.module.body)][:3] == [(1, 1, 1, 2), (2, 0, 3, 6), (1, 1, 1, 2)]


def test_too_deep_nesting_is_told() -> None:
    tree = ast.parse("a")
    value: ast.expr = ast.parse("a", mode="eval").body
    for _ in range(5000):
        value = ast.copy_location(ast.UnaryOp(ast.USub(), value), value)
    tree.body = [ast.copy_location(ast.Expr(value), value)]
    with pytest.raises(RecursionError):
        lower(tree, "m")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="except* is of Python 3.11")
def test_groups_of_exceptions() -> None:
    assert lowered("try: a\nexcept* B: c") == "try:\n    t0 = a\nexcept B t1:\n    t2 = c\n"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are of Python 3.12")
def test_type_parameters() -> None:
    unit = lower("type X[T] = list[T]\ndef f[T](a: T) -> T: return a\nclass C[T](B): pass", "m")
    assert not problems(unit)
    assert unit.module.bound == {"X", "f", "C"}


@pytest.mark.parametrize(
    "text", ["*x\n", '*"text"\n', "*x = y\n", "for *x in y: pass\n", "for x in *y: pass\n", "a = *x\n"]
)
def test_what_the_parser_lets_pass_and_the_compiler_does_not(text: str) -> None:
    assert lower(text, "main").functions
