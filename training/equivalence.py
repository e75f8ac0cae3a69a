"""Train ``quit/models/weights/equivalence.npz`` on human verdicts, from nothing but them and MiniLM.

    OMP_NUM_THREADS=1 python -m training.equivalence --evouna ../shared/data/evouna
    --nq301 ../shared/data/openqa-eval/nq301_half.jsonl --out quit/models/weights/equivalence.npz

EVOUNA's questions are dealt into ten folds by a hash of their text. Folds 2 to 9 train the cross-encoder and the trees;
fold 1 and the verdicts of NQ301, on other questions, train the numbers of the last step; fold 0 is never trained
on. The figures printed at the end are of fold 0, and of NQ301 by cross-validation of the last step, ten folds of
questions. Seeded, one thread: on one machine the same bytes come out each time. Takes about 12 minutes of one core.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from quit.models.equivalence.crossencoder import CrossEncoder, Tokenizer
from quit.models.equivalence.embedded import EnsembleClassifier
from quit.models.equivalence.features import NAMES, lexical
from quit.models.equivalence.forms import alike, clean, focus, folded, trigrams
from quit.models.minilm.layers import load
from quit.models.minilm.packed import Pieces
from quit.models.minilm.rarity import rarity
from quit.models.protocols import Pair
from quit.text.tokens import STOP_WORDS, words
from training import padded
from training.differences import differences, save

SYSTEMS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
SEED = 17
LAYERS = (0, 1, 2, 3)
EPOCHS = 2
BATCH = 32
RATE = 1.5e-4
SMOOTHING = 0.02
TREES, TREE_RATE, LEAVES, LEAF_SIZE, RIDGE = 200, 0.05, 12, 30, 5.0
MADE_WEIGHT = 0.2
"""Of a synthetic pair, where a real one weighs 1, in the trees."""
REFERENCE_WEIGHT = 0.3
"""Of a pair with another reference than the gold answer (an alias, an accepted answer), in the trees."""
MISS_WEIGHT = 1.0
"""Of a near miss, in the trees."""
JOIN_WEIGHTS = {"real": 1.0, "miss": 1.0, "nq301": 3.0}
"""Of a pair of EVOUNA, of a near miss and of a pair of NQ301, in the last step."""
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
PER_SIGMA = 16.0
RISING = frozenset(
    "equal equal_as_sets equal_squeezed reference_inside inside_squeezed inside_beginning recall recall_content "
    "recall_new recall_fuzzy recall_worst trigram_recall trigram_window numbers_all number_near recall_rare "
    "recall_rare_new rarest_shared".split()
)
"""Features that may only raise the probability, all else equal."""
FALLING = frozenset(
    "other_first_name numbers_clash year_clash month_clash apology empty rarest_missing opposed".split()
)
"""Features that may only lower it."""


@dataclass(frozen=True, slots=True)
class Example:
    """One verdict. ``golds`` are sorted by likeness to the (cleaned) candidate; ``source`` is NQ, TQ or made."""

    question: str
    golds: tuple[str, ...]
    candidate: str
    label: bool
    system: str
    source: str


def likeness(reference: str, candidate: str) -> float:
    """Return how to rank references for a candidate: 3 equal, from 2 on contained, else shared trigrams, 0 to 1."""
    first, second = " ".join(folded(reference)), " ".join(folded(candidate))
    if first == second:
        return 3.0
    if first and f" {first} " in f" {second} ":
        return 2.0 + min(len(first), 999) / 1000
    shared = trigrams(first)
    return len(shared & trigrams(second)) / max(1, len(shared))


def fold(question: str, folds: int = 10) -> int:
    """Return the fold of a question: a hash of its text, so that the split needs no seed and never moves."""
    flat = " ".join(question.lower().split())
    return int.from_bytes(hashlib.blake2b(flat.encode(), digest_size=8).digest(), "big") % folds


def read(path: Path) -> list[Example]:
    """Return every judged, proper answer of one EVOUNA file."""
    examples = []
    for record in json.loads(path.read_text(encoding="utf-8")):
        if record["improper"]:
            continue
        golds = list(dict.fromkeys(gold.strip() for gold in record["golden_answer"].split("/") if gold.strip()))
        for system in SYSTEMS:
            verdict, answer = record.get(f"judge_{system}"), record.get(f"answer_{system}")
            if isinstance(verdict, bool) and isinstance(answer, str) and golds:
                candidate = clean(answer)
                ranked = tuple(sorted(golds, key=lambda gold: -likeness(gold, candidate)))
                examples.append(Example(record["question"].strip(), ranked, candidate, verdict, system, path.stem))
    return examples


def read_nq301(path: Path) -> list[Example]:
    """Return the verdicts of NQ301 (Kamalloo et al. 2023): lines of {question, answers, candidate, label}."""
    examples = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        candidate, golds = clean(row["candidate"]), [clean(gold) for gold in row["answers"]]
        ranked = tuple(sorted(golds, key=lambda gold: -likeness(gold, candidate)))
        examples.append(Example(row["question"], ranked, candidate, bool(row["label"]), "nq301", "NQ301"))
    return examples


def made(examples: Sequence[Example], rng: random.Random) -> list[Example]:
    """Return synthetic short pairs, such as leakage checks ask about and EVOUNA hardly holds.

    Per question one of: its gold answer itself (equivalent); the gold answer of another question of the same kind, half
    of the time one that looks alike; a word of its own text or of an answer to another question; one common word of its
    own gold answer, such as *university* (none of them equivalent).
    """
    kinds = ("who", "when", "where", "how many", "how", "which", "what")
    questions = {example.question: example for example in examples}
    by_kind: dict[str, list[Example]] = {}
    for example in questions.values():
        by_kind.setdefault(next((kind for kind in kinds if kind in example.question.lower()), ""), []).append(example)
    pool = [answer for group in by_kind.values() for example in group for answer in example.golds[:1]]
    by_word: dict[str, list[str]] = {}
    for answer in pool:
        for word in set(folded(answer)) - STOP_WORDS:
            by_word.setdefault(word[:4], []).append(answer)
    everything = list(questions.values())
    result = []

    def add(example: Example, candidate: str, label: bool) -> None:
        best = max(example.golds, key=lambda gold: likeness(gold, candidate))
        if candidate.strip() and (label or folded(candidate) not in {folded(gold) for gold in example.golds}):
            result.append(Example(example.question, (best,), candidate, label, "made", "made"))

    for group in by_kind.values():
        for example in group:
            gold, chance = example.golds[0], rng.random()
            if chance < 0.08:
                add(example, rng.choice([gold, gold.lower(), gold.upper(), f"the {gold}", f"{gold}."]), True)
            elif chance < 0.30:
                other = rng.choice(group).golds[0]
                if max(likeness(each, other) for each in example.golds) < 0.4:
                    add(example, other, False)
            elif chance < 0.55:
                alike = [
                    other
                    for word in sorted(set(folded(gold)) - STOP_WORDS)
                    for other in by_word.get(word[:4], ())
                    if max(likeness(each, other) for each in example.golds) < 2
                    and all(likeness(other, each) < 2 for each in example.golds)
                ]
                if alike:
                    add(example, rng.choice(alike), False)
            elif chance < 0.75:
                text = example.question if rng.random() < 0.4 else rng.choice(everything).candidate
                choice = [word for word in words(text) if word.lower() not in STOP_WORDS]
                if choice:
                    word = rng.choice(choice)
                    if max(likeness(gold, word) for gold in example.golds) < 0.4:
                        add(example, word, False)
            else:
                common = [word for word in gold.split() if word.isalpha() and word.islower() and rarity(word) < 0.35]
                if common and len(gold.split()) > 1:
                    add(example, rng.choice(common), False)
    return result


MODIFIERS = tuple(
    "light dark deep half quarter deputy vice assistant former anti non pseudo giant dwarf lesser".split()
)
"""Words that make another thing of the noun they come before."""


def aliases(examples: Sequence[Example], rng: random.Random) -> list[Example]:
    """Return a pair of two gold answers of each question that has several: equivalent, though often of other words.

    Gold answers that share no word are taken only where they are few and no person is asked for: longer lists name
    members of a list, or what a Wikipedia page links to.
    """
    result = []
    for example in {example.question: example for example in examples}.values():
        golds = sorted({gold for gold in example.golds if "(" not in gold})
        if len(golds) < 2:
            continue
        first, second = rng.sample(golds, 2)
        few = len(golds) <= 3 and not example.question.lower().startswith("who")
        if folded(first) != folded(second) and (few or likeness(first, second) > 0):
            result.append(Example(example.question, (first,), second, True, "made", "made"))
    return result


def accepted_references(examples: Sequence[Example], rng: random.Random) -> list[Example]:
    """Return verdicts on a question's answers with an answer that people accepted, at most eight words long, in the
    gold answer's place: other wordings and other granularity than the sources'."""
    by_question: dict[str, list[Example]] = {}
    for example in examples:
        by_question.setdefault(example.question, []).append(example)
    result = []
    for group in by_question.values():
        references = [
            example
            for example in group
            if example.label
            and len(example.candidate.split()) <= 8
            and all(folded(example.candidate) != folded(gold) for gold in example.golds)
        ]
        for reference in references[:1]:
            result += [
                Example(other.question, (reference.candidate,), other.candidate, other.label, other.system, "made")
                for other in group
                if other is not reference and (not other.label or rng.random() < 0.5)
            ]
    return result


_OPPOSITE = {
    "north": "south",
    "south": "north",
    "east": "west",
    "west": "east",
    "million": "billion",
    "billion": "million",
}


def near_misses(examples: Sequence[Example], rng: random.Random) -> list[Example]:
    """Return pairs that share words and differ in one, and as many that differ in form alone: what the trees should
    weigh.

    EVOUNA holds few of the former (systems seldom answer with a namesake), and leakage checks meet many.
    """
    questions = {example.question: example for example in examples}
    golds = [(example, gold) for example in questions.values() for gold in example.golds[:1]]
    people = [(e, g.split()) for e, g in golds if e.question.lower().startswith("who") and _is_name(g.split())]
    firsts, lasts = sorted({g[0] for _, g in people}), sorted({g[-1] for _, g in people})
    singles = sorted(
        {gold for _, gold in golds if gold.isalpha() and gold[0].isupper()}, key=lambda g: (g.casefold(), g)
    )
    counts: dict[str, int] = {}
    for _, gold in golds:
        for word in set(folded(gold)):
            counts[word] = counts.get(word, 0) + 1
    result: list[Example] = []

    def add(example: Example, gold: str, candidate: str, label: bool) -> None:
        if label or all(folded(candidate) != folded(each) for each in example.golds):
            result.append(Example(example.question, (gold,), candidate, label, "made", "made"))

    for example, name in people:
        gold, last, chance = " ".join(name), name[-1], rng.random()
        if chance < 0.25:
            add(example, gold, f"{rng.choice([f for f in firsts if f[0] != name[0][0]])} {last}", False)
        elif chance < 0.35:
            add(example, gold, f"{name[0]} {rng.choice([other for other in lasts if other != last])}", False)
        elif chance < 0.5:
            add(example, gold, last, True)
        elif chance < 0.65:
            add(example, gold, f"{name[0][0]}. {last}", True)
        elif chance < 0.75 and len(name) == 3:
            add(example, gold, f"{name[0]} {last}", True)
    for example, gold in golds:
        low = gold.split()
        for index, word in enumerate(low):
            if word.lower() in _OPPOSITE:
                other = _OPPOSITE[word.lower()]
                changed = other.capitalize() if word[0].isupper() else other
                add(example, gold, " ".join([*low[:index], changed, *low[index + 1 :]]), False)
        digits = [index for index, char in enumerate(gold) if char.isdigit()]
        if digits and rng.random() < 0.6:
            at = rng.choice(digits[-2:])
            add(example, gold, f"{gold[:at]}{(int(gold[at]) + rng.randint(1, 9)) % 10}{gold[at + 1 :]}", False)
        named = [month for month in MONTH_NAMES if month in gold]
        if named and rng.random() < 0.7:
            add(example, gold, gold.replace(named[0], rng.choice([m for m in MONTH_NAMES if m not in named])), False)
        date = re.fullmatch(r"(\w+) (\d{1,2}), (\d{4})", gold)
        if date and named:
            add(example, gold, f"{date[2]} {date[1]} {date[3]}", True)
        if digits and rng.random() < 0.3:
            at = digits[-1] + 1
            more = f"{rng.randint(0, 9)}" if rng.random() < 0.5 else f".{rng.randint(11, 999)}"
            add(example, gold, f"{gold[:at]}{more}{gold[at:]}", False)
        if not digits and len(low) <= 2 and gold not in singles and not _is_name(low) and rng.random() < 0.3:
            add(example, gold, f"{rng.choice(MODIFIERS)} {gold}", False)
        if len(low) >= 4 and rng.random() < 0.6:
            at = rng.choice([index for index, word in enumerate(low) if word.lower() not in STOP_WORDS] or [0])
            others = [word for word in rng.choice(golds)[1].split() if word.lower() not in STOP_WORDS]
            changed = rng.choice(others) if others else ""
            if changed.isalpha() and all(alike(changed.lower(), word.lower()) < 0.4 for word in low):
                add(example, gold, " ".join([*low[:at], changed, *low[at + 1 :]]), False)
        generic = [
            word for word in low if counts.get(folded(word)[0] if folded(word) else "", 0) >= 6 and word.isalpha()
        ]
        generic = [word for word in generic if word.lower() not in STOP_WORDS and len(low) > 1 and word != low[-1]] + [
            word for word in generic[-1:] if word == low[-1] and rarity(word.lower()) < 0.35 and len(low) > 1
        ]
        if generic and rng.random() < 0.5:
            add(example, gold, rng.choice(generic), False)
    for first, second in pairwise(singles):
        near = first[:3].casefold() == second[:3].casefold()
        if near and alike(first.casefold(), second.casefold()) < 0.85 and folded(first) != folded(second):
            example = next(example for example, gold in golds if gold in (first, second))
            gold = first if first in example.golds else second
            add(example, gold, second if gold == first else first, False)
    return result


def _is_name(name: Sequence[str]) -> bool:
    return 2 <= len(name) <= 3 and all(part[0].isupper() and part.isalpha() and len(part) > 1 for part in name)


def chosen(examples: Sequence[Example], rng: random.Random) -> list[Example]:
    """Return what the cross-encoder learns from: easy pairs (equal, contained) are thinned out, hard ones all stay."""
    kept = []
    for example in examples:
        near = likeness(example.golds[0], example.candidate)
        share = 0.2 if near == 3 else 0.5 if near >= 2 and example.label else 1.0
        if rng.random() < share:
            kept.append(example)
    return kept


def sequences(examples: Sequence[Example], tokenizer: Tokenizer) -> list[Pieces]:
    return [
        tokenizer.sequence(example.question, example.golds[0], focus(example.golds[0], example.candidate))
        for example in examples
    ]


def train_cross(examples: Sequence[Example], tokenizer: Tokenizer, log) -> CrossEncoder:
    """Fine-tune the cross-encoder. The seeds of weights, order and dropout are SEED's."""
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    model = CrossEncoder(LAYERS)
    encoded = list(zip(sequences(examples, tokenizer), [float(example.label) for example in examples], strict=True))
    steps = EPOCHS * -(-len(encoded) // BATCH)
    fresh = {"pool", "head", "matches"}
    groups = [
        {"params": [p for n, p in model.named_parameters() if n.split(".")[0] not in fresh], "lr": RATE},
        {"params": [p for n, p in model.named_parameters() if n.split(".")[0] in fresh], "lr": 5 * RATE},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / (0.08 * steps)) * max(0.02, 1 - step / steps)
    )
    model.train()
    done, total, start = 0, 0.0, time.time()
    for _ in range(EPOCHS):
        order = encoded.copy()
        rng.shuffle(order)
        # Sequences of like length share a batch: less padding, less time.
        batches = []
        for first in range(0, len(order), 32 * BATCH):
            part = sorted(order[first : first + 32 * BATCH], key=lambda item: len(item[0][0]))
            batches += [part[at : at + BATCH] for at in range(0, len(part), BATCH)]
        rng.shuffle(batches)
        for batch in batches:
            logits = padded.logits(model, [text for text, _ in batch])
            target = torch.tensor([label for _, label in batch]) * (1 - 2 * SMOOTHING) + SMOOTHING
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, target)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            done, total = done + 1, total + loss.item()
            if done % 50 == 0:
                log(f"step {done}/{steps} loss {total / 50:.4f} {time.time() - start:.0f} s")
                total = 0.0
    return model.eval()


