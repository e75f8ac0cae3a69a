"""From settings to a system: the one place that knows which implementation stands behind which name."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from quit.corpora.protocols import Documents, FirstStage, NeighbourGraph, Scorer
from quit.corpora.scorers import CrossEncoderScorer, LateScorer
from quit.errors import InputError, SettingsError
from quit.models.prompting import load_prompt
from quit.settings import Settings, Sunar
from quit.systems.opening import language_model
from quit.systems.sunar import mer
from quit.systems.sunar.entailment import Entailment, EquivalentAnswers, NaturalLanguageInference
from quit.systems.sunar.extract import ExtractiveReader
from quit.systems.sunar.planners import FIELDS, GoldPlan, NoPlan, Planner, ReAct, SearChain, SelfAsk
from quit.systems.sunar.reading import ANSWER_FIELDS, AnswerModel, Asker, LanguageModelAnswers
from quit.systems.sunar.retrieval import Library
from quit.systems.sunar.system import System

if TYPE_CHECKING:
    from quit.models.factory import Models

_PLANNERS = {planner.name: planner for planner in (SelfAsk, ReAct, SearChain)}


class Assembly:
    """Makes the parts of a run, once for all variants. Nothing is loaded before it is asked something."""

    def __init__(self, settings: Settings, models: Models) -> None:
        self._settings = settings
        self._models = models
        self._parts: dict[object, Any] = {}

    def library(self, documents: Documents, first_stage: FirstStage, graph: NeighbourGraph | None) -> Library:
        """Return what is searched. Raises :class:`InputError` where the graph is another corpus's."""
        if graph is not None and len(graph) != len(documents):
            raise InputError(
                f"The graph has {len(graph)} documents and the corpus {len(documents)}: it is another corpus's. "
                "Build it again: quit graph build"
            )
        return Library(documents, first_stage, graph, self.scorer())

    def scorer(self) -> Scorer:
        """Return the scorer of documents."""
        how = self._settings.sunar
        if how.scorer == "cross-encoder":
            return CrossEncoderScorer(
                how.scorer_model, revision=how.scorer_revision, device=how.device, batch=how.batch
            )
        return LateScorer(self._models.encoder, slope=how.late_slope, centre=how.late_centre)

    def system(self, library: Library, how: Sunar) -> tuple[System, str]:
        """Return the system that ``how`` describes, and the identity of all that decides its traces, settings apart.

        Raises :class:`SettingsError` for a planner without a language model, and for a language model that the profile
        lacks.
        """
        if how.retrieval == "nar" and library.graph is None:
            raise SettingsError("Retrieval `nar` needs a graph: --graph DIR, or build one: quit graph build")
        reader = self._once(("reader", how.language_model), lambda: self._reader(how))
        planner = self._planner(how)
        entailment = self._entailment(how) if how.asu and how.m else None
        reasoner = self._reasoner(how, reader) if how.mer else None
        parts = [
            library.documents.identity,
            library.first_stage.identity,
            library.graph.identity if library.graph is not None and how.retrieval == "nar" else "no graph",
            library.scorer.identity,
            planner.identity,
            reader.identity,
            entailment.identity if entailment else "no uncertainty",
            reasoner.identity if reasoner else "no reasoner",
        ]
        return System(library, planner, reader, entailment, reasoner, how), "\n".join(parts)

    def _reader(self, how: Sunar) -> AnswerModel:
        if how.language_model:
            return LanguageModelAnswers(self._asker(how, "sub_answer", ANSWER_FIELDS))
        types = self._models.question_types

        @lru_cache(maxsize=4096)  # a sub-question is asked about every batch
        def coarse(question: str) -> tuple[str, str]:
            question_type = types.classify([question])[0]
            return question_type.coarse, question_type.fine

        return ExtractiveReader(
            self._models.encoder,
            coarse,
            identity=types.identity,
            closest=how.extract_sentences,
            temperature=how.extract_temperature,
        )

    def _planner(self, how: Sunar) -> Planner:
        name = how.planner
        if name == "auto":
            name = "self-ask" if how.language_model else "gold"
        if name == "none":
            return NoPlan()
        if name == "gold":
            return GoldPlan()
        if not how.language_model:
            raise SettingsError(
                f"The planner {name!r} needs a language model: "
                "set sunar.language_model to a reader or judge of the profile."
            )
        return _PLANNERS[name](self._asker(how, _PLANNERS[name].prompt, FIELDS))

    def _reasoner(self, how: Sunar, reader: AnswerModel) -> mer.MetaReasoner:
        if how.language_model:
            return mer.LanguageModelReasoner(self._asker(how, "meta_reasoner", mer.FIELDS))
        return mer.LastAnswer(reader)

    def _entailment(self, how: Sunar) -> Entailment:
        if how.entailment == "nli":
            return self._once(
                ("nli", how.nli_model, how.nli_revision),
                lambda: NaturalLanguageInference(how.nli_model, revision=how.nli_revision, device=how.device),
            )
        return EquivalentAnswers(self._models.equivalence, how.threshold)

    def _asker(self, how: Sunar, prompt: str, fields: frozenset[str]) -> Asker:
        generator = language_model(how.language_model, self._models, self._settings, "sunar.language_model")
        return Asker(generator, load_prompt(prompt, fields), how)

    def _once(self, key: object, make: Callable[[], Any]) -> Any:
        if key not in self._parts:
            self._parts[key] = make()
        return self._parts[key]
