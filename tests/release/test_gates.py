"""Every gate: silent on a sound release, loud on a constructed violation, and waived only with a reason."""

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from quit.common.ids import draw
from quit.errors import SettingsError
from quit.release.gates import GATES, check, coverage, parse_waivers, tell_paraphrases, with_release_settings
from quit.settings import Leakage
from quit.stages.leaks.containment import hints_of_occurrence
from tests.release import small


def _failed(folder: Path, rows: small.Rows, **release) -> dict[str, tuple[str, ...]]:
    return {one.gate: one.examples for one in check(small.subject(folder, rows, **release)) if one.state == "failed"}


def test_a_sound_release_passes_every_gate(tmp_path: Path) -> None:
    results = check(small.subject(tmp_path, small.rows()))
    assert [one.gate for one in results] == list(GATES)
    *states, coverage_state = [one.state for one in results]
    assert ({*states}, coverage_state) == ({"passed"}, "not asked")
    assert results[-1].examples[0].startswith("people judged 0 of 4 answers in dev, test (0.0%)")


def _across(rows: small.Rows) -> None:
    rows["ranked_hints"][0]["hint"], rows["ranked_hints"][1]["hint"] = "Blue Nile", "the White"
    rows["valid_answers"][0] |= {"answer": "white blue", "answer_key": "white blue"}


def _row(table: str, place: int, **values: object):
    return lambda rows: rows[table][place].update(values)


VIOLATIONS = (
    *(
        (_row("ranked_hints", 1, hint=hint), "answer-in-passage", f"q1: 'Nile' is in the passage 1: {hint[:160]!r}")
        for hint in ("People say it is the NILE.", "Boats on the river Nile's water.", "Nile" * 50)
    ),
    (_across, "answer-in-passage", "q1: 'white blue' is in the passage 10: 'the White Blue Nile'"),
    (_row("questions", 2, content_key="3d2625f4d808ac10"), "question-on-two-sides", "q1 in train and q3 in test"),
    (
        _row("verdicts", 3, correct=None),
        "unjudged-answer",
        "distinct_answers: q2 / one / 1: judged has no row with this",
    ),
    (lambda rows: rows["passages"].pop(5), "missing-passage", "passages: q2: 3 rows, expected its 4 passages"),
    (_row("labels", 2, label=2), "label-mismatch", "labels: q1 / 1: label is 2, expected 1"),
    (_row("descriptions", 0, difficulty=0.9), "label-mismatch", "descriptions: q1: difficulty_bin is 'easy'"),
    (_row("splits", 0, split="extra"), "schema", "splits: q1: split is 'extra'"),
)


@pytest.mark.parametrize(("change", "gate", "messages"), [(change, gate, rest) for change, gate, *rest in VIOLATIONS])
def test_a_violation_is_named(tmp_path: Path, change, gate: str, messages: list[str]) -> None:
    rows = small.rows()
    change(rows)
    failed = _failed(tmp_path, rows)
    assert len(failed[gate]) >= len(messages)
    for example, message in zip(failed[gate], messages, strict=False):
        assert example.startswith(message)


def test_a_join_that_no_passage_has_states_nothing(tmp_path: Path) -> None:
    rows = small.rows()
    _across(rows)
    rows["passages"] = [row for row in rows["passages"] if (row["question_id"], row["permutation"]) != ("q1", "10")]
    failed = _failed(tmp_path, rows)
    assert "missing-passage" in failed and "answer-in-passage" not in failed


@pytest.mark.parametrize(("method", "passes"), [("full", False), ("bem", True)])
def test_letters_inside_a_word_count_by_the_rule_of_the_filter_in_force(tmp_path, method, passes) -> None:
    rows = small.rows()
    rows["ranked_hints"][1]["hint"] = rows["hints"][1]["hint"] = "Juvenile crocodiles live there."
    subject = small.subject(tmp_path, rows)
    settings = subject.settings.model_copy(update={"leakage": Leakage(method=method)})
    failed = [gate.gate for gate in check(replace(subject, settings=settings)) if gate.state == "failed"]
    assert failed == ([] if passes else ["answer-in-passage"])


def test_answers_in_passages_are_those_of_a_search_through_every_passage() -> None:
    draw = Random(7)
    words = ["a", "b", "A b", "ab", "b a", "a  b", "ß", "ba"]
    seen = {True: 0, False: 0}
    for _ in range(4000):
        hints = [" ".join(draw.choices(words, k=draw.randint(1, 2))) for _ in range(3)]
        answer = " ".join(draw.choices(words, k=draw.randint(1, 4)))
        texts = [" ".join(some).casefold() for size in (1, 2, 3) for some in permutations(hints, size)]
        places = hints_of_occurrence(answer, hints)
        assert (places is not None) == any(answer.casefold() in text for text in texts), (answer, hints)
        if places is not None:
            assert answer.casefold() in " ".join(hints[place] for place in places).casefold()
        seen[places is not None] += 1
    assert min(seen.values()) > 500


