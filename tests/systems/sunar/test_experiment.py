"""``quit sunar`` on a corpus of real questions, and what it says to wrong input."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from quit.corpora.build import build
from quit.corpora.graph import build_graph
from quit.corpora.sources import parse_corpus_source
from quit.errors import SettingsError
from quit.models.factory import Models
from quit.models.generation import ChatRequest
from quit.models.prompting import load_prompt
from quit.retrieval.built import BuiltCorpus
from quit.settings import Settings, Sunar, load, parse
from quit.systems.sunar import mer, planners
from quit.systems.sunar.assembly import Assembly, prompt_name
from quit.systems.sunar.experiment import open_library, run_variants
from quit.systems.sunar.queries import Query
from quit.systems.sunar.reading import ANSWER_FIELDS
from quit.systems.sunar.retrieval import Library
from quit.systems.sunar.show import lines
from quit.systems.sunar.variants import VARIANTS, effective
from tests.conftest import call_quit
from tests.rows import write_lines
from tests.systems.scripted import Talks
from tests.systems.scripted import settings as talking

Place = tuple[Library, list[Query]]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, data: Path) -> BuiltCorpus:
    """The first two questions of MuSiQue with their forty paragraphs."""
    folder = tmp_path_factory.mktemp("corpus")
    text = (data / "musique" / "musique_ans.jsonl").read_text(encoding="utf-8").splitlines()[:2]
    (folder / "two.jsonl").write_text("\n".join(text) + "\n", encoding="utf-8")
    return build([parse_corpus_source(f"musique:{folder / 'two.jsonl'}")], folder / "C", Settings().corpora)[0]


@pytest.fixture(scope="module")
def graph(corpus: BuiltCorpus) -> Path:
    """The corpus's MiniLM graph, as ``quit graph build`` makes it."""
    settings = Settings()
    build_graph(corpus, "minilm", 10, corpus.path.with_name("G"), settings.graph, settings.first_stages)
    return corpus.path.with_name("G")


@pytest.fixture(scope="module")
def place(corpus: BuiltCorpus, graph: Path) -> Place:
    """The corpus with BM25 and its graph, and its questions."""
    return open_library(Settings(), Models(Settings()), corpus.path, graph=graph)


@pytest.fixture(scope="module")
def one(place: Place) -> Place:
    """The same with its first question only."""
    return place[0], place[1][:1]


@pytest.fixture(scope="module")
def models() -> Models:
    """The models of the default settings, loaded once."""
    return Models(Settings())


def _run(settings: Settings, place: Place, names: list[str], out: Path, models=None):
    return run_variants(settings, models or Models(settings), *place, names, out)


def _recall_at_10(run: Path, place: Place) -> float:
    """Return the mean share of a question's relevant documents among the first ten lines that a run file has for it."""
    lines = [line.split() for line in run.read_text().splitlines()]
    shares = []
    for query in place[1]:
        found = {row[2] for row in lines if row[0] == query.query_id and int(row[3]) <= 10}
        shares.append(len(found & set(query.relevant)) / len(query.relevant))
    return sum(shares) / len(shares)


def _settings(**more) -> Settings:
    return parse({"sunar": {"b": 4, "c": 12, "neighbours": 5, "m": 2, **more}})


@pytest.mark.slow
def test_every_variant_that_needs_no_language_model_answers(
    one: Place, models: Models, tmp_path: Path, notes: list[str]
) -> None:
    given = {name: settings for name, (_, settings) in VARIANTS.items() if "reading" not in settings}
    names = [name for name, settings in given.items() if settings.get("planner") in (None, "none")]
    figures = _run(_settings(), one, names, tmp_path, models)
    assert list(figures) == names and all(made["questions"] == 1 for made in figures.values())
    for name, made in figures.items():
        assert made["Recall@10"] == pytest.approx(_recall_at_10(tmp_path / name / "run.trec", one), abs=1e-4), name
    assert figures["sunar-r"]["Recall@10"] >= 0.5  # of the two paragraphs that a question of two hops needs
    assert figures["rerank-read"]["pool_size"] <= 12 and figures["nar-read"]["pool_size"] == 12
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.json"))}
    again = _run(_settings(workers=2), one, names, tmp_path, models)
    assert again == figures and {path: path.read_bytes() for path in before} == before
    assert notes[-1] == f"{names[-1]}: 0 of 1 questions to answer"
    trace = json.loads(next((tmp_path / "sunar" / "traces").iterdir()).read_text())
    assert len(trace["steps"]) >= 2 and trace["planner"] == "gold"
    shown = "\n".join(lines(trace))
    for part in (trace["question"], "s = ", "from N", f"prediction: {trace['prediction']}"):
        assert part in shown


