"""``quit sunar`` on a corpus of real questions, and what it says to wrong input."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from quit.errors import SettingsError
from quit.models.factory import Models
from quit.models.generation import ChatRequest
from quit.models.prompting import load_prompt
from quit.qa.corpora.graph import build_graph
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.settings import QaSettings, Sunar, load, parse
from quit.qa.settings.sunar import AUTHORS_CODE
from quit.qa.sunar import mer, planners
from quit.qa.sunar.assembly import Assembly, prompt_name
from quit.qa.sunar.experiment import run_variants
from quit.qa.sunar.opening import open_queries, open_stack
from quit.qa.sunar.queries import Query
from quit.qa.sunar.reading import ANSWER_FIELDS
from quit.qa.sunar.retrieval import SearchStack
from quit.qa.sunar.show import lines
from quit.qa.sunar.variants import effective
from tests.qa.corpora.worlds import built, musique_record
from tests.qa.scripted import Talks
from tests.qa.scripted import settings as talking
from tests.rows import write_lines
from tests.running import call_quit

Place = tuple[SearchStack, list[Query]]
SUB_QUESTION = "Who was Henry Baring?"


@pytest.fixture(scope="module")
def models() -> Models:
    """The models of the default settings, loaded once."""
    return Models(QaSettings())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, data: Path, models: Models) -> Place:
    """The first two questions of MuSiQue and their forty paragraphs, with BM25 and a MiniLM graph in ``G`` beside."""
    folder, settings = tmp_path_factory.mktemp("corpus"), QaSettings()
    lines = (data / "musique" / "musique_ans.jsonl").read_text(encoding="utf-8").splitlines()[:2]
    (folder / "two.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    corpus = built(folder / "C", f"musique:{folder / 'two.jsonl'}")
    build_graph(corpus, "minilm", 10, folder / "G", settings.graph, settings.first_stages)
    queries = open_queries(corpus, settings.sunar)
    return open_stack(settings, models, corpus, queries, graph=folder / "G"), queries


@pytest.fixture(scope="module")
def one(place: Place) -> Place:
    """The same with its first question only."""
    return place[0], place[1][:1]


@pytest.fixture(scope="module")
def corpus(place: Place) -> Path:
    """The corpus's folder."""
    return place[0].documents.path


def _settings(**more) -> QaSettings:
    return parse({"sunar": {"b": 4, "c": 12, "neighbours": 5, "m": 2, **more}})


def test_variants_answer_once_and_trace_what_they_did(one: Place, models: Models, tmp_path: Path, notes) -> None:
    names = ["sunar", "sunar-r", "nar-read"]
    figures = run_variants(_settings(), models, *one, names, tmp_path)
    assert figures["sunar-r"]["Recall@10"] >= 0.5  # of the two paragraphs that a question of two hops needs
    assert figures["nar-read"]["pool_size"] == 12
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.json"))}
    assert run_variants(_settings(workers=2), models, *one, names, tmp_path) == figures
    assert {path: path.read_bytes() for path in before} == before
    assert notes[-1] == f"{names[-1]}: 0 of 1 questions to answer"
    trace = json.loads(next((tmp_path / "sunar" / "traces").iterdir()).read_text())
    assert len(trace["steps"]) >= 2 and trace["planner"] == "gold"
    shown = "\n".join(lines(trace))
    assert all(part in shown for part in (trace["question"], "s = ", "from N", f"prediction: {trace['prediction']}"))


