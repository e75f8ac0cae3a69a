"""Language models in this process: one is loaded at a time, in the probe as when passages are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from quit.engine.pipeline import Pipeline
from quit.engine.planning import plan_build
from tests.servers.builds import three_questions
from tests.servers.checkpoints import checkpoint

READERS = ("one", "two")


def _pipeline(folder: Path, more: str = "") -> Pipeline:
    blocks = [
        f'[[readers]]\nname = "{name}"\nrole = "labeler"\nkind = "transformers"\n'
        f'model = "{checkpoint("llama", seed)}"\n'
        for seed, name in enumerate(READERS)
    ]
    profile = folder / "two.toml"
    profile.write_text(f"{more}\n[probe]\nrepetitions = 1\n[convergence]\nhints = 2\n" + "\n".join(blocks))
    source = folder / "three.jsonl"
    source.write_text(three_questions()[0] + "\n", encoding="utf-8")
    return plan_build(folder / "W", [f"jsonl:{source}"], str(profile), ["run.shards=1", "labels.max_new_tokens=2"])


def _loaded(pipeline: Pipeline) -> set[str]:
    generators = [pipeline.models.generator(reader)._generator for reader in pipeline.settings.readers]
    return {generator.name for generator in generators if "_loaded" in vars(generator)}


@pytest.mark.parametrize(("more", "together"), [("", False), ("[run]\nreaders_together = true", True)])
def test_a_reader_is_released_when_it_is_finished_unless_all_work_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, together: bool
) -> None:
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    pipeline = _pipeline(tmp_path, more)
    pipeline.begin()
    worked = []
    for runs in [group for stage in {run.stage: None for run in pipeline.runs} for group in pipeline.runs_of(stage)]:
        for run in runs:
            for shard in pipeline.pending(run):
                pipeline.work_on(run, shard)
            if run.reader:
                worked.append((run.key, _loaded(pipeline)))
        for run in runs:
            pipeline.finish(run)
    assert _loaded(pipeline) == set()
    expected = [(f"{stage}:{name}", {name}) for stage in ("probe", "read") for name in READERS]
    if together:
        expected = [(key, {*READERS} if key.endswith("two") else {"one"}) for key, _ in expected]
    assert worked == expected