@pytest.mark.parametrize(
    ("given", "variant", "said"),
    [
        ({}, "sunnar", "There is no variant 'sunnar'. Did you mean 'sunar'"),
        ({}, "react", "needs a language model"),
        ({}, "chain-of-thought", "reading 'chain-of-thought' needs a language model"),
        ({"language_model": "gpt"}, "sunar", "is a language model: none in this profile"),
    ],
)
def test_wrong_settings_are_said_before_any_work(place: Place, tmp_path: Path, given, variant: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        _run(_settings(**given), place, [variant], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_a_graph_what_needs_one_is_refused(place: Place, models: Models, tmp_path: Path) -> None:
    none = replace(place[0], graph=None), place[1]
    with pytest.raises(SettingsError, match="needs a graph"):
        _run(_settings(), none, ["sunar"], tmp_path)
    assert _run(_settings(), none, ["rerank-read"], tmp_path, models=models)["rerank-read"]["questions"] == 2


def test_shipped_prompts_have_the_fields_that_are_filled() -> None:
    of_planners = {"self_ask": "SelfAsk", "react": "ReAct", "searchain": "SearChain", "ircot": "IRCoT"}
    fields_of = {name: getattr(planners, planner).fields for name, planner in of_planners.items()}
    fields_of |= {"decomp": planners.Decomp.fields, "meta_reasoner": mer.FIELDS}
    fields_of |= dict.fromkeys(("sub_answer", "chain_of_thought", "zero-shot"), ANSWER_FIELDS)
    for name, fields in fields_of.items():
        for prompts in ("musique", "2wiki"):
            assert load_prompt(prompt_name(Sunar(prompts=prompts), name), fields).turns[-1][0] == "user"


def _prompt(name: str) -> str:
    [(role, text)] = load_prompt(name).turns
    assert role == "user", "one text, as the figures have it"
    return text


@pytest.mark.parametrize(
    ("name", "follow_ups"), [("self_ask_musique", [2, 2, 2, 2, 2]), ("self_ask_2wiki", [2, 2, 2, 4, 2])]
)
def test_self_ask_has_the_exemplars_of_figures_5_and_6(name: str, follow_ups: list[int]) -> None:
    exemplars = _prompt(name).split("\nQuestion: ")[1:-1]
    assert [exemplar.count("Follow up: ") for exemplar in exemplars] == follow_ups
    for exemplar in exemplars:
        assert exemplar.count("Intermediate Answer: ") == exemplar.count("Follow up: ")
        assert "here: Yes.\n" in exemplar and exemplar.count("[Final Answer]: ") == 1


def test_other_prompts_have_the_parts_of_figures_4_and_7_to_9_in_their_order() -> None:
    for name in ("meta_reasoner_musique", "meta_reasoner_2wiki"):
        text = _prompt(name)
        assert text.index("{path}") < text.index("{evidence}") < text.index("{question}")
    chain = _prompt("searchain")
    assert chain.index("Intermediate Answer") < chain.index("{question}") < chain.index("[Query 1]")
    assert chain.count("[Final Content]: ") == 2 and chain.count("[Unsolved Query]: ") == 3
    text = _prompt("decomp")
    assert text.index("{evidence}") < text.index("{question}") < text.index("{path}")
    for exemplar in text.split("\n[Question]: ")[1:5]:
        assert exemplar.count("[retrieve odqa] ") == exemplar.count('\nAnswer: "answer": ["') == 2
        assert exemplar.index("[multihop titleqa] ") < exemplar.index("[Final Answer]: ")
    text = _prompt("react")
    assert text.count("\nQuestion: ") == 4 and text.index("{evidence}") < text.index("{question}")
    assert text.count("Action 1: Search[") == 3 and text.count(": Lookup[") == 2
    exemplars = text.split("\nQuestion: ")[1:4]
    assert [exemplar.count("[Final Answer]: ") for exemplar in exemplars] == [1, 0, 1]


def test_a_prompt_of_ones_own_comes_before_the_set() -> None:
    assert prompt_name(Sunar(prompts="2wiki"), "chain-of-thought") == "chain_of_thought_2wiki"
    assert prompt_name(Sunar(prompts="2wiki"), "react") == "react"
    assert prompt_name(Sunar(prompt_files={"self_ask": "figure5.txt"}), "self_ask") == "figure5.txt"


def test_a_language_model_of_the_profile_plans_answers_and_reasons(place: Place) -> None:
    settings = talking(sunar={"language_model": "tiny", "scorer": "cross-encoder", "entailment": "nli"})
    assembly = Assembly(settings, Models(settings))
    library, _ = open_library(settings, Models(settings), place[0].documents.path)
    _, identity = assembly.system(replace(library, graph=place[0].graph), effective(settings.sunar, "as-set"))
    for part in ("self-ask/chat/m", "sub_answer@", "meta/chat/m", "nli/FacebookAI/roberta-large-mnli",
                 "cross-encoder/nreimers/", "temperature 0.3, penalties 0.8/0.6, 1000 tokens"):  # fmt: skip
        assert part in identity


def _reply(request: ChatRequest) -> str:
    """Ask one question in each planner's words, then answer it."""
    shown = request.messages()[-1]["content"]
    ended = '"answer": ["a sub-answer"]' in shown
    return {
        "react": "I know now. Finish[Leith]" if "Observation 1: a sub-answer" in shown else f"Search[{ASKED}]",
        "searchain": f"[Query 1]: {ASKED}\n[Answer 1]: in Fife"
        + ("\n[Final Answer]: Leith" if "[Answer 1]: a sub-answer" in shown else ""),
        "decomp": "(select) [multihop titleqa] Where?\n[Final Answer]: Leith" if ended
        else f"(select) [retrieve odqa] {ASKED}",
        "sub_answer": "a sub-answer",
        "zero_shot": "Henry Baring lived in Fife.\n[Final Answer]: Fife",
        "ircot_musique": "Henry Baring was a banker." if shown.endswith("Reasoning:")
        else "So the answer is Fife, perhaps.",
        "chain_of_thought_musique": "[Answer]: one by one.\n[Final Answer]: Leith",
        "meta_reasoner_musique": "[Answer]: by all that.\n[Final Answer]: Edinburgh",
    }[request.template.name]  # fmt: skip


ASKED = "Who was Henry Baring?"


def _talked(place: Place, name: str, out: Path) -> dict:
    settings = talking(sunar={"language_model": "tiny", "b": 2, "c": 4, "neighbours": 2, "m": 1})
    _run(settings, place, [name], out, models=Talks(settings, _reply))
    [trace] = [json.loads(path.read_text()) for path in (out / name / "traces").iterdir()]
    return trace


def test_chain_of_thought_reads_what_the_question_retrieves_or_what_is_relevant(one: Place, tmp_path: Path) -> None:
    trace = _talked(one, "chain-of-thought", tmp_path)
    [step] = trace["steps"]
    [ranking] = one[0].first_stage.search([trace["question"]], 10)
    assert step["read"] == one[0].documents.ids(ranking.rows.tolist()) and trace["prediction"] == "Leith"
    trace = _talked(one, "zero-shot", tmp_path)
    assert trace["steps"][0]["read"] == step["read"] and trace["prediction"] == "Fife"
    trace = _talked(one, "gold-evidence", tmp_path)
    assert sorted(trace["steps"][0]["read"]) == trace["relevant"] and len(trace["relevant"]) == 2
    assert trace["prediction"] == "Leith"


def test_ircot_collects_and_reads_in_the_end(one: Place, tmp_path: Path) -> None:
    trace = _talked(one, "ircot", tmp_path)
    assert [step["sub_question"] for step in trace["steps"]] == [trace["question"], "Henry Baring was a banker."]
    assert [step["answer"] for step in trace["steps"]] == ["", ""]
    assert any(line.startswith("language model: calls 3, prompt tokens ") for line in lines(trace))
    assert (trace["prediction"], trace["ended"]["raw"]) == ("Leith", "So the answer is Fife, perhaps.")


def test_the_profile_paper_has_the_papers_checkpoints_and_numbers() -> None:
    how = load("paper").settings.sunar
    assert (how.first_encoder, how.graph_encoder) == ("sparse:naver/splade_v2_max", "late:colbert-ir/colbertv2.0")
    assert (how.scorer, how.scorer_model) == ("cross-encoder", "nreimers/mmarco-mMiniLMv2-L12-H384-v1")
    assert how.entailment == "nli" and how.literal
    assert (how.first, how.neighbours, how.top) == (100, 10, 10)
    assert how.max_tokens == 1000
    assert (how.cover_em, how.priority) == ("substring", "rescored")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"first_encoder": "sparse:S"}, "first_encoder is 'sparse:S', and the index is of bm25"),
        ({"graph_encoder": "late:C"}, "graph_encoder is 'late:C', and the graph .* is of minilm"),
    ],
)
def test_an_index_or_graph_of_another_encoder_is_refused(corpus: BuiltCorpus, graph: Path, given, said: str) -> None:
    settings = _settings(**given)
    with pytest.raises(SettingsError, match=said):
        open_library(settings, Models(settings), corpus.path, graph=graph)
    open_library(_settings(first_encoder="bm25", graph_encoder="minilm"), Models(settings), corpus.path, graph=graph)


