"""Into how many parts a build wrote its tables shows in no byte of a release or an export."""

from pathlib import Path
from types import SimpleNamespace

from quit.dataset.workspace import dataset_of
from quit.engine.applied import AppliedReviews
from quit.export import export
from quit.export.formats import FORMATS
from quit.release.create import create
from tests.comparing import files_of
from tests.report import tiny

WAIVERS = {"human-coverage": "a test", "label-mismatch": "tables made by hand, whose counts of passages do not fit"}


def test_releases_and_exports_have_the_same_bytes_whatever_the_number_of_shards(tmp_path: Path, monkeypatch) -> None:
    # Nothing was run: the tables are made by hand.
    pipeline = SimpleNamespace(runs=[], settings=tiny.settings(), workspace=tiny.workspace(tmp_path / "T"))
    pipeline.reviews = AppliedReviews(pipeline.workspace, tiny.settings().review, [])
    settings = tiny.settings().model_dump(mode="json")
    provenance = {"settings": settings, "fingerprints": {}, "sources": [], "program_version": "1"}
    for module in ("quit.release.create", "quit.dataset.workspace"):
        monkeypatch.setattr(f"{module}.provenance_of", lambda pipeline: provenance)
    five_hints, negatives = ("release-json", "paper-index"), ("tevatron", "colbert", "monot5")  # what tiny lacks
    formats = [name for name in FORMATS if name not in (*five_hints, *negatives)]
    parts = {}
    for shards in (1, 4):
        workspace = tiny.workspace(tmp_path / f"W{shards}", shards=shards, people=False)
        parts[shards] = len(workspace.part_files("labels"))
        pipeline.workspace = workspace
        create(pipeline, "v1", tmp_path / f"release{shards}", waivers=WAIVERS)
        export(dataset_of(pipeline), formats, tmp_path / f"exports{shards}")
    assert parts[1] == 1 and parts[4] >= 3  # a shard without labels has no part
    for kind in ("release", "exports"):
        one, four = files_of(tmp_path / f"{kind}1"), files_of(tmp_path / f"{kind}4")
        assert one == four and len(one) >= 12, kind
