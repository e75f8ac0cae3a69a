"""What the embedded models say of a few texts, as a hash per model: ``python -m tests.processors`` prints JSON.

With FEW_TEXTS set: of a few words, by the first layer of each transformer, as an emulator may need 150 ns a product.
:mod:`tests.test_processors` runs it as other processors.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

from quit.models import linear
from quit.models.convergence import EmbeddedConvergence
from quit.models.encoders.cache import CachingEncoder
from quit.models.equivalence.embedded import EmbeddedEquivalence
from quit.models.minilm import packed
from quit.models.minilm.encoder import MiniLM
from quit.models.minilm.layers import Body
from quit.models.protocols import HintSet, Pair, Prompt
from quit.models.question_type import QuestionTypeClassifier
from quit.models.readers.embedded import embedded_reader
from quit.models.readers.methods import EMBEDDED_READERS
from quit.models.readers.pool import AnswerPool
from quit.qa.indexes.scorers import LateScorer
from quit.qa.sunar.asu import rescored
from quit.qa.sunar.extract import ExtractiveReader
from quit.settings import Difficulty
from quit.stages.questions.difficulty import RetrievalComplexity
from tests.paths import starter_lines


def main() -> None:
    """Print the hashes."""
    few = "FEW_TEXTS" in os.environ
    if few:
        _do_less()
    results = _results(starter_lines(1 if few else 3), *((3, 3, 2) if few else (6, 100, 6)))
    print(json.dumps({name: hashlib.sha256(np.ascontiguousarray(value)).hexdigest()[:16] for name, value in results}))


def _do_less() -> None:
    """Keep one layer of each transformer, pad a text to 16 tokens, not to 128, choose the way of products by a small
    one, and leave out the proof of a layer."""
    run = packed.run

    def run_first(body: Body, *arguments: Any, **options: Any) -> list[Any]:
        del body.layers[1:]
        return run(body, *arguments, **options)

    patch.object(linear, "TRIAL", (4, 16)).start()
    patch.multiple(packed, run=run_first, CHUNK=16, check=lambda: None).start()


def _results(lines: list[str], most_hints: int, most_words: int, others: int) -> Iterator[tuple[str, np.ndarray]]:
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    questions, golds = [row["question"] for row in rows], [row["answers"][0] for row in rows]
    whole = [hint if isinstance(hint, str) else hint["text"] for row in rows for hint in row["hints"][:most_hints]]
    hints = [" ".join(hint.split()[:most_words]) for hint in whole]
    wrong = ["Botswana", "South Africa", "Bhutan", "Sherpa", "The Kingdom of Lesotho", "Kathmandu, Nepal"][:others]
    answers = [*golds, *wrong]
    encoder = CachingEncoder(MiniLM())
    yield "vectors", encoder.encode([*questions, *hints])
    yield "token vectors", np.concatenate(encoder.encode_tokens(hints))
    pairs = [Pair(questions[0], gold, answer) for gold in golds for answer in answers]
    yield "equivalence", EmbeddedEquivalence().probability(pairs)
    yield (
        "question types",
        np.array([guess.confidence for guess in QuestionTypeClassifier(encoder).classify(questions)]),
    )
    item = HintSet(questions[0], tuple(hints[:6]), golds[0], tuple(wrong[:3]), "LOC:LOCATION")
    yield "convergence", np.array(EmbeddedConvergence(encoder).values([item]))
    pool = AnswerPool.build([(answer, None, None) for answer in answers], hints)
    prompts = [Prompt("q", questions[0], tuple(hints[:count])) for count in range(1, 6)]
    for name in EMBEDDED_READERS:
        reader = embedded_reader(name, encoder, pool)
        scores = reader.score_parts([questions[0], *hints[:5]], pool.rows(None, None))
        replies = reader.answer(prompts)
        yield name, np.concatenate([np.stack(scores).ravel().view(np.uint8), _bytes([reply.raw for reply in replies])])
    complexity = RetrievalComplexity.over_hints(hints, encoder, Difficulty())
    yield "difficulty", _bytes([str(one) for one in complexity.of(questions, [[gold] for gold in golds])])
    yield "late interaction", rescored(LateScorer(encoder).score(questions[0], hints), 3)
    extracts = ExtractiveReader(encoder, lambda question: ("LOC", "country")).candidates(questions[0], hints)
    yield "extracts", np.stack([features for _, features in extracts])


def _bytes(texts: list[str]) -> np.ndarray:
    return np.frombuffer("\n".join(texts).encode(), dtype=np.uint8)


if __name__ == "__main__":
    main()
