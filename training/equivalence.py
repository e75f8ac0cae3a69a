"""Train ``quit/models/weights/equivalence.npz`` on EVOUNA's human verdicts, from nothing but them and MiniLM.

    OMP_NUM_THREADS=1 python training/equivalence.py --data ../shared/data/evouna --out quit/models/weights/equivalence.npz

Questions are dealt into ten folds by a hash of their text. Folds 2 to 9 train the cross-encoder and the trees, fold 1
trains the four numbers that join the two, fold 0 is never trained on: the figures printed at the end are of fold 0. Seeded,
one thread: on one machine the same bytes come out each time.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import random
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from quit.evaluate.normalize import STOP_WORDS, normalize_answer, words
from quit.models.equivalence.crossencoder import CrossEncoder, Sequence3, Tokenizer, collate
from quit.models.equivalence.features import FALLING, NAMES, RISING, clean, focus, folded, lexical, likeness, rarity

SYSTEMS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
SEED = 17
LAYERS = (0, 1, 2, 3)
EPOCHS = 2
BATCH = 32
RATE = 1.5e-4
SMOOTHING = 0.02


@dataclass(frozen=True, slots=True)
class Example:
    """One verdict. ``golds`` are sorted by likeness to the (cleaned) candidate; ``source`` is NQ, TQ or made."""

    question: str
    golds: tuple[str, ...]
    candidate: str
    label: bool
    system: str
    source: str


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

    for kind, group in by_kind.items():
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


def chosen(examples: Sequence[Example], rng: random.Random) -> list[Example]:
    """Return what the cross-encoder learns from: easy pairs (equal, contained) are thinned out, hard ones all stay."""
    kept = []
    for example in examples:
        near = likeness(example.golds[0], example.candidate)
        share = 0.2 if near == 3 else 0.5 if near >= 2 and example.label else 1.0
        if rng.random() < share:
            kept.append(example)
    return kept


def sequences(examples: Sequence[Example], tokenizer: Tokenizer) -> list[Sequence3]:
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
            part = sorted(order[first : first + 32 * BATCH], key=lambda item: len(item[0].ids))
            batches += [part[at : at + BATCH] for at in range(0, len(part), BATCH)]
        rng.shuffle(batches)
        for batch in batches:
            length = max(len(item.ids) for item, _ in batch)
            logits = model(*collate([item for item, _ in batch], length, len(batch)))
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