def inputs(examples: Sequence[Example]) -> np.ndarray:
    """Return the lexical features of each example's most alike gold answer, shape (examples, len(NAMES))."""
    return np.array([lexical(Pair(example.question, example.golds[0], example.candidate)) for example in examples])


def fit_trees(examples: Sequence[tuple[float, Sequence[Example]]]) -> dict[str, np.ndarray]:
    """Fit boosted trees on weighted examples, monotone where sense says so, and return them as arrays of shape (trees,
    nodes)."""
    model = HistGradientBoostingClassifier(
        max_iter=TREES,
        learning_rate=TREE_RATE,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=LEAF_SIZE,
        l2_regularization=RIDGE,
        early_stopping=False,
        random_state=SEED,
        monotonic_cst=[(name in RISING) - (name in FALLING) for name in NAMES],
    )
    weights = np.repeat([weight for weight, _ in examples], [len(group) for _, group in examples])
    x = inputs([example for _, group in examples for example in group])
    model.fit(x, [example.label for _, group in examples for example in group], sample_weight=weights)
    trees = [predictor.nodes for (predictor,) in model._predictors]
    shape = (len(trees), max(len(nodes) for nodes in trees))
    arrays: dict[str, np.ndarray] = {
        "tree_feature": np.zeros(shape, np.int16),
        "tree_threshold": np.full(shape, np.inf),
        "tree_left": np.zeros(shape, np.int16),
        "tree_right": np.zeros(shape, np.int16),
        "tree_value": np.zeros(shape, np.float64),
        "tree_base": np.array(model._baseline_prediction.item()),
    }
    for row, nodes in enumerate(trees):
        for column, node in enumerate(nodes):
            leaf = bool(node["is_leaf"])
            arrays["tree_feature"][row, column] = 0 if leaf else node["feature_idx"]
            arrays["tree_threshold"][row, column] = np.inf if leaf else node["num_threshold"]
            arrays["tree_left"][row, column] = column if leaf else node["left"]
            arrays["tree_right"][row, column] = column if leaf else node["right"]
            arrays["tree_value"][row, column] = node["value"] if leaf else 0.0
    assert np.allclose(EnsembleClassifier(arrays).trees(x[:500]), model.decision_function(x[:500]))
    return arrays


