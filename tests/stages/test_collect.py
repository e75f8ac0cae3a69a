"""Pooling: the real files against counts made another way, dirty cases, and the promise that nothing is lost."""

import json
from collections import Counter
from itertools import count
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit.contracts import table
from quit.errors import InputError
from quit.settings import Collect, load
from quit.sources import parse_source, read_sources
from quit.sources.records import RawHint, RawQuestion, Reject, SourceRecord
from quit.stages.collect import collect
from quit.text.normalize import normalize_question
from tests.rows import tuples

_positions = count()


def raw(id_="1", question="Which planet is red?", answers=("Mars",), hints=5, source="jsonl", file="a.jsonl", **more):
    texts = [f"Hint {number} from {file} {id_}" for number in range(hints)] if isinstance(hints, int) else hints
    hints = tuple(hint if isinstance(hint, RawHint) else RawHint(hint) for hint in texts)
    return SourceRecord(RawQuestion(source, file, next(_positions), id_, question, tuple(answers), hints, **more))


def reasons(tables):
    return Counter((row["kind"], row["reason"]) for row in tables["rejects"].to_pylist())


def column(tables, name, of):
    return tables[name].column(of).to_pylist()


# --- the real files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rejects"),
    [
        ("Copilot", {}),
        ("GPT_3.5", {("question", "too_few_hints"): 4}),
        ("LLaMA_7b_Finetuned", {("hint", "duplicate_hint"): 45, ("question", "too_few_hints"): 8}),
    ],
)
def test_a_real_file_agrees_with_a_count_made_from_the_json(data, name, rejects):
    expected = {}
    for record in json.loads((data / "triviahg" / f"{name}.json").read_text("utf-8")):
        distinct = {normalize_question(hint) for hint in record["Hints"]}
        if len(distinct) >= 5:
            expected["triviahg-" + record["Q_ID"]] = len(distinct)
    tables = collect(read_sources([parse_source(f"triviahg:{data}/triviahg/{name}.json")]))
    assert Counter(column(tables, "hints", "question_id")) == expected
    assert column(tables, "questions", "question_id") == sorted(expected) and reasons(tables) == rejects


def test_the_three_triviahg_files_pool_into_one_hundred_questions(data):
    sources = [f"triviahg:{data}/triviahg/{name}.json" for name in ("Copilot", "GPT_3.5", "LLaMA_7b_Finetuned")]
    sources.append(f"wikihint:{data}/wikihint/test_first50.json")
    pooled = collect(read_sources([parse_source(source) for source in sources]))
    assert {name: rows.num_rows for name, rows in pooled.items()} == {
        "questions": 150, "origins": 350, "hints": 2987, "candidates": 2886, "scores": 37700, "rejects": 54,
    }  # fmt: skip
    assert Counter(column(pooled, "questions", "source")) == {"triviahg": 100, "wikihint": 50}
    assert reasons(pooled) == {("hint", "duplicate_hint"): 54} and 2737 + 54 == 970 + 898 + 923
    origins = Counter(column(pooled, "origins", "question_id"))
    assert {number for name, number in origins.items() if name.startswith("triviahg")} == {3}
    files = Counter(column(pooled, "hints", "file"))
    assert len(files) == 4 and (files["Copilot.json"], files["test_first50.json"]) == (970, 250)
    names = ("question", "answers")
    [one] = tuples(pooled["questions"], *names, question_id="triviahg-Q_train_9043")
    assert one == ("Which country hosted the 2000 Summer Olympic Games?", ["Australia"])
    # Hints found nowhere in common, so the published convergence of each must have come through unchanged.
    assert None not in column(pooled, "hints", "convergence")
    for name, rows in pooled.items():
        assert rows.schema.equals(table(name).schema), name
        if key := table(name).key:
            assert len(set(zip(*(column(pooled, name, part) for part in key), strict=True))) == len(rows), name
        if "question_id" in rows.column_names and name != "rejects":
            assert column(pooled, name, "question_id") == sorted(column(pooled, name, "question_id"))
    ids = set(column(pooled, "questions", "question_id"))
    assert set(column(pooled, "hints", "question_id")) == ids == set(origins)
    assert set(column(pooled, "scores", "hint_id")) <= set(column(pooled, "hints", "hint_id"))


