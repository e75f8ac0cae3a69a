"""How Tevatron 2 reads training records (``TrainDataset`` of its retriever), restated."""

from collections.abc import Iterable, Mapping
from typing import Any


def read_by_tevatron(records: Iterable[Mapping[str, Any]], epochs: int = 1, seed: int = 42) -> set[tuple[str, str]]:
    """Return the (query, positive passage) pairs that it trains on: of each record one positive per epoch."""
    return {
        (record["query"], positives[(place + seed + epoch) % len(positives)]["docid"])
        for place, record in enumerate(records)
        for positives in [record["positive_passages"]]
        for epoch in range(epochs)
    }
