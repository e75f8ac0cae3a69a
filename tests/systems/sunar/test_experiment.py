"""``quit sunar`` on a corpus of real questions, and what it says to wrong input."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from quit.corpora.build import build
from quit.corpora.built import BuiltCorpus
from quit.corpora.sources import parse_corpus_source
from quit.errors import InputError, QuitError, SettingsError
from quit.models.factory import Models
from quit.models.prompting import load_prompt
from quit.settings import Settings, parse
from quit.systems.sunar import mer, self_ask
from quit.systems.sunar.assembly import Assembly
from quit.systems.sunar.experiment import Place, open_place, run_variants
from quit.systems.sunar.reading import ANSWER_FIELDS
from quit.systems.sunar.show import lines
from quit.systems.sunar.variants import VARIANTS
from tests.systems.sunar.small import Edges


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, data: Path) -> BuiltCorpus:
    """The first two questions of MuSiQue with their forty paragraphs."""
    folder = tmp_path_factory.mktemp("corpus")
    text = (data / "musique" / "musique_ans.jsonl").read_text(encoding="utf-8").splitlines()[:2]
    (folder / "two.jsonl").write_text("\n".join(text) + "\n", encoding="utf-8")
    return build([parse_corpus_source(f"musique:{folder / 'two.jsonl'}")], folder / "C", Settings().corpora)[0]


@pytest.fixture(scope="module")
def place(corpus: BuiltCorpus, encoder) -> Place:
    """The corpus with BM25 and its exact MiniLM graph."""
    vectors = encoder.encode(corpus.text_range(0, len(corpus)))
    near = vectors @ vectors.T
    np.fill_diagonal(near, -2)
    opened = open_place(Settings(), Models(Settings()), corpus.path)
    edges = np.argsort(-near, axis=1, kind="stable")[:, :10]
    return Place(corpus, opened.first_stage, Edges(dict(enumerate(edges)), len(corpus)), opened.queries)


def _run(settings: Settings, place: Place, names: list[str], out: Path, say):
    return run_variants(settings, Models(settings), place, names, out, say)


def _settings(**more) -> Settings:
    return parse({"sunar": {"b": 4, "c": 12, "neighbours": 5, "m": 2, "extract_sentences": 4, **more}})


@pytest.mark.slow
def test_every_variant_that_needs_no_language_model_answers_every_question(place: Place, tmp_path: Path) -> None:
    names = [name for name, (_, given) in VARIANTS.items() if given.get("planner") in (None, "none")]
    said: list[str] = []
    figures = _run(_settings(), place, names, tmp_path, said.append)
    assert list(figures) == names and all(made["questions"] == 2 for made in figures.values())
    assert all(
        0 <= made[name] <= 1
        for made in figures.values()
        for name in ("cover_em", "Recall@10", "nDCG@10", "pool_recall")
    )
    assert figures["rerank-read"]["pool_size"] <= 12 and figures["nar-read"]["pool_size"] == 12
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.json"))}
    again = _run(_settings(workers=2), place, names, tmp_path, said.append)
    assert again == figures and {path: path.read_bytes() for path in before} == before
    assert said[-1] == f"{names[-1]}: 0 of 2 questions to answer"
    trace = json.loads(next((tmp_path / "sunar" / "traces").iterdir()).read_text())
    assert len(trace["steps"]) >= 2 and trace["planner"] == "gold"
    shown = "\n".join(lines(trace))
    assert (
        trace["question"] in shown
        and "s = " in shown
        and "from N" in shown
        and f"prediction: {trace['prediction']}" in shown
    )


@pytest.mark.slow
def test_the_same_settings_give_the_same_bytes_elsewhere(place: Place, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        _run(_settings(), place, ["sunar"], tmp_path / folder, lambda text: None)
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / folder).rglob("*") if path.is_file()}
        for folder in ("one", "two")
    )
    assert one == two


@pytest.mark.parametrize(
    ("given", "variant", "said"),
    [
        ({}, "sunnar", "There is no variant 'sunnar'. Did you mean 'sunar'"),
        ({}, "react", "needs a language model"),
        (
            {"language_model": "gpt"},
            "sunar",
            "must name a reader or judge that is a language model: none in this profile",
        ),
    ],
)
def test_wrong_settings_are_said_before_any_work(place: Place, tmp_path: Path, given, variant: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        _run(_settings(**given), place, [variant], tmp_path / "out", lambda text: None)
    assert not (tmp_path / "out").exists()


def test_a_graph_of_another_corpus_and_none_at_all_are_refused(place: Place, tmp_path: Path) -> None:
    other = Place(place.corpus, place.first_stage, Edges({}, 3), place.queries)
    with pytest.raises(InputError, match="it is another corpus's"):
        _run(_settings(), other, ["sunar"], tmp_path, lambda text: None)
    none = Place(place.corpus, place.first_stage, None, place.queries)
    with pytest.raises(SettingsError, match="needs a graph"):
        _run(_settings(), none, ["sunar"], tmp_path, lambda text: None)
    assert _run(_settings(), none, ["rerank-read"], tmp_path, lambda text: None)["rerank-read"]["questions"] == 2


@pytest.mark.slow
def test_no_budget_and_no_documents_read_are_no_error(place: Place, tmp_path: Path) -> None:
    for name, given in (
        ("c", {"c": 0}),
        ("top", {"top": 0}),
        ("first", {"first": 0}),
        ("m", {"m": 0}),
        ("hops", {"max_hops": 0}),
    ):
        figures = _run(_settings(**given), place, ["sunar"], tmp_path / name, lambda text: None)["sunar"]
        assert figures["questions"] == 2
        if name in ("c", "first"):
            assert (figures["pool_recall"], figures["Recall@10"], figures["cover_em"]) == (0.0, 0.0, 0.0)


def test_shipped_prompts_have_the_fields_that_are_filled() -> None:
    for name, fields in (
        ("sub_answer", ANSWER_FIELDS),
        ("self_ask", self_ask.FIELDS),
        ("react", self_ask.FIELDS),
        ("searchain", self_ask.FIELDS),
        ("meta_reasoner", mer.FIELDS),
    ):
        assert load_prompt(name, fields).turns[-1][0] == "user"


def test_a_language_model_of_the_profile_plans_answers_and_reasons(place: Place) -> None:
    settings = parse(
        {
            "sunar": {"language_model": "tiny", "scorer": "cross-encoder", "entailment": "nli"},
            "servers": [{"name": "s", "base_urls": ["http://127.0.0.1:9/v1"]}],
            "readers": [{"name": "tiny", "role": "reader", "kind": "server", "server": "s", "model": "m"}],
        }
    )
    assembly = Assembly(settings, Models(settings))
    library = assembly.library(place.corpus, place.first_stage, place.graph)
    _, identity = assembly.system(library, settings.sunar)
    for part in (
        "self-ask/chat/m",
        "sub_answer@",
        "meta/chat/m",
        "nli/FacebookAI/roberta-large-mnli",
        "cross-encoder/nreimers/",
    ):
        assert part in identity
    assert "temperature 0.3, top_p 1, penalties 0.8/0.6, 1000 tokens" in identity


runner = CliRunner()


def _quit(*arguments: object) -> tuple[int, str, str]:
    from quit.cli import app

    done = runner.invoke(app, ["sunar", *map(str, arguments)])
    if done.exception and not isinstance(done.exception, SystemExit):
        assert isinstance(done.exception, QuitError), done.exception
        return done.exception.exit_code, done.output, str(done.exception)
    return done.exit_code, done.stdout, done.stderr


def test_the_commands_run_show_and_compare(corpus: BuiltCorpus, tmp_path: Path) -> None:
    queries = tmp_path / "q.jsonl"
    first = corpus.queries["query_id"][0].as_py()
    queries.write_text(
        json.dumps({"id": first}) + "\n" + json.dumps({"id": "mine", "text": "Where is Port Blair?"}) + "\n"
    )
    given = [
        "--corpus",
        corpus.path,
        "--queries",
        queries,
        "--out",
        tmp_path / "out",
        "--set",
        "sunar.c=8",
        "--set",
        "sunar.b=4",
    ]
    code, out, _ = _quit("run", *given, "--variant", "read", "--variant", "rerank-read", "--json")
    made = json.loads(out)
    assert code == 0 and made["read"]["questions"] == 2 and made["read"]["judged"] == made["read"]["answered_for"] == 1
    code, out, _ = _quit("run", *given, "--variant", "read")
    assert code == 0 and "2 questions, 1 with answers, 1 with relevant documents" in out
    code, out, _ = _quit("trace", "mine", "--out", tmp_path / "out")
    assert code == 0 and "== read" in out and "== rerank-read" in out and "Where is Port Blair?" in out
    code, out, _ = _quit("trace", "mine", "--out", tmp_path / "out", "--variant", "read", "--json")
    assert json.loads(out)["read"]["query_id"] == "mine"
    code, out, _ = _quit("compare", tmp_path / "out" / "read", tmp_path / "out" / "rerank-read", "--json")
    assert code == 0 and json.loads(out)["questions"] == 1
    code, _, said = _quit("run", *given, "--variant", "read", "--set", "sunar.top=3")
    assert code == 7 and "sunar.top (10, now 3)" in said


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run", "--corpus", "nowhere"], 3, "nowhere"),
        (["trace", "q", "--out", "nowhere"], 3, "There is no run in nowhere"),
        (["compare", "nowhere", "nowhere"], 3, "nowhere holds no run"),
    ],
)
def test_wrong_folders_are_said(arguments: list[str], code: int, said: str) -> None:
    found, _, message = _quit(*arguments)
    assert found == code and said in message


def test_an_unknown_source_or_question_names_the_known_ones(corpus: BuiltCorpus, tmp_path: Path) -> None:
    code, _, said = _quit("run", "--corpus", corpus.path, "--source", "2wiki", "--out", tmp_path)
    assert code == 3 and "its sources: musique" in said
    code, out, _ = _quit("variants")
    assert code == 0 and all(name in out for name in VARIANTS)
