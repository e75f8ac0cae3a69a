"""What the hub is sent of a new version: the bytes of its Parquet files that it does not have from the old one.

    python -m benchmarks.uploads exports-v1/huggingface exports-v2/huggingface

The hub's own client (``hf_xet``) cuts both versions into chunks and uploads them into a local folder. Prints a row per
configuration: bytes of the new version, bytes of its chunks that the old one lacks, and bytes sent (compressed).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import hf_xet


def sent(old: Path, new: Path) -> Any:
    """Return the client's figures of uploading the Parquet files of ``new`` where those of ``old`` are."""
    with tempfile.TemporaryDirectory() as store:
        session = hf_xet.XetSession()
        for folder in (old, new):
            commit = session.new_upload_commit(endpoint=f"local://{store}")
            for path in sorted(folder.rglob("*.parquet")):
                commit.start_upload_file(str(path), sha256=hf_xet.SKIP_SHA256)
            figures = commit.wait_to_finish().dedup_metrics
    return figures


def main() -> None:
    """Compare two exports, configuration by configuration and as a whole."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    given = parser.parse_args()
    print("| configuration | bytes | new | share | sent |\n|---|---|---|---|---|")
    for name in [*sorted({path.parent.name for path in given.new.rglob("*.parquet")}), ""]:
        figures = sent(given.old / name, given.new / name)
        share = figures.new_bytes / figures.total_bytes
        print(f"| {name or 'all'} | {figures.total_bytes:,} | {figures.new_bytes:,} | {share:.1%} | "
              f"{figures.total_bytes_uploaded:,} |")  # fmt: skip


if __name__ == "__main__":
    main()
