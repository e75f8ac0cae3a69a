"""The lexical half of the embedded equivalence: what two answers have in common, and where they contradict each other.

Everything here is arithmetic on the three strings, without a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import astuple

from quit.common.arithmetic import sum_in_order
from quit.models.equivalence.forms import VALUES, alike, folded, jaccard, months, numbers, trigrams
from quit.models.minilm.rarity import rarity
from quit.models.protocols import Pair
from quit.text.numbers import SCALES
from quit.text.tokens import STOP_WORDS

_NEGATIONS = frozenset(
    "not no never none neither nor cannot unable unknown unclear sorry isn't wasn't doesn't didn't don't".split()
)
_OPPOSITES = tuple(
    frozenset(group.split())
    for group in (
        "north south east west northern southern eastern western", "left right", "upper lower", "old new",
        "male female", "father mother", "son daughter", "brother sister", "king queen", "prince princess",
        "summer winter",
        "positive negative", "direct indirect", "increase decrease", "before after",
        "million billion trillion thousand", "1 2 3 4 5 6 7 8 9", "i ii iii iv v vi vii viii ix x", "ad bc bce ce",
        "am pm", "senior junior sr jr",
    )
)  # fmt: skip
"""Words of a group exclude each other: two answers that differ in them differ."""
_APOLOGY = re.compile(
    r"\b(?:as an ai|sorry|i (?:do not|don't|could not|couldn't|cannot|can't)|no answer"
    r"|no (?:specific|definitive|information|single)|unknown|not (?:clear|specified|known|available|possible))"
)
_ASKED = {
    "who": frozenset("who whom whose".split()),
    "when": frozenset("when year date".split()),
    "where": frozenset("where country city state located".split()),
    "how_many": frozenset("many much long far old tall".split()),
    "why": frozenset(["why"]),
}
_CAPITAL = re.compile(r"(?<!^)(?<![.!?] )\b[A-Z][a-z]+")

_SHORT = 8
"""Words of a short candidate at most."""

NAMES = (
    "equal", "equal_as_sets", "equal_squeezed", "reference_inside", "candidate_inside", "inside_squeezed",
    "inside_position", "inside_beginning", "f1", "recall", "precision", "recall_content", "recall_new", "recall_fuzzy",
    "recall_worst", "precision_fuzzy", "last_word", "first_word", "other_first_name", "trigram_jaccard",
    "trigram_recall", "trigram_window", "candidate_is_initials", "reference_is_initials", "has_number", "numbers_all",
    "numbers_some", "numbers_clash", "number_missing", "year_clash", "first_number", "number_near", "month_clash",
    "month_equal", "negation_early", "negation", "apology", "candidate_in_question", "question_share",
    "reference_in_question", "extra_words", "or", "list", "who", "when", "where", "how_many", "why", "yes_no",
    "reference_length", "candidate_length", "reference_content", "short", "short_inside", "empty", "other_names",
    "recall_rare", "recall_rare_new", "precision_rare", "rarest_shared", "rarest_missing", "rarest_extra",
    "opposed",
)  # fmt: skip


def _share(weights: Sequence[tuple[str, float]]) -> float:
    """Return the mean of the values, each weighted by the length of its word: rare words are long."""
    total = sum(len(word) for word, _ in weights)
    return sum(len(word) * value for word, value in weights) / max(1, total)


def lexical(pair: Pair) -> list[float]:
    """Return the features of a pair in the order of NAMES; its answers have been through :func:`.forms.clean`."""
    question, reference, candidate = astuple(pair)
    gold, answer, question_words = folded(reference), folded(candidate), set(folded(question))
    values = {
        **_inclusion(gold, answer),
        **_words(gold, answer, question_words),
        **_letters(gold, answer),
        **_quantities(reference, candidate),
        **_wording(question, candidate),
    }
    names = [word for word in _CAPITAL.findall(candidate) if not set(folded(word)) & (question_words | set(gold))]
    values["other_names"] = min(len(names), 6) / 3
    same_numbers = numbers(reference) and numbers(reference) == numbers(candidate)
    if same_numbers and _only_numbers(reference) and _only_numbers(candidate):
        values |= {"equal": True, "equal_as_sets": True, "equal_squeezed": True}
    return [float(values[name]) for name in NAMES]


def _inclusion(gold: Sequence[str], answer: Sequence[str]) -> dict[str, float]:
    """Return whether the reference and the candidate are equal, and which of them contains the other."""
    gold_text, answer_text, gold_tight, answer_tight = " ".join(gold), " ".join(answer), "".join(gold), "".join(answer)
    inside = bool(gold) and f" {gold_text} " in f" {answer_text} "
    short = len(answer) <= _SHORT
    return {
        "equal": gold == answer,
        "equal_as_sets": set(gold) == set(answer),
        "equal_squeezed": bool(gold_tight) and gold_tight == answer_tight,
        "reference_inside": inside,
        "candidate_inside": bool(answer) and f" {answer_text} " in f" {gold_text} ",
        "inside_squeezed": len(gold_tight) >= 4 and gold_tight in answer_tight,
        "inside_position": f" {answer_text} ".index(f" {gold_text} ") / max(1, len(answer_text)) if inside else 1.0,
        "inside_beginning": inside and f" {gold_text} " in f" {' '.join(answer[:20])} ",
        "yes_no": gold_tight in ("yes", "no"),
        "reference_length": min(len(gold), 15) ** 0.5,
        "candidate_length": min(len(answer), 80) ** 0.5,
        "short": short,
        "short_inside": short and inside,
        "empty": not answer or answer == ("no", "answer"),
    }


def _words(gold: Sequence[str], answer: Sequence[str], question_words: set[str]) -> dict[str, float]:
    """Return which words the reference, the candidate and the question share, equal or alike."""
    gold_set, answer_set = set(gold), set(answer)
    gold_words = [word for word in gold if word not in STOP_WORDS] or list(gold)
    answer_words = list(dict.fromkeys([word for word in answer if word not in STOP_WORDS] or answer))
    common = len(gold_set & answer_set)
    new = [(word, float(word in answer_set)) for word in gold_words if word not in question_words]
    matches = [(word, max((alike(word, other) for other in answer_words), default=0.0)) for word in gold_words]
    reverse = {word: max((alike(word, other) for other in gold_words), default=0.0) for word in answer_words}
    extra = sum(1 for word, near_gold in reverse.items() if word not in question_words and near_gold < 0.3)
    last = bool(gold_words) and gold_words[-1] in answer_set
    groups = [group for group in _OPPOSITES if gold_set & group and answer_set & group]
    return {
        "f1": 2 * common / max(1, len(gold_set) + len(answer_set)),
        "recall": common / max(1, len(gold_set)),
        "precision": common / max(1, len(answer_set)),
        "recall_content": _share([(word, float(word in answer_set)) for word in gold_words]),
        "recall_new": _share(new) if new else 0.5,
        "recall_fuzzy": _share(matches),
        "recall_worst": min((value for _, value in matches), default=0.0),
        "precision_fuzzy": _share(list(reverse.items())[:40]),
        "last_word": last,
        "first_word": bool(gold_words) and gold_words[0] in answer_set,
        "other_first_name": last and _other_first_name(gold_words, answer),
        "candidate_in_question": bool(answer_words) and all(word in question_words for word in answer_words),
        "question_share": sum(word in question_words for word in answer_words) / max(1, len(answer_words)),
        "reference_in_question": bool(gold_words) and all(word in question_words for word in gold_words),
        "extra_words": min(extra, 20) / 5,
        "reference_content": min(len(gold_words), 10) / 5,
        "opposed": any(not gold_set & answer_set & group for group in groups),
        **_rare(gold_words, answer_words, question_words),
    }


def _rare(gold: Sequence[str], answer: Sequence[str], question_words: set[str]) -> dict[str, float]:
    """Return recall (of all, and of what the question does not give away), precision and extremes, by rarity."""
    common = set(gold) & set(answer)
    extra = [word for word in answer if word not in gold and word not in question_words]
    weight = sum_in_order(rarity(word) for word in gold)
    new = [word for word in gold if word not in question_words]
    weight_new = sum_in_order(rarity(word) for word in new)
    recall = sum_in_order(rarity(word) for word in gold if word in common)
    recalled_new = sum_in_order(rarity(word) for word in new if word in common)
    precise = sum_in_order(rarity(word) for word in answer if word in common)
    return {
        "recall_rare": recall / weight if weight else float(bool(common)),
        "recall_rare_new": recalled_new / weight_new if weight_new else 0.5,
        "precision_rare": precise / max(1e-3, sum_in_order(rarity(word) for word in answer)),
        "rarest_shared": max((rarity(word) for word in common), default=0.0),
        "rarest_missing": max((rarity(word) for word in gold if word not in common), default=0.0),
        "rarest_extra": max((rarity(word) for word in extra), default=0.0),
    }


def _letters(gold: Sequence[str], answer: Sequence[str]) -> dict[str, float]:
    """Return which letter trigrams the two share, and whether one is the other's initials."""
    gold_grams, answer_grams = trigrams(" ".join(gold)), trigrams(" ".join(answer))
    size = max(1, len(gold))
    windows = (" ".join(answer[start : start + size]) for start in range(max(1, len(answer) - size + 1)))
    gold_tight, gold_initials, answer_initials = "".join(gold), _initials(gold), _initials(answer)
    return {
        "trigram_jaccard": jaccard(gold_grams, answer_grams),
        "trigram_recall": len(gold_grams & answer_grams) / max(1, len(gold_grams)),
        "trigram_window": max(jaccard(trigrams(window), gold_grams) for window in windows),
        "candidate_is_initials": len(gold_initials) > 1 and gold_initials in (*answer, "".join(answer)),
        "reference_is_initials": 1 < len(gold_tight) < 6 and len(answer) <= _SHORT and gold_tight == answer_initials,
    }


