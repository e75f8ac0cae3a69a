"""Features of the embedded convergence model: a question's hints, gold answer and distractors, as numbers.

Every feature belongs to one hint. Many are relative to the question's other hints or candidates: a hint says more if it
lifts the gold answer further above its distractors. Nothing depends on other questions, so shards change no value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from quit.common.arithmetic import exp, log, on_grid, products
from quit.models.answer_vectors import NAME, STATEMENTS, template_vectors
from quit.models.minilm.rarity import rarity
from quit.models.protocols import Encoder, HintSet
from quit.text.names import names_in

CHANNELS = ("name", "statement", "asked", "named")
"""How near a hint is to a candidate: cosine to the bare candidate, to statements about it, to the question followed by
it; and of the names in the hint to the statements."""

COARSE = ("LOC", "HUM", "ENTY", "NUM")
_CENTRED = ("name", "statement")
_STANDING = "gold mean max spread lead margin above above_2 above_5 z".split()
_TEMPERATURES = {"sharp": 0.03, "flat": 0.08}
_SOFT = [f"{measure}_{temperature}" for temperature in _TEMPERATURES for measure in ("share", "entropy")]
_WORDING = (
    "words log_words word_length capitals capital_share numbers year rarity_mean rarity_max rarity_top known famous "
    "first superlative not many hedge quoted it the this person request commas"
).split()
_AMONG = "to_question to_hints to_nearest_hint to_hints_mean place repeated".split()
_QUESTION = (
    "hints rivals gold_length question_words gold_to_rivals gold_to_nearest_rival rivals_alike gold_has_digit "
    "gold_words hints_alike"
).split()
NAMES = (
    *(f"{channel}_{name}" for channel in CHANNELS for name in (*_STANDING, *_SOFT)),
    *(f"centred_{channel}_{name}" for channel in _CENTRED for name in (*_STANDING[4:], *_SOFT)),
    *(f"hint_{name}" for name in (*_WORDING, *_AMONG)),
    *(f"question_{name}" for name in _QUESTION),
    *(f"question_{channel}_{name}" for name in ("gold", "lead") for channel in CHANNELS),
    *(f"question_is_{code}" for code in COARSE),
)
"""Names of the columns of :func:`features`, in the order that the weights know."""

_WORD = re.compile(r"[a-z0-9']+")
_YEAR = re.compile(r"\b1[0-9]{3}\b|\b20[0-9]{2}\b")
_QUOTE = re.compile(r"[\"“'‘]\w")


def texts_of(item: HintSet) -> list[str]:
    """Return all texts that :func:`features` and :func:`meanings` encode: many questions' can be encoded together."""
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
    question_vector = encoder.encode([item.question])[0].astype(np.float64)
    among = hints @ hints.T
    question = _with_prefix("question", _question(item, near, alike) | {"hints_alike": among.mean()})
    deviations = near - near.mean(axis=0, keepdims=True)
    rows = []
    for position, hint in enumerate(item.hints):
        nearest = np.sort(among[position])  # the last is the hint itself
        hint_features = _wording(hint) | {
            "to_question": hints[position] @ question_vector,
            "to_hints": among[position].mean(),
            "to_nearest_hint": nearest[-2] if len(nearest) > 1 else 0.0,
            "to_hints_mean": hints[position] @ on_grid(hints.mean(axis=0)),
            "place": position / len(item.hints),
            "repeated": item.hints.count(hint) > 1,
        }
        row = question | _with_prefix("hint", hint_features)
        for index, channel in enumerate(CHANNELS):
            row |= _with_prefix(channel, _gold_and_distractors(near[position, :, index]))
            if channel in _CENTRED:
                row |= _with_prefix(f"centred_{channel}", _gold_and_distractors(deviations[position, :, index]))
        rows.append([row[name] for name in NAMES])
    return np.array(rows, dtype=np.float64).reshape(len(item.hints), len(NAMES))


def _with_prefix(prefix: str, values: Mapping[str, float]) -> dict[str, float]:
    return {f"{prefix}_{name}": float(value) for name, value in values.items()}