@dataclass(frozen=True)
class Scored:
    """Log odds of both parts for every gold answer of some examples, and the row of each example's best one."""

    examples: Sequence[Example]
    odds: np.ndarray  # (gold answers of all examples, 2)
    owner: np.ndarray
    best: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        return np.array([example.label for example in self.examples])

    @classmethod
    def of(cls, model: EnsembleClassifier, examples: Sequence[Example], tokenizer: Tokenizer) -> Scored:
        """Score examples with the trees and the cross-encoder."""
        single = [replace(example, golds=(gold,)) for example in examples for gold in example.golds]
        owner = np.repeat(np.arange(len(examples)), [len(example.golds) for example in examples])
        odds = np.stack([model.trees(inputs(single)), model.cross(sequences(single, tokenizer))], axis=1)
        order = np.lexsort((-odds.sum(axis=1), owner))
        return cls(examples, odds, owner, order[np.unique(owner, return_index=True)[1]])

    def probability(self, step: Mapping[str, np.ndarray], of: np.ndarray) -> np.ndarray:
        """Return the highest probability over the gold answers of the examples ``of`` (a mask)."""
        trees, (low, high), (slope, bias) = self.odds[:, 0], step["band"], step["alone"]
        both = self.odds @ step["join"] + step["join_bias"]
        logits = np.where((low <= trees) & (trees <= high), both, slope * trees + bias)
        values = np.zeros(len(self.examples))
        np.maximum.at(values, self.owner, 1 / (1 + np.exp(-logits)))
        return values[of]