@pytest.mark.parametrize(
    ("changes", "variant", "message"),
    [
        ({}, "sunar", "needs a graph"),
        ({}, "sunnar", "There is no variant 'sunnar'. Did you mean 'sunar'"),
        ({}, "react", "needs a language model"),
        ({}, "chain-of-thought", "reading 'chain-of-thought' needs a language model"),
        ({"language_model": "gpt"}, "sunar", "is a language model: none in this profile"),
    ],
)
def test_wrong_settings_are_refused(place: Place, tmp_path: Path, changes, variant: str, message: str) -> None:
    settings, (library, queries) = _settings(**changes), place
    opened = replace(library, graph=None) if message == "needs a graph" else library
    with pytest.raises(SettingsError, match=message):
        run_variants(settings, Models(settings), opened, queries, [variant], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_shipped_prompts_have_the_fields_that_are_filled_and_ones_own_comes_first() -> None:
    of_planners = (planners.SelfAsk, planners.ReAct, planners.SearChain, planners.IRCoT, planners.Decomp)
    fields_of = {planner.prompt: planner.fields for planner in of_planners} | {"meta_reasoner": mer.FIELDS}
    fields_of |= dict.fromkeys(("sub_answer", "chain_of_thought", "zero-shot"), ANSWER_FIELDS)
    for name, fields in fields_of.items():
        for prompts in ("musique", "2wiki"):
            assert load_prompt(prompt_name(Sunar(prompts=prompts), name), fields).turns[-1][0] == "user"
    assert prompt_name(Sunar(prompts="2wiki"), "chain-of-thought") == "chain_of_thought_2wiki"
    assert prompt_name(Sunar(prompts="2wiki"), "react") == "react"
    assert prompt_name(Sunar(prompt_files={"self_ask": "figure5.txt"}), "self_ask") == "figure5.txt"


def test_a_language_model_of_the_profile_plans_answers_and_reasons(place: Place) -> None:
    settings = talking(sunar={"language_model": "tiny", "scorer": "cross-encoder", "entailment": "nli"})
    assembly = Assembly(settings, Models(settings))
    stack = open_stack(settings, Models(settings), place[0].documents, [])
    _, identity = assembly.system(replace(stack, graph=place[0].graph), effective(settings.sunar, "as-set"))
    for part in ("self-ask/chat/m", "sub_answer@", "meta/chat/m", "nli/FacebookAI/roberta-large-mnli",
                 "cross-encoder/nreimers/", "temperature 0.3, penalties 0.8/0.6, 1000 tokens"):  # fmt: skip
        assert part in identity


def _reply(request: ChatRequest) -> str:
    """Ask one question in each planner's words, then answer it."""
    shown = request.messages()[-1]["content"]
    ended = '"answer": ["a sub-answer"]' in shown
    return {
        "react": "I know now. Finish[Leith]" if "Observation 1: a sub-answer" in shown else f"Search[{SUB_QUESTION}]",
        "searchain": f"[Query 1]: {SUB_QUESTION}\n[Answer 1]: in Fife"
        + ("\n[Final Answer]: Leith" if "[Answer 1]: a sub-answer" in shown else ""),
        "decomp": "(select) [multihop titleqa] Where?\n[Final Answer]: Leith" if ended
        else f"(select) [retrieve odqa] {SUB_QUESTION}",
        "sub_answer": "a sub-answer",
        "zero_shot": "Henry Baring lived in Fife.\n[Final Answer]: Fife",
        "ircot_musique": "Henry Baring was a banker." if shown.endswith("Reasoning:")
        else "So the answer is Fife, perhaps.",
        "chain_of_thought_musique": "[Answer]: one by one.\n[Final Answer]: Leith",
        "meta_reasoner_musique": "[Answer]: by all that.\n[Final Answer]: Edinburgh",
    }[request.template.name]  # fmt: skip


def _trace(place: Place, name: str, out: Path) -> dict:
    settings = talking(sunar={"language_model": "tiny", "b": 2, "c": 4, "neighbours": 2, "m": 1})
    run_variants(settings, Talks(settings, _reply), *place, [name], out)
    [trace] = [json.loads(path.read_text()) for path in (out / name / "traces").iterdir()]
    return trace


def test_what_is_read_without_a_plan(one: Place, tmp_path: Path) -> None:
    library, [query] = one
    [ranking] = library.first_stage.search([query.text], 10)
    retrieved, answers = library.documents.ids(ranking.rows.tolist()), {}
    for name in ("chain-of-thought", "zero-shot", "gold-evidence"):
        trace = _trace(one, name, tmp_path)
        answers[name] = trace["prediction"]
        documents = query.relevant if name == "gold-evidence" else retrieved
        assert [sorted(step["read"]) for step in trace["steps"]] == [sorted(documents)]
    assert answers == {"chain-of-thought": "Leith", "zero-shot": "Fife", "gold-evidence": "Leith"}
    trace = _trace(one, "ircot", tmp_path)
    assert [step["sub_question"] for step in trace["steps"]] == [query.text, "Henry Baring was a banker."]
    assert (trace["prediction"], trace["ended"]["raw"]) == ("Leith", "So the answer is Fife, perhaps.")
    assert any(line.startswith("language model: calls 3, prompt tokens ") for line in lines(trace))


def test_the_profile_paper_has_the_papers_checkpoints_and_numbers() -> None:
    how = load("paper").settings.sunar
    assert (how.first_encoder, how.graph_encoder) == ("sparse:naver/splade_v2_max", "late:colbert-ir/colbertv2.0")
    assert (how.scorer, how.scorer_model) == ("cross-encoder", "nreimers/mmarco-mMiniLMv2-L12-H384-v1")
    assert (how.entailment, how.literal, how.cover_em, how.priority) == ("nli", True, "substring", "rescored")
    assert (how.first, how.neighbours, how.top, how.max_tokens) == (100, 10, 10, 1000)
    assert (how.initial, how.mer_documents, how.frontier) == ("sub-question", 0, "all"), "the paper's text"


def test_one_setting_stands_for_all_that_the_authors_code_does_otherwise(models: Models, tmp_path: Path) -> None:
    settings = load("paper", ["sunar.authors_code=true", "sunar.mer_documents=3"]).settings
    for section, values in AUTHORS_CODE.items():
        of_section = getattr(settings, section)
        assert {name: getattr(of_section, name) for name in values} == {**values} | (
            {"mer_documents": 3} if section == "sunar" else {}
        )
    paragraphs = [("Lima", "It lies in Peru."), ("Lima", "It is a bean."), ("Oslo", "It lies in Norway.")]
    write_lines(tmp_path / "one.jsonl", [musique_record("2hop__1", paragraphs, [1, 2])])
    corpus = built(tmp_path / "C", f"musique:{tmp_path / 'one.jsonl'}")
    for authors_code, text, rows in ((False, "Lima It is a bean.", (1, 2)), (True, "It is a bean.", (0, 2))):
        settings = parse({"sunar": {"authors_code": authors_code}})
        (query,) = open_queries(corpus, settings.sunar)
        stack = open_stack(settings, models, corpus, [query])
        assert stack.documents.texts([1]) == [text] and query.relevant_rows == rows
        assert list(query.relevant or ()) == corpus.ids(rows)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first_encoder": "sparse:S"}, "first_encoder is 'sparse:S', and the index is of bm25"),
        ({"graph_encoder": "late:C"}, "graph_encoder is 'late:C', and the graph .* is of minilm"),
        ({"neighbours": 11}, "sunar.neighbours is 11, and the graph .* stores 10 per document"),
    ],
)
def test_an_index_or_graph_of_another_encoder_is_refused(corpus: Path, models: Models, changes, message: str) -> None:
    documents, graph = BuiltCorpus.open(corpus), corpus.with_name("G")
    with pytest.raises(SettingsError, match=message):
        open_stack(_settings(**changes), models, documents, [], graph=graph)
    open_stack(_settings(first_encoder="bm25", graph_encoder="minilm"), models, documents, [], graph=graph)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        *((name, ("Edinburgh", "mer")) for name in ("react", "searchain")),
        *((name, ("Leith", "planner")) for name in ("react-first", "decomp-first", "decomp-rerank")),
    ],
)
def test_other_planners_search_read_and_end(one: Place, tmp_path: Path, name: str, answer: tuple[str, str]) -> None:
    trace = _trace(one, name, tmp_path)
    [step] = trace["steps"]
    assert (step["sub_question"], step["answer"]) == (SUB_QUESTION, "a sub-answer") and step["read"]
    assert (trace["prediction"], trace["prediction_from"]) == answer
    assert trace["planner"] == name.split("-")[0] and trace["ended"]["reason"] == "final answer"
    assert ("batches" in step) == (not name.endswith("first"))