# --- pooling --------------------------------------------------------------------------------------------------------


def test_the_same_question_is_pooled_in_order_and_the_first_record_gives_its_face():
    first = raw("1", hints=["a1", "shared hint", "a3"], candidates=("Venus", "MARS"), fine="f")
    other = dict(file="b.jsonl", candidates=("venus", "Ares"), coarse="LOC", fine="g")
    second = raw("9", "which  PLANET is red", ("The Mars", "Ares"), ["b1", "Shared hint!", "b3"], **other)
    tables = collect([first, second])
    face = ("jsonl-1", "Which planet is red?", ["Mars", "Ares"], "LOC", "g")
    assert tuples(tables["questions"], "question_id", "question", "answers", "coarse", "fine") == [face]
    texts = [("a1", "a.jsonl"), ("shared hint", "a.jsonl"), ("a3", "a.jsonl"), ("b1", "b.jsonl"), ("b3", "b.jsonl")]
    hints = [(f"jsonl-1-h0{number}", *text) for number, text in enumerate(texts)]
    assert tuples(tables["hints"], "hint_id", "hint", "file") == hints
    candidates = [("Venus", False), ("MARS", True), ("Ares", True)]
    assert tuples(tables["candidates"], "candidate", "is_gold") == candidates
    [(*place, detail)] = tuples(tables["rejects"], "kind", "reason", "file", "question_id", "detail")
    assert place == ["hint", "duplicate_hint", "b.jsonl", "jsonl-1"] and "jsonl-1-h01" in detail


@pytest.mark.parametrize("texts", [("Which C?", "Which C++?"), ("At 40?", "At -40?"), ("In F?", "In F#?")])
def test_a_sign_that_makes_another_word_makes_another_question_and_hint(texts: tuple[str, str]) -> None:
    tables = collect([raw("1", texts[0]), raw("2", texts[1], hints=[*"abcd", *texts])])
    assert column(tables, "questions", "question") == [*texts] and not reasons(tables)
    assert len(set(column(tables, "questions", "content_key"))) == 2


def test_scores_ranks_and_urls_stay_with_their_hint():
    scores = {"B": 0, "A": 1}
    hints = [RawHint(f"h{n} text", rank=n + 1, convergence=n / 10, url=f"u{n}", scores=scores) for n in range(5)]
    tables = collect([raw(hints=hints)])
    values = [(n + 1, n / 10, f"u{n}") for n in range(5)]
    assert tuples(tables["hints"], "rank", "convergence", "url") == values
    first = tuples(tables["scores"], "position", "candidate", "score", hint_id="jsonl-1-h00")
    assert first == [(0, "B", 0), (1, "A", 1)]


def test_the_same_text_with_another_answer_is_another_question_until_a_record_joins_them():
    records = [raw("1", answers=("x",)), raw("2", answers=("y",)), raw("3", answers=("y", "x"))]
    tables = collect(records[:2])
    assert column(tables, "questions", "question_id") == ["jsonl-1", "jsonl-2"]
    assert len(set(column(tables, "questions", "content_key"))) == 1
    tables = collect(records)
    assert column(tables, "questions", "question_id") == ["jsonl-1"]
    assert column(tables, "questions", "answers") == [["x", "y"]]
    assert column(tables, "origins", "record_id") == ["1", "2", "3"]


def test_an_id_twice_in_one_file_is_rejected_and_in_two_files_is_told_apart():
    same_file = collect([raw("1", "Who?"), raw("1", "Where?")])
    assert reasons(same_file) == {("record", "duplicate_id"): 1}
    assert column(same_file, "questions", "question") == ["Who?"]
    two_files = collect([raw("1", "Who?"), raw("1", "Where?", file="b.jsonl")])
    one, other = column(two_files, "questions", "question_id")
    assert one == "jsonl-1" and other.startswith("jsonl-1-") and len(other) == len("jsonl-1-") + 8
    renamed = collect([raw("1", "Who?"), raw("1", "Where?", file="c.jsonl")])
    assert column(renamed, "questions", "question_id") == [one, other], "its content tells it apart, not its file"
    assert not reasons(two_files)
    # ids that only become equal when made safe for file names
    alike = column(collect([raw("a b", "Who?"), raw("a_b", "Where?")]), "questions", "question_id")
    assert alike[0] == "jsonl-a_b" and alike[1].startswith("jsonl-a_b-")