def fit_last(sets: Sequence[tuple[float, Scored, np.ndarray]]) -> dict[str, np.ndarray]:
    """Fit the last step on weighted examples (weight, scores, mask) that neither part has seen.

    ``join`` and ``join_bias`` are of both parts, ``alone`` (slope, bias) of the trees without the cross-encoder.
    ``band``: the lowest and the highest log odds of the trees at which the two give a pair of these examples different
    verdicts; outside it the cross-encoder is not asked.
    """
    x = np.concatenate([scored.odds[scored.best[mask]] for _, scored, mask in sets])
    y = np.concatenate([scored.labels[mask] for _, scored, mask in sets])
    weights = np.concatenate([np.full(mask.sum(), weight) for weight, _, mask in sets])
    join, alone = (
        LogisticRegression(C=10.0, max_iter=2000).fit(x[:, :parts], y, sample_weight=weights) for parts in (2, 1)
    )
    odds = np.concatenate([scored.odds[mask[scored.owner]] for _, scored, mask in sets])
    differing = odds[join.predict(odds) != alone.predict(odds[:, :1]), 0]
    numbers = {
        "join": join.coef_[0],
        "join_bias": join.intercept_[0],
        "alone": np.array([alone.coef_[0, 0], alone.intercept_[0]]),
        "band": np.array([differing.min(), differing.max()]),
    }
    # Rounded: the solver's last bits differ from one processor to the next.
    return {name: np.round(value, 12) for name, value in numbers.items()}