def _quantities(reference: str, candidate: str) -> dict[str, float]:
    """Return which numbers, years and months the two share, and where they contradict each other."""
    gold_numbers, answer_numbers = set(numbers(reference)), set(numbers(candidate))
    gold_years, answer_years = _years(gold_numbers), _years(answer_numbers)
    gold_months, answer_months = months(reference), months(candidate)
    far = (5 * abs(a - b) / max(abs(a), abs(b), 1e-9) for a in gold_numbers for b in answer_numbers)
    return {
        "has_number": bool(gold_numbers),
        "numbers_all": bool(gold_numbers) and gold_numbers <= answer_numbers,
        "numbers_some": bool(gold_numbers & answer_numbers),
        "numbers_clash": bool(gold_numbers and answer_numbers and not gold_numbers & answer_numbers),
        "number_missing": bool(gold_numbers) and not answer_numbers,
        "year_clash": bool(gold_years and answer_years and not gold_years & answer_years),
        "first_number": bool(gold_numbers and answer_numbers) and numbers(candidate)[0] in gold_numbers,
        "number_near": max((1 - min(1.0, value) for value in far), default=0.0),
        "month_clash": bool(gold_months and answer_months and not gold_months & answer_months),
        "month_equal": bool(gold_months & answer_months),
    }


