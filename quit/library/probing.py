"""Questions of a release answered without hints by a model that came later: which may it have memorised?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from quit.common.columns import is_in
from quit.errors import SettingsError, did_you_mean
from quit.settings import ReaderSettings, Settings


def probe_release(path: str | Path, name: str, settings: Settings) -> dict[str, Any]:
    """Ask a reader of the settings, or a class (``module:Class``), the questions of a release without hints, as the
    stage ``probe`` does: ``probe.repetitions`` times, judged by the settings' judge.

    Returns ``splits``, with ``all`` last: ``questions``, ``release`` (right in a repetition by a reader of the release;
    None where a question says nothing of it), ``now`` (right in a repetition) and ``always`` (in all). ``memorised``:
    ids of questions that are right in all repetitions now and were right in none at release. The release is not
    changed; replies of language models are kept in the cache of replies. Raises ``InputError`` as ``verify`` does,
    ``SettingsError`` for an unknown reader.
    """
    from quit.dataset.release import verify
    from quit.models.factory import Models
    from quit.stages.probe import probe
    from quit.systems.benchmark.plugins import collection_of

    if ":" in name:
        own = ReaderSettings(**{"name": "new", "role": "reader", "kind": "python", "class": name})
        settings, name = settings.model_copy(update={"readers": (own,)}), own.name
    if name not in (names := [reader.name for reader in settings.readers]):
        raise SettingsError(f"The profile has no reader {name!r}.{did_you_mean(name, names)}")
    release, models = verify(path), Models(settings)
    tables = ("splits", "questions", "descriptions", "ranked_hints", "verdicts")
    frozen = SimpleNamespace(**{table: release.files.read(table) for table in tables})
    reader = models.reader(name, collection_of(frozen))
    questions = frozen.questions.filter(is_in(frozen.questions["question_id"], frozen.splits["question_id"]))
    answers = probe(questions, frozen.descriptions, reader, models.judge, settings.probe.repetitions)
    right = Counter(row["question_id"] for row in answers.to_pylist() if row["correct"])
    splits: dict[str, dict[str, Any]] = {}
    memorised = []
    for row in sorted(frozen.splits.to_pylist(), key=lambda row: row["question_id"]):
        always = right[row["question_id"]] == settings.probe.repetitions
        counts = (1, row["parametric"], right[row["question_id"]] > 0, always)
        for split in (row["split"], "all"):
            values = splits.setdefault(split, dict.fromkeys(("questions", "release", "now", "always"), 0))
            for column, count in zip(values, counts, strict=True):
                values[column] = None if None in (count, values[column]) else values[column] + count
        memorised += [row["question_id"]] * (always and row["parametric"] is False)
    return {
        "release": release.name,
        "content_id": release.content_id,
        "reader": reader.identity,
        "judge": models.judge.identity,
        "repetitions": settings.probe.repetitions,
        "splits": {split: splits[split] for split in ("train", "dev", "test", "all") if split in splits},
        "memorised": memorised,
    }
