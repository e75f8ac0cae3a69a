"""What the embedded convergence model looks at: a question's hints, its gold answer and its rivals, as numbers.

Every feature belongs to one hint, but many are relative to the question's other hints or candidates: a hint says more the further
it lifts the gold answer above its rivals. Nothing depends on any other question, so shards cannot change a value.
"""

from __future__ import annotations

import re

import numpy as np

from quit.models.equivalence.features import rarity
from quit.models.protocols import Encoder, HintSet
from quit.models.readers.methods import NAME, STATEMENTS, names_in
from quit.models.readers.pool import template_vectors

CHANNELS = ("name", "statement", "asked", "named")
"""How near a hint is to a candidate: cosine to the bare candidate, to statements about it, to the question followed by it; and of
the names in the hint to the statements."""

COARSE = ("LOC", "HUM", "ENTY", "NUM")
_CENTRED = ("name", "statement")
_STANDING = ("gold", "mean", "max", "spread", "lead", "margin", "above", "above_2", "above_5", "z")
_SOFT = ("share_sharp", "entropy_sharp", "share_flat", "entropy_flat")
_TEMPERATURES = (0.03, 0.08)
_WORDING = (
    "words",
    "log_words",
    "word_length",
    "capitals",
    "capital_share",
    "numbers",
    "year",
    "rarity_mean",
    "rarity_max",
    "rarity_top",
    "known",
    "famous",
    "first",
    "superlative",
    "not",
    "many",
    "hedge",
    "quoted",
    "it",
    "the",
    "this",
    "person",
    "request",
    "commas",
    "to_question",
    "to_hints",
    "to_nearest_hint",
    "to_hints_mean",
    "place",
    "repeated",
)
_QUESTION = (
    "hints",
    "rivals",
    "gold_length",
    "question_words",
    "gold_to_rivals",
    "gold_to_nearest_rival",
    "rivals_alike",
    "gold_has_digit",
    "gold_words",
    "hints_alike",
)
NAMES = (
    *(f"{channel}_{name}" for channel in CHANNELS for name in (*_STANDING, *_SOFT)),
    *(f"centred_{channel}_{name}" for channel in _CENTRED for name in (*_STANDING, *_SOFT)[4:]),
    *(f"hint_{name}" for name in _WORDING),
    *(f"question_{name}" for name in _QUESTION),
    *(f"question_{channel}_{name}" for name in ("gold", "lead") for channel in CHANNELS),
    *(f"question_is_{code}" for code in COARSE),
)
"""Names of the columns of :func:`features`, in order."""

_WORD = re.compile(r"[a-z0-9']+")
_YEAR = re.compile(r"\b1[0-9]{3}\b|\b20[0-9]{2}\b")
_QUOTE = re.compile(r"[\"“'‘]\w")


def texts_of(item: HintSet) -> list[str]:
    """Return all texts that :func:`features` and :func:`meanings` encode, so that many questions' can be encoded together."""
    answers = _answers(item)
    return [
        item.question,
        *item.hints,
        *answers,
        *(template.replace("{}", answer) for template in NAME + STATEMENTS for answer in answers),
        *(f"{item.question} {answer}" for answer in answers),
        *(name for hint in item.hints for name in names_in(hint)),
    ]


def features(item: HintSet, encoder: Encoder) -> np.ndarray:
    """Return the features of each hint, shape (len(item.hints), len(NAMES)), float64."""
    near, alike = _similarities(item, encoder)
    hints = encoder.encode(list(item.hints)).astype(np.float64)
    asked = encoder.encode([item.question])[0].astype(np.float64)
    among = hints @ hints.T
    lead = near[:, -1] - near[:, :-1].mean(axis=1)
    rivals = len(item.distractors)
    question = [
        len(item.hints),
        rivals,
        len(item.gold),
        len(_WORD.findall(item.question.lower())),
        alike[-1, :-1].mean(),
        alike[-1, :-1].max(),
        alike[:-1, :-1].mean(),
        any(char.isdigit() for char in item.gold),
        len(_WORD.findall(item.gold.lower())),
        among.mean(),
        *near[:, -1].mean(axis=0),
        *lead.mean(axis=0),
        *((item.coarse or "").startswith(code) for code in COARSE),
    ]
    centred = near - near.mean(axis=0, keepdims=True)
    rows = []
    for place, hint in enumerate(item.hints):
        row = [value for channel in range(len(CHANNELS)) for value in _standing(near[place, :, channel])]
        for channel in _CENTRED:
            row += _standing(centred[place, :, CHANNELS.index(channel)])[4:]
        others = np.sort(among[place])
        row += _wording(hint)
        row += [
            hints[place] @ asked,
            among[place].mean(),
            others[-2] if len(others) > 1 else 0.0,
            hints[place] @ hints.mean(axis=0),
            place / len(item.hints),
            item.hints.count(hint) > 1,
        ]
        rows.append([*row, *question])
    return np.array(rows, dtype=np.float64).reshape(len(item.hints), len(NAMES))