@pytest.mark.parametrize(
    ("name", "retrieval", "answer"),
    [
        ("react", "nar", ("Edinburgh", "mer")),
        ("searchain", "nar", ("Edinburgh", "mer")),
        ("react-first", "first", ("Leith", "planner")),
        ("searchain-first", "first", ("Leith", "planner")),
        ("decomp-first", "first", ("Leith", "planner")),
        ("decomp-rerank", "rerank", ("Leith", "planner")),
    ],
)
def test_other_planners_search_read_and_end(one: Place, tmp_path: Path, name, retrieval, answer) -> None:
    trace = _talked(one, name, tmp_path)
    assert [(step["sub_question"], step["answer"]) for step in trace["steps"]] == [(ASKED, "a sub-answer")]
    assert (trace["prediction"], trace["prediction_from"]) == answer
    assert trace["planner"] == name.split("-")[0] and trace["ended"]["reason"] == "final answer"
    assert ("batches" in trace["steps"][0]) == (retrieval != "first")
    assert trace["steps"][0]["read"]


def _quit(*arguments: object) -> tuple[int, str, str]:
    done = call_quit("sunar", *arguments)
    return done.returncode, done.stdout, done.stderr


def test_the_commands_run_show_and_compare(corpus: BuiltCorpus, tmp_path: Path) -> None:
    queries = tmp_path / "q.jsonl"
    first = corpus.queries["query_id"][0].as_py()
    write_lines(queries, [{"id": first}, {"id": "mine", "text": "Where is Port Blair?"}])
    given = ["--corpus", corpus.path, "--queries", queries, "--set", "sunar.c=8", "--set", "sunar.b=4"]
    here = [*given, "--out", tmp_path / "out"]
    code, out, _ = _quit("run", *here, "--variant", "read", "--variant", "rerank-read", "--json")
    made = json.loads(out)
    assert code == 0 and made["read"]["questions"] == 2 and made["read"]["judged"] == made["read"]["answered_for"] == 1
    code, out, _ = _quit("run", *here, "--variant", "read")
    assert code == 0 and "2 questions, 1 with answers, 1 with relevant documents" in out
    code, out, _ = _quit("trace", "mine", "--out", tmp_path / "out")
    assert code == 0 and "== read" in out and "== rerank-read" in out and "Where is Port Blair?" in out
    code, out, _ = _quit("trace", "mine", "--out", tmp_path / "out", "--variant", "read", "--json")
    assert json.loads(out)["read"]["query_id"] == "mine"
    code, out, _ = _quit("compare", tmp_path / "out" / "read", tmp_path / "out" / "rerank-read")
    assert code == 0 and "cover_em" in out and "p, randomisation" in out
    code, out, _ = _quit("compare", tmp_path / "out" / "read", tmp_path / "out" / "rerank-read", "--json")
    assert code == 0 and json.loads(out)["questions"] == 1
    code, _, said = _quit("run", *here, "--variant", "read", "--set", "sunar.top=3")
    assert code == 7 and "sunar.top (10, now 3)" in said
    by_part = ["--out", tmp_path / "other", "--set", "sunar.cover_em=substring"]
    assert _quit("run", *given, *by_part, "--variant", "read")[0] == 0
    code, _, said = _quit("compare", tmp_path / "out" / "read", tmp_path / "other" / "read")
    assert code == 3 and "differ in sunar.cover_em" in said


