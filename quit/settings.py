"""Every number of a run: defaults from the paper, a profile over them, ``--set key=value`` over that.

Each section is the settings of one stage; only the sections a stage reads are part of its fingerprint. Unknown keys are
refused with the nearest right name. See ``docs/reference/settings.md`` (generated from here).
"""

from __future__ import annotations

import os
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
    method: Literal["learned", "similarity", "llm"] = Field(
        "learned",
        description="What scores hints whose source has neither convergence nor scores: the shipped model, plain similarity, or "
        "a language model, which writes missing candidates too.",
    )
    language_model: str | None = Field(
        None, description="With `llm`: name of the reader or judge of this profile whose language model is asked."
    )
    margin: float = Field(
        0.02,
        ge=0,
        description="With `similarity`: a hint may refer to candidates within this of the gold answer's similarity.",
    )
    candidate_equivalence: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Probability of equivalence to a gold answer from which an answer is not drawn as a candidate.",
    )


class QuestionType(Section):
    """Question type (3.1.3)."""

    prefer_source: bool = Field(True, description="Use the source's own type where it has one.")


class Difficulty(Section):
    """Difficulty by reference-based retrieval complexity (3.1.3; Gabburo et al. 2024)."""

    corpus: str = Field(
        "",
        description="Corpus that is searched: a JSONL file of {id, text, title?} or a folder of them; empty: the collection's "
        "own hints. Its content, not its path, is part of the fingerprint.",
    )
    top_k: int = Field(10, ge=1, description="Passages retrieved for a question.")
    depth: int = Field(100, ge=1, description="Passages that BM25 and the encoder each give to the fusion.")
    fusion_constant: int = Field(60, ge=0, description="Added to every rank in reciprocal rank fusion.")
    bm25_k1: float = Field(1.2, ge=0, description="BM25: how soon repetitions of a term stop counting.")
    bm25_b: float = Field(0.75, ge=0, le=1, description="BM25: how far long passages are held back.")
    answer_threshold: float = Field(0.5, ge=0, le=1, description="T_ans: score from which a passage holds the answer.")
    unrelated: float = Field(0.1, ge=-1, le=1, description="Cosine of passage and answer up to which s_i is 0.")
    telling: float = Field(
        0.6, ge=-1, le=1, description="Cosine of passage and answer from which s_i is 1; linear between."
    )
    medium_from: float = Field(0.55, ge=0, le=1, description="Difficulty from which the bin is `medium`.")
    hard_from: float = Field(0.7, ge=0, le=1, description="Difficulty from which the bin is `hard`.")


PLACES = ("difficulty.corpus",)
"""Settings that say where something lies: it may be moved, so its content is part of a fingerprint, not its path."""


class Probe(Section):
    """Parametric answerability (3.1.4)."""

    repetitions: int = Field(3, ge=1, description="How often each reader answers each question without context.")
    temperature: float = Field(
        0.0,
        ge=0,
        description="Sampling temperature of an LLM reader in the probe; 0 is greedy. Each repetition is asked.",
    )


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


class LanguageModel(Section):
    """How a language model is reached, and what decides its replies. Shared by readers and judge."""

    model: str | None = Field(None, description="The model: a hub name, a folder, or the name a server has for it.")
    revision: str = Field("", description="Revision, quantisation or whatever else tells two of its versions apart.")
    server: str | None = Field(None, description="Name of the entry of `servers` that serves it (kind `server`).")
    template_options: dict[str, Any] = Field(
        default_factory=dict, description="Options of its chat template, such as enable_thinking = false for Qwen 3."
    )
    extra: dict[str, Any] = Field(
        default_factory=dict,
        description="More fields of the request (kind `server`) or engine arguments (kind `vllm`), as they are.",
    )
    device: str = Field("cpu", description="Where kind `transformers` runs: cpu, cuda, cuda:1.")
    price_prompt: float = Field(0.0, ge=0, description="Price of a million prompt tokens, for `quit plan`.")
    price_cached: float | None = Field(
        None,
        ge=0,
        description="Price of a million prompt tokens served from a prefix cache; `price_prompt` if not given.",
    )
    price_completion: float = Field(0.0, ge=0, description="Price of a million completion tokens.")


