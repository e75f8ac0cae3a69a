"""Ways to score a closed set of answers against the parts of a passage, as parameters of one reader.

All share one encoder. They differ in what they compare and in how they use the order of the hints, so that their errors
are partly independent.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from quit.errors import check_known
from quit.models.answer_vectors import NAME, STATEMENTS

VERSION = 1


@dataclass(frozen=True)
class Softmax:
    """Each part gives a probability over the answers (softmax of the scores over ``temperature``), mixed with ``doubt``
    of the uniform one, so that one misleading hint cannot rule the right answer out. The score is its logarithm,
    relative to the uniform one."""

    temperature: float
    doubt: float


@dataclass(frozen=True)
class Late:
    """Late interaction (ColBERT's MaxSim) in both directions between the tokens of a part and the first ``longest`` of
    an answer; the two means are added to ``whole`` times the cosine."""

    whole: float
    longest: int


@dataclass(frozen=True)
class Method:
    """How an embedded reader scores answers. The score of an answer for a part (the question or a hint) is the cosine
    of their vectors, changed by ``names``, ``contrast``, ``softmax`` and ``late`` where they are given.

    ``position_decay`` weighs a passage's hints by position: below 1 each hint counts that much of the one before it
    (primacy), above 1 each counts that much more (recency), 1 is blind to order. Language models show both tendencies
    (Liu et al. 2024, "Lost in the middle"), and the 325 passages of a question differ only in selection and order.

    ``question_weight`` is the question's weight beside the hints' (which sum to one).

    ``named_penalty`` is taken from an answer that the question or a hint of the passage names, in proportion to the
    squared share of its words found there. Hints do not leak answers, and an embedding likes repeated words too well.

    ``no_answer_margin``: the reply is NO ANSWER when the best score leads the runner-up's by less, in standard
    deviations of the scores. ``thin_evidence`` adds to that margin for each hint short of five.

    ``templates``: an answer's vector is the mean over these sentences.

    ``names``: weight of the mean vector of the names in a part (:func:`quit.text.names.names_in`), added to the part's
    own. A name is close to the names it keeps company with (an album to its band), and a whole sentence dilutes that.

    ``contrast``: the share of the mean cosine with the collection's hints that is subtracted. That mean plays the part
    of the unconditional probability in pointwise mutual information: answers that go with everything (hubs) lose their
    lead.
    """

    name: str
    position_decay: float
    templates: tuple[str, ...] = NAME + STATEMENTS
    question_weight: float = 0.4
    named_penalty: float = 0.3
    no_answer_margin: float = 0.08
    thin_evidence: float = 0.03
    names: float | None = None
    contrast: float | None = None
    softmax: Softmax | None = None
    late: Late | None = None

    def describe(self) -> str:
        """Return name, version and a hash of the parameters: what replies depend on, beside encoder and pool."""
        values = asdict(self)
        name, softmax, late = (values.pop(key) for key in ("name", "softmax", "late"))
        parameters = {key: value for key, value in values.items() if value is not None} | (softmax or {}) | (late or {})
        digest = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()
        return f"{name}@{VERSION}-{digest[:8]}"


EMBEDDED_READERS = {
    method.name: method
    for method in (
        Method("minilm-vector", 0.85, NAME),
        Method("minilm-late", 0.9, NAME, named_penalty=0.9, late=Late(3.0, 8)),
        Method("minilm-evidence", 1.25, named_penalty=4.0, softmax=Softmax(0.05, 0.3)),
        Method("minilm-statement", 1.15, STATEMENTS),
        Method("minilm-contrast", 0.9, contrast=0.5),
        Method("minilm-names", 0.85, names=0.6),
    )
}


def embedded_method(name: str) -> Method:
    """Return the method of the embedded reader called ``name``. Raises ``SettingsError`` where there is none."""
    check_known(name, EMBEDDED_READERS, "embedded reader")
    return EMBEDDED_READERS[name]
