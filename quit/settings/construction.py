"""Settings of the stages from collecting to labelling, and of a run."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from quit.settings.runner import ray_address
from quit.settings.section import IN_IDENTITIES, File, Section

MAX_HINTS = 36
"""Hints of a question that make passages, at most: a permutation names each by a digit or letter."""
MAX_GIVEN = 1000
"""Given passages per question, at most."""
MAX_SETS = 2**19
"""Sets of a question's hints of which extremes are chosen, at most."""
MAX_PASSAGES = 2**15 - 1
"""Passages per question, at most: a reader's replies to them are numbered in 16 bits."""


class Collect(Section):
    """Pooling of the sources' records (3.1.1)."""

    duplicates: Literal["pool", "keep_first", "keep_all"] = "pool"
    """The same question from several records: pool its hints, keep the first record, or keep all."""
    questions: int | None = Field(None, ge=0)
    """Take only the first N usable questions of all sources together, before the filter; the others are listed in
    `rejects`. 0, or not set: all. `quit build --questions N` sets it."""
    choose: Literal["first", "convergences"] = "first"
    """With `questions`: the first ones, or those whose hints have the largest numbers of distinct convergences."""
    candidates: int = Field(0, ge=0)
    """Leave out a question with a hint that its source scored against fewer distinct candidates, gold answer included.
    0: none."""
    false_hints: bool = True
    """Take questions with a hint that, by its source's scores, does not fit the gold answer (its convergence is 0)."""

    @field_validator("questions")
    @classmethod
    def _zero_is_all(cls, value: int | None) -> int | None:
        return value or None


class Leakage(Section):
    """Answer leakage (3.1.2)."""

    method: Literal["full", "bem"] = "full"
    """`bem` is the paper's: the equivalence model judges every word of a hint that is not a stop word against each
    answer, and nothing else counts. `full` is ours: lexical rules, spans, containment, and the model where span and
    answer are near; `contained`, `spans` and `screen` are its alone."""
    mode: Literal["question", "hint"] = "question"
    """`question` (the paper) discards a leaking question; `hint` drops its leaking hints only."""
    threshold: float = Field(0.5, ge=0, le=1)
    """Equivalence probability from which a word or span leaks."""
    contained: bool = True
    """With `full`: a gold answer that occurs in a hint, or across two, as letters leaks too (`Ra` in `portrayed`):
    table 1's answer containment is counted so here. An accepted answer leaks by whole words only."""
    spans: bool = True
    """With `full`: also check spans up to the answer's own length in words."""
    screen: float = Field(0.4, ge=-1, le=1)
    """With `full`: cosine of span and answer from which the equivalence model is asked; -1 asks it about every span."""


class Convergence(Section):
    """Convergence and choice of the hints (3.1.2; TriviaHG)."""

    candidate_cap: int = Field(11, ge=2)
    """Candidates that count: ten distractors and the gold answer."""
    prefer_source: bool | Literal["scores"] = True
    """Use the source's own convergence where it has one, else that of its scores; `scores`: that of its scores alone,
    of `candidate_cap` candidates; false: neither."""
    method: Literal["learned", "llm"] = "learned"
    """What scores hints whose source has neither convergence nor scores: the shipped model, or a language model, which
    writes missing candidates too."""
    language_model: str | None = None
    """With `llm`: name of the reader or judge of this profile whose language model is asked."""


