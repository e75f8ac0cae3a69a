import re
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quit.stages.leaks.rules import lexical_leaks
from quit.text.answers import answer_key
from tests.paths import ROOT
from tests.rows import cases

KINDS = cases(__file__, "answers.jsonl")
"""By kind: answers that differ from each other, each in some spellings."""
_SIGNS = "aAtheAn bxsÉ.-–−+#%°$€'\"’/:^=<>*_,;!()1234500½²⁺⁻ßΐıİ\u0345\u0301\u0323ﬁǰ가&~×\u200b"


@pytest.mark.parametrize("row", KINDS, ids=[row["kind"] for row in KINDS])
def test_spellings_of_an_answer_have_one_key_and_other_answers_other_keys(row: dict[str, list[list[str]]]) -> None:
    keys = [{answer_key(text) for text in spellings} for spellings in row["answers"]]
    assert [len(own) for own in keys] == [1] * len(keys), keys
    shared = [pair for pair in combinations(row["answers"], 2) if answer_key(pair[0][0]) == answer_key(pair[1][0])]
    assert not shared


def test_there_are_pairs_enough() -> None:
    same = [pair for row in KINDS for spellings in row["answers"] for pair in combinations(spellings, 2)]
    other = [pair for row in KINDS for pair in combinations(row["answers"], 2)]
    assert len(same) >= 300 and len(other) >= 1_500


@pytest.mark.parametrize("form", ["{}.", "“{}”", " {}\u00a0", "**{}**", "({})", "{},"])
def test_what_stands_around_an_answer_is_no_part_of_it(form: str) -> None:
    texts = [spellings[0] for row in KINDS for spellings in row["answers"]]
    assert [text for text in texts if answer_key(form.format(text)) != answer_key(text)] == []
    assert [text for text in texts if answer_key(text.upper()) != answer_key(text)] == []


@given(st.text() | st.text(st.sampled_from(_SIGNS), max_size=12))
@example("'the (a) x'")
@example("5, 500")
def test_the_key_of_a_key_is_itself_and_only_blanks_have_none(text: str) -> None:
    assert answer_key(answer_key(text)) == answer_key(text)
    assert bool(answer_key(text)) == bool("".join(text.split()))


def test_numbers_leak_as_the_page_says() -> None:
    page = (ROOT / "docs/reference/answers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$", page, re.MULTILINE)
    assert len(rows) >= 7
    for answer, leak, other in rows:
        assert lexical_leaks(f"It says {leak}.", answer, "Which?") and not lexical_leaks(
            f"It says {other}.", answer, "Which?"
        )


def test_the_rule_is_as_its_page_says() -> None:
    page = (ROOT / "docs/reference/answers.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[1:] for line in page.splitlines() if line.startswith("| ") and "``" in line]
    assert len(rows) > 15
    for same, other in rows:
        first, *forms = re.findall(r"``(.+?)``", same)
        assert {answer_key(text) for text in forms} == {answer_key(first)}, same
        assert answer_key(first) not in {answer_key(text) for text in re.findall(r"``(.+?)``", other)}, other
