"""Fine-tuning: examples from the train split alone, models that are made once and learn, rows beside their base."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quit.dataset.dataset import Dataset
from quit.errors import InputError, SettingsError, WorkspaceError
from quit.export.training import FineTuning
from quit.qa.benchmark import finetune as module
from quit.qa.benchmark.benchmark import Outcome
from quit.qa.benchmark.finetune import Tuned, TuningRequest, finetune, run_finetune, triples
from quit.qa.benchmark.plugins import make_reranker
from quit.qa.benchmark.train import train
from quit.qa.contracts.benchmark import RESULTS
from quit.qa.indexes.encoders import ColbertEncoder, SentenceEncoder
from quit.qa.settings import FineTune, FirstStages, QaSettings, load
from tests.qa.benchmark import tiny
from tests.release import small
from tests.running import call_quit


def test_examples_are_of_the_train_split_with_negatives_of_other_questions(world) -> None:
    pairs = triples(world.dataset, FineTuning(2, 2))
    assert {question for question, _, _ in pairs} == {small.QUESTIONS["q1"], small.QUESTIONS["q2"]}
    for question, positive, negative in pairs:
        mine = "q1" if question == small.QUESTIONS["q1"] else "q2"
        assert positive.startswith(small.HINTS[mine][0])  # label 2: passages that begin with hint 0
        other = "q2" if mine == "q1" else "q1"
        assert negative.startswith(small.HINTS[other][0])  # a positive of the other question (footnote 11)
    assert {negative for _, _, negative in triples(world.dataset, FineTuning(2, 4, "any"))} > {
        small.HINTS["q1"][1], small.HINTS["q2"][1]
    }  # fmt: skip
    assert len(pairs) == 4 and len(triples(world.dataset, FineTuning(1, 1))) == 2


def test_a_release_without_examples_is_told_so(tmp_path: Path) -> None:
    small.freeze(tmp_path / "r", small.rows())  # one question in train: no other one to take negatives from
    with pytest.raises(InputError, match="nothing to fine-tune on"):
        triples(Dataset.of_release(tmp_path / "r"), FineTuning(1, 1))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"kind": "biencoder"}, SettingsError, "Did you mean 'bi-encoder'"),
        ({"base": "a,b"}, SettingsError, "name one model"),
        ({"kind": "monot5"}, InputError, "'minilm' cannot be loaded"),  # an encoder
        ({"positives": (0,)}, SettingsError, "from 1 to 200"),
        ({"positives": (201,)}, SettingsError, "from 1 to 200"),
        ({"base": "/absent/model"}, InputError, "There is no model folder"),
        ({"kind": "cross-encoder", "retrievers": ("nosuch",)}, SettingsError, "nosuch"),
        ({"retrievers": ("bm25",)}, SettingsError, "is a retriever itself"),
        ({"split": "dev"}, InputError, "has no question"),
    ],
)
def test_bad_requests(release: Path, tmp_path: Path, changes, error, message: str) -> None:
    arguments = {"release": release, "kind": "bi-encoder", "positives": (1,), **changes}
    with pytest.raises(error, match=message):
        run_finetune(TuningRequest(**arguments), load("embedded").settings, tmp_path / "out")


FLOWERS = {"rose": "red", "lily": "white", "iris": "blue", "tulip": "pink"}
QUICK = load("embedded", ["finetune.max_steps=2", "benchmark.resamples=100"]).settings
WORDS = " ".join([*FLOWERS, *FLOWERS.values(), "colour of"])


def flowers() -> list[tuple[str, str, str]]:
    """Each flower with its colour, and with the colour of the next."""
    colours = list(FLOWERS.values())
    return [(f"colour of {name}", colours[i], colours[(i + 1) % 4]) for i, name in enumerate(FLOWERS)]


def _settings(**finetune: Any) -> QaSettings:
    return QaSettings(finetune=FineTune(**finetune))


@pytest.mark.slow
def test_monot5_learns_to_say_true_and_false(world, tmp_path: Path) -> None:
    base, _, _ = tiny.t5(tmp_path / "base", WORDS)
    settings = _settings(epochs=100, batch=8, learning_rate=0.01, optimizer="adafactor")
    train("monot5", str(base), flowers(), settings, tmp_path / "tuned")

    def margins(folder: Path) -> list[float]:
        reranker = make_reranker(f"monot5:{folder}", world.context())
        scores = [reranker.score(question, [right, wrong]) for question, right, wrong in flowers()]
        return [float(right - wrong) for right, wrong in scores]

    assert min(margins(tmp_path / "tuned")) > 0.5 > max(map(abs, margins(base)))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "similarity"), [("two-tower", "cosine"), ("bi-encoder", "dot")])
def test_encoders_learn_what_they_are_shown(tmp_path: Path, kind: str, similarity: str, capfd) -> None:
    """They are searched with the similarity that training used; of two towers questions and passages have one each."""
    from sentence_transformers import SentenceTransformer

    base = tiny.encoder(tmp_path, WORDS, similarity)
    train(kind, str(base), flowers(), _settings(epochs=60, batch=4, learning_rate=0.01), tmp_path / "tuned")
    assert "widget examples" not in capfd.readouterr().err
    encoder = SentenceEncoder(str(tmp_path / "tuned"), FirstStages(device="cpu"))
    colours = list(FLOWERS.values())
    scores = encoder.queries([question for question, _, _ in flowers()]) @ encoder.documents(colours).T
    assert np.argmax(scores, axis=1).tolist() == [0, 1, 2, 3]
    assert encoder.model.similarity_fn_name == similarity
    assert (np.linalg.norm(encoder.documents(colours), axis=1).round(3) == 1).all() == (similarity == "cosine")
    before = SentenceTransformer(str(base), device="cpu").encode(["red"], normalize_embeddings=similarity == "cosine")
    queries, documents = encoder.queries(["red"]), encoder.documents(["red"])
    assert min(np.abs(before - queries).max(), np.abs(before - documents).max()) > 0.05
    assert (np.abs(queries - documents).max() > 0.05) == (kind == "two-tower")


@pytest.mark.slow
def test_a_multi_vector_model_learns_what_it_is_shown(tmp_path: Path) -> None:
    tiny.model(tmp_path / "bert", "BertModel", WORDS)
    tiny.late(tmp_path / "base", tmp_path / "bert")
    settings = _settings(epochs=60, batch=4, learning_rate=0.01)
    train("multi-vector", str(tmp_path / "base"), flowers(), settings, tmp_path / "tuned")

    def best(folder: Path) -> list[int]:
        encoder = ColbertEncoder(str(folder), FirstStages(device="cpu"))
        colours = encoder.documents([*FLOWERS.values()])
        queries = encoder.queries([question for question, _, _ in flowers()])
        return [int(np.argmax([(query @ colour.T).max(axis=1).sum() for colour in colours])) for query in queries]

    assert best(tmp_path / "tuned") == [0, 1, 2, 3] != best(tmp_path / "base")


@pytest.mark.parametrize(
    ("kind", "retrievers", "rerankers"),
    [
        ("two-tower", ("dense:minilm", "dense:TUNED"), ()),  # tables 4 and 11
        ("monot5", ("bm25",), ("monot5:minilm", "monot5:TUNED")),  # tables 6, 7 and 12
        ("multi-vector", ("late:TUNED",), ()),  # MiniLM is none
    ],
)
def test_tuned_models_have_their_rows_beside_the_base(release, tmp_path, monkeypatch, kind, retrievers, rerankers):
    model = Tuned(Path("TUNED"), 2, 4, 1.0)
    monkeypatch.setattr(module, "finetune", lambda *_: model)
    monkeypatch.setattr(module, "run_prepared", lambda request, *_: request)
    request, models = run_finetune(TuningRequest(release, kind, "minilm", (2, 2), "all"), QUICK, tmp_path / "out")
    assert models == [model] and (request.retrievers, request.rerankers) == (retrievers, rerankers)
    assert request.bounds == bool(rerankers)


def test_a_number_of_positives_may_have_its_own_epochs(release, tmp_path, monkeypatch) -> None:
    epochs: list[tuple[int, float]] = []

    def tuned(kind, base, number, dataset, settings, out):
        epochs.append((number, settings.finetune.epochs))
        return Tuned(Path("TUNED"), number, 4, 1.0)

    monkeypatch.setattr(module, "finetune", tuned)
    monkeypatch.setattr(module, "run_prepared", lambda *_: Outcome(RESULTS.schema.empty_table(), None, {}))
    options = ["-r", release, "-o", tmp_path / "out", "--set", "finetune.epochs=3", "--split", "all", "--positives"]
    call_quit("benchmark", "finetune", *options, "1:10,5:0.5", "--positives", "7")
    assert epochs == [(1, 10.0), (5, 0.5), (7, 3.0)]
    for text in ("1:", "1:0", "x", "1:ten", "1:-2", "1:10,1:5", "1:inf", "1:nan", ",", "5,5"):
        assert "each once, or N:EPOCHS" in call_quit("benchmark", "finetune", *options, text, code=4).err


@pytest.mark.slow
def test_a_cross_encoder_is_made_once_and_has_its_rows(release: Path, tmp_path: Path, notes: list[str]) -> None:
    request = TuningRequest(release, "cross-encoder", positives=(1, 2), split="all")
    outcome, tuned = run_finetune(request, QUICK, tmp_path / "out")
    assert [(one.positives, one.examples) for one in tuned] == [(1, 2), (2, 4)]
    folder = tuned[0].folder
    about, weights = folder.with_name(f"{folder.name}.json"), folder / "model.safetensors"
    facts = json.loads(about.read_text())
    assert facts["kind"] == "cross-encoder" and facts["positives"] == 1 and str(tmp_path) not in json.dumps(facts)
    rows = {(row["retriever"], row["reranker"]) for row in outcome.results.to_pylist()}
    # No row for MiniLM itself: it has no head to rerank with. The oracle's rows are those of tables 7 and 12.
    models = {f"cross-encoder:{one.folder}" for one in tuned}
    assert {(retriever, model) for retriever in ("bm25", "oracle") for model in models} <= rows
    assert "cross-encoder:minilm" not in {reranker for _, reranker in rows}
    changed, first = weights.stat().st_mtime_ns, weights.read_bytes()
    notes.clear()
    again, _ = run_finetune(request, QUICK, tmp_path / "out")
    assert notes == ["evaluate"] and again.results.equals(outcome.results) and weights.stat().st_mtime_ns == changed
    # A model whose training was broken off has no such file and is made again, the same.
    about.unlink()
    dataset = Dataset.of_release(release)
    model_folder = finetune("cross-encoder", "minilm", 1, dataset, QUICK, tmp_path / "out" / "models")
    assert model_folder.folder == folder and notes[-1].startswith("finetune") and weights.read_bytes() == first


def test_a_model_that_is_gone_is_trained_again_and_two_runs_do_not_meet(release, tmp_path, monkeypatch) -> None:
    trained: list[Path] = []
    request = TuningRequest(release, "bi-encoder", positives=(1,), split="all")

    def train_once(*arguments: object, **_: object) -> None:
        trained.append(arguments[-1])
        arguments[-1].mkdir(parents=True)
        with pytest.raises(WorkspaceError, match="Another run is at work"):
            run_finetune(request, QUICK, tmp_path / "out")

    monkeypatch.setattr(module, "train", train_once)
    monkeypatch.setattr(module, "run_prepared", lambda *_: None)
    for damage in (
        lambda _: None,
        shutil.rmtree,
        lambda folder: folder.with_name(f"{folder.name}.json").write_text(""),
    ):
        _, [model] = run_finetune(request, QUICK, tmp_path / "out")
        damage(model.folder)
    assert len(trained) == 2
    run_finetune(request, QUICK, tmp_path / "out")
    assert len(trained) == 3
