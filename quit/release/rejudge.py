"""Another judge's verdicts on the distinct answers of a release or a workspace. They lie beside its tables, and all who
read ``second_verdicts`` there have their rows (:meth:`quit.engine.reading.TableReader.read`)::

    R.judges/NAME/verdicts.parquet
    R.judges/NAME/manifest.json      written last: judge, producer, prompt, settings, and the content that was judged

R is the folder of a release; of a workspace it is W/judges/NAME. No label rests on them, and no
release that is made has them. What labels they would give is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.files import replacing, write_json, writing
from quit.common.folders import locked
from quit.common.progress import advance, note
from quit.common.rows import Row
from quit.dataset.dataset import FULLY, Dataset
from quit.dataset.release import Release
from quit.dataset.workspace import without_folder
from quit.dataset.writing import write_table
from quit.engine.parts import describe
from quit.engine.request import as_built
from quit.engine.usage import capped, record
from quit.engine.workspace import Workspace
from quit.errors import InputError, SettingsError, WorkspaceError
from quit.models.factory import Models
from quit.models.generation import Meter
from quit.models.generation.base import cache_key
from quit.models.judges import GptEvalJudge, basis_of
from quit.models.language_models import judge_prompt
from quit.models.prompting import CHARACTERS_A_TOKEN
from quit.models.protocols import Judge
from quit.release.gates import Subject
from quit.release.subjects import subject_from
from quit.release.view import open_to_read
from quit.settings import Settings
from quit.stages.judge import DistinctAnswers
from quit.stages.labelling.answers import accepted_answers, fully_relevant
from quit.text.words import counted
from quit.version import __version__


def settings_for(workspace: str | Path, profile: str | None, overrides: Sequence[str]) -> Settings:
    """Return the settings of a profile; without one, those of a workspace's last build under ``overrides``."""
    arguments = ((), profile, overrides) if profile else ((), None, None, overrides)
    return as_built(Workspace(workspace), *arguments, files=["-p"]).settings


def _judge_folder(source: Release | Workspace, name: str) -> Path:
    """Return where a judge's verdicts are. Raises ``SettingsError`` for a name that no folder can have."""
    if not name or name.startswith(".") or set(name) & set("/\\\0"):
        raise SettingsError(f"{name!r} cannot name a folder: give the judge another name, --set judge.name=NAME.")
    return source.judges / name


class JudgeFacts(TypedDict):
    """What verdicts rest on: nothing of servers or this machine's folders. ``prompt``: its name, hash and turns."""

    judge: str
    producer: str
    prompt: dict[str, Any] | None
    settings: dict[str, Any]
    program_version: str


class LabelShift(TypedDict):
    """Passages, those with ``label_2``, and those that would change ``to_1`` and ``to_2`` by the other judge's verdicts
    and people's; ``lose_all``: questions with some label 2 now and none then."""

    passages: int
    label_2: int
    to_1: int
    to_2: int
    lose_all: list[str]


class Rejudged(JudgeFacts):
    """Verdicts in the folder ``path`` on so many distinct ``answers``; ``new``: made now; ``unread``: of those
    ``by_the_judge``; ``labels``: None where ``labels.partial`` left answers out."""

    path: str
    new: bool
    answers: int
    by_the_judge: int
    unread: int
    labels: LabelShift | None


def rejudge(path: str | Path, name: str, settings: Settings) -> Rejudged:
    """Have a judge of ``settings`` judge the distinct answers, and keep its verdicts beside the release or workspace.

    What was asked before is in the cache of replies, so a killed run goes on. Raises ``SettingsError`` for a name that
    is no judge of the settings, or that another judge has here; ``InputError`` for tables without verdicts and a file
    that was changed; and what asking a model raises: ``CapReached``, ``Waiting`` for a batch, ``ServerError``;
    ``WorkspaceError`` for a workspace that is not finished.
    """
    source = open_to_read(path)
    subject = subject_from(source)
    folder = _judge_folder(source, name)
    models, judge = _judge_of(settings, name)
    _refuse_others(source, judge)
    facts = _facts(judge, settings)
    rows = _verdicts_of(source, name)
    if is_new := not len(rows):
        verdicts = _ask(folder, _distinct_answers(source), judge, models, settings)
        rows = contracts.table("second_verdicts").from_rows(verdicts)
        file = folder / "verdicts.parquet"
        with writing(file), replacing(file) as temporary:
            write_table(temporary, "second_verdicts", [rows])
        manifest = {"content_id": source.judged, **facts, "file": describe(file, "second_verdicts")}
        write_json(folder / "manifest.json", manifest)
    by_model = rows.filter(pc.equal(rows["basis"], "model"))["correct"]
    return {
        "path": str(folder if folder.is_dir() else source.path), "new": is_new, **facts, "answers": len(rows),
        "by_the_judge": len(by_model), "unread": by_model.null_count, "labels": _shift(subject, rows),
    }  # fmt: skip


