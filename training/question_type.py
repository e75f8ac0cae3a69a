"""Train ``quit/models/weights/question_type.npz`` on the TREC questions, from nothing but them and MiniLM.

    OMP_NUM_THREADS=1 python -m training.question_type --data ../shared/data/trec-qc/train_5500.label \
        --out quit/models/weights/question_type.npz

Seeded, one thread: on one machine the same bytes come out each time. Takes about 6 minutes of a free core.
``--fold K`` leaves one fifth of the questions out, reports accuracy on them, and writes no weights without ``--out``.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from quit.models.minilm.encoder import MiniLM
from quit.models.minilm.layers import QuestionNet
from quit.models.question_type import BUCKETS, buckets, coarse_of, pieces
from training import padded
from training.differences import differences, save

SEED = 13
SCALE, WORD, C = 4.0, 1.0, 4.0
"""Of the linear model: weight of the sentence vector, weight of a word feature, inverse regularisation."""
EPOCHS, BATCH, RATE, SMOOTHING, COARSE_WEIGHT = 5, 32, 2e-4, 0.05, 0.3
"""Of the fine-tuned model."""
PER_SIGMA = 8.0
SHARE = 0.6
"""Weight of the fine-tuned model's log probabilities; the linear model has the rest."""


def read(path: Path) -> tuple[list[str], np.ndarray]:
    """Return the questions and TREC labels of a file (Latin-1, one ``LABEL question`` a line)."""
    lines = [line.split(" ", 1) for line in path.read_text("latin-1").splitlines() if line.strip()]
    return [text for _, text in lines], np.array([label for label, _ in lines])


def features(questions: list[str], encoder: MiniLM) -> sparse.csr_matrix:
    """Return the linear model's features, shape (questions, 384 + BUCKETS)."""
    rows = [buckets(question) for question in questions]
    indptr = np.cumsum([0, *map(len, rows)])
    shape = (len(rows), BUCKETS)
    lexical = sparse.csr_matrix((np.full(indptr[-1], WORD), np.concatenate(rows), indptr), shape)
    return sparse.hstack([sparse.csr_matrix(encoder.encode(questions).astype(np.float64) * SCALE), lexical]).tocsr()


def fit_linear(questions: list[str], labels: np.ndarray) -> dict[str, np.ndarray]:
    """Return the linear model as arrays: labels, bias, dense, sparse."""
    model = LogisticRegression(C=C, max_iter=300, tol=1e-4).fit(features(questions, MiniLM()), labels)
    return {
        "labels": model.classes_.astype("U"),
        "bias": model.intercept_,
        "dense": (model.coef_[:, :384] * SCALE).astype(np.float32),
        "sparse": np.ascontiguousarray((model.coef_[:, 384:] * WORD).T.astype(np.float16)),
    }


def fit_net(questions: list[str], labels: np.ndarray) -> QuestionNet:
    """Fine-tune MiniLM: cross-entropy of the fine type, and of the coarse type its probabilities sum to."""
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    names = sorted(set(labels))
    targets = np.array([names.index(label) for label in labels])
    same_coarse = torch.tensor(coarse_of(names)[:, None] == coarse_of(names)[None, :])
    model = QuestionNet(len(names))
    encoded = pieces(questions)
    groups = [
        {"params": [p for n, p in model.named_parameters() if not n.startswith("head")], "lr": RATE},
        {"params": [p for n, p in model.named_parameters() if n.startswith("head")], "lr": 10 * RATE},
    ]
    steps = EPOCHS * -(-len(questions) // BATCH)
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / (0.1 * steps)) * max(0.01, 1 - step / steps)
    )
    model.train()
    start = time.time()
    for epoch in range(EPOCHS):
        order = list(range(len(questions)))
        rng.shuffle(order)
        batches = []
        for first in range(0, len(order), 16 * BATCH):
            part = sorted(order[first : first + 16 * BATCH], key=lambda row: len(encoded[row]))
            batches += [part[at : at + BATCH] for at in range(0, len(part), BATCH)]
        rng.shuffle(batches)
        total = 0.0
        for batch in batches:
            logits = padded.logits(model, [(encoded[row],) for row in batch])
            target = torch.from_numpy(targets[batch])
            log_p = torch.log_softmax(logits, dim=1)
            coarse = torch.logsumexp(log_p.masked_fill(~same_coarse[target], -1e9), dim=1)
            loss = torch.nn.functional.cross_entropy(logits, target, label_smoothing=SMOOTHING)
            loss = loss - COARSE_WEIGHT * coarse.mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}/{EPOCHS} loss {total / len(batches):.4f} {time.time() - start:.0f} s", flush=True)
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--fold", type=int, help="leave this fifth (0 to 4) out and report accuracy on it")
    options = parser.parse_args()
    questions, labels = read(options.data)
    held = np.zeros(len(questions), dtype=bool)
    if options.fold is not None:
        folds = StratifiedKFold(5, shuffle=True, random_state=SEED).split(questions, labels)
        held[list(folds)[options.fold][1]] = True
    torch.set_num_threads(1)
    with threadpool_limits(1):
        train = [question for question, out in zip(questions, held, strict=True) if not out]
        arrays = fit_linear(train, labels[~held])
        # Lower precision inside the matrix products of fine-tuning: half the time.
        torch.set_float32_matmul_precision("medium")
        net = fit_net(train, labels[~held])
        torch.set_float32_matmul_precision("highest")
        arrays |= differences(net, QuestionNet(len(arrays["labels"])), PER_SIGMA)
        arrays["share"] = np.array(SHARE)
    if options.out:
        save(options.out, arrays)
    if options.fold is not None:
        from quit.models.question_type import probabilities, tuned

        test = [question for question, out in zip(questions, held, strict=True) if out]
        truth, names = labels[held], arrays["labels"]
        for share in (0.0, 0.3, 0.5, 0.7, 1.0):
            p = probabilities(test, arrays | {"share": np.array(share)}, tuned(arrays), MiniLM())
            fine = names[p.argmax(axis=1)]
            print(
                f"fold {options.fold} n={len(test)} share {share}: fine {np.mean(fine == truth):.4f} "
                f"coarse {np.mean(coarse_of(fine) == coarse_of(truth)):.4f}"
            )


if __name__ == "__main__":
    main()
