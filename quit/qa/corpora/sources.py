"""Sources of corpora: ``KIND:PATH``, the kinds in :data:`CORPUS_SOURCES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from quit.common.checksums import file_checksum
from quit.dataset.release import open_release
from quit.errors import InputError, SettingsError, check_known
from quit.qa.corpora import beir, musique, questions, release, twowiki
from quit.qa.indexes.built import SourceTerms
from quit.qa.settings import Corpora
from quit.retrieval import corpus
from quit.retrieval.records import CorpusRecord
from quit.sources.files import check_file
from quit.sources.items import line_items


@dataclass(frozen=True)
class CorpusSource:
    """One kind of source. ``licence``, ``citation``: of the published data; what is one's own has none, a release its
    card's or its sources' (:meth:`CorpusRef.terms`). ``mark``: a field that tells that data from other data of its
    layout."""

    name: str
    doc: str
    read: Callable[[Path, Corpora], Iterator[CorpusRecord]]
    expected: str
    folder: bool = False
    licence: str | None = None
    citation: str | None = None
    mark: str = ""


@dataclass(frozen=True)
class CorpusRef:
    """A source as the user named it."""

    kind: str
    path: Path

    @property
    def source(self) -> CorpusSource:
        """Its kind's description."""
        return CORPUS_SOURCES[self.kind]

    def read(self, settings: Corpora) -> Iterator[CorpusRecord]:
        """Yield its records; raises ``InputError`` as its reader does."""
        return self.source.read(self.path, settings)

    def terms(self) -> SourceTerms:
        """Return its terms, none where other data has the layout: of a release those of its card, else of its sources,
        each once."""
        source = self.source
        if source.mark and source.mark not in self.first_fields:
            return {"licence": None, "citation": None}
        if self.kind != "quit":
            return {"licence": source.licence, "citation": source.citation}
        release = open_release(self.path)
        sources = release.provenance["sources"]
        licences = dict.fromkeys(source.get("licence") or "not stated" for source in sources)
        citations = dict.fromkeys(filter(None, (source.get("citation") for source in sources)))
        return {
            "licence": release.card.licence or (None if [*licences] == ["not stated"] else "; ".join(licences) or None),
            "citation": release.card.citation or " ".join(citations) or None,
        }

    @cached_property
    def first_fields(self) -> set[str]:
        """The fields of the first record that is an object."""
        items = line_items(self.path, self.source.expected)
        return set(next((item.value for item in items if isinstance(item.value, dict)), ()))

    def check_data(self) -> None:
        """Raise ``InputError`` where the file is the data of another kind with the same layout."""
        source = self.source
        for other in CORPUS_SOURCES.values():
            same = source.mark and other.mark and other.expected == source.expected
            if same and other.mark in self.first_fields and source.mark not in self.first_fields:
                raise InputError(
                    f"{self.path} is {other.name}, not {source.name} (its records have {other.mark!r}): name it "
                    f"{other.name}:{self.path}"
                )

    def checksum(self) -> str:
        """Return a hash of what it holds, not of where it lies. Raises ``InputError`` for what cannot be read."""
        if self.kind == "quit":
            return open_release(self.path).content_id
        if self.kind == "beir":
            return corpus.checksum_of(beir.files(self.path))
        if self.kind == "jsonl":
            return corpus.corpus_checksum(self.path)
        return file_checksum(self.path)[:32]