class PassageDesign(Section):
    """Which ordered selections of a question's hints are its passages (3.2.1). QUIT takes all of five hints: 325."""

    hints: Annotated[int, Field(ge=1, le=36)] | Literal["all", "given"] = 5
    """Hints of highest convergence that make passages; a question with fewer is left out. `all`: every hint (36 at
    most) of a question that has as many as the largest of `sizes`. `given`: passages are those of the sources, one by
    one; a build sets it where records have passages, and leaves the other settings of passages aside."""
    sizes: tuple[Annotated[int, Field(ge=1, le=36)], ...] = (1, 2, 3, 4, 5)
    """Numbers of hints in a passage."""
    orders: tuple[Literal["all", "source", "ascending", "descending"], ...] = ("all",)
    """Orders of the hints in a passage: `all`, or some of `source` (as in the source), `ascending` and `descending`
    (by convergence)."""
    extremes: int = Field(0, ge=0)
    """Keep only the N sets of hints with the lowest and the N with the highest mean of each of `by`; 0 keeps all."""
    by: tuple[Literal["convergence", "cosine"], ...] = ("convergence",)
    """With `extremes`: mean convergence of the hints, or mean cosine of question and hint."""

    @model_validator(mode="before")
    @classmethod
    def _given_are_single(cls, values: Any) -> Any:
        is_given = isinstance(values, dict) and values.get("hints") == "given"
        return {"hints": "given", "sizes": (1,)} if is_given else values

    @field_validator("sizes", "orders", "by", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return [value] if isinstance(value, str | int) else value

    @field_validator("sizes", "orders", "by")
    @classmethod
    def _once_each(cls, value: tuple[object, ...]) -> tuple[object, ...]:
        if not value or len({*value}) < len(value) or {"all"} < {*value}:
            raise ValueError("name at least one, none twice, and `all` alone")
        return value

    @model_validator(mode="after")
    def _has_passages(self) -> PassageDesign:
        if isinstance(self.hints, int):
            self.check(self.hints)
        return self

    @property
    def most_hints(self) -> int:
        """How many hints of a question make passages, at most."""
        return self.hints if isinstance(self.hints, int) else MAX_GIVEN if self.is_given else MAX_HINTS

    @property
    def is_given(self) -> bool:
        """Whether passages are those of the sources."""
        return self.hints == "given"

    @property
    def needed_hints(self) -> int:
        """How many hints a question must have."""
        return self.hints if isinstance(self.hints, int) else max(self.sizes)

    @property
    def is_full(self) -> bool:
        """Whether these are all ordered selections of as many hints of each question."""
        every = self.all_orders and not self.extremes and isinstance(self.hints, int)
        return every and {*range(1, self.most_hints + 1)} <= {*self.sizes}

    @property
    def all_orders(self) -> bool:
        """Whether a set of hints makes a passage in each order."""
        return self.orders[0] == "all"

    @property
    def words(self) -> str:
        """Which passages a question has, in words."""
        if self.is_full:
            return "every ordered selection of a question's hints"
        if self.is_given:
            return "those given with the question"
        *others, last = (str(size) for size in sorted(self.sizes) if size <= self.most_hints)
        sizes = f"{', '.join(others)} or {last}" if others else last
        orders = "every order" if self.all_orders else f"{' and '.join(self.orders)} order"
        ends = f"the {self.extremes} with the lowest and the {self.extremes} with the highest mean "
        extremes = f"; of these sets of hints {ends}{' and '.join(self.by)}" if self.extremes else ""
        return f"{sizes} of a question's hints, in {orders}{extremes}"

    def count(self, n: int) -> int:
        """Return how many passages a question of ``n`` hints has, at most."""
        return sum(self._counts(n))

    def check(self, n: int) -> None:
        """Raise ``ValueError`` where a question of ``n`` hints has no passage, more than :data:`MAX_PASSAGES`, or more
        than :data:`MAX_SETS` sets to choose extremes from."""
        counts = self._counts(n)
        sets = sum(math.comb(n, size) for size in self.sizes)
        if self.extremes and sets > MAX_SETS:
            raise ValueError(
                f"{n} hints have {sets:,} sets to choose from; at most {MAX_SETS:,} are possible: change "
                "passages.hints or sizes"
            )
        terms = f"{' + '.join(f'{count:,}' for count in counts)} = " if len(counts) > 1 else ""
        if not 0 < sum(counts) <= MAX_PASSAGES:
            raise ValueError(
                f"{n} hints make {terms}{sum(counts):,} passages; from 1 to {MAX_PASSAGES:,} are possible: change "
                "passages.hints, sizes or orders"
            )

    def _counts(self, n: int) -> list[int]:
        """Return the passages of ``n`` hints by size, at most: with extremes, of the largest sets to be chosen."""
        counts, sets_left = [], 2 * self.extremes * len(self.by) if self.extremes else None
        for size in sorted((size for size in self.sizes if size <= n), reverse=True):
            sets = math.comb(n, size) if sets_left is None else min(sets_left, math.comb(n, size))
            sets_left = None if sets_left is None else sets_left - sets
            counts.append(sets * (math.factorial(size) if self.all_orders else len(self.orders) if size > 1 else 1))
        return counts[::-1]


class QuestionTypeSettings(Section):
    """Question type (3.1.3): by our classifier, where the paper takes HintEval's."""

    prefer_source: bool = True
    """Use the source's own type where it has one."""


class Difficulty(Section):
    """Difficulty by reference-based retrieval complexity (3.1.3; Gabburo et al. 2024)."""

    corpus: Annotated[str, File(), IN_IDENTITIES] = ""  # its content, as it may be moved
    """Corpus that is searched: a JSONL file of {id, text, title?} or a folder of them; empty: the collection's own
    hints. Its content, not its path, is part of the fingerprint."""
    counts: Literal["nearness", "containment"] = "nearness"
    """What makes a retrieved passage hold the answer. `containment` is the paper's: it contains the answer as whole
    words; needs `corpus`, because hints are chosen not to contain it. `nearness` is ours: it contains the answer or is
    near it by cosine."""
    encoder: Literal["minilm", "all-MiniLM-L6-v2"] = "minilm"
    """`minilm`: whole numbers, the same bits on every processor; `all-MiniLM-L6-v2`: the published model's vectors, by
    sentence-transformers, whose last bits differ."""
    top_k: int = Field(10, ge=1)
    """Passages retrieved for a question."""
    answer_threshold: float = Field(0.5, ge=0, le=1)
    """T_ans: s_i from which a passage is near the answer."""


class Probe(Section):
    """Parametric answerability (3.1.4)."""

    repetitions: int = Field(3, ge=1)
    """How often each reader answers each question without context."""
    temperature: float = Field(0.0, ge=0)
    """Sampling temperature of an LLM reader in the probe, with the repetition's number as seed; 0 is greedy, and then
    repetitions differ only as far as a server does. The paper names none; profile `paper` takes 0.7."""


class Split(Section):
    """Train, dev and test (3.1.4)."""

    seed: str = Field("quit", min_length=1)
    """Key of the hash that draws every question's place."""
    method: Literal["size", "share"] = "size"
    """`size` fills train and test up to their sizes, lowest draw first; `share` takes shares, which no later source can
    disturb."""
    train_size: int = Field(5000, ge=0)
    """With `size`: questions in train (see `train`)."""
    test_size: int = Field(2000, ge=0)
    """With `size`: other questions in test; the rest is dev."""
    train_share: float = Field(1.0, ge=0, le=1)
    """With `share`: share of the questions that `train` names in train; below 1 with `any`."""
    test_share: float = Field(round(2000 / 3095, 4), ge=0, le=1)
    """With `share`: share of the others in test; the rest is dev."""
    near_duplicate: float = Field(0.8, gt=0, le=1)
    """Jaccard similarity of two questions' words from which they are near-identical."""
    train: Literal["parametric", "any"] = "parametric"
    """Which questions train is drawn from. `parametric` (the paper): those that a reader answers without hints, and dev
    and test from the others. `any`: train, test and dev are drawn from all questions, so that they are of one kind;
    sizes and shares then count all questions, and `test_share` those that are not in train."""
    pinned: Annotated[str | None, File()] = None
    """Folder of an earlier release: its questions keep their split."""


class Labels(Section):
    """Reading and labelling the passages (3.2.2)."""

    max_new_tokens: int = Field(32, ge=1)
    """Longest reply of an LLM reader, in tokens (embedded readers have none)."""
    temperature: float = Field(0.0, ge=0)
    """Sampling temperature of an LLM reader; 0 is greedy (embedded readers always are)."""
    sentences: Annotated[Literal["drop", "judge"], IN_IDENTITIES] = "drop"  # in that of a language model
    """What becomes of an LLM reader's reply that is a sentence, cut at the token limit or not: `drop` makes it NO
    ANSWER, for the prompt (figure 8) forbids sentences; `judge` gives the whole sentence to the judge, and one that it
    accepts is a valid answer. A noun phrase is an answer either way, also a cut one."""
    partial: Annotated[Literal["off", "exact"], IN_IDENTITIES] = "off"  # in the runs that it changes
    """Which passages the labelers are asked about. `off` (the paper): each labeler about every passage. `exact`: one
    labeler after the other in the order of the profile, each only about passages that are still at label 1; the labels
    are the same. Readers that are not labelers are always asked about every passage."""


class RunSettings(Section):
    """How a run works; nothing here changes the results."""

    shards: int | None = Field(None, ge=1)
    """Parts per table; chosen by `shard_questions` if not given."""
    shard_questions: int = Field(64, ge=1)
    """Questions per part, where `shards` is not given; sixteen times as many after `judge`."""
    workers: int = Field(2, ge=1)
    """Shards worked on at a time, of each reader."""
    parallel_readers: bool = False
    """Run all readers in parallel, each with its own server. Otherwise one reader runs at a time, in the probe as when
    passages are read."""
    runner: str = "threads"
    """Where shards are worked on: `threads` of this process, `ray` (processes, started here), `ray:auto` or
    `ray:HOST:PORT` (a cluster this machine belongs to), `ray://HOST:10001` (one it does not). Servers are asked by
    threads of this process in any case."""
    gpus: float = Field(0, ge=0)
    """GPUs that a shard of `read` or `judge`, or a portion of requests, reserves on Ray."""
    lost_workers: int = Field(3, ge=0)
    """How often a shard or portion of requests goes to another worker when its own is lost."""
    cluster_seconds: float = Field(20.0, gt=0)
    """How long to wait for an answer of a cluster."""
    retries: int = Field(2, ge=0)
    """How often a shard is tried again after a fault of this system; servers have `attempts`."""
    retry_seconds: float = Field(2.0, ge=0)
    """Pause before the first new try; doubles each time."""
    lock_seconds: float = Field(3600.0, ge=0)
    """How long to wait for another run on the same workspace."""
    max_cost: float | None = Field(None, ge=0)
    """What requests to servers may cost in all builds of the workspace together, in the currency of the prices
    (`price_prompt`, ...). No request is sent that might pass it."""
    max_tokens: int | None = Field(None, ge=0)
    """The same for their tokens, of prompts and replies."""
    max_refused: float = Field(0.02, ge=0, le=1)
    """Share of a stage's prompts that a server may refuse, for their content or length, until the build stops; five are
    always allowed. A refused prompt's reply is `NO ANSWER`, as is one at which the server always
    fails while it answers others."""

    @field_validator("runner")
    @classmethod
    def _names_a_place(cls, text: str) -> str:
        ray_address(text)
        return text