def calibration_error(probability: np.ndarray, label: np.ndarray, bins: int = 10) -> float:
    """Return the expected calibration error over equally wide bins."""
    which = np.minimum((probability * bins).astype(int), bins - 1)
    return sum(
        abs(probability[which == b].mean() - label[which == b].mean()) * (which == b).mean() for b in np.unique(which)
    )


def report(model: EnsembleClassifier, examples: Sequence[Example]) -> None:
    """Print the figures of the examples, as the shipped model judges them: the best over all golds."""
    flat = [(row, Pair(e.question, gold, e.candidate)) for row, e in enumerate(examples) for gold in e.golds]
    p = np.zeros(len(examples))
    np.maximum.at(p, [row for row, _ in flat], model.probability([pair for _, pair in flat]))
    y = np.array([example.label for example in examples])
    parts = {source: np.array([example.source == source for example in examples]) for source in ("NQ", "TQ")}
    for name, part in {"all": np.ones(len(y), bool), **parts}.items():
        _print(f"EVOUNA, fold 0, {name}", p[part], y[part])


def _print(name: str, p: np.ndarray, y: np.ndarray) -> None:
    print(f"{name}: n={len(y)} accuracy={((p >= 0.5) == y).mean():.4f} ece={calibration_error(p, y):.4f}")