def test_keep_all_gives_each_record_an_id_and_keep_first_says_which_record_it_kept():
    records = [raw("1", file=f"{name}.jsonl") for name in "abcd"]
    assert len(set(column(collect(records, Collect(duplicates="keep_all")), "questions", "question_id"))) == 4
    tables = collect([raw("1"), raw("2", file="b.jsonl")], Collect(duplicates="keep_first"))
    [(reason, record_id, detail)] = tuples(tables["rejects"], "reason", "record_id", "detail")
    assert (reason, record_id) == ("duplicate_question", "2") and "'1' of 'a.jsonl'" in detail


# --- rejects --------------------------------------------------------------------------------------------------------


def test_too_few_hints_are_counted_after_pooling():
    tables = collect([raw("1", "Who?", hints=["a", "A.", "b", "c", "d"]), raw("2")])
    names = ("kind", "question_id", "record_id", "detail")
    [(*place, detail)] = tuples(tables["rejects"], *names, reason="too_few_hints")
    assert place == ["question", "jsonl-1", "1"]
    assert "4 distinct hints (5 from 1 record); expected at least 5" in detail
    assert collect([raw(hints=2)], min_hints=2)["questions"].num_rows == 1


def test_the_first_questions_are_counted_after_pooling_and_without_those_of_too_few_hints():
    questions = [("Few?", 4), ("Pooled?", 3), ("Second?", 5), ("Third?", 5), ("Pooled?", 3)]
    records = [raw(str(number), text, hints=hints) for number, (text, hints) in enumerate(questions, 1)]
    tables = collect(records, Collect(questions=2))
    assert column(tables, "questions", "question") == ["Pooled?", "Second?"]
    assert reasons(tables) == {("question", "too_few_hints"): 1, ("question", "beyond_questions"): 1}
    names = ("record_id", "question_id", "detail")
    [(*place, detail)] = tuples(tables["rejects"], *names, reason="beyond_questions")
    assert place == ["4", "jsonl-4"]
    assert "first 2 usable questions" in detail and "collect.questions" in detail
    every = collect(records, Collect(questions=3))
    assert every["questions"].equals(collect(records)["questions"])
    assert not reasons(every)["question", "beyond_questions"]


@pytest.mark.parametrize("name", ["Copilot", "GPT_3.5", "LLaMA_7b_Finetuned"])
def test_the_questions_of_context_convergence_agree_with_a_count_made_from_the_json(data, name):
    """Mozafari, Piryani and Jatowt (2026): eleven distinct candidates, no false hint, most distinct convergences."""
    distinct_values, left_out = {}, Counter()
    for record in json.loads((data / "triviahg" / f"{name}.json").read_text("utf-8")):
        pairs = [*zip(record["Hints"], record.get("Scores") or [])]
        hints = {normalize_question(hint): scores for hint, scores in reversed(pairs)}
        chosen = [[scores[key] for key in [*[*scores][:10], [*scores][-1]]] for scores in hints.values() if scores]
        if len(hints) < 5:
            left_out["too_few_hints"] += 1
        elif any(len(scores) < 11 for scores in hints.values()):
            left_out["too_few_candidates"] += 1
        elif not all(scores[-1] for scores in chosen):
            left_out["false_hint"] += 1
        else:
            convergences = {round(1 - (sum(scores) - 1) / 11, 2) for scores in chosen}
            distinct_values["triviahg-" + record["Q_ID"]] = len(convergences)
    settings = load("convergence", ["collect.questions=10"]).settings
    sources = read_sources([parse_source(f"triviahg:{data}/triviahg/{name}.json")])
    tables = collect(sources, settings.collect, settings.passages.needed_hints, settings.convergence)
    left_out["beyond_questions"] = len(distinct_values) - 10
    assert {reason: count for (kind, reason), count in reasons(tables).items() if kind == "question"} == left_out
    most = sorted(distinct_values, key=distinct_values.__getitem__, reverse=True)[:10]
    assert column(tables, "questions", "question_id") == sorted(most)


