"""Language models in this process: one is loaded at a time, in the probe as when passages are read; what they replied
once is kept."""

from pathlib import Path

import pytest

from quit.engine.pipeline import Pipeline
from quit.models.readers import cleaning
from tests.building import plan_build
from tests.paths import starter_file
from tests.servers.builds import TWO_HINTS, write_profile
from tests.servers.checkpoints import checkpoint

pytestmark = pytest.mark.slow
READERS = ("one", "two")


def _pipeline(folder: Path, *overrides: str) -> Pipeline:
    loaded = {"role": "labeler", "kind": "transformers"}
    readers = [{"name": name, **loaded, "model": str(checkpoint("llama", n))} for n, name in enumerate(READERS)]
    profile = write_profile(folder / "two.toml", {"readers": readers, "probe": {"repetitions": 1}, **TWO_HINTS})
    overrides = ("run.shards=1", "labels.max_new_tokens=2", *overrides)
    return plan_build(folder / "W", *overrides, source=starter_file(folder / "one.jsonl", 1, 2), profile=profile)


def _loaded(pipeline: Pipeline) -> set[str]:
    generators = [pipeline.models.generator(reader)._generator._model for reader in pipeline.settings.readers]
    return {generator.name for generator in generators if "_loaded" in vars(generator)}


def _build(pipeline: Pipeline) -> list[tuple[str, set[str]]]:
    """Carry out what is pending; returns the readers' runs, each with the models that are loaded after it."""
    pipeline.begin()
    worked = []
    for runs in [group for stage in {run.stage: None for run in pipeline.runs} for group in pipeline.runs_of(stage)]:
        for run in runs:
            for shard in (pending := pipeline.pending(run)):
                pipeline.run_shard(run, shard)
            if run.reader and pending:
                worked.append((run.key, _loaded(pipeline)))
        for run in runs:
            pipeline.finish(run)
    return worked


RUNS = [f"{stage}:{name}" for stage in ("probe", "read") for name in READERS]


def test_a_reader_is_released_when_it_is_finished_and_its_kept_replies_are_read_anew(tmp_path, monkeypatch) -> None:
    """Another cleaning makes other answers of the same replies: the readers' runs are pending, no model is loaded."""
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    with monkeypatch.context() as before:
        before.setattr(cleaning, "VERSION", cleaning.VERSION - 1)
        pipeline = _pipeline(tmp_path)
        assert _build(pipeline) == [(run, {run.partition(":")[2]}) for run in RUNS]
        assert _loaded(pipeline) == set()
    pipeline = _pipeline(tmp_path)
    assert _build(pipeline) == [(run, set()) for run in RUNS]
    assert all(count.requests == 0 < count.cached for count in pipeline.models.meter.snapshot().values())
    assert {*pipeline.models.meter.snapshot()} == {*READERS}


def test_readers_that_work_together_are_loaded_together(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    pipeline = _pipeline(tmp_path, "run.parallel_readers=true")
    assert _build(pipeline) == [(run, {*READERS} if run.endswith("two") else {"one"}) for run in RUNS]
    assert _loaded(pipeline) == set()
