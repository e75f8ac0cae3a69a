"""Every file of a corpus, an index and a graph, damaged in every way: named when it is opened, and made again."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from quit.common.files import temporary_of
from quit.common.progress import listening
from quit.errors import InputError, SettingsError, WorkspaceError
from quit.qa.corpora.build import build
from quit.qa.corpora.graph import NeighbourhoodGraph, build_graph
from quit.qa.corpora.sources import parse_corpus_source
from quit.qa.indexes import vectors
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.indexes.first_stage import build_first_stage, open_first_stage
from quit.qa.indexes.vectors import encode_corpus
from quit.qa.settings import Corpora, FirstStages, Graph
from tests.comparing import files_of
from tests.conftest import Notes
from tests.engine.test_repair import flip
from tests.qa.corpora.worlds import Given, built, corpus_of, entries, unit, use
from tests.release import small

TEXTS = [f"document {row} of the river" for row in range(30)]
STAGES = FirstStages()


@pytest.fixture(autouse=True)
def _short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "BLOCK", 8)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped": flip,
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "emptied": lambda path: path.write_bytes(b""),
    "removed": Path.unlink,
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A corpus, and for each kind of folder how it is made, how it is opened and the command of the message."""
    vectors = unit(len(TEXTS), 8, 3)
    use(monkeypatch, Given(dict(zip(TEXTS, vectors, strict=True))))
    sparse = entries(
        "s", 8, {text: (np.arange(4, dtype=np.int32), np.full(4, len(text), np.float32)) for text in TEXTS}
    )
    monkeypatch.setattr("quit.qa.indexes.first_stage.sparse_encoder", lambda *_: sparse)
    corpus = corpus_of(TEXTS, tmp_path)
    source = parse_corpus_source(f"jsonl:{tmp_path / 'texts.jsonl'}")

    def index(encoder: str) -> tuple[Callable[[Path], object], Callable[[Path], object], str]:
        return (
            lambda folder: build_first_stage(corpus, encoder, folder, STAGES),
            lambda folder: open_first_stage(folder, corpus, STAGES),
            f"quit index build --corpus {corpus.path} --encoder {encoder} --out",
        )

    kinds = {
        "corpus": (lambda folder: build([source], folder, Corpora()), BuiltCorpus.open,
                   "quit corpus build --source jsonl:FOLDER/texts.jsonl --out"),
        **{name: index(name) for name in ("bm25", "given", "sparse:s")},
        "graph": (lambda folder: build_graph(corpus, "given", 3, folder, Graph(), STAGES),
                  lambda folder: NeighbourhoodGraph.open(folder, corpus),
                  f"quit graph build --corpus {corpus.path} --encoder given --k 3 --out"),
    }  # fmt: skip
    return SimpleNamespace(corpus=corpus, kinds=kinds)


@pytest.mark.parametrize("kind", ["corpus", "bm25", "given", "sparse:s", "graph"])
def test_damage_is_named_with_the_command_that_makes_it_again(
    kind: str, world: SimpleNamespace, tmp_path: Path
) -> None:
    make, open_again, command = world.kinds[kind]
    good = tmp_path / "good"
    make(good)
    open_again(good)
    names = [path.relative_to(good) for path in good.rglob("*") if path.is_file() and not path.name.startswith(".")]
    names = [name for name in names if kind != "graph" or name.parts[0] != "vectors"]  # for a larger corpus only
    assert len(names) >= 4
    for name in names:
        for damage in DAMAGES.values():
            bad = tmp_path / "bad"
            shutil.rmtree(bad, ignore_errors=True)
            shutil.copytree(good, bad)
            damage(bad / name)
            temporary_of(bad / name).write_text("what a killed run was writing")
            with pytest.raises(InputError) as error:
                open_again(bad)
            message = str(error.value)
            assert "\n" not in message and "quit " in message
            manifest = name.name in ("manifest.json", "index.json", "graph.json", "pt_meta.json")
            if not manifest or "holds no" not in message:
                assert str(bad / name) in message and f"{command} {bad}" in message
            make(bad)
            assert all((bad / each).read_bytes() == (good / each).read_bytes() for each in names)
            assert not list(bad.rglob(".*.tmp"))
            open_again(bad)


@pytest.mark.parametrize("name", ["partial/thesis.txt", "documents.parquet", "index/index.json", "manifest.json"])
@pytest.mark.parametrize("kind", ["corpus", "bm25", "given", "graph"])
def test_a_folder_of_others_is_left_alone_whatever_its_names(
    kind: str, name: str, world: SimpleNamespace, tmp_path: Path
) -> None:
    (tmp_path / "U" / name).parent.mkdir(parents=True)
    (tmp_path / "U" / name).write_text("{}")
    before = files_of(tmp_path / "U")
    with pytest.raises(SettingsError, match="U exists and holds no"):
        world.kinds[kind][0](tmp_path / "U")
    assert files_of(tmp_path / "U") == before


def test_damaged_vectors_are_not_taken_over(world: SimpleNamespace, tmp_path: Path, notes: list[str]) -> None:
    encoder = Given(dict(zip(TEXTS, unit(len(TEXTS), 8, 3), strict=True)))
    whole = np.array(encode_corpus(world.corpus, encoder, tmp_path / "V").matrix)
    flip(tmp_path / "V" / "vectors.f32")
    notes.clear()
    again = encode_corpus(world.corpus, encoder, tmp_path / "V").matrix
    assert np.array_equal(again, whole) and "vectors.f32" in notes[0] and len(encoder.seen) == 2 * len(TEXTS)


def test_two_builds_of_one_index_do_not_meet(world: SimpleNamespace, tmp_path: Path) -> None:
    """The second begins while the first encodes."""
    refused: list[str] = []

    def meanwhile(_: str) -> None:
        if not refused:
            with pytest.raises(WorkspaceError, match="Another run is at work") as error:
                build_first_stage(world.corpus, "given", tmp_path / "I", STAGES)
            refused.append(str(error.value))

    with listening(Notes(meanwhile)):
        build_first_stage(world.corpus, "given", tmp_path / "I", STAGES)
    assert refused


def test_the_command_that_makes_it_again_has_the_settings_and_quotes_paths(tmp_path: Path) -> None:
    small.freeze(tmp_path / "v1", small.rows())
    folder = tmp_path / "two words"
    corpus = built(folder / "C", f"quit:{tmp_path / 'v1'}", granularity="hint")
    stages = FirstStages(bm25_b=0.4)
    build_first_stage(corpus, "bm25", folder / "I", stages)
    build_graph(corpus, "bm25", 2, folder / "G", Graph(cross_question_only=True), stages)
    build_graph(corpus, "minilm", 2, folder / "D", Graph(method="exact"), FirstStages(precision="bf16"))
    opened = {
        "C/qrels.parquet": lambda: BuiltCorpus.open(folder / "C"),
        "I/bm25/rows.npy": lambda: open_first_stage(folder / "I", corpus, STAGES),
        "G/edges.parquet": lambda: NeighbourhoodGraph.open(folder / "G"),
        "D/edges.parquet": lambda: NeighbourhoodGraph.open(folder / "D"),
    }
    options = {
        "C": "corpora.granularity=hint",
        "I": "first_stages.bm25_b=0.4",
        "G": "graph.cross_question_only=true --set first_stages.bm25_b=0.4",
        "D": "graph.method=exact --set first_stages.precision=bf16",
    }
    for name, open_again in opened.items():
        flip(folder / name)
        with pytest.raises(InputError, match=f"--out '{folder / name[0]}' --set {options[name[0]]}$"):
            open_again()
