"""Another judge's verdicts on the distinct answers of a release or a workspace. They lie beside its tables::

    R.judges/NAME/verdicts.parquet   columns of ``verdicts``
    R.judges/NAME/manifest.json      written last: judge, producer, prompt, settings, and the content that was judged

R is the folder of a release; of a workspace it is W/judges/NAME. No label rests on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quit import contracts
from quit.common.files import file_checksum, read_json, replacing, write_json, writing
from quit.common.ids import content_hash
from quit.common.progress import advance, note
from quit.dataset.files import write_table
from quit.dataset.release import Release, is_release, verify
from quit.dataset.workspace import without_folder
from quit.engine.parts import read_part
from quit.engine.reading import as_built
from quit.engine.usage import capped, record
from quit.engine.workspace import Workspace
from quit.errors import InputError, SettingsError
from quit.models.factory import Models, judge_prompt
from quit.models.generation import Meter
from quit.models.generation.base import cache_key
from quit.models.judges import GptEvalJudge, basis_of
from quit.models.prompting import CHARACTERS_A_TOKEN
from quit.models.protocols import Judge
from quit.settings import Settings
from quit.stages.judge import DistinctAnswers
from quit.text.words import counted
from quit.version import __version__

MANIFEST = "manifest.json"


def open_source(place: str | Path) -> Release | Workspace:
    """Open a release, all of whose files are compared, or a workspace. Raises as ``verify`` and ``Workspace.open``."""
    return verify(place) if is_release(place) else Workspace.open(place)


def settings_for(place: str | Path, profile: str | None, overrides: Sequence[str]) -> Settings:
    """Return the settings of a profile; without one, those of a workspace's last build under ``overrides``."""
    arguments = ((), profile, overrides) if profile else ((), None, None, overrides)
    return as_built(Workspace(place), *arguments, files=["-p"]).settings


def judge_folder(source: Release | Workspace, name: str) -> Path:
    """Return where a judge's verdicts are. Raises ``SettingsError`` for a name that no folder can have."""
    if not name or name.startswith(".") or set(name) & set("/\\\0"):
        raise SettingsError(f"{name!r} cannot name a folder: give the judge another name, --set judge.name=NAME.")
    path = source.path.resolve()
    return (path.with_name(f"{path.name}.judges") if isinstance(source, Release) else path / "judges") / name


def judged_content(source: Release | Workspace) -> str:
    """Return the content id of a release; of a workspace a hash of questions and distinct answers."""
    if isinstance(source, Release):
        return source.content_id
    return content_hash("judged", [asdict(item) for item in _distinct_answers(source).items])


def rejudge(place: str | Path, name: str, settings: Settings) -> dict[str, Any]:
    """Have a judge of ``settings`` judge the distinct answers, and keep its verdicts beside the release or workspace.

    Returns the manifest with ``path`` (the folder) and ``new``: whether the verdicts were made now. What was asked
    before is in the cache of replies, so a killed run goes on. Raises ``SettingsError`` for a name that is no judge of
    the settings, or that another judge has here; ``InputError`` for tables without verdicts and a file that was
    changed; and what asking a model raises: ``CapReached``, ``Waiting`` for a batch, ``ServerError``.
    """
    source = open_source(place)
    folder, content = judge_folder(source, name), judged_content(source)
    models, judge = judge_of(settings, name)
    _refuse_others(source, folder, judge)
    manifest = read_json(folder / MANIFEST) or {}
    is_new = (manifest.get("content_id"), manifest.get("producer")) != (content, judge.identity)
    if is_new:
        rows = ask(folder, _distinct_answers(source), judge, models, settings)
        path = folder / "verdicts.parquet"
        with writing(path), replacing(path) as temporary:
            write_table(temporary, "verdicts", [contracts.table("verdicts").from_rows(rows)])
        by_model = [row["correct"] for row in rows if row["basis"] == "model"]
        counts = {"answers": len(rows), "by_the_judge": len(by_model), "unread": by_model.count(None)}
        manifest = {"content_id": content, **_facts(judge, settings), **counts, "sha256": file_checksum(path)}
        write_json(folder / MANIFEST, manifest)
    kept_verdicts(source, name)
    return {"path": str(folder), "new": is_new, **manifest}


