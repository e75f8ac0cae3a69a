"""All sections together."""

from __future__ import annotations

from pydantic import Field, model_validator

from quit.settings.card import Card
from quit.settings.construction import (
    Collect,
    Convergence,
    Difficulty,
    Labels,
    Leakage,
    PassageDesign,
    Probe,
    QuestionTypeSettings,
    RunSettings,
    Split,
)
from quit.settings.models import (
    LANGUAGE_MODELS,
    JudgeSettings,
    LanguageModel,
    ModelSettings,
    ReaderSettings,
    ServerSettings,
)
from quit.settings.review import Review
from quit.settings.schedules import Schedule, ServeSettings
from quit.settings.section import AnySection, Section


class ReleaseSettings(Section):
    """Quality gates of a release (`quit release check`)."""

    human_coverage: float = Field(0.0, ge=0, le=1)
    """Share of the distinct answers in the splits under review (`review.splits`) that people must have judged."""
    examples: int = Field(5, ge=1)
    """Examples that a failed gate names."""
    memory_mb: int = Field(1024, ge=64)
    """Memory that DuckDB may take in checks and comparisons, in MB."""


class Settings(Section):
    """The effective settings of a run, section by section. The keys of QA systems' sections are checked where these
    are used (:mod:`quit.qa.settings`)."""

    collect: Collect = Collect()
    leakage: Leakage = Leakage()
    convergence: Convergence = Convergence()
    passages: PassageDesign = PassageDesign()
    question_type: QuestionTypeSettings = QuestionTypeSettings()
    difficulty: Difficulty = Difficulty()
    probe: Probe = Probe()
    split: Split = Split()
    labels: Labels = Labels()
    judge: JudgeSettings = JudgeSettings()
    models: ModelSettings = ModelSettings()
    readers: tuple[ReaderSettings, ...] = ()
    servers: tuple[ServerSettings, ...] = ()
    review: Review = Review()
    release: ReleaseSettings = ReleaseSettings()
    card: Card = Card()
    corpora: AnySection = AnySection()
    first_stages: AnySection = AnySection()
    graph: AnySection = AnySection()
    bandits: AnySection = AnySection()
    reports: AnySection = AnySection()
    complexity: AnySection = AnySection()
    benchmark: AnySection = AnySection()
    finetune: AnySection = AnySection()
    sunar: AnySection = AnySection()
    schedules: tuple[Schedule, ...] = ()
    serving: ServeSettings = ServeSettings()
    run: RunSettings = RunSettings()

    @model_validator(mode="after")
    def _names_fit_together(self) -> Settings:
        model_names = [spec.name for spec in self.replying_models]  # of replies, costs and checks of servers
        for what, names in (
            ("reader", [reader.name for reader in self.readers]),
            ("server", [server.name for server in self.servers]),
            ("schedule", [schedule.title for schedule in self.schedules]),
            ("model", model_names),
        ):
            if len(set(names)) < len(names):
                raise ValueError(f"{what}s: every {what} needs a different name, got {', '.join(names)}")
        if self.review.adjudication == "adjudicator" and not self.review.adjudicator:
            raise ValueError("review.adjudicator: adjudication = 'adjudicator' needs the e-mail of one")
        if self.convergence.method == "llm" and self.convergence.language_model not in self.language_models:
            names_of_models = ", ".join(sorted(self.language_models)) or "none in this profile"
            raise ValueError(
                f"convergence.language_model must name a reader or judge that is a language model: {names_of_models}"
            )
        servers = [server.name for server in self.servers]
        for spec in self.replying_models:
            if spec.kind == "python" and not spec.class_:
                raise ValueError(f"{spec.name}: kind 'python' needs a class, such as package.module:Name")
            if spec.kind != "python" and not spec.model:
                raise ValueError(f"{spec.name}: kind {spec.kind!r} needs a model")
            if spec.kind == "server" and spec.server not in servers:
                raise ValueError(
                    f"{spec.name}: server {spec.server!r} is not among servers ({', '.join(servers) or 'none'})"
                )
        if self.split.train == "any" and self.split.method == "share" and self.split.train_share == 1:
            raise ValueError("split.train = 'any' with split.train_share = 1 leaves dev and test empty: set it lower")
        return self

    @property
    def replying_models(self) -> list[ReaderSettings | JudgeSettings]:
        """The readers and the judge whose replies are kept: language models, and classes of the user."""
        specs: tuple[ReaderSettings | JudgeSettings, ...] = (*self.readers, self.judge)
        return [spec for spec in specs if spec.kind not in ("embedded", "equivalence")]

    @property
    def language_models(self) -> dict[str, ReaderSettings | JudgeSettings]:
        """The readers and the judge that are language models, by name."""
        return {spec.name: spec for spec in self.replying_models if spec.kind in LANGUAGE_MODELS}

    def batch_server(self, spec: LanguageModel) -> ServerSettings | None:
        """Return the server of a model that is asked in batches; None for any other."""
        servers = (server for server in self.servers if server.name == spec.server and server.batch)
        return next(servers, None)

    def cost(self, spec: LanguageModel, prompt: float, cached: float, completion: float) -> float | None:
        """Return the price of so many tokens (:meth:`LanguageModel.cost`), in batches where its server takes them."""
        cost, server = spec.cost(prompt, cached, completion), self.batch_server(spec)
        return cost * server.batch_price if server and cost is not None else cost

    def server(self, name: str) -> ServerSettings:
        """Return a server by name."""
        return next(server for server in self.servers if server.name == name)

    @property
    def labelers(self) -> tuple[ReaderSettings, ...]:
        """The readers whose answers decide labels, in profile order."""
        return tuple(reader for reader in self.readers if reader.role == "labeler")