def _shift(subject: Subject, rows: pa.Table) -> LabelShift | None:
    """Return what labels become by these verdicts, and people's before them."""
    verdicts = subject.files.read("verdicts")
    of_people = verdicts.filter(pc.equal(verdicts["basis"], "review"))
    columns = ["question_id", "answer_key", "correct"]
    deciding = pa.concat_tables([table.select(columns) for table in (of_people, rows)], promote_options="default")
    counts, lose_all = np.zeros(4, int), list[str]()
    for part in subject.chunks():
        dataset = Dataset.read(part.files, [info for info in part.readers if info.role == "labeler"])
        if dataset.partly_asked:
            return None
        positions = np.arange(len(dataset.ids))
        replies = dataset.replies(positions, dataset.labelers)
        now = dataset.labels_of(positions) == FULLY
        then = fully_relevant(accepted_answers(replies.distinct, deciding)[replies.index].T)
        counts += [len(now), now.sum(), (now & ~then).sum(), (then & ~now).sum()]
        had, has = dataset.rows.sums(now), dataset.rows.sums(then)
        lose_all += [dataset.ids[position] for position in np.flatnonzero(had * (has == 0))]
    passages, label_2, to_1, to_2 = counts.tolist()
    return {"passages": passages, "label_2": label_2, "to_1": to_1, "to_2": to_2, "lose_all": lose_all}


def _verdicts_of(source: Release | Workspace, name: str, table: str = "second_verdicts") -> pa.Table:
    rows = source.read(table)
    return rows.filter(pc.equal(rows["judge"], name))


def _distinct_answers(source: Release | Workspace) -> DistinctAnswers:
    verdicts = source.read("verdicts")
    if not len(verdicts):
        raise InputError(f"{source} has no judged answers.")
    return DistinctAnswers.judged(source.read("questions"), verdicts)


def _judge_of(settings: Settings, name: str) -> tuple[Models, Judge]:
    """Return the models of a profile and its judge of this name. Raises ``SettingsError`` where it has none."""
    models = Models(settings)
    models.meter = _Progress()
    second = None if name == settings.judge.name else models.second_judge
    if name == settings.judge.name or (second and second.name == name):
        return models, second or models.judge
    raise SettingsError(
        f"{name!r} is no judge of this profile, whose judge is {settings.judge.name!r}. Name a profile with it, or "
        "change that one: --profile, --set judge.KEY=VALUE."
    )


def _refuse_others(source: Release | Workspace, judge: Judge) -> None:
    """Raise ``SettingsError`` where another judge has this name here."""
    for table in ("verdicts", "second_verdicts"):
        producers = {*_verdicts_of(source, judge.name, table)["producer"].unique().to_pylist()}
        if others := producers - {judge.identity}:
            raise SettingsError(
                f"Another judge has the name {judge.name!r} here ({min(others)}). Name this one otherwise: "
                "--set judge.name=NAME."
            )


class _Progress(Meter):
    """Reports each reply."""

    def add(self, name: str, **amounts: Any) -> None:
        """Add to a model's counts."""
        super().add(name, **amounts)
        if replies := amounts.get("requests", 0) + amounts.get("cached", 0):
            advance("replies of the judge", replies, self.snapshot()[name].expected)


def _ask(folder: Path, answers: DistinctAnswers, judge: Judge, models: Models, settings: Settings) -> list[Row]:
    """Return the rows of ``verdicts`` (:meth:`DistinctAnswers.rows`), after a note on what is asked and may cost.

    ``folder``: where what is spent is counted, under the cap.
    """
    items = [item for item in answers.items if basis_of(item) == "model"]
    text = f"{counted(len(answers.items), 'distinct answer')}, of which {judge.name} judges {len(items):,}."
    if isinstance(judge, GptEvalJudge):
        requests = [judge.request(item) for item in items]
        keys = [cache_key(judge.generator.identity, request) for request in requests]
        replies = models.cache.find(keys)
        open_requests = [request for key, request in zip(keys, requests, strict=True) if key not in replies]
        letters = sum(len(turn["content"]) for request in open_requests for turn in request.messages())
        tokens = round(letters / CHARACTERS_A_TOKEN)
        cost = settings.cost(settings.judge, tokens, 0, len(open_requests) * judge.max_tokens)
        price = "" if cost is None else f", {cost:.4g} in the currency of the prices"
        text += f" Requests: {len(open_requests):,}, about {tokens:,} tokens of prompts{price}."
    note(text)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, wait=False) as has_lock, capped(folder, settings, models.ledger):
        if not has_lock:
            raise WorkspaceError(
                f"Another command asks {judge.name} for {folder.parent.parent} now. Wait until it ends."
            )
        try:
            return answers.rows(judge)
        finally:
            record(folder, "rejudge", {}, models.meter.snapshot(), settings)


def _facts(judge: Judge, settings: Settings) -> JudgeFacts:
    values = settings.judge.model_dump(mode="json", exclude={"server", "name"})
    values |= {key: without_folder(values[key]) for key in ("model", "prompt") if values[key]}
    if judge.name != settings.judge.name:  # the equivalence model, beside it
        values = {"kind": "equivalence", "threshold": values["threshold"]}
    prompt = judge_prompt(settings.judge) if isinstance(judge, GptEvalJudge) else None
    turns = {"name": prompt.name, "sha256_12": prompt.sha, "turns": [*map(list, prompt.turns)]} if prompt else None
    return {
        "judge": judge.name,
        "producer": judge.identity,
        "prompt": turns,
        "settings": {"judge": values, "equivalence": settings.models.equivalence},
        "program_version": __version__,
    }
