"""Whatever people write, the analysis ends without an error and says the same again."""

from __future__ import annotations

import sysconfig
import warnings
from pathlib import Path

import pytest

from torchmemlint.flow.fact.cases import Case, cases

from .programs.tables import programs

TESTS = Path(__file__).parents[1]
LINES = 600
SAMPLE = 60


def short(path: Path) -> bool:
    """Whether it can be read, and is not too long for a test."""
    try:
        return 20 < path.read_text(encoding="utf-8").count("\n") < LINES
    except UnicodeDecodeError:
        return False


LIBRARY = [path for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*/*.py")) if short(path)]
LIBRARY = [path for path in LIBRARY if path.parent.name not in {"site-packages", "lib2to3", "idlelib", "turtledemo"}]
FILES = [*sorted(TESTS.glob("ir/*.py")), *LIBRARY[:: max(1, len(LIBRARY) // SAMPLE)]]


def analysed(text: str) -> list[Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cases({"example.py": text})


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_files(path: Path) -> None:
    try:
        analysed(path.read_text(encoding="utf-8"))
    except SyntaxError:
        pytest.skip("not written for this Python")


def test_enough_files() -> None:
    assert len(FILES) >= SAMPLE


ODD = {
    "nothing": "",
    "a comment": "# nothing\n",
    "no line at the end": "x = 1",
    "a function of nothing": "def f(): ...\nf()",
    "a function that calls itself": "def f(x):\n    return f(f(x))\nf(f)",
    "functions that call each other": "def f(x):\n    return g(x)\ndef g(x):\n    return f(x)\nf(g)",
    "a class that is its own base": "class A(A):\n    pass\nA().b.c()",
    "classes that are each other's base": "class A(B):\n    pass\nclass B(A):\n    pass\nA().f(B().f)",
    "a list in itself": "x = []\nx.append(x)\nfor y in x:\n    y.append(x)\n    x = y",
    "a dictionary of itself": "x = {}\nx['x'] = x\nx['x']['x']['x'].update(x)",
    "an attribute of itself": "class A:\n    pass\na = A()\na.a = a\na.a.a.a = a.a\n",
    "a file that imports itself": "import example\nfrom example import *\nexample.example.f(example)",
    "a deep expression": "x = " + "(" * 60 + "1" + ")" * 60,
    "a long sum": "x = " + " + ".join(f"y{n}" for n in range(200)),
    "a long chain": "x = a" + ".b()" * 200,
    "loops in loops": "".join(f"{'    ' * n}for x{n} in y:\n" for n in range(9)) + "    " * 9 + "z += x1 + x8",
    "many branches": "\n".join(f"if a{n}:\n    x = b{n}\nelse:\n    x.append(c{n})" for n in range(60)),
    "a generator of itself": "def f():\n    yield from f()\nlist(f())",
    "a decorator that returns nothing": "def d(f): pass\n@d\ndef g(x): return x\ng(1)",
    "a function that decorates itself": "def f(g):\n    return g\nf = f(f)\n@f\ndef h(): return h\nh()()",
    "a lambda that is called at once": "(lambda *a, **k: (lambda: a)())(*[1], **{'b': 2})",
    "a star everywhere": "a, *b = *c, *d\n[*e], *f = g(*h, *i, **j, **k)",
    "deletions": "x = [1]\ndel x[0], x[:], x\ndel y.z\n",
    "loops that end at once": "while True:\n    break\nelse:\n    x = 1\nfor y in z:\n    continue\nelse:\n    x = 2",
    "raises everywhere": "try:\n    raise A from b\nexcept (A, B) as e:\n    raise\nelse:\n    c()\nfinally:\n    d()",
    "a return in every branch": "def f(x):\n    if x:\n        return f\n    else:\n        return x\n    y()\nf(f)(f)",
    "asynchronous code": "async def f(x):\n    async with x as y:\n        return [await z async for z in y]",
    "names that are never bound": "a.b[c](d, *e, **f).g += h",
    "a global in a class": "class A:\n    global x\n    x = 1\n    def f(self): return __class__\nA().f()(x)",
    "a property of itself": "class A:\n    @property\n    def a(self): return self.a.a\nA().a",
    "a metaclass": "class M(type):\n    def __call__(cls, *a): return cls\nclass A(metaclass=M):\n    x = 1\nA(A)(A).x",
    "a super outside": "super().f()\ndef g(): super().g()\ng()",
    "default arguments": "def f(x=[], *, y=lambda: f, **z):\n    x.append(y)\n    return y()\nf()(f(), y=f)",
    "a context within itself": "with open(a) as b, b as c, c(b) as (d, *e):\n    with c: pass",
    "comparisons": "a < b < c is not d in e\nnot (f and g or h) if i else ~j",
    "what nobody gave an object": "import torch\nclass A: pass\ndef f(net):\n    print(net(A().x.cuda()).sum().item())",
    "texts": "f'{a!r:>{b}}' f'{c=}' + '%s' % d",
    "assignments in tests": "while (x := f(x)) and (y := x): z = [w := y for y in x]",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_programs(text: str) -> None:
    assert analysed(text) == []


@pytest.mark.slow
def test_the_same_again() -> None:
    for program in programs()[::5]:
        assert cases(program.files) == cases(program.files), program.name
