"""Labels, label updates and exports of the starter and of WikiHint, made of frozen answers and verdicts.

``tests/earlier/frozen.json`` holds what earlier programs made of the same answers: that of commit 66f1e8c for WikiHint,
that of 15cf6e8 for the starter, whose texts have changed since.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pytest

from quit.export import export
from quit.export.dataset import ExportTables
from quit.review.verdicts import DECISIONS
from quit.settings import Review
from quit.stages.answers import Answers
from quit.stages.label import label_passages
from quit.stages.update import LabelTables, decided, update_labels
from tests import frozen
from tests.conftest import DATA, STARTER

EXPECTED = json.loads((Path(__file__).parent / "earlier" / "frozen.json").read_text(encoding="utf-8"))
WIKIHINT = DATA / "wikihint" / "test_first50.json"
FORMATS = ("release-json", "paper-index", "huggingface", "beir", "trec")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("starter", f"jsonl:{STARTER}"),
        pytest.param(
            "wikihint",
            f"wikihint:{WIKIHINT}",
            marks=pytest.mark.skipif(not DATA.exists(), reason="the shared real data is not here"),
        ),
    ],
)
def test_what_is_made_of_frozen_answers_has_the_bytes_it_had(name: str, source: str, tmp_path: Path) -> None:
    tables = frozen.collection(source)
    texts = frozen.replies(tables)
    given = {reader: Answers.of(rows) for reader, rows in texts.items()}
    verdicts = frozen.verdicts(tables, texts)
    labelers = {reader: given[reader] for reader in frozen.LABELERS}
    labelled = label_passages(tables["questions"], tables["passages"], labelers, verdicts)
    before = LabelTables(tables["questions"], tables["ranked_hints"], tables["splits"], verdicts, **labelled)
    settled = decided(pa.Table.from_pylist(frozen.decisions(verdicts), schema=DECISIONS), before, Review())
    touched = pa.array(settled.touched, pa.string())
    of_touched = {
        reader: Answers(answers.rows.filter(pa.compute.is_in(answers.rows["question_id"], touched)), answers.distinct)
        for reader, answers in labelers.items()
    }
    updated = update_labels(before, of_touched, settled, lambda items: [[[] for _ in item.hints] for item in items])
    checksums = {f"label/{table}": _rows_checksum(rows) for table, rows in labelled.items()}
    checksums |= {f"update/{table}": _rows_checksum(rows) for table, rows in updated.items()}
    names = ("questions", "hints", "ranked_hints", "descriptions", "passages")
    release = ExportTables(
        **{table: tables[table] for table in names},
        splits=updated["splits"],
        answers=given,
        verdicts=updated["verdicts"],
        labels=updated["labels"],
        valid_answers=updated["valid_answers"],
        readers=frozen.READERS,
        embedded=True,
    )
    export(release, FORMATS, tmp_path, paper_keys=True)
    for path in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        if path.parent.name == "huggingface":
            continue  # the card and what describes it: their words change
        checksums[path.relative_to(tmp_path).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    assert checksums == EXPECTED[name]


def _rows_checksum(rows: pa.Table) -> str:
    """Of the columns that those programs knew: there were no notes."""
    if "note" in rows.column_names:
        assert rows["note"].null_count == len(rows)
        rows = rows.drop_columns(["note"])
    return hashlib.sha256(json.dumps(rows.to_pylist(), ensure_ascii=False).encode()).hexdigest()
