import re

from hypothesis import given
from hypothesis import strategies as st

from quit.common.ids import content_key, draw, hint_id, passage_id, question_id


def test_ids_are_namespaced_safe_in_files_and_urls_and_the_papers() -> None:
    assert question_id("wikihint", "test_1") == "wikihint-test_1"
    assert question_id("jsonl", "a b/c\t?") == "jsonl-a_b_c"
    assert question_id("jsonl", "日本").startswith("jsonl-")
    strange = ["日本", "中国", "Zürich 1", "Zörich 1", "Z_rich 1", "ü", "???"]
    assert len({question_id("jsonl", text) for text in strange}) == len(strange)
    assert all(re.fullmatch(r"jsonl-[\w.-]+", question_id("jsonl", text), re.ASCII) for text in strange)
    assert hint_id("wikihint-test_1", 3) == "wikihint-test_1-h03"
    assert passage_id("wikihint-test_1", "402") == "wikihint-test_1_024_402"


@given(st.text(min_size=1), st.text(min_size=1, max_size=20))
def test_a_draw_is_a_number_below_one(key: str, seed: str) -> None:
    assert 0 <= draw(key, seed) < 1


def test_draws_are_spread_evenly() -> None:
    draws = [draw(str(number), "quit") for number in range(4000)]
    tenths = [sum(number / 10 <= drawn < (number + 1) / 10 for drawn in draws) for number in range(10)]
    assert min(tenths) > 330 and max(tenths) < 470  # about four standard deviations


def test_the_content_key_ignores_case_punctuation_and_white_space() -> None:
    assert content_key("Who wrote  'Emma'?") == content_key("who wrote\u00a0emma")
    assert content_key("Who wrote Emma?") != content_key("Who wrote Persuasion?")
