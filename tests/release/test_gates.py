"""Every gate: silent on a sound release, loud on a constructed violation, and waived only with a reason."""

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from quit.errors import SettingsError
from quit.release.gates import GATES, check, coverage, parse_waivers, release_settings, with_release_settings
from quit.settings import Leakage
from quit.stages.leaks.containment import stands_in_a_passage
from tests.release import small


def _failed(folder: Path, made: small.Rows, **release) -> dict[str, tuple[str, ...]]:
    return {one.gate: one.examples for one in check(small.subject(folder, made, **release)) if one.state != "passed"}


def test_a_sound_release_passes_every_gate(tmp_path: Path) -> None:
    results = check(small.subject(tmp_path, small.rows()))
    assert [one.gate for one in results] == list(GATES)
    assert {one.state for one in results} == {"passed"}


@pytest.mark.parametrize("hint", ["People say it is the NILE.", "Boats on the river Nile's water.", "Nile" * 50])
def test_an_answer_inside_a_hint(tmp_path: Path, hint: str) -> None:
    made = small.rows()
    made["ranked_hints"][1]["hint"] = hint
    [(gate, [example])] = _failed(tmp_path, made).items()
    assert gate == "answer-in-passage" and example == f"q1: 'Nile' is in the passage 1: {hint[:160]!r}"


def test_an_answer_across_two_hints(tmp_path: Path) -> None:
    made = small.rows()
    made["ranked_hints"][0]["hint"], made["ranked_hints"][1]["hint"] = "Blue Nile", "the White"
    made["valid_answers"][0]["answer"] = "white blue"
    made["valid_answers"][0]["answer_key"] = "white blue"
    assert "10" in _failed(tmp_path, made)["answer-in-passage"][0]


@pytest.mark.parametrize(("method", "passes"), [("full", False), ("bem", True)])
def test_letters_inside_a_word_count_by_the_rule_of_the_filter_in_force(tmp_path, method, passes) -> None:
    made = small.rows()
    made["ranked_hints"][1]["hint"] = "Juvenile crocodiles live there."
    subject = small.subject(tmp_path, made)
    settings = subject.settings.model_copy(update={"leakage": Leakage(method=method)})
    failed = [gate.gate for gate in check(replace(subject, settings=settings)) if gate.state != "passed"]
    assert failed == ([] if passes else ["answer-in-passage"])


def test_an_accepted_answer_counts_by_its_words(tmp_path: Path) -> None:
    made = small.rows()
    made["ranked_hints"][1]["hint"] = "Juvenile crocodiles live there."
    made["valid_answers"][0]["origin"] = "labeler"
    assert not _failed(tmp_path, made)
    made["ranked_hints"][1]["hint"] = "The river Nile is very long."
    assert list(_failed(tmp_path, made)) == ["answer-in-passage"]


def test_answers_in_passages_are_those_of_a_search_through_every_passage() -> None:
    draw = Random(7)
    words = ["a", "b", "A b", "ab", "b a", "a  b", "ß", "ba"]
    seen = {True: 0, False: 0}
    for _ in range(4000):
        hints = [" ".join(draw.choices(words, k=draw.randint(1, 2))) for _ in range(3)]
        answer = " ".join(draw.choices(words, k=draw.randint(1, 4)))
        texts = [" ".join(some).casefold() for size in (1, 2, 3) for some in permutations(hints, size)]
        found = stands_in_a_passage(answer, hints)
        assert (found is not None) == any(answer.casefold() in text for text in texts), (answer, hints)
        if found is not None:
            assert answer.casefold() in " ".join(hints[place] for place in found).casefold()
        seen[found is not None] += 1
    assert min(seen.values()) > 500


def test_the_same_question_on_two_sides(tmp_path: Path) -> None:
    made = small.rows()
    made["questions"][2]["content_key"] = "q1"
    assert list(_failed(tmp_path, made)) == ["question-on-two-sides"]


def test_a_near_identical_question_on_two_sides(tmp_path: Path) -> None:
    made = small.rows()
    made["questions"][1]["question"] = "Which river runs through Cairo, then?"
    assert "q1 in train and q2 in dev" in _failed(tmp_path, made)["question-on-two-sides"][0]
    made["splits"][0]["split"] = "test"
    assert not _failed(tmp_path, made)


@pytest.mark.parametrize("null", [True, False])
def test_an_unjudged_answer(tmp_path: Path, null: bool) -> None:
    made = small.rows()
    if null:
        made["verdicts"][3]["correct"] = None
    else:
        del made["verdicts"][3]
    assert _failed(tmp_path, made) == {"unjudged-answer": ("q2: 'Wrong' has no verdict",)}


@pytest.mark.parametrize("table", ["passages", "labels", "answers/one", "answers/two"])
def test_a_missing_passage(tmp_path: Path, table: str) -> None:
    made = small.rows()
    del made[table][5]
    assert f"{table}: q2 has 3 rows" in _failed(tmp_path, made)["missing-passage"][0]


def test_a_passage_twice_in_the_place_of_another(tmp_path: Path) -> None:
    made = small.rows()
    made["passages"][5] = made["passages"][4]
    assert "q2" in _failed(tmp_path, made)["missing-passage"][0]