def _question(item: HintSet, near: np.ndarray, alike: np.ndarray) -> dict[str, float]:
    """Return what the hints of a question have in common."""
    lead = near[:, -1] - near[:, :-1].mean(axis=1)
    return {
        "hints": len(item.hints),
        "rivals": len(item.distractors),
        "gold_length": len(item.gold),
        "question_words": len(_WORD.findall(item.question.lower())),
        "gold_to_rivals": alike[-1, :-1].mean(),
        "gold_to_nearest_rival": alike[-1, :-1].max(),
        "rivals_alike": alike[:-1, :-1].mean(),
        "gold_has_digit": any(char.isdigit() for char in item.gold),
        "gold_words": len(_WORD.findall(item.gold.lower())),
        **{f"{channel}_gold": value for channel, value in zip(CHANNELS, near[:, -1].mean(axis=0), strict=True)},
        **{f"{channel}_lead": value for channel, value in zip(CHANNELS, lead.mean(axis=0), strict=True)},
        **{f"is_{code}": (item.coarse or "").startswith(code) for code in COARSE},
    }


def meanings(item: HintSet, encoder: Encoder) -> tuple[np.ndarray, np.ndarray]:
    """Return the hints' vectors, shape (hints, dimension), and the gold answer's, shape (dimension,), float64."""
    hints = encoder.encode(list(item.hints)).astype(np.float64)
    gold = template_vectors(encoder, [item.gold], NAME + STATEMENTS)[0].astype(np.float64)
    return hints, gold


def _similarities(item: HintSet, encoder: Encoder) -> tuple[np.ndarray, np.ndarray]:
    """Return (hints, answers, channels) and (answers, answers) similarities; the gold answer is the last one."""
    answers = _answers(item)
    hints = list(item.hints)
    hint_vectors = encoder.encode(hints)
    bare = encoder.encode(answers)
    claims = template_vectors(encoder, answers, NAME + STATEMENTS)
    with_question = encoder.encode([f"{item.question} {answer}" for answer in answers])
    near = np.zeros((len(hints), len(answers), len(CHANNELS)))
    for channel, vectors in enumerate((bare, claims, with_question)):
        near[:, :, channel] = products(hint_vectors, vectors)
    for i, hint in enumerate(hints):
        names = names_in(hint)
        if names:
            near[i, :, 3] = products(claims, on_grid(encoder.encode(names).mean(axis=0)))
    return near, products(bare, bare).astype(np.float64)


def _answers(item: HintSet) -> list[str]:
    """Return the distractors, then the gold answer; without distractors that alone, twice: every difference is 0."""
    return [*(item.distractors or (item.gold,)), item.gold]


def _gold_and_distractors(near: np.ndarray) -> dict[str, float]:
    """Return how near the gold answer (the last) is, compared with its distractors."""
    distractors, gold = near[:-1], near[-1]
    lead = gold - distractors.mean()
    spread = distractors.std()
    values = {
        "gold": gold,
        "mean": distractors.mean(),
        "max": distractors.max(),
        "spread": spread,
        "lead": lead,
        "margin": gold - distractors.max(),
        "above": (distractors >= gold).mean(),
        "above_2": (distractors >= gold - 0.02).mean(),
        "above_5": (distractors >= gold - 0.05).mean(),
        "z": lead / (spread + 0.02),
    }
    for name, temperature in _TEMPERATURES.items():
        weight = exp((near - near.max()) / temperature)
        share = weight / weight.sum()
        values[f"share_{name}"] = share[-1]
        values[f"entropy_{name}"] = -(share * log(share + 1e-12)).sum() / math.log(len(near))
    return values


def _wording(hint: str) -> dict[str, float]:
    """Return how a hint is worded."""
    words, raw = _WORD.findall(hint.lower()), hint.split()
    capitals = sum(word[:1].isupper() for word in raw[1:])
    rare = sorted((rarity(word) for word in words), reverse=True) or [0.0]
    opening = words[0] if words else ""
    return {
        "words": len(words),
        "log_words": math.log1p(len(words)),
        "word_length": len(hint) / max(1, len(words)),
        "capitals": capitals,
        "capital_share": capitals / max(1, len(raw)),
        "numbers": sum(any(char.isdigit() for char in word) for word in raw),
        "year": bool(_YEAR.search(hint)),
        "rarity_mean": float(np.mean(rare)),
        "rarity_max": rare[0],
        "rarity_top": float(np.mean(rare[:3])),
        "known": "known" in words,
        "famous": bool({"famous", "popular"}.intersection(words)),
        "first": "first" in words,
        "superlative": "most" in words or any(word.endswith("est") for word in words),
        "not": "not" in words,
        "many": bool({"many", "several"}.intersection(words)),
        "hedge": bool({"often", "can", "may"}.intersection(words)),
        "quoted": bool(_QUOTE.search(hint)),
        "it": opening == "it",
        "the": opening == "the",
        "this": opening == "this",
        "person": opening in ("he", "she"),
        "request": opening == "think" or "consider" in words or "?" in hint,
        "commas": hint.count(","),
    }