class Judge(LanguageModel):
    """GPT-Eval (figure 3) or what stands in for it."""

    name: str = Field("equivalence", description="Name under which verdicts are stored.")
    kind: Literal["equivalence", "server", "vllm", "transformers"] = Field(
        "equivalence",
        description="`equivalence`: the equivalence model decides; else a language model does, and the equivalence model's "
        "verdicts are recorded beside it.",
    )
    threshold: float = Field(
        0.5, ge=0, le=1, description="Equivalence probability from which an answer counts as correct."
    )
    prompt: str = Field("judge", description="Its prompt: `judge` is the paper's figure 3, or a .txt file.")
    max_new_tokens: int = Field(8, ge=1, description="Longest reply, in tokens.")
    attempts: int = Field(3, ge=1, description="How often it is asked until its reply can be read as Yes or No.")
    constrained: bool = Field(False, description="Let a vLLM server allow nothing but Yes and No.")


class Models(Section):
    """Which model stands behind each protocol."""

    encoder: Literal["minilm"] = Field("minilm", description="Texts to vectors.")
    equivalence: Literal["embedded", "bem"] = Field(
        "embedded",
        description="Answer equivalence of leakage, judge and probe: `embedded` ships with the program, `bem` is the paper's.",
    )
    bem_checkpoint: str = Field(
        "kortukov/answer-equivalence-bem",
        min_length=1,
        description="BEM: a name on the Hugging Face hub, or a local folder.",
    )
    bem_revision: str = Field(
        "main", min_length=1, description="BEM: the hub's revision; name a commit, for a branch may move on."
    )
    bem_device: Literal["auto", "cpu", "cuda"] = Field("auto", description="BEM: `auto` is a GPU where there is one.")


class ReaderSettings(LanguageModel):
    """One reader. The first three labelers and the first three readers stand for the paper's six models."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", description="Name, used as key in every table and export.")
    role: Literal["labeler", "reader"] = Field(description="`labeler` decides labels; `reader` only evaluates.")
    kind: Literal["embedded", "server", "vllm", "transformers"] = Field(
        "embedded",
        description="`embedded`: a closed-set guesser over MiniLM; `server`: an OpenAI-compatible server; `vllm`: vLLM in this "
        "process; `transformers`: in this process, CPU or GPU.",
    )
    model: str | None = Field(
        None, description="The model, as its kind names it; of an embedded reader, its name if not given."
    )
    prompt: str = Field("reader", description="Prompt with context: `reader` is the paper's figure 8, or a .txt file.")
    probe_prompt: str = Field("probe", description="Prompt without context, for the parametric probe, or a .txt file.")


class ServerSettings(Section):
    """An OpenAI-compatible server, and manners towards it. Nothing here can change what comes out, save `concurrency`:
    a server's greedy replies may depend on what shares their batch."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", description="Name that readers and judge refer to.")
    base_urls: tuple[str, ...] = Field((), description="Base URLs such as http://127.0.0.1:8000/v1, one a replica.")
    base_url_env: str | None = Field(None, description="Environment variable of base URLs, separated by commas.")
    api_key_env: str | None = Field(None, description="Environment variable of its API key.")
    api_key_needed: bool = Field(True, description="Whether to stop where `api_key_env` is named and not set.")
    flavour: Literal["vllm", "openai"] = Field("vllm", description="`openai` leaves out what only vLLM understands.")
    concurrency: int = Field(
        32, ge=1, description="Requests in flight a replica, at most; fewer when it is overloaded."
    )
    requests_per_minute: float = Field(0, ge=0, description="Budget a replica; 0 is none.")
    tokens_per_minute: float = Field(0, ge=0, description="Budget a replica, prompt and reply; 0 is none.")
    timeout_seconds: float = Field(120, gt=0, description="Longest wait for one reply.")
    connect_seconds: float = Field(10, gt=0, description="Longest wait for a connection.")
    attempts: int = Field(8, ge=1, description="Attempts at one request on 429, 5xx, timeouts and unreadable replies.")
    backoff_seconds: float = Field(0.5, gt=0, description="Pause after the first failed attempt; doubles, with jitter.")
    backoff_cap_seconds: float = Field(30, gt=0, description="Longest such pause.")
    retry_after_cap_seconds: float = Field(300, ge=0, description="Longest Retry-After that is honoured.")
    empty_retries: int = Field(1, ge=0, description="How often an empty reply is asked for again before it counts.")
    circuit_failures: int = Field(5, ge=1, description="Failed connections in a row after which the server is gone.")
    patience_seconds: float = Field(60, ge=0, description="How long to wait for a server that is gone to come back.")

    def urls(self) -> list[str]:
        """Return the replicas' base URLs. Raises :class:`SettingsError` where there is none."""
        urls = list(self.base_urls)
        if self.base_url_env:
            urls = [each.strip() for each in os.environ.get(self.base_url_env, "").split(",") if each.strip()] or urls
        if not urls:
            where = f"set {self.base_url_env}, or " if self.base_url_env else ""
            raise SettingsError(f"Server {self.name!r} has no address: {where}give base_urls in the profile.")
        for url in urls:
            if not url.startswith(("http://", "https://")):
                raise SettingsError(
                    f"Server {self.name!r}: {url!r} is no address; write it as http://127.0.0.1:8000/v1."
                )
        return urls


