from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Severity, Span
from torchmemlint.fixes.apply import fix_text
from torchmemlint.fixes.edits import TextIndex
from torchmemlint.fixes.eligibility import eligible

Rule = tuple[str, str, str]  # code, pattern, what its fix puts there


def finder(*rules: Rule, applicability: Applicability = Applicability.SAFE) -> Callable[[str], list[Finding]]:
    """A linter in small: every match of a pattern is a finding, and its fix is a substitution."""

    def check(text: str) -> list[Finding]:
        index = TextIndex.of(text)
        found = []
        for code, pattern, content in rules:
            for match in re.finditer(pattern, text):
                span = Span(index.position(match.start()), index.position(match.end()))
                fix = Fix(f"write {content}", applicability, (Edit(span, match.expand(content)),))
                found.append(
                    Finding(
                        code, code.lower(), Severity.WARNING, f"found {match[0]}", Path("f.py"), span, span, (), fix
                    )
                )
        return found

    return check


def run(text: str, check: Callable[[str], Sequence[Finding]], *, unsafe: bool = False) -> tuple[str, int, list[str]]:
    result = fix_text(text, check(text), check, unsafe=unsafe)
    assert list(result.findings) == check(result.text)
    again = fix_text(result.text, result.findings, check, unsafe=unsafe)
    assert again.text == result.text
    assert again.applied == ()
    return result.text, len(result.applied), [reason for _, reason in result.rolled_back]


DETACH: Rule = ("TML101", r"\bloss\b(?!\.)", "loss.detach()")


def test_all_findings_are_fixed_and_the_rest_stays() -> None:
    text = "\ufefftotal += loss  # ü\r\nother\t= 1\r\nagain += loss"
    expected = "\ufefftotal += loss.detach()  # ü\r\nother\t= 1\r\nagain += loss.detach()"
    assert run(text, finder(DETACH)) == (expected, 2, [])


def test_a_fix_that_breaks_syntax_is_rolled_back_and_the_others_stay() -> None:
    check = finder(DETACH, ("TML102", r"broken\(\)", "broken("))
    text = "a += loss\nbroken()\nb += loss\n"
    result, applied, reasons = run(text, check)
    assert result == "a += loss.detach()\nbroken()\nb += loss.detach()\n"
    assert applied == 2
    assert len(reasons) == 1
    assert reasons[0].startswith("the file would not parse: ")


def test_a_fix_that_only_the_compiler_refuses_is_rolled_back() -> None:
    check = finder(("TML201", r"\A(?=from __future__)", "import torch\n"))
    text = "from __future__ import annotations\n"
    result, applied, reasons = run(text, check)
    assert (result, applied) == (text, 0)
    assert "from __future__ imports must occur at the beginning" in reasons[0]


def test_a_file_that_this_python_cannot_compile_may_still_be_fixed() -> None:
    text = "return 1\na += loss\n"  # libcst reads it, the compiler does not
    assert run(text, finder(DETACH)) == ("return 1\na += loss.detach()\n", 1, [])


def test_a_fix_that_leaves_its_finding_is_rolled_back() -> None:
    check = finder(("TML101", r"\bloss\b", "(loss)"), ("TML102", "old", "new"))
    assert run("a += loss\nold\n", check) == ("a += loss\nnew\n", 1, ["TML101 would still be reported"])


def test_a_fix_that_brings_another_finding_is_rolled_back() -> None:
    check = finder(("TML102", "one", "two"), ("TML101", "two", "two"))
    text, applied, reasons = run("one\n", check)
    assert (text, applied) == ("one\n", 0)
    assert reasons == ["it would bring TML101 (tml101) at line 1: found two"]


def test_a_fix_may_bring_a_finding_of_a_later_rule_that_is_fixed_next() -> None:
    check = finder(("TML101", "one", "two"), ("TML102", "two", "three"))
    assert run("one\n", check) == ("three\n", 2, [])


def test_a_new_finding_of_the_same_rule_elsewhere_is_noticed() -> None:
    def check(text: str) -> list[Finding]:
        # The fix of the first row makes the second one wrong.
        return finder(("TML101", "bad", "good"))(text.replace("good\nfine", "good\nbad "))

    text, applied, reasons = run("bad\nfine\n", check)
    assert (text, applied) == ("bad\nfine\n", 0)
    assert reasons[0].startswith("it would bring TML101")


def test_findings_that_only_move_are_not_new() -> None:
    check = finder(("TML201", r"wrap\(\)", "with torch.no_grad():\n    wrapped()"), ("TML302", "later", "later"))
    text, applied, reasons = run("wrap(); later\nlater\n", check)
    assert (text, applied) == ("with torch.no_grad():\n    wrapped(); later\nlater\n", 1)
    assert reasons == ["TML302 would still be reported"] * 2


def test_fixes_that_conflict_are_made_in_turn() -> None:
    check = finder(("TML101", "one two", "1 two"), ("TML102", "(?:one|1) two", r"\g<0>, 3"))
    # TML102's fix leaves its finding, so it is taken back in the second round.
    assert run("x = one, [two]\none_two = 'one two'\n", check)[0] == "x = one, [two]\none_two = '1 two'\n"
    check = finder(("TML101", "aab", "b"), ("TML102", "aba", "a"))
    text, applied, reasons = run("aaba\n", check)
    assert (text, applied, reasons) == ("ba\n", 1, [])


def test_a_conflict_with_a_refused_fix_does_not_stop_the_other() -> None:
    check = finder(("TML101", "ab", "ab"), ("TML102", "bc", "x"))
    assert run("abc\n", check)[:2] == ("ax\n", 1)