def meanings(item: HintSet, encoder: Encoder) -> tuple[np.ndarray, np.ndarray]:
    """Return the hints' vectors, shape (hints, dimension), and the gold answer's, shape (dimension,), float64."""
    hints = encoder.encode(list(item.hints)).astype(np.float64)
    gold = template_vectors(encoder.encode, [item.gold], NAME + STATEMENTS)[0].astype(np.float64)
    return hints, gold


def _similarities(item: HintSet, encoder: Encoder) -> tuple[np.ndarray, np.ndarray]:
    """Return (hints, answers, channels) and (answers, answers) similarities; the gold answer is the last of the answers."""
    answers = _answers(item)
    hints = list(item.hints)
    h = encoder.encode(hints)
    bare = encoder.encode(answers)
    stated = template_vectors(encoder.encode, answers, NAME + STATEMENTS)
    asked = encoder.encode([f"{item.question} {answer}" for answer in answers])
    near = np.zeros((len(hints), len(answers), len(CHANNELS)))
    near[:, :, 0], near[:, :, 1], near[:, :, 2] = h @ bare.T, h @ stated.T, h @ asked.T
    for i, hint in enumerate(hints):
        named = names_in(hint)
        if named:
            near[i, :, 3] = stated @ encoder.encode(named).mean(axis=0)
    return near, (bare @ bare.T).astype(np.float64)


def _answers(item: HintSet) -> list[str]:
    """Return the rivals, then the gold answer; without any rival it is its own, so that every difference is 0."""
    return [*(item.distractors or (item.gold,)), item.gold]


def _standing(near: np.ndarray) -> list[float]:
    """Return where the gold answer (the last) stands among its rivals: _STANDING and _SOFT."""
    rivals, gold = near[:-1], near[-1]
    lead = gold - rivals.mean()
    spread = rivals.std()
    values = [
        gold,
        rivals.mean(),
        rivals.max(),
        spread,
        lead,
        gold - rivals.max(),
        (rivals >= gold).mean(),
        (rivals >= gold - 0.02).mean(),
        (rivals >= gold - 0.05).mean(),
        lead / (spread + 0.02),
    ]
    for temperature in _TEMPERATURES:
        weight = np.exp((near - near.max()) / temperature)
        share = weight / weight.sum()
        values += [share[-1], -(share * np.log(share + 1e-12)).sum() / np.log(len(near))]
    return [float(value) for value in values]


def _wording(hint: str) -> list[float]:
    words, raw = _WORD.findall(hint.lower()), hint.split()
    capitals = sum(word[:1].isupper() for word in raw[1:])
    rare = sorted((rarity(word) for word in words), reverse=True) or [0.0]
    has = set(words)
    opening = words[0] if words else ""
    return [
        float(value)
        for value in (
            len(words),
            np.log1p(len(words)),
            len(hint) / max(1, len(words)),
            capitals,
            capitals / max(1, len(raw)),
            sum(any(char.isdigit() for char in word) for word in raw),
            bool(_YEAR.search(hint)),
            np.mean(rare),
            rare[0],
            np.mean(rare[:3]),
            "known" in has,
            bool(has & {"famous", "popular"}),
            "first" in has,
            "most" in has or any(word.endswith("est") for word in words),
            "not" in has,
            bool(has & {"many", "several"}),
            bool(has & {"often", "can", "may"}),
            bool(_QUOTE.search(hint)),
            opening == "it",
            opening == "the",
            opening == "this",
            opening in ("he", "she"),
            opening == "think" or "consider" in has or "?" in hint,
            hint.count(","),
        )
    ]
