from math import nextafter

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from quit.common.ids import content_key, draw
from quit.errors import InputError, SettingsError
from quit.settings import Split
from quit.stages.split import read_pins, split_questions
from tests.release import small
from tests.rows import table_of, tuples


def _questions(texts: list[str]):
    rows = [{"question": text, "content_key": content_key(text)} for text in texts]
    return table_of("questions", [{"question_id": f"q{n:05d}", **row} for n, row in enumerate(rows)])


def _split(texts: list[str], parametric: list[bool], **values) -> tuple[dict[str, str], dict[str, str]]:
    """Return (question text -> split, question text -> reason of its reject)."""
    text_of = {f"q{place:05d}": text for place, text in enumerate(texts)}
    tables = split_questions(_questions(texts), dict(zip(text_of, parametric)), Split(**values))
    kept = {text_of[question_id]: split for question_id, split in tuples(tables["splits"], "question_id", "split")}
    rejects = tuples(tables["rejects"], "question_id", "reason")
    return kept, {text_of[question_id]: reason for question_id, reason in rejects}


def _numbered(count: int, start: int = 0) -> list[str]:
    return [f"What is alpha{number} of beta{number} in gamma{number}?" for number in range(start, start + count)]


def test_sizes_are_the_papers() -> None:
    texts = _numbered(9000)
    kept, rejected = _split(texts, [place < 5905 for place in range(9000)])
    counts = {name: list(kept.values()).count(name) for name in ("train", "dev", "test")}
    assert counts == {"train": 5000, "test": 2000, "dev": 1095}  # 8,095 questions, as in section 3.1.4
    assert set(rejected.values()) == {"not_sampled"} and len(rejected) == 905
    assert {text for text, split in kept.items() if split == "train"} == {*texts[:5905]} - {*rejected}


@hypothesis_settings(max_examples=50, deadline=None)
@given(
    st.lists(st.booleans(), min_size=1, max_size=40),
    st.lists(st.booleans(), max_size=40),
    st.integers(0, 5),
    st.sampled_from([(0.3, "parametric"), (1.0, "parametric"), (0.3, "any")]),
)
def test_a_new_source_moves_no_question(old: list[bool], new: list[bool], size: int, rule: tuple[float, str]) -> None:
    """With ``share`` the sizes of the paper do not count, or they would be full at some number of questions."""
    share, train = rule
    values = {"method": "share", "train_size": size, "test_size": size, "train_share": share, "train": train}
    texts = _numbered(len(old) + len(new))
    before, left_out = _split(texts[: len(old)], old, **values)
    after, also_left_out = _split(texts, old + new, **values)
    assert before == {text: after[text] for text in before}
    assert left_out == {text: also_left_out[text] for text in left_out}


def test_a_share_is_that_of_the_draws_below_it_and_what_train_leaves_out_is_told() -> None:
    share = draw(content_key("Who?"), Split().seed)
    for test_share, split in ((share, "dev"), (nextafter(share, 1), "test")):
        assert _split(["Who?"], [False], method="share", test_share=test_share) == ({"Who?": split}, {})
    for values, rule in (({"train_size": 0}, "train_size=0"), ({"method": "share", "train_share": 0}, "train_share=0")):
        [reject] = split_questions(_questions(["Who?"]), {"q00000": True}, Split(**values))["rejects"].to_pylist()
        assert (reject["reason"], reject["question_id"]) == ("not_sampled", "q00000")
        assert f"({rule})" in reject["detail"]


@pytest.mark.parametrize("method", ["size", "share"])
def test_train_from_all_questions_is_drawn_without_regard_to_what_readers_know(method: str) -> None:
    """By size the lowest draws train and the next test; by share a fifth, and of the rest a quarter."""
    texts = _numbered(400)
    values = {"method": method, "train": "any", "train_size": 80, "test_size": 80, "train_share": 0.2}
    kept, rejected = _split(texts, [place % 3 == 0 for place in range(400)], test_share=0.25, **values)
    draws = {text: draw(content_key(text), Split().seed) for text in texts}
    in_order = sorted(texts, key=draws.__getitem__)
    places = dict(zip(in_order, range(400), strict=True)) if method == "size" else draws
    train, test = (80, 160) if method == "size" else (0.2, 0.4)
    truth = {text: "train" if at < train else "test" if at < test else "dev" for text, at in places.items()}
    assert kept == truth and not rejected
    with pytest.raises(SettingsError, match="split.train = 'any' with split.train_size = 400 puts all 400"):
        _split(texts, [True] * 400, train="any", train_size=400)


def test_the_seed_decides() -> None:
    one, again, other = (_split(_numbered(100), [False] * 100, method="share", seed=seed)[0] for seed in "aab")
    assert one == again != other


def test_near_identical_questions_never_stand_on_both_sides() -> None:
    texts = ["Which city is the capital of France?", "What city is the capital of France", "Which river is it?"]
    kept, rejected = _split(texts, [True, False, False], method="share")
    assert rejected == {texts[0]: "near_duplicate_across_splits"}
    assert kept[texts[1]] in ("dev", "test")


def test_pinned_questions_keep_their_split_whatever_their_draw(tmp_path) -> None:
    texts, rows = _numbered(50), small.rows()
    for text, question, split in zip(texts, rows["questions"], rows["splits"]):
        question["content_key"], split["split"] = content_key(text), "dev"
    small.freeze(tmp_path, rows)
    kept, _ = _split(texts, [True] * 25 + [False] * 25, train_size=10, test_size=10, pinned=str(tmp_path))
    assert all(kept[text] == "dev" for text in texts[: len(rows["questions"])])
    assert list(kept.values()).count("train") == 10


def test_pins_of_a_release_are_its_splits(tmp_path) -> None:
    rows = small.rows()
    rows["questions"][1]["content_key"] = rows["questions"][2]["content_key"] = "one text"
    small.freeze(tmp_path, rows)
    pinned = Split(pinned=str(tmp_path))
    keys = {"q1": rows["questions"][0]["content_key"], "q2": "one text", "q3": "one text"}
    pins = read_pins(str(tmp_path))
    assert [pins.split_of(name, key) for name, key in keys.items()] == ["train", "dev", "test"]
    assert [pins.split_of("q3", keys["q1"]), pins.split_of("new", "one text")] == ["train", "dev"]
    assert (
        pins.split_of("q3", "new text")
        is pins.split_of("new", "new text")
        is read_pins(None).split_of("q1", "")
        is None
    )
    tables = split_questions(table_of("questions", rows["questions"]), {"q2": False, "q3": False}, pinned)
    assert tuples(tables["splits"], "question_id", "split") == [("q2", "dev"), ("q3", "test")]
    (tmp_path / "tables" / "splits.parquet").write_bytes(b"x")
    with pytest.raises(InputError, match=r"splits.parquet was changed"):
        read_pins(str(tmp_path))
    for other in (tmp_path / "release.json", tmp_path / "absent"):
        with pytest.raises(InputError, match=f"{other} is not a complete release"):
            read_pins(str(other))
    with pytest.raises(InputError, match="not a complete release"):
        read_pins(str(tmp_path / "tables"))