def test_a_record_without_answer_or_question_is_rejected():
    tables = collect([raw("1", answers=()), raw("2", answers=(" ",)), raw("3", " "), raw("4")])
    assert reasons(tables) == {("record", "no_answer"): 2, ("record", "no_question"): 1}


def test_what_readers_rejected_is_passed_on_and_hints_get_their_question():
    lost = SourceRecord(None, (Reject("collect", "record", "not_json", "line 1: no JSON", file="a.jsonl", position=0),))
    empty_hint = Reject("collect", "hint", "empty_hint", "Hint 3 is empty", record_id="7")
    tables = collect([lost, SourceRecord(raw("7").question, (empty_hint,))])
    rejects = [("not_json", None), ("empty_hint", "jsonl-7")]
    assert tuples(tables["rejects"], "reason", "question_id") == rejects


def test_an_empty_collection_says_what_to_do():
    with pytest.raises(InputError, match="no source holds a record. Give one"):
        collect([])
    few = [raw(hints=["a", "A."]), raw("2", "Who?", hints=3)]
    lost = [SourceRecord(None, (Reject("collect", "record", "not_json", "No JSON."),))]
    for records, message in (
        (few, "none of 2 records .*too_few_hints 2, duplicate_hint 1.*passages.hints"),
        (lost, "none of 1 records .*not_json 1.*First: a record: No JSON"),
    ):
        with pytest.raises(InputError, match=message):
            collect(records)


# --- nothing is lost ------------------------------------------------------------------------------------------------

_words = st.sampled_from(["red", "Red!", "blue", "a moon", "the moon", "…", "東京", "x y"])
_records = st.builds(
    raw,
    id_=st.sampled_from("12345"),
    question=st.sampled_from(["Who?", "who", "Where?", "???", "!!!"]),
    answers=st.lists(_words, min_size=0, max_size=3),
    hints=st.lists(_words, max_size=8),
    file=st.sampled_from(["a.jsonl", "b.jsonl"]),
    source=st.sampled_from(["jsonl", "hinteval"]),
    candidates=st.lists(_words, max_size=3).map(tuple),
)


@given(
    st.lists(_records, max_size=12),
    st.sampled_from(["pool", "keep_first", "keep_all"]),
    st.integers(0, 5),
    st.sampled_from([None, 1, 2]),
)
def test_every_hint_is_in_hints_or_accounted_for_in_rejects(records, duplicates, min_hints, questions):
    settings = Collect(duplicates=duplicates, questions=questions)
    try:
        tables = collect(records, settings, min_hints)
    except InputError:
        return
    with patch("quit.stages.collect._CHUNK", 2):
        assert collect(records, settings, min_hints) == tables
    assert tables["questions"].num_rows <= (questions or 12)
    lost = {
        kind: [row[name] for row in tables["rejects"].to_pylist() if row["kind"] == kind]
        for kind, name in (("record", "position"), ("question", "question_id"), ("hint", "position"))
    }
    lost_records, lost_questions, lost_hints = set(lost["record"]), set(lost["question"]), Counter(lost["hint"])
    origins = {row["position"]: row["question_id"] for row in tables["origins"].to_pylist()}
    assert not set(origins) & lost_records and not lost_questions & set(origins.values())
    for record in records:
        question = record.question
        if question.position in lost_records:
            continue
        if question.position not in origins:
            assert lost_questions and (min_hints or questions), "a record vanished without a reject"
            continue
        for text in {hint.text for hint in question.hints}:
            form = normalize_question(text) or text
            pooled = [row for row in tables["hints"].to_pylist() if row["question_id"] == origins[question.position]]
            assert form in {normalize_question(row["hint"]) or row["hint"] for row in pooled}
    alive = [record.question for record in records if record.question.position in origins]
    dropped = sum(lost_hints[question.position] for question in alive)
    assert sum(len(question.hints) for question in alive) == tables["hints"].num_rows + dropped
