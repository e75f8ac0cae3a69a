"""A plan's counts against the prompts, tokenised by the model's tokenizer."""

import json
from pathlib import Path

import pytest

from quit.engine.pipeline import Pipeline
from quit.engine.workspace import Workspace
from quit.models.language_models import reader_prompts
from quit.operations.plan import plan
from quit.settings import parse
from quit.sources import parse_source
from quit.stages.labelling.passages import permutations
from tests.building import carry_out
from tests.paths import starter_file
from tests.running import call_quit
from tests.servers.builds import served
from tests.servers.checkpoints import checkpoint
from tests.servers.rude import RudeServer

QUESTIONS = 2
ABSENT = "http://127.0.0.1:9/v1"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return starter_file(tmp_path_factory.mktemp("plan") / "two.jsonl", 1, 1 + 2 * QUESTIONS, 2)


def _pipeline(source: Path, folder: Path, model: str, **reader) -> Pipeline:
    sections = served(ABSENT, "r", reader={"model": model, **reader})
    sections["readers"].append({"name": "minilm-vector", "role": "reader"})
    return Pipeline(Workspace(folder / "W"), parse(sections), [parse_source(f"jsonl:{source}")])


def test_tokens_are_those_of_the_prompts(source: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    model = checkpoint("llama", 3)
    pipeline = _pipeline(source, tmp_path, str(model))
    lines = {line.role: line for line in plan(pipeline).lines}
    tokenizer = AutoTokenizer.from_pretrained(model)
    template, _ = reader_prompts(pipeline.settings.readers[0])
    prompts = []
    for line in source.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for passage in sorted(permutations(5)):
            context = " ".join(row["hints"][index] for index in passage)
            messages = template.messages({"context": context, "question": row["question"]})
            prompts.append(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))
    assert lines["read"].requests == 325 * QUESTIONS == len(prompts)
    assert lines["probe"].requests == 3 * QUESTIONS
    assert lines["read"].prompt_tokens == pytest.approx(sum(map(len, prompts)), rel=0.1)


def test_costs_by_hand(source: Path, tmp_path: Path) -> None:
    prices = {"price_prompt": 2.0, "price_cached": 0.5, "price_completion": 10.0}
    costs = plan(_pipeline(source, tmp_path, "no/model", **prices), throughput=10)
    read = next(line for line in costs.lines if line.role == "read")
    assert read.cost == pytest.approx((read.prompt_tokens * 2.0 + read.completion_tokens * 10.0) / 1e6, rel=1e-3)
    assert read.seconds == pytest.approx(325 * QUESTIONS / 10)
    assert any("4 characters" in note for note in costs.notes)
    assert any("needs about 0.9 GB of memory" in note for note in costs.notes)


@pytest.mark.parametrize(
    ("more", "top"),
    [
        ((), "As the last build: --profile embedded, --questions 1, --set judge.threshold=0.6; --questions 0 for all"),
        (("--questions", "2"), "As the last build: --profile embedded, --set judge.threshold=0.6"),
        (("-p", "embedded", "--set", "judge.threshold=0.7"), "As the last build: --questions 1; --questions 0 for all"),
        (("-p", "embedded", "--set", "judge.threshold=0.7", "--questions", "0"), "2 questions, 650 passages"),
        (("-p", "embedded", "--set", "collect.questions=0"), "2 questions, 650 passages"),
    ],
)
def test_a_plan_says_first_what_it_takes_from_the_last_build(source, tmp_path, more, top) -> None:
    overrides = ["collect.questions=1", "judge.threshold=0.6"]
    opened = Workspace.create(tmp_path / "W")
    opened.set_build({"sources": [f"jsonl:{source}"], "profile": "embedded", "overrides": overrides})
    assert call_quit("plan", "-w", str(tmp_path / "W"), *more).out.splitlines()[0] == top


def test_a_model_without_prices_has_no_cost_and_the_total_says_so(source: Path, tmp_path: Path) -> None:
    costs = plan(_pipeline(source, tmp_path, "no/model"))
    assert [(line.cost, line.seconds) for line in costs.lines] == [(None, None)] * 2
    assert (costs.total.cost, costs.total.seconds) == (None, None)
    assert costs.total.requests == sum(line.requests for line in costs.lines) == (325 + 3) * QUESTIONS
    free = plan(_pipeline(source, tmp_path, "no/model", price_prompt=0.0), throughput=2)
    assert (free.total.cost, free.total.seconds) == (0.0, (325 + 3) * QUESTIONS / 2)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("-s S -p paper", 4, "models.bem_revision"),
        ("-s S -p paper --set leakage.method=full", 4, "difficulty.corpus"),
        ("-s S -p paper --set leakage.method=full --set difficulty.corpus=absent.jsonl", 3, "absent.jsonl"),
        ("mine.jsonl", 4, "Did you mean --source mine.jsonl?"),
        ("", 3, "at least one source (--source, sources=): starter"),
    ],
)
def test_what_a_build_refuses_a_plan_refuses(words: str, code: int, message: str, source: Path, tmp_path: Path) -> None:
    arguments = [f"jsonl:{source}" if word == "S" else word for word in words.split()]
    build, plan = (call_quit(command, "-w", tmp_path / "W", *arguments, code=code) for command in ("build", "plan"))
    assert message in plan.err
    assert code == 3 or not (tmp_path / "W").exists()
    assert plan.err.splitlines()[-1] == build.err.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("has_candidates", [True, False])
def test_a_language_model_that_values_hints_is_planned_too(tmp_path: Path, monkeypatch, has_candidates: bool) -> None:
    """A plan against what the build then sends: pairs of hint and candidate, and requests for candidates."""
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    rows = [{"question": f"Which city is number {n}?", "answers": [f"the old harbour of Paris {n}"]} for n in range(3)]
    for n, row in enumerate(rows):
        row |= {"id": f"q{n}", "hints": [f"It has {word} {n} bridges." for word in ("old", "long", "red")]}
        row |= {"candidates": [f"the old harbour of Oslo {n}", f"the bridge over Tiber {n}"]} if has_candidates else {}
    source = tmp_path / "s.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def reply(payload: dict) -> str:
        text = payload["messages"][-1]["content"]
        return "\n".join(f"the {name} of the town" for name in "ABCD") if "wrong" in text else "Yes"

    with RudeServer(reply=reply) as server:
        how = {"method": "llm", "language_model": "r", "candidate_cap": 5}
        sections = served(server.base_url, "r", convergence=how, passages={"hints": 2}, split={"method": "share"})
        pipeline = Pipeline(Workspace.create(tmp_path / "W"), parse(sections), [parse_source(f"jsonl:{source}")])
        (line,) = [line for line in plan(pipeline).lines if line.role == "rank"]
        carry_out(pipeline, "collect", "filter", "rank")
        assert line.requests == len(server.requests) == (3 * 3 * 3 if has_candidates else 3 * 3 * 5 + 3)
        sent = sum(len(message["content"]) for request in server.requests for message in request.payload["messages"])
        assert line.prompt_tokens == pytest.approx(sent / 4, rel=0.1)
        assert [line.requests for line in plan(pipeline).lines if line.role == "rank"] == [0]
