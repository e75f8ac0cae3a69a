"""The first documents of a run as given passages."""

from pathlib import Path

import pytest

from quit.errors import InputError
from quit.retrieval.given import run_records
from tests.rows import write_lines


def test_a_runs_first_documents_are_passages_with_their_judgements(tmp_path: Path, notes: list[str]) -> None:
    corpus = [{"id": f"d{number}", "title": f"T{number}", "text": f"Text {number}."} for number in range(3)]
    questions = [{"id": name, "question": "Who?", "answers": ["Ann"], "hints": ["x"]} for name in ("a", "b", "c")]
    write_lines(tmp_path / "corpus.jsonl", corpus)
    write_lines(tmp_path / "questions.jsonl", questions)
    (tmp_path / "x.run").write_text("a Q0 d0 1 2.0 m\na Q0 d1 2 3.0 m\na Q0 d2 3 1.0 m\nb Q0 d2 1 1.0 m\n")
    (tmp_path / "qrels").write_text("a 0 d1 1\nc 0 d0 1\n")
    files = (tmp_path / "x.run", tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl")
    records = run_records(*files, 2, tmp_path / "qrels")
    assert [
        [(one["id"], one["title"], one["rank"], one["relevance"]) for one in row["passages"]] for row in records
    ] == [[("d1", "T1", 1, 1), ("d0", "T0", 2, 0)], [("d2", "T2", 1, None)], []]
    assert not any("hints" in row for row in records)
    write_lines(tmp_path / "corpus.jsonl", corpus[:2])
    with pytest.raises(InputError, match="lacks 1 of the 3 documents.*'d2'"):
        run_records(*files, 3)
    write_lines(tmp_path / "corpus.jsonl", [*corpus[:2], corpus[2] | {"title": "", "text": ""}])
    assert [len(row["passages"]) for row in run_records(*files, 3)] == [2, 0, 0]
    assert "1 document that" in notes[0] and "such as 'd2': left out" in notes[0]
    write_lines(tmp_path / "questions.jsonl", [{"_id": "a", "text": "Who?"}])
    with pytest.raises(InputError, match="'id' is missing"):
        run_records(*files, 1)
    write_lines(tmp_path / "corpus.jsonl", corpus)
    write_lines(tmp_path / "questions.jsonl", [questions[0] | {"id": "z"}])
    with pytest.raises(InputError, match="ranks no question"):
        run_records(*files, 1)
