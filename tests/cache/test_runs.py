"""What runs show of a file rests on all files that run it: a change in any of them has it checked again."""

from __future__ import annotations

from tests.cache.conftest import Project

UTILS = "import torch\n\n\ndef step(net, optimizer, x, history):\n    loss = net(x).sum()\n    loss.backward()\n"
UTILS += "    optimizer.step()\n    history.append(loss{what})\n"
MAIN = "import torch\nfrom utils import step\n\nnet = torch.nn.Linear(3, 3)\n"
MAIN += "optimizer = torch.optim.SGD(net.parameters(), 0.1)\nhistory = []\nfor _ in range({rounds}):\n"
MAIN += "    step(net, optimizer, torch.rand(2, 3), {where})\n"
KEPT = [("utils.py", 8, "TML102")]


def wrote(project: Project, what: str = "", where: str = "history") -> None:
    project.write("utils.py", UTILS.format(what=what))
    project.write("main.py", MAIN.format(rounds=9, where=where))


def test_what_another_file_runs_is_known_from_an_earlier_run(project: Project) -> None:
    wrote(project)
    first, second = project.check(), project.check()
    assert project.found(first) == project.found(second) == KEPT
    assert project.checked == []


def test_a_change_where_it_is_called(project: Project) -> None:
    wrote(project)
    assert project.found(project.check()) == KEPT
    wrote(project, where="[]")
    assert project.found(project.check()) == []
    assert project.checked == ["main.py", "utils.py"]
    wrote(project)
    assert project.found(project.check()) == KEPT


def test_a_change_where_it_stands(project: Project) -> None:
    wrote(project, what=".item()")
    assert project.found(project.check()) == []
    wrote(project)
    assert project.found(project.check()) == KEPT


def test_a_new_file_that_calls_it(project: Project) -> None:
    project.write("utils.py", UTILS.format(what=""))
    project.write("other.py", "import torch\n")
    assert project.found(project.check()) == []
    project.write("main.py", MAIN.format(rounds=9, where="history"))
    assert project.found(project.check()) == KEPT
    assert project.checked == ["main.py", "utils.py"]


def test_a_second_file_of_a_name_that_is_found_anywhere(project: Project) -> None:
    project.write("lib/utils.py", UTILS.format(what=""))
    project.write("other/own.py", "import torch\n")
    main = MAIN.replace("import torch\n", "import sys\nimport torch\nsys.path.append(folder)\n", 1)
    project.write("main.py", main.format(rounds=9, where="history"))
    assert project.found(project.check()) == [("lib/utils.py", 8, "TML102")]
    project.write("other/utils.py", "import torch\n")
    assert project.found(project.check()) == []


def test_a_file_that_adds_folders_is_another(project: Project) -> None:
    helper = "import sys\nfrom os import path\nsys.path.append(path.join(path.dirname(__file__), {folder!r}))\n"
    project.write("lib/utils.py", UTILS.format(what=""))
    project.write("other/utils.py", "import torch\n")
    main = MAIN.replace("import torch\n", "import torch\nimport folders\n", 1)
    project.write("tools/main.py", main.format(rounds=9, where="history"))
    for folder, found in (("../lib", [("lib/utils.py", 8, "TML102")]), ("../other", [])) * 2:
        project.write("tools/folders.py", helper.format(folder=folder))
        assert project.found(project.check()) == found


def test_one_file_is_checked_with_those_that_run_it(project: Project) -> None:
    wrote(project)
    assert project.found(project.check("utils.py")) == KEPT
    assert project.found(project.check("main.py")) == []