def _wording(question: str, candidate: str) -> dict[str, float]:
    """Return what is asked for, and whether the candidate negates, apologises or lists."""
    raw = [word.strip(".,;:!?\"'()") for word in candidate.casefold().split()]
    question_words = set(question.casefold().replace("?", " ").split())
    return {
        "negation_early": any(word in _NEGATIONS for word in raw[:12]),
        "negation": any(word in _NEGATIONS for word in raw),
        "apology": _APOLOGY.search(candidate.casefold()) is not None,
        "or": "or" in raw,
        "list": (candidate.count(",") + raw.count("and")) / 5 if len(raw) < 20 else 0.0,
        **{name: not question_words.isdisjoint(words) for name, words in _ASKED.items()},
    }


def _only_numbers(text: str) -> bool:
    return {"and", *VALUES, *SCALES}.issuperset(re.findall(r"[^\W\d_]+", text.casefold()))


def _initials(words: Sequence[str]) -> str:
    return "".join(word[0] for word in words if word not in STOP_WORDS)


def _years(values: set[float]) -> set[float]:
    return {value for value in values if 1000 <= value <= 2100 and value == int(value)}


def _other_first_name(gold_words: Sequence[str], answer: Sequence[str]) -> bool:
    """Tell whether the reference's last word follows, in the candidate, a word that the reference does not know."""
    if len(gold_words) < 2:
        return False
    at = max(index for index, word in enumerate(answer) if word == gold_words[-1])
    before = answer[at - 1] if at else ""
    return bool(before) and before not in STOP_WORDS and all(alike(word, before) < 0.3 for word in gold_words)
