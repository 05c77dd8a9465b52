"""What a file adds to `sys.path`, and where that leads the imports of its program."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from torchmemlint.flow.ir.lower import lower
from torchmemlint.flow.ir.ops import Unit
from torchmemlint.flow.names.elsewhere import Elsewhere
from torchmemlint.flow.names.finder import InMemory
from torchmemlint.flow.names.folders import added

ROOT = Path("/project")
FILE = ROOT / "tools" / "train.py"
HELPER = """
import os.path as osp
import sys

def add_path(path):
    if path not in sys.path:
        sys.path.insert(0, path)

this_dir = osp.dirname(__file__)
lib_path = osp.join(this_dir, '..', 'lib')
add_path(lib_path)
"""
FUNCTION = "import sys\n\ndef add(name, *, folder='x', **more):\n    {body}\n\n{call}\n"


def folders(text: str) -> set[str]:
    return {*added(lower(text, "train"), FILE)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import sys\nsys.path.append('..')", {".."}),
        ("import sys\nsys.path.extend(['a', 'b'])", {"a", "b"}),
        ("import sys\nsys.path += ['a']", {"a"}),
        ("import sys\nsys.path = ['a'] + sys.path", {"a"}),
        ("import sys\nsys.path = ['a', *sys.path]", {"a"}),
        ("import sys\nsys.path[:0] = ['a']", {"a"}),
        ("import sys\nsys.path[0] = 'a'", {"a"}),
        ("import sys as system\nsystem.path.append('a')", {"a"}),
        ("def f():\n    import sys\n    sys.path.append('a')", {"a"}),
        ("import sys\nfor name in ('a', 'b'):\n    sys.path.append(name)", {"a", "b"}),
        ("import sys\nsys.path.append(folder)", set()),
        ("import sys\nsys.path.remove('a')\nprint(sys.path)", set()),
        ("paths = []\npaths.append('a')", set()),
        ("import sys\na = b\nb = a\nsys.path.append(a)", set()),
    ],
)
def test_ways_of_adding(text: str, found: set[str]) -> None:
    assert folders(text) == found


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("os.path.join(os.path.dirname(__file__), '..', 'lib')", "/project/tools/../lib"),
        ("os.path.dirname(os.path.dirname(os.path.abspath(__file__)))", "/project"),
        ("os.path.abspath(os.path.join(__file__, os.pardir, os.path.pardir))", "/project/tools/train.py/../.."),
        ("os.path.split(os.path.realpath(__file__))[0]", "/project/tools"),
        ("os.path.dirname(__file__) + '/lib'", "/project/tools/lib"),
        ("str(Path(__file__).parent.parent)", "/project"),
        ("str(Path(__file__).resolve().parents[1] / 'lib')", "/project/lib"),
        ("Path(__file__).absolute().parent.joinpath('a', 'b').as_posix()", "/project/tools/a/b"),
        ("os.path.join(os.getcwd(), 'lib')", "lib"),
        ("os.path.dirname(os.path.abspath('..'))", "../.."),
        ("here()", "/project/tools"),
        ("HERE or 'x'", "/project/tools"),
    ],
)
def test_paths(path: str, found: str) -> None:
    text = "import os, sys\nfrom pathlib import Path\n\ndef here():\n    return os.path.dirname(__file__)\n\n"
    assert found in folders(f"{text}HERE = here()\nsys.path.append({path})")


@pytest.mark.parametrize(
    ("body", "call", "found"),
    [
        ("sys.path.append(name)", "add('a')", {"a"}),
        ("sys.path.append(name)", "add(name='a')\nadd('b')", {"a", "b"}),
        ("sys.path.append(folder)", "add('a', folder='b')", {"b"}),
        ("sys.path.append(name)", "add(*names)", set()),
        ("whole = name + '/c'\n    sys.path.append(whole)", "add('a')", {"a/c"}),
    ],
)
def test_a_function_of_the_file_adds_what_it_is_given(body: str, call: str, found: set[str]) -> None:
    assert folders(FUNCTION.format(body=body, call=call)) == found


def test_a_path_that_is_made_of_itself_takes_no_time() -> None:
    text = "import os, sys\np0 = 'a'\n"
    text += "".join(f"p{n + 1} = os.path.join(p{n}, p{n}) or p{n} + p{n}\n" for n in range(60))
    began = time.perf_counter()
    folders(f"{text}sys.path.append(p60)\n")
    folders("import sys\np = 'a'\n" + "p = p + 'b'\n" * 3000 + "sys.path.append(p)\n")
    assert time.perf_counter() - began < 10


def leads(files: dict[str, str], dotted: str, by: str) -> str | None:
    texts = {ROOT / name: text for name, text in files.items()}

    def unit(path: Path) -> Unit:
        return lower(texts[path], path.stem)

    elsewhere = Elsewhere(InMemory(ROOT, texts), texts.keys, texts.get, unit, {"torch"})
    place, _ = elsewhere.place(dotted, ROOT / by)
    return place[0].relative_to(ROOT).as_posix() if place is not None else None


FILES = {
    "tools/_init_paths.py": HELPER,
    "tools/train.py": "import _init_paths\nfrom core.function import train\n",
    "tools/plain.py": "from core.function import train\n",
    "lib/core/function.py": "from utils.vis import show\n",
    "lib/utils/__init__.py": "",
    "lib/utils/vis.py": "",
    "other/core/function.py": "",
}


def test_a_file_that_is_imported_for_what_it_adds() -> None:
    assert leads(FILES, "core.function.train", "tools/train.py") == "lib/core/function.py"
    assert leads(FILES, "core.function.train", "tools/plain.py") is None


def test_what_a_file_adds_that_an_imported_one_imports() -> None:
    files = {**FILES, "tools/train.py": "import setup_all\n", "tools/setup_all.py": "import _init_paths\n"}
    assert leads(files, "core.function.train", "tools/train.py") == "lib/core/function.py"


def test_the_files_of_a_program_look_where_its_script_does() -> None:
    assert leads(FILES, "utils.vis.show", "lib/core/function.py") == "lib/utils/vis.py"
    assert leads({**FILES, "tools/train.py": ""}, "utils.vis.show", "lib/core/function.py") is None


def test_a_name_that_is_in_two_added_folders_leads_nowhere() -> None:
    both = HELPER + "add_path(osp.join(this_dir, '..', 'other'))\n"
    assert leads({**FILES, "tools/_init_paths.py": both}, "core.function.train", "tools/train.py") is None


def test_what_a_program_adds_itself_comes_before_what_others_add_that_import_it() -> None:
    files = {**FILES, "run.py": "import sys\nsys.path.append('other')\nfrom tools import train\n"}
    assert leads(files, "core.function.train", "tools/train.py") == "lib/core/function.py"


def test_installed_packages_are_no_files_of_the_project() -> None:
    assert leads({**FILES, "lib/torch.py": "", "lib/json.py": ""}, "torch.nn", "tools/train.py") is None
    assert leads({**FILES, "lib/torch.py": "", "lib/json.py": ""}, "json.load", "tools/train.py") is None


def test_folders_around_the_project_are_not_looked_at() -> None:
    files = {"train.py": "import sys\nsys.path.append('../..')\nsys.path.append('/usr/lib')\n"}
    assert leads(files, "core.train", "train.py") is None
