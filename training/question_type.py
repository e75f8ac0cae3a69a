"""Train ``quit/models/weights/question_type.npz`` on the TREC questions.

    python training/question_type.py --data ../shared/data/trec-qc/train_5500.label --out quit/models/weights/question_type.npz
"""

from __future__ import annotations

import argparse
import io
import zipfile
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from quit.models.encoders.minilm import MiniLM
from quit.models.question_type import BUCKETS, buckets

SEED = 13
SCALE = 4.0
C = 4.0
WORD = 0.7


def read(path: Path) -> tuple[list[str], np.ndarray]:
    """Return the questions and TREC labels of a file (Latin-1, one ``LABEL question`` a line)."""
    lines = [line.split(" ", 1) for line in path.read_text("latin-1").splitlines() if line.strip()]
    return [text for _, text in lines], np.array([label for label, _ in lines])


def features(questions: list[str], encoder: MiniLM) -> sparse.csr_matrix:
    rows = [buckets(question) for question in questions]
    indptr = np.cumsum([0, *map(len, rows)])
    words = sparse.csr_matrix((np.full(indptr[-1], WORD), np.concatenate(rows), indptr), (len(rows), BUCKETS))
    return sparse.hstack([sparse.csr_matrix(encoder.encode(questions).astype(np.float64) * SCALE), words]).tocsr()


def fit(x: sparse.csr_matrix, y: np.ndarray) -> LogisticRegression:
    return LogisticRegression(C=C, max_iter=300, tol=1e-4).fit(x, y)


def save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write an npz whose bytes depend on the arrays alone (no time stamps), and move it into place."""
    temporary = path.with_suffix(".tmp")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in sorted(arrays.items()):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            file.writestr(zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), buffer.getvalue(), zipfile.ZIP_DEFLATED)
    temporary.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folds", type=int, default=0, help="also report cross-validated accuracy over this many folds")
    options = parser.parse_args()
    questions, labels = read(options.data)
    with threadpool_limits(1):
        x = features(questions, MiniLM())
        if options.folds:
            predicted = np.empty_like(labels)
            for train, test in StratifiedKFold(options.folds, shuffle=True, random_state=SEED).split(x, labels):
                predicted[test] = fit(x[train], labels[train]).predict(x[test])
            coarse = np.mean([p.split(":")[0] == t.split(":")[0] for p, t in zip(predicted, labels, strict=True)])
            print(f"cross-validated: coarse {coarse:.4f} fine {np.mean(predicted == labels):.4f}")
        model = fit(x, labels)
    save(
        options.out,
        {
            "labels": model.classes_.astype("U"),
            "bias": model.intercept_,
            "dense": (model.coef_[:, :384] * SCALE).astype(np.float32),
            "sparse": np.ascontiguousarray((model.coef_[:, 384:] * WORD).T.astype(np.float16)),
        },
    )


if __name__ == "__main__":
    main()
