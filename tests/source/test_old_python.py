import time

import pytest

from torchmemlint.source.old_python import old_python


@pytest.mark.parametrize(
    "text",
    [
        'print "hello"\n',
        "if x:\n    print x, y\n",
        "if x: print x\n",
        "print >>sys.stderr, 'no'\n",
        "try:\n    pass\nexcept ValueError, e:\n    pass\n",
        "try:\n    pass\nexcept (ValueError, KeyError), error:\n    pass\n",
        "x = `y`\n",
        'exec "x = 1"\n',
        "exec code in scope\n",
        "os.chmod(path, 0777)\n",
        "x = 10L\n",
        "x = 0xFFl\n",
        "if a <> b: pass\n",
        'raise ValueError, "no"\n',
        'x = ur"no"\n',
        "def f(a, (b, c)): pass\n",
    ],
)
def test_python_2(text: str) -> None:
    assert old_python(text) == "Python 2"


@pytest.mark.parametrize("text", ["x = x.cuda(async=True)\n", "x.cuda(0, async = is_async)\n", "loop.async(f)\n"])
def test_python_3_6(text: str) -> None:
    assert old_python(text) == "Python 3.6"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def broken(:\n",
        "print('x'\n",
        "print = 3 +\n",
        "print (x) y\n",
        "try:\n    pass\nexcept (A, B) as e\n    pass\n",
        "except (a, b):\n",
        '"""\nprint "x"\nexcept A, e:\n`a` 0777 10L\n"""\nx = (\n',
        "# print x\n# except A, e:\nx = (\n",
        "x = 'use print x or `y`' +\n",
        "x = 0o777 + 0.01 + 00 + 1e05 + 0x01 +\n",
        "if x =< 1.0e-05:\n    pass\n",
        "exec(code) in\n",
        "raise ValueError('a, b'\n",
        "printer x\n",
        "x = [1, 0, 10]]\n",
        "async def f(x=1:\n    pass\n",
        "f(asynchronous=True\n",
        "if (async == 1: pass\n",
        "# x.cuda(async=True)\nf(\n",
    ],
)
def test_broken_python_3(text: str) -> None:
    assert not old_python(text)


LONG = ('x = """' + "\\\\a" * 10_000, "x = 0" + "1" * 10_000 + "a", "x = '''a" * 2_000, "except " + "a," * 10_000)


@pytest.mark.parametrize("text", LONG)
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    old_python(text)
    assert time.process_time() - began < 2