def test_rows_of_no_passage(tmp_path: Path) -> None:
    made = small.rows()
    made["passages"].append({**made["passages"][5], "permutation": "7"})
    expected = "passages: {} has {} rows, expected its 4 passages, each once"
    assert _failed(tmp_path, made)["missing-passage"] == (expected.format("q2", 5),)
    for row in made["passages"]:
        row["permutation"] = "7"
    rows = {"q1": 4, "q2": 5, "q3": 4}
    assert _failed(tmp_path, made)["missing-passage"] == tuple(expected.format(*one) for one in rows.items())


def test_a_missing_hint(tmp_path: Path) -> None:
    made = small.rows()
    made["ranked_hints"][5]["selected"] = False
    assert "q3 has 1 selected hints" in _failed(tmp_path, made)["missing-passage"][0]


def test_schema_violations_are_named(tmp_path: Path) -> None:
    made = small.rows()
    made["labels"][0]["label"] = 3
    assert "labels: 1 labels are neither 1 nor 2" in _failed(tmp_path, made)["schema"]
    made = small.rows()
    made["descriptions"].pop()
    assert "descriptions: no row for the question q3" in _failed(tmp_path, made)["schema"]
    made = small.rows()
    made["verdicts"].append(made["verdicts"][0])
    assert "verdicts: 2 rows with the key q1 / nile / rules" in _failed(tmp_path, made)["schema"]
    made = small.rows()
    made["splits"][0]["split"] = "extra"
    assert "splits: q1 is in 'extra'" in _failed(tmp_path, made)["schema"]


def test_a_column_of_another_type(tmp_path: Path) -> None:
    subject = small.subject(tmp_path, small.rows())
    small.nullable(tmp_path / "tables" / "labels.parquet", "label")
    failed = {one.gate: one.examples for one in check(subject) if one.state == "failed"}
    assert "labels: columns differ from the table's schema (label)" in failed["schema"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda table: table.drop_columns("labelers"), "labelers"),
        (lambda table: table.append_column("more", table["label"]), "more"),
        (lambda table: table.select(table.column_names[::-1]), "their order"),
    ],
)
def test_a_column_too_few_or_many_or_elsewhere(tmp_path: Path, change, what: str) -> None:
    subject = small.subject(tmp_path, small.rows())
    path = tmp_path / "tables" / "labels.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    [schema, *_] = check(subject)
    assert schema.examples == (f"labels: columns differ from the table's schema ({what})",)


def test_a_table_without_a_file(tmp_path: Path) -> None:
    subject = small.subject(tmp_path, small.rows())
    subject.files.parts["descriptions"].clear()
    [schema, *_] = check(subject)
    assert schema.examples == tuple(f"descriptions: no row for the question q{number}" for number in (1, 2, 3))


def test_a_label_that_does_not_follow(tmp_path: Path) -> None:
    made = small.rows()
    made["labels"][2]["label"] = 2
    assert list(_failed(tmp_path, made)) == ["label-mismatch"]


def test_human_coverage_counts_answers_of_the_splits_under_review(tmp_path: Path) -> None:
    made = small.rows()
    made["verdicts"][2]["basis"] = made["verdicts"][3]["basis"] = "review"  # both of q2; q3 has two more
    made["verdicts"].append({**made["verdicts"][2], "answer": "NO ANSWER", "answer_key": "no answer"})
    have = coverage(small.write(tmp_path, made), ["train", "dev", "test"])
    assert [have[name] for name in ("answers", "judged", "questions", "reviewed")] == [6, 2, 3, 1]
    have = coverage(small.write(tmp_path, made), ["dev", "test"])
    assert (have["answers"], have["judged"], have["share"]) == (4, 2, 0.5)
    assert (have["questions"], have["reviewed"]) == (2, 1)
    assert not _failed(tmp_path, made, human_coverage=0.5)
    assert list(_failed(tmp_path, made, human_coverage=0.51)) == ["human-coverage"]


def test_a_waiver_needs_a_known_gate_and_a_reason(tmp_path: Path) -> None:
    made = small.rows()
    del made["verdicts"][3]
    subject = small.subject(tmp_path, made)
    waived = {one.gate: one for one in check(subject, {"unjudged-answer": " lost ", "schema": "not needed"})}
    assert (waived["unjudged-answer"].state, waived["unjudged-answer"].waiver) == ("waived", "lost")
    assert (waived["schema"].state, waived["schema"].waiver) == ("passed", None)
    with pytest.raises(SettingsError, match="Did you mean 'unjudged-answer'"):
        check(subject, {"unjudged-answers": "x"})
    with pytest.raises(SettingsError, match="needs a reason"):
        check(subject, {"unjudged-answer": " "})
    with pytest.raises(SettingsError, match="has no '='"):
        parse_waivers(["unjudged-answer"])
    assert parse_waivers(["schema=a=b"]) == {"schema": "a=b"}


def test_only_settings_of_releases_can_change() -> None:
    texts = ["release.human_coverage=0.5", "release.examples=3"]
    assert release_settings(texts) == {"human_coverage": 0.5, "examples": 3}
    settings = small.settings(human_coverage=0.2)
    changed = with_release_settings(settings, texts[1:])
    assert (changed.release.human_coverage, changed.release.examples) == (0.2, 3)
    assert changed.convergence == settings.convergence
    with pytest.raises(SettingsError, match="only release settings can change here"):
        release_settings(["run.shards=2"])