def test_a_near_identical_question_on_two_sides(tmp_path: Path) -> None:
    rows = small.rows()
    rows["questions"][1] |= {"question": "Which river runs through Cairo, then?", "content_key": "9502775045981058"}
    rows["splits"][1]["draw"] = draw("9502775045981058", "quit")
    assert "q1 in train and q2 in dev" in _failed(tmp_path, rows)["question-on-two-sides"][0]
    rows["splits"][0]["split"] = "test"
    assert not _failed(tmp_path, rows)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda table: table.set_column(2, "label", table["label"].cast("string")), "label"),
        (lambda table: table.drop_columns("labelers"), "labelers"),
        (lambda table: table.append_column("more", table["label"]), "more"),
        (lambda table: table.select(table.column_names[::-1]), "their order"),
    ],
)
def test_columns_that_differ_from_the_schema(tmp_path: Path, change, what: str) -> None:
    subject = small.subject(tmp_path, small.rows())
    path = tmp_path / "tables" / "labels.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    [schema, *_] = check(subject)
    assert schema.examples == (f"labels: columns: not those of the table ({what})",)


def test_a_paraphrase_on_the_other_side_is_told_and_refuses_nothing(tmp_path: Path, capsys) -> None:
    rows = small.rows()
    first, other = rows["questions"][:2]
    other["answers"] = first["answers"]
    near = SimpleNamespace(encode=lambda texts: np.ones((len(texts), 1), np.float32))
    for number, (split, told) in enumerate((("train", True), ("dev", False), ("test", False))):
        for row in rows["splits"]:
            row["split"] = split if row["question_id"] == other["question_id"] else "test"
        tell_paraphrases(small.subject(tmp_path / str(number), rows), near)
        assert ("seem to ask the same" in capsys.readouterr().err) is told


def test_a_release_without_a_question_does_not_pass(tmp_path: Path) -> None:
    results = check(small.subject(tmp_path, {**small.rows(), "splits": []}))
    assert "failed" in {result.state for result in results}


def test_a_table_without_a_file(tmp_path: Path) -> None:
    subject = small.subject(tmp_path, small.rows())
    subject.files.parts["descriptions"].clear()
    [schema, *_] = check(subject)
    assert schema.examples == tuple(f"descriptions: q{number}: it is missing" for number in (1, 2, 3))


def test_human_coverage_counts_answers_of_the_splits_under_review(tmp_path: Path) -> None:
    rows = small.rows()
    for row in rows["verdicts"][2:4]:  # both of q2; q3 has two more
        row |= {"basis": "review", "judge": "review", "producer": "review:majority"}
    no_answer = {"answer": "NO ANSWER", "answer_key": "no answer", "correct": False, "passages": 4}
    rows["verdicts"].append({**rows["verdicts"][2], **no_answer})
    for splits, counts in ((["train", "dev", "test"], [6, 2, 3, 1]), (["dev", "test"], [4, 2, 2, 1])):
        have = coverage(small.write(tmp_path, rows), splits)
        assert [have[name] for name in ("answers", "judged", "questions", "reviewed")] == counts
        assert have["share"] == counts[1] / counts[0]
    assert not _failed(tmp_path, rows, human_coverage=0.5)
    assert list(_failed(tmp_path, rows, human_coverage=0.51)) == ["human-coverage"]


def test_a_waiver_needs_a_known_gate_and_a_reason(tmp_path: Path) -> None:
    rows = small.rows()
    del rows["verdicts"][3]
    subject = small.subject(tmp_path, rows)
    waived = {one.gate: one for one in check(subject, {"unjudged-answer": " lost ", "schema": "not needed"})}
    assert (waived["unjudged-answer"].state, waived["unjudged-answer"].waiver) == ("waived", "lost")
    assert (waived["schema"].state, waived["schema"].waiver) == ("passed", None)
    for waiver, message in (("unjudged-answers=x", "Did you mean 'unjudged-answer'"), ("schema= ", "needs a reason")):
        with pytest.raises(SettingsError, match=message):
            check(subject, dict([waiver.split("=")]))
    with pytest.raises(SettingsError, match="has no '='"):
        parse_waivers(["unjudged-answer"])
    assert parse_waivers(["schema=a=b"]) == {"schema": "a=b"}


def test_only_settings_of_releases_can_change() -> None:
    settings = small.settings(human_coverage=0.2)
    changed = with_release_settings(settings, ["release.examples=3"])
    assert (changed.release.human_coverage, changed.release.examples) == (0.2, 3)
    assert changed.convergence == settings.convergence
    with pytest.raises(SettingsError, match="only release settings can change here"):
        with_release_settings(settings, ["run.shards=2"])