def kept_verdicts(source: Release | Workspace, name: str) -> pa.Table | None:
    """Return a judge's verdicts that lie beside a release or workspace; None where there are none.

    Raises ``InputError`` for those of another content, and for a file that was changed.
    """
    folder = judge_folder(source, name)
    manifest, path = read_json(folder / MANIFEST), folder / "verdicts.parquet"
    if manifest is None:
        return None
    if manifest["content_id"] != (content := judged_content(source)):
        raise InputError(
            f"{folder} has verdicts on other content ({manifest['content_id'][:12]}; here {content[:12]}). Judge "
            f"again: quit release rejudge --judge {name}, or move the folder away."
        )
    if not path.is_file() or file_checksum(path) != manifest["sha256"]:
        raise InputError(f"{path} is missing or was changed. Remove the folder and judge again: no reply is lost.")
    return read_part(path)


def _distinct_answers(source: Release | Workspace) -> DistinctAnswers:
    verdicts = source.read("verdicts")
    if not len(verdicts):
        raise InputError(f"{source} has no judged answers.")
    return DistinctAnswers.judged(source.read("questions"), verdicts)


def judge_of(settings: Settings, name: str) -> tuple[Models, Judge]:
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


def _refuse_others(source: Release | Workspace, folder: Path, judge: Judge) -> None:
    """Raise ``SettingsError`` where another judge has this name: in the tables, or beside them."""
    producers: set[str] = {(read_json(folder / MANIFEST) or {}).get("producer", judge.identity)}
    for table in ("verdicts", "second_verdicts"):
        rows = source.read(table)
        producers |= {*rows.filter(pc.equal(rows["judge"], judge.name))["producer"].unique().to_pylist()}
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
            advance("replies of the judge", replies, self.snapshot()[name]["expected"])


def ask(
    folder: Path, answers: DistinctAnswers, judge: Judge, models: Models, settings: Settings, sample: int = 0
) -> list[dict[str, Any]]:
    """Return the rows of ``verdicts`` (:meth:`DistinctAnswers.rows`), after a note on what is asked and may cost.

    ``folder``: where what is spent is counted, under the cap.
    """
    items = [item for item in answers.items if basis_of(item) == "model"]
    text = f"{counted(len(answers.items), 'distinct answer')}, of which {judge.name} judges {len(items):,}."
    if isinstance(judge, GptEvalJudge):
        requests = [judge.request(item, sample * judge.attempts) for item in items]
        keys = [cache_key(judge.generator.identity, request) for request in requests]
        replies = models.cache.find(keys) if models.cache else {}
        open_requests = [request for key, request in zip(keys, requests, strict=True) if key not in replies]
        letters = sum(len(turn["content"]) for request in open_requests for turn in request.messages())
        tokens = round(letters / CHARACTERS_A_TOKEN)
        cost = settings.cost(settings.judge, tokens, 0, len(open_requests) * judge.max_tokens)
        price = "" if cost is None else f", {cost:.4g} in the currency of the prices"
        text += f" Requests: {len(open_requests):,}, about {tokens:,} tokens of prompts{price}."
    note(text)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with capped(folder, settings, models.ledger):
        try:
            return answers.rows(judge, sample)
        finally:
            record(folder, "rejudge", {}, models.meter.snapshot(), 1)


def _facts(judge: Judge, settings: Settings) -> dict[str, Any]:
    """Return what the verdicts rest on: nothing of servers or this machine's folders."""
    values = settings.judge.model_dump(mode="json", exclude={"server", "name"})
    values |= {key: without_folder(values[key]) for key in ("model", "prompt") if values[key]}
    prompt = judge_prompt(settings.judge) if isinstance(judge, GptEvalJudge) else None
    turns = {"name": prompt.name, "sha256_12": prompt.sha, "turns": [*map(list, prompt.turns)]} if prompt else None
    return {
        "judge": judge.name,
        "producer": judge.identity,
        "prompt": turns,
        "settings": {"judge": values, "equivalence": settings.models.equivalence},
        "program_version": __version__,
    }