CORPUS_SOURCES: dict[str, CorpusSource] = {
    source.name: source
    for source in (
        CorpusSource(
            "musique",
            "MuSiQue's JSON Lines: twenty paragraphs per question, sub-questions, supporting paragraphs.",
            lambda path, settings: musique.read(path, all_context=settings.all_context, aliases=settings.aliases),
            musique.EXPECTED,
            licence="CC BY 4.0",
            mark="question_decomposition",
            citation="Trivedi, Balasubramanian, Khot and Sabharwal. MuSiQue: Multihop Questions via Single-hop "
            "Question Composition. TACL 2022. https://doi.org/10.1162/tacl_a_00475",
        ),
        CorpusSource(
            "2wiki",
            "2WikiMultihopQA's JSON: ten paragraphs per question, evidences, supporting facts.",
            lambda path, settings: twowiki.read(path, all_context=settings.all_context),
            twowiki.EXPECTED,
            licence="Apache-2.0",
            mark="evidences",
            citation="Ho, Duong Nguyen, Sugawara and Aizawa. Constructing A Multi-hop QA Dataset for Comprehensive "
            "Evaluation of Reasoning Steps. COLING 2020. https://doi.org/10.18653/v1/2020.coling-main.580",
        ),
        CorpusSource(
            "hotpotqa",
            "HotpotQA's JSON: ten paragraphs per question, supporting facts.",
            lambda path, settings: twowiki.read(path, "hotpotqa", all_context=settings.all_context),
            twowiki.EXPECTED,
            licence="CC BY-SA 4.0",
            mark="level",
            citation="Yang, Qi, Zhang, Bengio, Cohen, Salakhutdinov and Manning. HotpotQA: A Dataset for Diverse, "
            "Explainable Multi-hop Question Answering. EMNLP 2018. https://doi.org/10.18653/v1/D18-1259",
        ),
        CorpusSource(
            "cwq",
            "ComplexWebQuestions' JSON: questions and answers, no documents.",
            lambda path, settings: questions.read(path, "cwq"),
            questions.EXPECTED["cwq"],
            mark="compositionality_type",
            citation="Talmor and Berant. The Web as a Knowledge-Base for Answering Complex Questions. NAACL 2018. "
            "https://doi.org/10.18653/v1/N18-1059",
        ),
        CorpusSource(
            "strategyqa",
            "StrategyQA's JSON: questions answered by yes or no, no documents.",
            lambda path, settings: questions.read(path, "strategyqa"),
            questions.EXPECTED["strategyqa"],
            licence="MIT",
            mark="term",
            citation="Geva, Khashabi, Segal, Khot, Roth and Berant. Did Aristotle Use a Laptop? A Question Answering "
            "Benchmark with Implicit Reasoning Strategies. TACL 2021. https://doi.org/10.1162/tacl_a_00370",
        ),
        CorpusSource(
            "nq",
            "Natural Questions, simplified or as question and answers, no documents.",
            lambda path, settings: questions.read(path, "nq"),
            questions.EXPECTED["nq"],
            licence="CC BY-SA 3.0",
            mark="example_id",
            citation="Kwiatkowski et al. Natural Questions: A Benchmark for Question Answering Research. TACL 2019. "
            "https://doi.org/10.1162/tacl_a_00276",
        ),
        CorpusSource(
            "quit",
            "A QUIT release: hints, subsets of hints or permutations, with its questions and labels.",
            lambda path, settings: release.read(path, granularity=settings.granularity),
            release.EXPECTED,
            folder=True,
        ),
        CorpusSource(
            "beir",
            "A folder in BEIR's layout: documents, questions, their relevance, and answers where it has them.",
            lambda path, settings: beir.read(path),
            beir.EXPECTED,
            folder=True,
        ),
        CorpusSource(
            "jsonl",
            "Documents alone: lines of {id, text, title?}, or a folder with corpus.jsonl.",
            lambda path, settings: corpus.read(path),
            "JSON Lines of {id, text, title?}, or a folder of them",
            folder=True,
        ),
    )
}


def parse_corpus_source(text: str) -> CorpusRef:
    """Return the source that ``KIND:PATH`` names.

    Raises ``SettingsError`` for an unknown or missing kind, ``InputError`` for a path that is missing, unreadable or
    empty.
    """
    kind, colon, rest = text.partition(":")
    if not colon or not rest.strip():
        raise SettingsError(f"Source {text!r} must be KIND:PATH with one of {', '.join(CORPUS_SOURCES)}.")
    check_known(kind, CORPUS_SOURCES, "kind of corpus source")
    ref = CorpusRef(kind, Path(rest).expanduser())
    if not ref.source.folder:
        check_file(ref.path, ref.source.expected)
        ref.check_data()
    elif not ref.path.exists():
        raise InputError(f"{ref.path} does not exist; expected {ref.source.expected}. (Working folder: {Path.cwd()})")
    return ref
