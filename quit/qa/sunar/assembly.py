"""From settings to a system: the one place that knows which implementation stands behind which name."""

from __future__ import annotations

from functools import cached_property, lru_cache

from quit.errors import SettingsError
from quit.models.factory import Models
from quit.models.prompting import PROMPTS, load_prompt
from quit.qa.indexes.rankings import RankingStage
from quit.qa.opening import language_model
from quit.qa.settings import QaSettings, Sunar
from quit.qa.sunar import mer, planners
from quit.qa.sunar.entailment import Entailment, EquivalentAnswers, NaturalLanguageInference
from quit.qa.sunar.extract import ExtractiveReader
from quit.qa.sunar.reading import ANSWER_FIELDS, AnswerModel, Asker, LanguageModelAnswers
from quit.qa.sunar.retrieval import SearchStack
from quit.qa.sunar.system import SunarSystem

_PLANNERS: dict[str, type[planners.LanguageModelPlanner]] = {
    planner.name: planner
    for planner in (planners.SelfAsk, planners.ReAct, planners.SearChain, planners.Decomp, planners.IRCoT)
}

_NEEDS = "needs a language model: set sunar.language_model to a reader or judge of the profile."


class Assembly:
    """Makes the parts of a run, once for all variants. Nothing is loaded before it is asked something."""

    def __init__(self, settings: QaSettings, models: Models) -> None:
        self._settings = settings
        self._sunar = settings.sunar
        self._models = models

    def system(self, stack: SearchStack, settings: Sunar) -> tuple[SunarSystem, str]:
        """Return the system of a variant, and the identity of all that decides its traces, settings apart.

        ``settings``: the variant's :func:`quit.qa.sunar.variants.effective` settings.
        Raises :class:`SettingsError` for a planner without a language model, and for a language model that the profile
        lacks.
        """
        if settings.retrieval == "nar" and stack.graph is None:
            raise SettingsError(
                "Retrieval `nar` needs a graph: --graph DIR, or build one: quit graph build --corpus CORPUS --out DIR"
            )
        if (
            isinstance(stack.first_stage, RankingStage)
            and settings.planner != "none"
            and settings.initial == "sub-question"
        ):
            raise SettingsError(
                "--first ranks documents for whole questions only, and this run asks sub-questions: "
                "--set sunar.initial=question, or a variant without a plan, such as nar-read."
            )
        planner, reader = self._planner(settings.planner), self._reader(settings.reading)
        entailment = self._entailment if settings.asu and settings.m else None
        reasoner = self._reasoner(reader) if settings.mer else None
        parts = [
            stack.documents.identity,
            stack.first_stage.identity,
            stack.graph.identity if stack.graph is not None and settings.retrieval == "nar" else "no graph",
            stack.scorer.identity,
            planner.identity,
            reader.identity,
            entailment.identity if entailment else "no uncertainty",
            reasoner.identity if reasoner else "no reasoner",
        ]
        return SunarSystem(stack, planner, reader, entailment, reasoner, settings), "\n".join(parts)

    def _reader(self, reading: str) -> AnswerModel:
        if self._sunar.language_model:
            prompt = "sub_answer" if reading == "short" else reading
            return LanguageModelAnswers(self._asker(prompt, ANSWER_FIELDS), needs_mark=reading != "short")
        if reading != "short":
            raise SettingsError(f"The reading {reading!r} {_NEEDS}")
        return self._extractive

    @cached_property
    def _extractive(self) -> AnswerModel:
        types = self._models.question_types

        @lru_cache(maxsize=4096)  # a sub-question is asked about every batch
        def coarse(question: str) -> tuple[str, str]:
            question_type = types.classify([question])[0]
            return question_type.coarse, question_type.fine

        return ExtractiveReader(self._models.encoder, coarse, identity=types.identity)

    def _planner(self, name: str) -> planners.Planner:
        if name in ("none", "gold"):
            return planners.NoPlan() if name == "none" else planners.GoldPlan()
        if not self._sunar.language_model:
            raise SettingsError(f"The planner {name!r} {_NEEDS}")
        kind = _PLANNERS[name]
        return kind(self._asker(kind.prompt, kind.fields))

    def _reasoner(self, reader: AnswerModel) -> mer.MetaReasoner:
        if self._sunar.language_model:
            return mer.LanguageModelReasoner(self._asker("meta_reasoner", mer.FIELDS))
        return mer.LastAnswer(reader)

    @cached_property
    def _entailment(self) -> Entailment:
        settings = self._sunar
        if settings.entailment == "nli":
            return NaturalLanguageInference(settings.nli_model, device=settings.device)
        return EquivalentAnswers(self._models.equivalence)

    def _asker(self, prompt: str, fields: frozenset[str]) -> Asker:
        name = self._sunar.language_model
        generator = language_model(name, self._models, self._settings, "sunar.language_model")
        return Asker(generator, load_prompt(prompt_name(self._sunar, prompt), fields), self._sunar)


def prompt_name(settings: Sunar, part: str) -> str:
    """Return the name or file of a part's prompt: the one that the settings give, else that of the set for a dataset,
    else the one for both."""
    name = part.replace("-", "_")
    file = settings.prompt_files.get(name)
    of_set = f"{name}_{settings.prompts}"
    return file or (of_set if (PROMPTS / f"{of_set}.txt").is_file() else name)