def _quit(*arguments: object, code: int = 0) -> str:
    """Run a command of ``quit sunar``; return what it prints, or where it must fail what it says."""
    result = call_quit("sunar", *arguments, code=code)
    return result.err if code else result.out


def test_the_commands_run_show_and_compare(place: Place, corpus: Path, tmp_path: Path) -> None:
    first, out = place[1][0].query_id, tmp_path / "out"
    queries = write_lines(tmp_path / "q.jsonl", [{"id": first}, {"id": "mine", "text": "Where is Port Blair?"}])
    changes = ["run", "--corpus", corpus, "--queries", queries, "--set", "sunar.c=8", "--set", "sunar.b=4"]
    report = json.loads(_quit(*changes, "--out", out, "--variant", "read,rerank-read", "--json"))
    assert report["read"]["questions"] == 2 and report["read"]["judged"] == report["read"]["answered_for"] == 1
    again = _quit(*changes, "--out", out, "--variant", "read")
    assert "2 questions, 1 with answers, 1 with relevant documents" in again
    shown = _quit("trace", "mine", "--out", out)
    assert "== read" in shown and "== rerank-read" in shown and "Where is Port Blair?" in shown
    trace = json.loads(_quit("trace", "mine", "--out", out, "--variant", "read", "--json"))
    assert trace["read"]["query_id"] == "mine"
    both = "compare", out / "read", out / "rerank-read"
    assert "p, randomisation" in _quit(*both) and json.loads(_quit(*both, "--json"))["questions"] == 1
    assert "sunar.top (10, now 3)" in _quit(*changes, "--out", out, "--variant", "read", "--set", "sunar.top=3", code=7)
    _quit(*changes, "--out", tmp_path / "other", "--set", "sunar.cover_em=substring", "--variant", "read")
    message = _quit("compare", out / "read", tmp_path / "other" / "read", code=3)
    assert "differ in sunar.cover_em" in message