def cross_validate(fixed: Sequence[tuple[float, Scored, np.ndarray]], nq301: Scored) -> None:
    """Print NQ301's figures when the last step learns from the other nine tenths of its questions."""
    folds = np.array([fold(example.question) for example in nq301.examples])
    p = np.zeros(len(folds))
    for number in range(10):
        step = fit_last([*fixed, (JOIN_WEIGHTS["nq301"], nq301, folds != number)])
        p[folds == number] = nq301.probability(step, folds == number)
    _print("NQ301, cross-validated", p, nq301.labels)


def train_parts(examples: Sequence[Example], tokenizer: Tokenizer, log) -> dict[str, np.ndarray]:
    """Return the arrays of cross-encoder and trees, trained on ``examples``."""
    rng = random.Random(SEED)
    synthetic, misses = made(examples, rng), near_misses(examples, random.Random(SEED))
    thinned = chosen(examples, rng)
    references = [*aliases(examples, rng), *accepted_references(examples, rng)]
    # Lower precision inside training's matrix products only: half the time.
    torch.set_float32_matmul_precision("medium")
    trained = train_cross([*thinned, *synthetic], tokenizer, log)
    torch.set_float32_matmul_precision("highest")
    arrays = differences(trained, CrossEncoder(LAYERS), PER_SIGMA)
    arrays["cross_layers"] = np.array(LAYERS, np.int16)
    log("cross-encoder done")
    weighted = [(1.0, examples), (MADE_WEIGHT, synthetic), (REFERENCE_WEIGHT, references), (MISS_WEIGHT, misses)]
    arrays |= fit_trees(weighted)
    log("trees done")
    return arrays


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evouna", type=Path, required=True, help="folder of NQ.json and TQ.json")
    parser.add_argument("--nq301", type=Path, required=True, help="JSONL of {question, answers, candidate, label}")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parts", type=Path, help="weights whose trees and cross-encoder are taken")
    options = parser.parse_args()
    start = time.time()

    def log(text: str) -> None:
        print(f"[{time.time() - start:6.0f} s] {text}", flush=True)

    examples = [example for name in ("NQ", "TQ") for example in read(options.evouna / f"{name}.json")]
    folds = {k: [example for example in examples if fold(example.question) == k] for k in range(2)}
    tokenizer = Tokenizer()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        if options.parts:
            arrays = load(options.parts)
        else:
            arrays = train_parts([example for example in examples if fold(example.question) > 1], tokenizer, log)
        parts = EnsembleClassifier(arrays)
        scored = {
            "real": Scored.of(parts, folds[1], tokenizer),
            "miss": Scored.of(parts, near_misses(folds[1], random.Random(SEED)), tokenizer),
            "nq301": Scored.of(parts, read_nq301(options.nq301), tokenizer),
        }
        weights = [(JOIN_WEIGHTS[name], part, np.ones(len(part.examples), bool)) for name, part in scored.items()]
        arrays |= fit_last(weights)
        save(options.out, arrays)
        log("last step done")
        cross_validate(weights[:2], scored["nq301"])
        report(EnsembleClassifier(arrays), folds[0])
    log(f"{options.out} has {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