class Run(Section):
    """How a run is carried out. Nothing here can change what comes out."""

    shards: int | None = Field(None, ge=1, description="Parts a table; chosen by `shard_questions` if not given.")
    shard_questions: int = Field(64, ge=1, description="Questions a part, where `shards` is not given.")
    workers: int = Field(2, ge=1, description="Shards worked on at a time.")
    retries: int = Field(2, ge=0, description="How often a failed shard is tried again.")
    retry_seconds: float = Field(2.0, ge=0, description="Pause before the first new try; doubles each time.")
    lock_seconds: float = Field(3600.0, ge=0, description="How long to wait for another run on the same workspace.")
    generation_cache: bool = Field(True, description="Keep every LLM reply, for this and all later runs.")


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
    servers: tuple[ServerSettings, ...] = ()
    run: Run = Run()

    @model_validator(mode="after")
    def _names_fit_together(self) -> Settings:
        for what, names in (
            ("reader", [reader.name for reader in self.readers]),
            ("server", [server.name for server in self.servers]),
        ):
            if len(set(names)) < len(names):
                raise ValueError(f"{what}s: every {what} needs a name of its own, got {', '.join(names)}")
        if self.convergence.method == "llm":
            asked = {one.name for one in (*self.readers, self.judge) if one.kind not in ("embedded", "equivalence")}
            if self.convergence.language_model not in asked:
                names = ", ".join(sorted(asked)) or "none in this profile"
                raise ValueError(
                    f"convergence.language_model must name a reader or judge that is a language model: {names}"
                )
        known = [server.name for server in self.servers]
        for used in (*self.readers, self.judge):
            if used.kind in ("embedded", "equivalence"):
                continue
            if not used.model:
                raise ValueError(f"{used.name}: kind {used.kind!r} needs a model")
            if used.kind == "server" and used.server not in known:
                raise ValueError(
                    f"{used.name}: server {used.server!r} is not among servers ({', '.join(known) or 'none'})"
                )
        return self

    def language_model(self, name: str) -> ReaderSettings | Judge:
        """Return the reader or judge of that name."""
        return next(one for one in (*self.readers, self.judge) if one.name == name)

    def server(self, name: str) -> ServerSettings:
        """Return a server by name."""
        return next(server for server in self.servers if server.name == name)

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
        if step in ("readers", "servers"):
            model = ReaderSettings if step == "readers" else ServerSettings
        else:
            model = model.model_fields[step].annotation  # type: ignore[assignment]
    return list(model.model_fields)