def test_a_run_file_is_the_first_stage(place: Place, corpus: Path, tmp_path: Path) -> None:
    first, second = (query.query_id for query in place[1])
    documents = place[0].documents.ids([7, 3, 20])
    source_id = "2hop__" + first.removeprefix("musique-2hop_")
    lines = [
        f"{source_id} Q0 {name} 1 {score} x" for name, score in zip([*documents, "gone"], (1, 3, 2, 9), strict=True)
    ]
    (tmp_path / "r.trec").write_text("\n".join([*lines, f"other Q0 {documents[0]} 1 1 x"]))
    run = ["run", "--corpus", corpus, "--first", tmp_path / "r.trec", "--out", tmp_path / "out", "--variant"]
    message = _quit(*run, "first", code=4)
    assert "asks sub-questions" in message and "--set sunar.initial=question" in message
    result = call_quit("sunar", *run, "first", "--set", "sunar.initial=question")
    for count in ("the corpus lacks: 1 of 4;", "does not ask: 1 of 2.", "without a ranking: 1 of 2;"):
        assert count in result.err
    _quit(*run, "read")
    for name in ("first", "read"):
        traces = json.loads(_quit("trace", first, "--out", tmp_path / "out", "--variant", name, "--json"))
        steps = [step["read"] for step in traces[name]["steps"]]
        assert steps == [[documents[1], documents[2], documents[0]]] * (2 if name == "first" else 1)
    nothing = json.loads(_quit("trace", second, "--out", tmp_path / "out", "--variant", "read", "--json"))
    assert nothing["read"]["evidence"] == []
    assert "not by both" in _quit(*run, "read", "--index", corpus, code=4)
    (tmp_path / "r.trec").write_text(f"q Q0 {documents[0]} 1 1 x")
    assert "for none of the questions: it has 'q'" in _quit(*run, "read", code=3)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("run --corpus nowhere", "nowhere"),
        ("trace q --out nowhere", "There is no run in nowhere"),
        ("compare nowhere nowhere", "nowhere holds no run"),
        ("run --corpus CORPUS --source 2wiki", "its sources: musique"),
        ("run --corpus CORPUS --kind 9hop", "its kinds: 2hop"),
    ],
)
def test_wrong_folders_and_names_are_said(corpus: Path, command: str, message: str) -> None:
    assert message in _quit(*(corpus if word == "CORPUS" else word for word in command.split()), code=3)
