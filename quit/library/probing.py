"""Questions of a release answered without hints by a model that came later: which may it have memorised?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from quit.common.rows import sql_rows
from quit.errors import SettingsError, did_you_mean
from quit.settings import ReaderSettings, Settings

_COUNTS = """
    SELECT coalesce(split, 'all') AS split, count(*) AS questions,
        if(count(parametric) = count(*), count(*) FILTER (parametric), NULL) AS release,
        count(*) FILTER (times > 0) AS now, count(*) FILTER (times = $1) AS always,
        list(question_id ORDER BY question_id) FILTER (times = $1 AND NOT parametric) AS memorised
    FROM splits LEFT JOIN (SELECT question_id, count(*) FILTER (correct) AS times FROM answers GROUP BY 1)
        USING (question_id)
    GROUP BY ROLLUP (split) ORDER BY list_position(['train', 'dev', 'test'], split)
"""


def probe_release(path: str | Path, name: str, settings: Settings) -> dict[str, Any]:
    """Ask a reader of the settings, or a class (``module:Class``), the questions of a release without hints, as the
    stage ``probe`` does: ``probe.repetitions`` times, judged by the settings' judge.

    Returns ``splits``, with ``all`` last: ``questions``, ``release`` (right in a repetition by a reader of the release;
    None where a question says nothing of it), ``now`` (right in a repetition) and ``always`` (in all). ``memorised``:
    ids of questions that are right in all repetitions now and were right in none at release. The release is not
    changed; replies of language models are kept in the cache of replies. Raises ``InputError`` as ``verify`` does,
    ``SettingsError`` for an unknown reader.
    """
    from quit.dataset.dataset import Dataset
    from quit.models.factory import Models
    from quit.stages.probe import probe
    from quit.systems.benchmark.plugins import collection_of

    if ":" in name:
        own = ReaderSettings(**{"name": "new", "role": "reader", "kind": "python", "class": name})
        settings, name = settings.model_copy(update={"readers": (own,)}), own.name
    names = [reader.name for reader in settings.readers]
    if name not in names:
        raise SettingsError(f"The profile has no reader {name!r}.{did_you_mean(name, names)}")
    dataset, models, repetitions = Dataset.of_release(path), Models(settings), settings.probe.repetitions
    reader = models.reader(name, collection_of(dataset))
    questions = dataset.aligned("questions")  # has the source's gold answers, also those that people rejected
    column, gold = questions.schema.get_field_index("answers"), pa.array(dataset.gold_answers_of, pa.list_(pa.string()))
    questions = questions.set_column(column, "answers", gold)
    answers = probe(questions, dataset.descriptions, reader, models.judge, repetitions)
    with duckdb.connect() as connection:
        connection.register("splits", dataset.splits)
        connection.register("answers", answers)
        rows = sql_rows(connection, _COUNTS, [repetitions])
    splits = {row["split"]: {key: row[key] for key in ("questions", "release", "now", "always")} for row in rows}
    return {
        "release": dataset.provenance["release"],
        "content_id": dataset.provenance["content_id"],
        "reader": reader.identity,
        "judge": models.judge.identity,
        "repetitions": repetitions,
        "splits": splits,
        "memorised": rows[-1]["memorised"] or [],
    }
