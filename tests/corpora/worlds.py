"""Small corpora by hand, and encoders whose vectors are known: nothing of the code under test makes them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from quit.corpora.build import build
from quit.corpora.sources import parse_corpus_source
from quit.retrieval.built import BuiltCorpus
from quit.retrieval.protocols import Ranking
from quit.settings import Corpora
from tests.rows import write_lines


def musique_record(name: str, paragraphs: Sequence[tuple[str, str]], support: Sequence[int], **more) -> dict:
    """Return a record in MuSiQue's format, with one step a supporting paragraph."""
    steps = [
        {"id": 1, "question": f"step {hop} of {name}" + (" after #1" if hop else ""), "answer": f"a{hop}",
         "paragraph_support_idx": row}
        for hop, row in enumerate(support)
    ]  # fmt: skip
    return {
        **{"id": name, "question": f"What of {name}?", "answer": f"a{len(support) - 1}", "answer_aliases": ["alias"]},
        **{"answerable": True, "question_decomposition": steps},
        "paragraphs": [
            {"idx": row, "title": title, "paragraph_text": text, "is_supporting": row in support}
            for row, (title, text) in enumerate(paragraphs)
        ],
        **more,
    }


def corpus_of(texts: Sequence[str], folder: Path) -> BuiltCorpus:
    """Build a corpus of plain texts."""
    path = write_lines(folder / "texts.jsonl", [{"id": str(row), "text": text} for row, text in enumerate(texts)])
    return built(folder / "C", f"jsonl:{path}")


def built(out: Path, *sources: str, **settings) -> BuiltCorpus:
    """Build a corpus of sources."""
    return build([parse_corpus_source(text) for text in sources], out, Corpora(**settings))[0]


def relevant_titles(corpus: BuiltCorpus) -> dict[str, dict[str, int]]:
    """Return query -> title of a document -> relevance."""
    found = corpus.relevant_rows().items()
    return {query: {corpus.titles([row])[0]: value for row, value in rows.items()} for query, rows in found}


class Fixed:
    """A first stage that always finds the same rows, scored by their place."""

    def __init__(self, rows: Sequence[int]) -> None:
        self.identity, self._rows = f"fixed {rows}", np.array(rows)

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        rows = self._rows[:depth]
        return [Ranking(rows, -np.arange(len(rows), dtype=np.float32)) for _ in queries]


class Given:
    """A dense encoder with a vector for each text, counting what it encodes."""

    name = "given"
    identity = "given@1"

    def __init__(self, vectors: dict[str, np.ndarray]) -> None:
        self.vectors = vectors
        self.dimension = len(next(iter(vectors.values())))
        self.seen: list[str] = []

    def documents(self, texts: Sequence[str]) -> np.ndarray:
        self.seen += texts
        return np.stack([self.vectors[text] for text in texts]).astype(np.float32)

    queries = documents


def unit(count: int, dimension: int, seed: int) -> np.ndarray:
    """Return random unit vectors, float32, shape (count, dimension)."""
    made = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def use(monkeypatch, encoder) -> None:
    """Let every name of a dense encoder mean this one."""
    for module in ("quit.corpora.neighbours", "quit.retrieval.first_stage"):
        monkeypatch.setattr(f"{module}.dense_encoder", lambda name, settings: encoder)
