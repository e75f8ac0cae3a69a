"""Every number of a run: defaults from the paper, a profile over them, ``--set key=value`` over that.

Each section is the settings of one stage; only the sections a stage reads are part of its fingerprint. Unknown keys are
refused with the nearest right name. See ``docs/reference/settings.md`` (generated from here).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from quit.errors import SettingsError, did_you_mean

PROFILES = Path(__file__).resolve().parent.parent / "profiles"


class Section(BaseModel):
    """One section: frozen, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Collect(Section):
    """Pooling of the sources' records (3.1.1)."""

    duplicates: Literal["pool", "keep_first", "keep_all"] = Field(
        "pool",
        description="The same question from several records: pool its hints, keep the first record, or keep all.",
    )


class Leakage(Section):
    """Answer leakage (3.1.2)."""

    mode: Literal["question", "hint"] = Field(
        "question",
        description="`question` (the paper) discards a leaking question; `hint` drops its leaking hints only.",
    )
    threshold: float = Field(0.5, ge=0, le=1, description="Equivalence probability from which a span leaks.")
    spans: bool = Field(True, description="Also check spans up to the answer's own length in words, beyond the paper.")
    screen: float = Field(
        0.4,
        ge=-1,
        le=1,
        description="Cosine of span and answer from which the equivalence model is asked; -1 asks it about every span.",
    )


class Convergence(Section):
    """Convergence and choice of the hints (3.1.2; TriviaHG)."""

    hints: int = Field(5, ge=1, le=7, description="Hints kept a question; 5 give 325 passages.")
    candidate_cap: int = Field(11, ge=2, description="Candidates that count: ten distractors and the gold answer.")
    prefer_source: bool = Field(True, description="Use the source's own convergence where it has one.")
    margin: float = Field(
        0.02,
        ge=0,
        description="Embedded scoring: a hint may refer to candidates within this of the gold answer's similarity.",
    )


class QuestionType(Section):
    """Question type (3.1.3)."""

    prefer_source: bool = Field(True, description="Use the source's own type where it has one.")


class Difficulty(Section):
    """Difficulty by reference-based retrieval complexity (3.1.3; Gabburo et al. 2024)."""

    top_k: int = Field(10, ge=1, description="Passages retrieved for a question.")
    answer_threshold: float = Field(0.5, ge=0, le=1, description="T_ans: score from which a passage holds the answer.")
    unrelated: float = Field(0.1, ge=-1, le=1, description="Cosine of passage and answer up to which s_i is 0.")
    telling: float = Field(
        0.6, ge=-1, le=1, description="Cosine of passage and answer from which s_i is 1; linear between."
    )
    medium_from: float = Field(0.55, ge=0, le=1, description="Difficulty from which the bin is `medium`.")
    hard_from: float = Field(0.7, ge=0, le=1, description="Difficulty from which the bin is `hard`.")


class Probe(Section):
    """Parametric answerability (3.1.4)."""

    repetitions: int = Field(3, ge=1, description="How often each reader answers each question without context.")


class Split(Section):
    """Train, dev and test (3.1.4)."""

    seed: str = Field("quit", min_length=1, description="Key of the hash that draws every question's place.")
    method: Literal["size", "share"] = Field(
        "size",
        description="`size` fills train and test up to their sizes, lowest draw first; `share` takes shares, which no later "
        "source can disturb.",
    )
    train_size: int = Field(5000, ge=0, description="Parametrically answerable questions in train.")
    test_size: int = Field(2000, ge=0, description="Other questions in test; the rest is dev.")
    train_share: float = Field(
        1.0, ge=0, le=1, description="With `share`: share of parametrically answerable questions in train."
    )
    test_share: float = Field(
        round(2000 / 3095, 4), ge=0, le=1, description="With `share`: share of the others in test; the rest is dev."
    )
    near_duplicate: float = Field(
        0.8, gt=0, le=1, description="Jaccard similarity of two questions' words from which they are near-identical."
    )
    pinned: str | None = Field(
        None,
        description="JSONL file of {content_key, split} from an earlier release: those questions keep their split.",
    )


class Labels(Section):
    """Reading and labelling the passages (3.2.2)."""

    max_new_tokens: int = Field(
        32, ge=1, description="Longest reply of an LLM reader, in tokens (embedded readers have none)."
    )
    temperature: float = Field(
        0.0, ge=0, description="Sampling temperature of an LLM reader; 0 is greedy (embedded readers always are)."
    )


class Judge(Section):
    """GPT-Eval (figure 3) or what stands in for it."""

    name: str = Field("equivalence", description="Name under which verdicts are stored.")
    kind: Literal["equivalence"] = Field("equivalence", description="`equivalence`: the equivalence model decides.")
    threshold: float = Field(0.5, ge=0, le=1, description="Probability from which an answer counts as correct.")