def test_the_command_walks_along_a_graph(corpus: BuiltCorpus, graph: Path, place: Place, tmp_path: Path) -> None:
    given = ["run", "--corpus", corpus.path, "--variant", "nar-read", "--variant", "rerank-read", "--set", "sunar.b=2"]
    given += ["--set", "sunar.c=12", "--set", "sunar.first=3", "--questions", 1]  # the rest must be neighbours
    code, out, _ = _quit(*given, "--graph", graph, "--set", "sunar.neighbours=5", "--out", tmp_path / "a", "--json")
    figures = json.loads(out)
    assert code == 0
    assert (figures["rerank-read"]["pool_size"], figures["nar-read"]["pool_size"]) == (3, 12)
    [path] = (tmp_path / "a" / "nar-read" / "traces").iterdir()
    trace = json.loads(path.read_text())
    batches = [batch for step in trace["steps"] for batch in step["batches"] if batch["pool"] == "N"]
    edges = {(parent, child) for batch in batches for parent, child in zip(batch["parents"], batch["documents"])}
    ids = corpus.ids(range(len(corpus)))
    near = {name: set(corpus.ids(place[0].graph.neighbours(row, 5))) for row, name in enumerate(ids)}
    assert edges and all(child in near[parent] or parent in near[child] for parent, child in edges)
    code, _, said = _quit(*given, "--graph", graph, "--set", "sunar.neighbours=11", "--out", tmp_path / "b")
    assert code == 4 and "sunar.neighbours is 11" in said and "stores 10 per document" in said
    code, _, said = _quit(*given, "--out", tmp_path / "c")
    assert code == 4 and "needs a graph" in said


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run --corpus nowhere", "nowhere"),
        ("trace q --out nowhere", "There is no run in nowhere"),
        ("compare nowhere nowhere", "nowhere holds no run"),
        ("run --corpus CORPUS --source 2wiki", "its sources: musique"),
        ("run --corpus CORPUS --kind 9hop", "its kinds: 2hop"),
    ],
)
def test_wrong_folders_and_names_are_said(corpus: BuiltCorpus, command: str, said: str) -> None:
    code, _, message = _quit(*(corpus.path if word == "CORPUS" else word for word in command.split()))
    assert code == 3 and said in message


def test_the_variants_are_listed() -> None:
    code, out, _ = _quit("variants")
    assert code == 0 and all(name in out for name in VARIANTS)
