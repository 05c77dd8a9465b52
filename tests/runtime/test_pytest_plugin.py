"""The pytest plugin, by real pytest runs inside the test."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest_plugins = ["pytester"]

PLUGIN = ("-p", "no:torchmemlint", "-p", "torchmemlint.pytest_plugin")
"""By its module, whether or not the package is installed and pytest has found the plugin by itself."""
LEAKING = """
import pytest, torch

kept = []
layer = torch.nn.Linear(64, 64)

def work(leak):
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(8):
        loss = layer(torch.ones(32, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if leak:
            kept.append(torch.ones(1024))
"""


@pytest.fixture(autouse=True, scope="module")
def everything_is_imported() -> None:
    """pytester forgets the modules that an inner run imports; those that torch loads late cannot be loaded twice."""
    weight = torch.ones(1, requires_grad=True)
    weight.sum().backward()
    torch.optim.SGD([weight], lr=0.1).step()


@pytest.fixture
def run(pytester: pytest.Pytester) -> object:
    def of(body: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(LEAKING + body)
        return pytester.runpytest_inprocess(*PLUGIN, "--memory-backend=cpu", *options)

    return of


def test_within_its_limits(run) -> None:
    result = run("""
@pytest.mark.memory(max_peak="1MiB", max_growth_per_step="1KiB")
def test_clean():
    work(leak=False)
""")
    result.assert_outcomes(passed=1)


def test_growth_is_named_with_its_line(run) -> None:
    result = run("""
@pytest.mark.memory(max_growth_per_step="1KiB")
def test_leak():
    work(leak=True)
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*it grew by 4.0 KiB per step over 6 steps, more than 1.0 KiB*", "*4.0 KiB*test_growth*.py:14 in work"]
    )


def test_a_peak_is_named_with_its_line(run) -> None:
    result = run("""
@pytest.mark.memory(max_peak="64 KiB")
def test_peak():
    big = torch.ones(1024, 64)
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*its peak was 256.0 KiB, more than 64.0 KiB*", "*256.0 KiB*in test_peak"])


def test_the_fixture_alone(run) -> None:
    result = run("""
def test_fixture(memory):
    kept = torch.ones(1024)
    assert memory.live == 4096
    del kept
    assert memory.live == 0
    assert memory.peak == 4096
""")
    result.assert_outcomes(passed=1)


def test_fixtures_of_a_marked_test_are_measured(run) -> None:
    result = run("""
@pytest.fixture
def model():
    return torch.nn.Linear(1024, 64)

@pytest.mark.memory(max_peak="64 KiB")
def test_model(model):
    pass
""")
    result.assert_outcomes(failed=1)


def test_too_few_steps_cannot_pass(run) -> None:
    result = run("""
@pytest.mark.memory(max_growth_per_step="1KiB")
def test_short():
    torch.ones(1)
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*only 0 steps ended*"])


def test_a_failing_test_fails_for_its_own_reason(run) -> None:
    result = run("""
@pytest.mark.memory(max_peak="1 B")
def test_wrong():
    torch.ones(1024)
    assert False, "its own reason"
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*its own reason*"])
    result.stdout.no_fnmatch_line("*its peak was*")


def test_a_limit_cannot_pass_unmeasured(run) -> None:
    result = run("""
@pytest.fixture
def memory():
    return "my own"

@pytest.mark.memory(max_peak="1GiB")
def test_other():
    pass
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the fixture `memory` is not torchmemlint's*"])


@pytest.mark.parametrize("arguments", ['max_peak="much"', "max_peek=1", '"1GiB"'])
def test_a_marker_that_says_nothing_is_an_error(run, arguments: str) -> None:
    result = run(f"""
@pytest.mark.memory({arguments})
def test_marked():
    pass
""")
    assert result.ret != 0
    assert not result.parseoutcomes().get("passed")


def test_unmarked_tests_do_not_import_torch(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
import sys

def test_plain():
    assert "torch" not in sys.modules
""")
    result = pytester.runpytest_subprocess(*PLUGIN)
    result.assert_outcomes(passed=1)


def test_limits_from_a_file(run, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmemory_budget = budget.toml\n")
    name = "test_limits_from_a_file.py"
    (pytester.path / "budget.toml").write_text(f"""
["{name}::test_peak"]
peak = "64 KiB"
["{name}::test_each"]
growth = "1 KiB"
["{name}::test_its_own"]
peak = "1 KiB"
""")
    result = run("""
def test_peak():
    big = torch.ones(1024, 64)

@pytest.mark.parametrize("leak", [False, True])
def test_each(leak):
    work(leak)

@pytest.mark.memory(max_peak="1 MiB")
def test_its_own():
    big = torch.ones(1024, 64)

def test_of_no_budget():
    big = torch.ones(1024, 64)
""")
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*its peak was 256.0 KiB, more than 64.0 KiB*", "*it grew by 4.0 KiB per step*"])


def test_a_budget_that_cannot_be_read_ends_the_run(run, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmemory_budget = budget.toml\n")
    result = run("def test_nothing(): pass")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*memory_budget: *budget.toml: cannot be read: No such file or directory*"])