class Models(Section):
    """Which model stands behind each protocol."""

    encoder: Literal["minilm"] = Field("minilm", description="Texts to vectors.")
    equivalence: Literal["embedded"] = Field("embedded", description="Answer equivalence.")


class ReaderSettings(Section):
    """One reader. The first three labelers and the first three readers stand for the paper's six models."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", description="Name, used as key in every table and export.")
    role: Literal["labeler", "reader"] = Field(description="`labeler` decides labels; `reader` only evaluates.")
    kind: Literal["embedded"] = Field("embedded", description="`embedded`: a closed-set guesser over MiniLM.")
    model: str | None = Field(None, description="Which embedded reader; the name if not given.")


class Review(Section):
    """Human verification (3.2.3) and label update (3.2.4)."""

    splits: tuple[Literal["train", "dev", "test"], ...] = Field(
        ("dev", "test"), description="Splits whose questions people verify."
    )
    overlap: int = Field(1, ge=1, description="Annotators a question.")
    overlap_share: float = Field(
        1.0, gt=0, le=1, description="Share of the questions that get `overlap` annotators; the others get one."
    )
    adjudication: Literal["majority", "adjudicator"] = Field(
        "majority",
        description="Where annotators disagree: `majority` counts (a tie stays open), `adjudicator` asks the person named.",
    )
    adjudicator: str | None = Field(None, description="E-mail of the person whose verdict settles disagreements.")
    minimum: int = Field(1, ge=1, description="Annotators who must have judged an answer before their verdict counts.")
    removing_flags: tuple[Literal["leak", "gold_wrong", "ambiguous", "offensive"], ...] = Field(
        ("leak", "offensive"), description="Flags that take a question out of the dataset once they are agreed on."
    )
    controls: str | None = Field(
        None,
        description="JSONL file of {question_id, correct: [...], incorrect: [...]}: questions with known verdicts.",
    )
    control_share: float = Field(
        0.05, ge=0, lt=1, description="Share of the tasks that are control questions, as far as there are enough."
    )
    near_threshold: float = Field(
        0.15, gt=0, le=1, description="Distance from the judge's threshold within which a verdict counts as uncertain."
    )
    certain_weight: float = Field(
        0.05,
        ge=0,
        le=1,
        description="Weight of the passages of a certain verdict beside those of an uncertain one (1).",
    )
    title: str = Field("QUIT review", min_length=3, max_length=50, description="Title of the project.")
    port: int = Field(8080, ge=0, le=65535, description="Port of the local server; 0 takes a free one.")
    start_seconds: float = Field(240.0, gt=0, description="How long the local server may take to start.")
    page_tasks: int = Field(500, ge=1, description="Tasks a request.")
    timeout_seconds: float = Field(120.0, gt=0, description="How long one request may take.")
    retries: int = Field(3, ge=0, description="How often a request that failed on the server's side is tried again.")
    retry_seconds: float = Field(1.0, ge=0, description="Pause before the first new try; doubles each time.")
    connections: int = Field(2, ge=1, description="Requests at a time where a change has to be sent task by task.")
    reread_seconds: float = Field(
        60.0,
        ge=0,
        description="How far before the last pull's newest change a pull begins again (clocks, open writes).",
    )
    webhook_port: int = Field(8091, ge=0, le=65535, description="Port of the webhook receiver; 0 takes a free one.")
    webhook_bytes: int = Field(8_000_000, ge=1000, description="Largest event the receiver takes.")
    poll_seconds: float = Field(
        300.0, gt=0, description="How often the receiver pulls without having been told anything."
    )
    settle_seconds: float = Field(2.0, ge=0, description="How long the receiver waits after an event before it pulls.")


class Run(Section):
    """How a run is carried out. Nothing here can change what comes out."""

    shards: int | None = Field(None, ge=1, description="Parts a table; chosen by `shard_questions` if not given.")
    shard_questions: int = Field(64, ge=1, description="Questions a part, where `shards` is not given.")
    workers: int = Field(2, ge=1, description="Shards worked on at a time.")
    retries: int = Field(2, ge=0, description="How often a failed shard is tried again.")
    retry_seconds: float = Field(2.0, ge=0, description="Pause before the first new try; doubles each time.")
    lock_seconds: float = Field(3600.0, ge=0, description="How long to wait for another run on the same workspace.")


class Settings(Section):
    """The effective settings of a run, section by section."""

    collect: Collect = Collect()
    leakage: Leakage = Leakage()
    convergence: Convergence = Convergence()
    question_type: QuestionType = QuestionType()
    difficulty: Difficulty = Difficulty()
    probe: Probe = Probe()
    split: Split = Split()
    labels: Labels = Labels()
    judge: Judge = Judge()
    models: Models = Models()
    readers: tuple[ReaderSettings, ...] = ()
    review: Review = Review()
    run: Run = Run()

    @model_validator(mode="after")
    def _readers_have_distinct_names(self) -> Settings:
        names = [reader.name for reader in self.readers]
        if len(set(names)) < len(names):
            raise ValueError(f"readers: every reader needs a name of its own, got {', '.join(names)}")
        return self

    @model_validator(mode="after")
    def _an_adjudicator_is_named(self) -> Settings:
        if self.review.adjudication == "adjudicator" and not self.review.adjudicator:
            raise ValueError("review.adjudicator: adjudication = 'adjudicator' needs the e-mail of one")
        return self

    @property
    def labelers(self) -> tuple[ReaderSettings, ...]:
        """The readers whose answers decide labels, in profile order."""
        return tuple(reader for reader in self.readers if reader.role == "labeler")

    def subset(self, sections: Sequence[str]) -> dict[str, Any]:
        """Return the named sections as plain values, for a fingerprint."""
        whole = self.model_dump(mode="json")
        return {section: whole[section] for section in sections}


@dataclass(frozen=True)
class Loaded:
    """Settings together with where each value came from (``default``, ``profile NAME``, ``--set``)."""

    settings: Settings
    profile: str
    origins: dict[str, str]

    def rows(self) -> list[tuple[str, Any, str]]:
        """Return (key, value, origin) of every setting, in order."""
        return [
            (key, value, self.origins.get(key, "default"))
            for key, value in flatten(self.settings.model_dump(mode="json"))
        ]


def flatten(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return dotted keys and values of nested mappings; lists of tables are numbered (``readers.0.name``)."""
    flat: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat += flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
            for index, item in enumerate(value):
                flat += flatten(item, f"{prefix}{key}.{index}.")
        else:
            flat.append((prefix + key, value))
    return flat