def test_two_findings_may_want_the_same_import() -> None:
    def check(text: str) -> list[Finding]:
        found = []
        for finding in finder(DETACH)(text):
            assert finding.fix is not None
            start = Span(TextIndex.of(text).position(0), TextIndex.of(text).position(0))
            edits = finding.fix.edits if "import torch" in text else (Edit(start, "import torch\n"), *finding.fix.edits)
            found.append(
                Finding(
                    finding.code,
                    finding.name,
                    finding.severity,
                    finding.message,
                    finding.filename,
                    finding.span,
                    finding.statement,
                    (),
                    Fix("detach", Applicability.SAFE, edits),
                )
            )
        return found

    assert run("a += loss\nb += loss\n", check) == ("import torch\na += loss.detach()\nb += loss.detach()\n", 2, [])


def test_one_bad_fix_among_many_costs_few_checks() -> None:
    calls = 0
    plain = finder(DETACH, ("TML102", r"broken\(\)", "broken("))

    def check(text: str) -> list[Finding]:
        nonlocal calls
        calls += 1
        return plain(text)

    text = "a += loss\n" * 40 + "broken()\n" + "b += loss\n" * 40
    result = fix_text(text, plain(text), check, unsafe=False)
    assert len(result.applied) == 80
    assert calls < 20


def test_edits_outside_the_file_are_reported_not_made() -> None:
    finding = finder(DETACH)("a\nb\nc += loss\n")[0]
    result = fix_text("c", [finding], lambda _: [finding], unsafe=False)
    assert result.text == "c"
    assert "outside the file" in result.rolled_back[0][1]


def test_unsafe_fixes_need_the_word_and_hints_are_never_applied() -> None:
    for applicability, plain, unsafe in [
        (Applicability.SAFE, True, True),
        (Applicability.UNSAFE, False, True),
        (Applicability.HINT, False, False),
    ]:
        check = finder(DETACH, applicability=applicability)
        (finding,) = check("a += loss\n")
        assert eligible(finding, unsafe=False) is plain
        assert eligible(finding, unsafe=True) is unsafe
        assert (run("a += loss\n", check)[1] == 1) is plain
        assert (run("a += loss\n", check, unsafe=True)[1] == 1) is unsafe


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["a += loss", "one", "two = 2", "ab", "bc", "abc", "x", "# loss"]), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.randoms(),
)
def test_any_mixture_ends_and_does_not_depend_on_order(lines: list[str], newline: str, random: object) -> None:
    check = finder(
        DETACH, ("TML102", "one", "(two)"), ("TML103", r"\(two\)", "(ab)"), ("TML104", "ab", "("), ("X", "bc", "d")
    )
    text = newline.join(lines)
    expected = run(text, check)
    assert set(re.findall(r"\r\n|\n", expected[0])) <= {newline}
    shuffled = check(text)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fix_text(text, shuffled, check, unsafe=False).text == expected[0]


def uncovering(fixed: Severity, *, brought: Severity, about: str) -> Callable[[str], list[Finding]]:
    """A linter whose fix of the word `one` shows another finding at `first`, with the place of `about` as evidence."""

    def check(text: str) -> list[Finding]:
        index = TextIndex.of(text)

        def span(word: str) -> Span:
            start = text.index(word)
            return Span(index.position(start), index.position(start + len(word)))

        if "one" in text:
            place = span("one")
            fix = Fix("write two", Applicability.SAFE, (Edit(place, "two"),))
            return [Finding("TML101", "tml101", fixed, "found one", Path("f.py"), place, place, (), fix)]
        place = span("first")
        evidence = (Evidence("is detached here", span(about)),)
        return [Finding("TML203", "tml203", brought, "found", Path("f.py"), place, place, evidence, None)]

    return check


def test_a_fix_may_uncover_a_finding_that_is_less_severe_and_about_what_it_wrote() -> None:
    check = uncovering(Severity.ERROR, brought=Severity.WARNING, about="= two(x)")
    text, applied, reasons = run("first\na = one(x)\n", check)
    assert (text, applied, reasons) == ("first\na = two(x)\n", 1, [])


@pytest.mark.parametrize(
    ("fixed", "brought", "about"),
    [
        (Severity.WARNING, Severity.WARNING, "= two(x)"),
        (Severity.WARNING, Severity.ERROR, "= two(x)"),
        (Severity.ERROR, Severity.WARNING, "first"),
    ],
)
def test_a_fix_may_not_bring_one_as_bad_or_elsewhere(fixed: Severity, brought: Severity, about: str) -> None:
    text, applied, reasons = run("first\na = one(x)\n", uncovering(fixed, brought=brought, about=about))
    assert (text, applied) == ("first\na = one(x)\n", 0)
    assert reasons[0].startswith("it would bring TML203")


@pytest.mark.parametrize("text", ["a += loss\n", "a += loss; "], ids=["on lines of their own", "on one line"])
def test_many_fixes_take_no_longer_each(text: str) -> None:
    """Beside as many findings that stay."""
    check = finder(DETACH, ("TML102", r"\ba\b", "a"))

    def seconds(count: int) -> float:
        program = text * count
        findings = check(program)
        wanted = {id(finding) for finding in findings if finding.code == "TML101"}
        begin = time.process_time()
        result = fix_text(program, findings, check, unsafe=False, wanted=lambda finding: id(finding) in wanted)
        spent = time.process_time() - begin
        assert len(result.applied) == count
        return spent

    few, more = min(seconds(750), seconds(750)), seconds(3_000)
    assert more < 2
    assert more < 12 * few
    if text.endswith("\n"):  # libcst takes longer for each on one line
        assert seconds(12_000) < 12 * more
