"""Before spending: how many requests, tokens, hours and how much money a build will take (``quit plan``).

Token counts come from a sample of the questions, by each model's own tokenizer where it is on this machine, else four
characters per token; what a chat template puts around the turns (some four tokens each) is not counted. Costs are those
without a prefix cache: the most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from quit.engine.pipeline import Pipeline
from quit.engine.usage import totals
from quit.models.convergence_scored import TOKENS_A_CANDIDATE
from quit.models.generation.base import cache_key
from quit.models.generation.cache import GenerationCache
from quit.models.generation.meter import Usage
from quit.models.language_models import judge_prompt, language_reader, reader_prompts
from quit.models.prompting import CHARACTERS_A_TOKEN, load_prompt
from quit.models.protocols import Prompt
from quit.models.readers.llm import LLMReader
from quit.models.user_models import UserReader
from quit.settings import JudgeSettings, ReaderSettings
from quit.sources import read_sources
from quit.stages.collect import collect_stage
from quit.stages.labelling.design import planned_paths
from quit.stages.rank import published
from quit.stages.read import selected_hints
from quit.stages.stage import Context, Tables

JUDGED_A_QUESTION = 20.0
"""Distinct answers per question that a judge has to see, where no workspace tells: the paper does not say."""
COMPLETION_TOKENS = 6.0
"""Tokens per reply, where no workspace tells."""
SAMPLE = 200
"""Questions whose prompts are counted."""
MEMORY, MEMORY_A_QUESTION = 0.9e9, 20e3
"""Bytes of memory of the largest process, and more per question (docs/research/scale.md, measured)."""
DISK_A_QUESTION, DISK_A_REPLY = 6e3, 160
"""Bytes of tables per question, and of the generation cache per reply (docs/research/scale.md, measured)."""


@dataclass(frozen=True)
class Line:
    """The plan of one model in one role. Tokens and seconds are totals; ``None`` where nothing is known.

    ``cost``: in the currency of the prices, ``None`` where the model has none.

    ``requests``: replies needed; ``cached``: of these, estimated to be in the generation cache already. The token
    counts are of the others.
    """

    model: str
    role: str
    requests: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float | None
    cost: float | None


@dataclass(frozen=True)
class Plan:
    """What a build will ask. ``total``: the sums of the lines; ``notes`` say what was measured and what was assumed.

    ``remembered``: profile and settings (``key=value``) that are not given, but those of the workspace's last build.
    """

    questions: int
    passages: int
    lines: tuple[Line, ...]
    total: Line
    notes: tuple[str, ...]
    remembered: tuple[str, ...] = ()


def plan(pipeline: Pipeline, *, throughput: float | None = None) -> Plan:
    """Return the plan of what is still to do.

    ``throughput``: replies per second; the workspace's own measure where it is None.
    """
    questions, notes = planned_questions(pipeline)
    positions = np.unique(np.linspace(0, len(questions) - 1, SAMPLE, dtype=int)) if questions else ()
    planner = _Planner(
        pipeline,
        len(questions),
        [questions[position] for position in positions],
        throughput,
        totals(pipeline.workspace.path),
        notes,
        {run.key for run in pipeline.left_to_do},
    )
    lines = []
    for spec in pipeline.settings.replying_models:
        if spec.kind == "python":
            notes.append(f"{spec.name}: a class of your own, whose replies are not counted.")
        elif isinstance(spec, ReaderSettings):
            lines += planner.reader_lines(spec)
        else:
            lines += planner.judge_lines(spec)
        convergence = pipeline.settings.convergence
        if spec.kind != "python" and (convergence.method, convergence.language_model) == ("llm", spec.name):
            lines.append(planner.rank_line(spec))
    if not pipeline.settings.replying_models:
        notes.append("This profile asks no language model: it costs nothing but this machine's time.")
    design = pipeline.settings.passages
    passages = sum(design.count(len(question.hints)) for question in questions)
    if pipeline.is_current(pipeline.stage_run("enumerate")):
        passages = len(pipeline.workspace.read("passages", columns=["hints"]))
    elif not (design.is_full or design.is_given):
        notes.append("Passages: at most; sets of hints that are at two ends, and orders that are alike, count once.")
    if pipeline.strategy.in_turn:
        notes.append("labels.partial: at most; later labelers are asked only about passages still at label 1.")
    columns = {column.name: [getattr(line, column.name) for line in lines] for column in fields(Line)[2:]}
    sums: dict[str, Any] = {name: None if None in values else sum(values) for name, values in columns.items()}
    total = Line("total", "", **sums)
    memory = MEMORY + MEMORY_A_QUESTION * len(questions)
    disk = DISK_A_QUESTION * len(questions) + DISK_A_REPLY * total.requests
    notes.append(f"This machine needs about {memory / 1e9:.1f} GB of memory, and {disk / 1e9:.2f} GB of disk.")
    return Plan(len(questions), passages, tuple(lines), total, tuple(notes))


def planned_questions(pipeline: Pipeline) -> tuple[list[Prompt], list[str]]:
    """Return the questions that a build will ask about, with their hints, and how they are known, in a sentence."""
    if pipeline.is_current(pipeline.stage_run("rank")):
        table, ranked = pipeline.workspace.read("questions"), pipeline.workspace.read("ranked_hints")
        note = "Questions and hints: those the workspace's last build kept."
    else:
        tables = _collected(pipeline)
        table, hints = tables["questions"], tables["hints"]
        first = pc.less(hints.column("position"), pipeline.settings.passages.most_hints)  # none is valued yet
        ranked = hints.rename_columns({"rank": "source_rank", "position": "rank"}).append_column("selected", first)
        note = "Questions and hints: as collected; later stages will leave some of them out."
    hints_of = selected_hints(ranked)
    if pipeline.is_current(pipeline.stage_run("split")):  # near duplicates leave there
        question_ids = set(pipeline.workspace.read("splits").column("question_id").to_pylist())
        hints_of = {question_id: texts for question_id, texts in hints_of.items() if question_id in question_ids}
    rows = table.select(["question_id", "question"]).to_pylist()
    questions = [
        Prompt(row["question_id"], row["question"], tuple(hints_of[row["question_id"]]))
        for row in rows
        if row["question_id"] in hints_of
    ]
    return questions, [note]


def _collected(pipeline: Pipeline) -> Tables:
    context = Context({}, pipeline.settings, pipeline.models)
    return collect_stage.function(context, read_sources(pipeline.sources))


@dataclass(frozen=True)
class _Planner:
    """What a plan is made from: the sampled questions, and measurements; ``notes`` grows with each model; ``left``: the
    stage runs that are left to do."""

    pipeline: Pipeline
    questions: int
    sampled: Sequence[Prompt]
    throughput: float | None
    measured: Mapping[str, Usage]
    notes: list[str]
    left: Set[str]

    def reader_lines(self, spec: ReaderSettings) -> list[Line]:
        """Return what a reader is asked in the probe and when it reads."""
        count = self._counter(spec)
        prompt, probe = reader_prompts(spec)
        settings, scale = self.pipeline.settings, self.questions / len(self.sampled) if self.sampled else 0.0
        reader = language_reader(spec, settings)
        each = self._reply_tokens(spec, COMPLETION_TOKENS)
        lines = []
        for role, run, template, repetitions in (
            ("probe", f"probe:{spec.name}", probe, settings.probe.repetitions),
            ("read", f"read:{spec.name}", prompt, 1),
        ):
            if run not in self.left:
                lines.append(self._line(spec, role))
                continue
            requests = prompts = cached = 0
            for question in self.sampled:
                paths = planned_paths(settings.passages, len(question.hints)) if role == "read" else [()]
                requests += len(paths) * repetitions
                prompts += _tokens(question, paths, template, count) * repetitions
                cached += _cached_replies(reader, question, paths, repetitions, self.pipeline.models.cache)
            remaining = 1 - cached / requests if requests else 0.0
            line = self._line(
                spec,
                role,
                replies=round(requests * scale),
                cached=round(cached * scale),
                prompt=round(prompts * scale * remaining),
                completion=each * round(requests * scale) * remaining,
                remaining=remaining,
            )
            lines.append(line)
        return lines

    def judge_lines(self, spec: JudgeSettings) -> list[Line]:
        """Return what a judge is asked in the probe and about the answers."""
        pipeline = self.pipeline
        if not {run.partition(":")[0] for run in self.left} & {"probe", "judge"}:
            return [self._line(spec, role) for role in ("probe", "judge")]
        if {
            "judge",
            *(f"read:{reader.name}" for reader in pipeline.settings.readers),
        } <= pipeline.workspace.current().keys():
            verdicts = pipeline.workspace.read("verdicts")
            judged = pc.sum(pc.equal(verdicts.column("basis"), "model")).as_py() or 0
            rate = judged / max(1, len(verdicts.column("question_id").unique()))
            self.notes.append(f"{spec.name}: {rate:.1f} answers per question, as in the workspace's last build.")
        else:
            rate = JUDGED_A_QUESTION
            self.notes.append(f"{spec.name}: {rate:.0f} answers per question are assumed; not all is read yet.")
        count = self._counter(spec)
        frame = sum(count(text) for _, text in judge_prompt(spec).turns)
        mean = float(np.mean([count(question.question) for question in self.sampled])) if self.sampled else 0.0
        probed = self.questions * len(pipeline.settings.readers) * pipeline.settings.probe.repetitions
        lines = []
        for role, expected in (("probe", probed), ("judge", round(self.questions * rate))):
            runs = [run for run in pipeline.runs if run.stage.name == role]
            remaining = sum(run.key in self.left for run in runs)
            replies = round(expected * remaining / len(runs))
            prompts = round(replies * (frame + mean + 2 * COMPLETION_TOKENS))
            completion = self._reply_tokens(spec, 2) * replies
            line = self._line(spec, role, replies=replies, prompt=prompts, completion=completion)
            lines.append(line)
        self.notes.append(
            f"{spec.name}: at most; exact matches, NO ANSWER, repeated answers and kept replies cost nothing."
        )
        return lines

    def rank_line(self, spec: ReaderSettings | JudgeSettings) -> Line:
        """Return what a language model is asked about each hint and candidate, and for candidates, by ``rank``."""
        if "rank" not in self.left:
            return self._line(spec, "rank")
        settings, tables, count = self.pipeline.settings.convergence, _collected(self.pipeline), self._counter(spec)
        hints, written_count = tables["hints"].to_pylist(), settings.candidate_cap - 1
        templates = {name: load_prompt(name) for name in ("refers", "candidates")}
        frame = {
            name: sum(count(message["content"]) for message in each.messages(dict.fromkeys(each.placeholders, "")))
            for name, each in templates.items()
        }
        values = published(hints, tables["scores"], settings)
        unvalued = {hint["question_id"] for hint in hints if hint["hint_id"] not in values}
        wrong_counts = Counter(row["question_id"] for row in tables["candidates"].to_pylist() if not row["is_gold"])
        no_candidates = unvalued - wrong_counts.keys()
        questions = [row for row in tables["questions"].to_pylist() if row["question_id"] in no_candidates]
        pair_count = tokens = 0
        for hint in hints:
            if (name := hint["question_id"]) in unvalued:
                candidates = 1 + min(wrong_counts[name] or written_count, written_count)
                pair_count += candidates
                tokens += round(candidates * (frame["refers"] + count(hint["hint"]) + COMPLETION_TOKENS))
        tokens += sum(round(frame["candidates"] + count(row["question"]) + COMPLETION_TOKENS) for row in questions)
        completion = self._reply_tokens(spec, 2) * pair_count + TOKENS_A_CANDIDATE * written_count * len(questions)
        self.notes.append(f"{spec.name}, rank: at most; leaking hints, repeated pairs and kept replies cost nothing.")
        replies = pair_count + len(questions)
        return self._line(spec, "rank", replies=replies, prompt=tokens, completion=completion)

    def _reply_tokens(self, spec: ReaderSettings | JudgeSettings, answer: float) -> float:
        """Return the tokens of a reply: as measured, else those of an answer and all of the room for thoughts."""
        measured = self.measured.get(spec.name, Usage())
        if measured.requests:
            return measured.completion_tokens / measured.requests
        if spec.thinking_tokens:
            note = f"{spec.name}: {spec.thinking_tokens:,} tokens of thoughts per reply, the most, are assumed."
            self.notes.append(note)
        return answer + spec.thinking_tokens

    def _line(
        self,
        spec: ReaderSettings | JudgeSettings,
        role: str,
        *,
        replies: int = 0,
        cached: int = 0,
        prompt: int = 0,
        completion: float = 0.0,
        remaining: float = 1.0,
    ) -> Line:
        """Return a line with hours and costs; ``remaining``: share of the replies that the cache does not have."""
        measured = self.measured.get(spec.name, Usage())
        rate = self.throughput
        if not rate and measured.seconds:
            rate = measured.requests / measured.seconds
        seconds = replies * remaining / rate if rate else None
        return Line(
            model=spec.name,
            role=role,
            requests=replies,
            cached=cached,
            prompt_tokens=prompt,
            completion_tokens=round(completion),
            seconds=seconds if replies else 0.0,
            cost=self.pipeline.settings.cost(spec, prompt, 0, completion) if replies else 0.0,
        )

    def _counter(self, spec: ReaderSettings | JudgeSettings) -> Callable[[str], int]:
        try:
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(spec.model, local_files_only=True)
        except Exception:  # not on this machine, or no tokenizer of this name: an estimate will do
            note = f"Tokens: {CHARACTERS_A_TOKEN:g} characters each where a model's tokenizer is not on this machine."
            if note not in self.notes:
                self.notes.append(note)
            return lambda text: round(len(text) / CHARACTERS_A_TOKEN)
        return lambda text: len(tokenizer(text, add_special_tokens=False)["input_ids"])


def _tokens(question: Prompt, paths: Sequence[tuple[int, ...]], template: Any, count: Callable[[str], int]) -> int:
    """Return the tokens of a question's prompts."""
    fields = {"context": "", "question": question.question}
    messages = template.messages({name: fields[name] for name in template.placeholders})
    frame = sum(count(message["content"]) for message in messages)
    hints = [count(" " + hint) for hint in question.hints]
    return len(paths) * frame + sum(hints[position] for path in paths for position in path)


def _cached_replies(
    reader: LLMReader | UserReader,
    question: Prompt,
    paths: Sequence[tuple[int, ...]],
    repetitions: int,
    cache: GenerationCache,
) -> int:
    """Return how many of a reader's replies to a question's passages (``paths``) are in the cache."""
    requests = [
        reader.request(replace(question, hints=tuple(question.hints[position] for position in path)), sample)
        for sample in range(repetitions)
        for path in paths
    ]
    return len(cache.find([cache_key(reader.generator.identity, request) for request in requests]))