def profile_names() -> list[str]:
    """Return the names of the profiles that come with the program."""
    return sorted(path.stem for path in PROFILES.glob("*.toml"))


def load(profile: str = "embedded", overrides: Sequence[str] = ()) -> Loaded:
    """Return the settings of a profile (a name, or the path of a TOML file) with ``key=value`` overrides.

    Raises :class:`SettingsError` for an unknown profile, key or value; the message names the nearest right one.
    """
    path = Path(profile) if profile.endswith(".toml") else PROFILES / f"{profile}.toml"
    if not path.is_file():
        raise SettingsError(f"There is no profile {profile!r}.{did_you_mean(profile, profile_names())}")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"The profile {path} is no TOML: {error}") from error
    values.pop("description", None)
    origins = {key: f"profile {path.stem}" for key, _ in flatten(values)}
    for override in overrides:
        key, separator, text = override.partition("=")
        if not separator or not key:
            raise SettingsError(f"--set {override!r} has no '='. Write it as --set labels.max_new_tokens=16.")
        _set(values, key.strip(), text.strip())
        origins[key.strip()] = "--set"
    return Loaded(parse(values), path.stem, origins)


def parse(values: Mapping[str, Any]) -> Settings:
    """Return validated settings. Raises :class:`SettingsError` that names the key and what it allows."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(problem) for problem in error.errors())) from error


def _set(values: dict[str, Any], key: str, text: str) -> None:
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text  # a bare word such as pool needs no quotes on a command line
    *path, last = key.split(".")
    place: Any = values
    for step in path:
        if isinstance(place, list):
            if not step.isdigit() or int(step) >= len(place):
                raise SettingsError(
                    f"--set {key}: there is no entry {step}; the list has {len(place)}, counted from 0."
                )
            place = place[int(step)]
        else:
            place = place.setdefault(step, {})
        if not isinstance(place, dict | list):
            raise SettingsError(f"--set {key}: {step} is a value, not a section.")
    if isinstance(place, list):
        raise SettingsError(
            f"--set {key}: {'.'.join(path)} is a list; name one entry and its key, such as readers.0.{last}."
        )
    place[last] = value


def _explain(problem: Mapping[str, Any]) -> str:
    path = [str(step) for step in problem["loc"]]
    key = ".".join(path)
    if problem["type"] == "extra_forbidden":
        return f"There is no setting {key!r}.{did_you_mean(path[-1], _known_keys(path[:-1]))}"
    shown = problem["input"] if isinstance(problem["input"], str | int | float | bool | None) else "..."
    return f"Setting {key!r} is {shown!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}."


def _known_keys(path: Sequence[str]) -> list[str]:
    model: type[BaseModel] = Settings
    for step in path:
        if step.isdigit():
            continue
        if step == "readers":
            model = ReaderSettings
        else:
            model = model.model_fields[step].annotation  # type: ignore[assignment]
    return list(model.model_fields)
