"""Small corpora by hand, and encoders whose vectors are known: nothing of the code under test makes them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from quit.qa.corpora.build import build
from quit.qa.corpora.sources import parse_corpus_source
from quit.qa.indexes.built import BuiltCorpus
from quit.qa.settings import Corpora
from quit.retrieval.protocols import Ranking
from tests.rows import write_lines


def musique_record(name: str, paragraphs: Sequence[tuple[str, str]], support: Sequence[int], **more) -> dict:
    """Return a record in MuSiQue's format, with one step a supporting paragraph."""
    asked = [f"step {hop} of {name}" + (" after #1" if hop else "") for hop in range(len(support))]
    steps = [
        {"id": 1, "question": asked[hop], "answer": f"a{hop}", "paragraph_support_idx": row}
        for hop, row in enumerate(support)
    ]
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
    relevant = corpus.relevant_rows().items()
    return {query: {corpus.titles([row])[0]: value for row, value in rows.items()} for query, rows in relevant}


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


class Dice:
    """An encoder of texts and words whose unit vectors are drawn by the text's bytes: any text, no model. Those of
    words are rounded to float16, as the protocol asks. ``encoded``: how many texts."""

    name = identity = "dice"
    dimension = 8

    def __init__(self) -> None:
        self.encoded = 0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.encoded += len(texts)
        drawn = [np.random.default_rng(list(text.encode())).normal(size=8) for text in texts]
        return np.array([one / np.linalg.norm(one) for one in drawn], dtype=np.float32).reshape(-1, 8)

    def encode_tokens(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [self.encode(text.split()).astype(np.float16).astype(np.float32) for text in texts]

    documents = queries = encode


def entries(name: str, dimension: int, made: Mapping[str, object]) -> SimpleNamespace:
    """Return an encoder of sparse or token vectors with what it makes of each text."""
    of_texts = {key: lambda texts: [made[text] for text in texts] for key in ("documents", "queries")}
    return SimpleNamespace(name=name, identity=f"{name}@1", dimension=dimension, **of_texts)


def unit(count: int, dimension: int, seed: int) -> np.ndarray:
    """Return random unit vectors, float32, shape (count, dimension)."""
    vectors = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def use(monkeypatch, encoder) -> None:
    """Let every name of a dense encoder mean this one."""
    for module in ("quit.qa.corpora.neighbours", "quit.qa.indexes.first_stage"):
        monkeypatch.setattr(f"{module}.dense_encoder", lambda name, settings: encoder)
