"""The MiniLM encoder as a build calls it: texts a second, positions a real token, and plain sentence-transformers in
the same run.

    python -m benchmarks.encoder --questions 40 --threads 1

The calls are those of a real build of the starter's first questions on the embedded profile, recorded while its stages
run one after the other. They are then replayed: as called, and in one call; sentence-transformers gets the same texts
in one call, all of them and the distinct ones, with its own batches of 32 sorted by length. With ``--int8 PYTHON`` its
ONNX backend in 8 bits gets the distinct ones too; PYTHON has ``sentence-transformers[onnx]``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    import torch


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=40, help="first questions of the starter; 0: all")
    parser.add_argument("--threads", type=int, default=1, help="threads of either encoder")
    parser.add_argument("--repeats", type=int, default=3, help="each is timed so often; the fastest counts")
    parser.add_argument("--int8", type=Path, help="Python that has sentence-transformers[onnx]")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["QUIT_CACHE"] = folder
        calls, kinds, positions, tokens = record(Path(folder), options.questions)
        report(calls, kinds, positions, tokens, options)


def record(folder: Path, questions: int) -> tuple[list[list[str]], list[str], int, int]:
    """Run the stages of a build; return the texts of each call of MiniLM, its kind, positions computed, and real
    tokens."""
    from benchmarks.synthetic import begun, carry_out, starter
    from quit.models.minilm import packed
    from quit.models.minilm.encoder import MiniLM
    from quit.models.minilm.layers import Body

    starter(folder, questions)
    calls: list[list[str]] = []
    kinds: list[str] = []
    counts = {"positions": 0, "tokens": 0}
    plain = {name: getattr(MiniLM, name) for name in ("encode", "encode_tokens", "encode_both")}
    embedded, run = Body.embedded, packed.run

    def recording(name: str) -> Callable:
        def call(self: MiniLM, texts: Sequence[str]) -> object:
            calls.append(list(texts))
            kinds.append(name)
            return plain[name](self, texts)

        return call

    def counted_embedded(self: Body, ids: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        counts["positions"] += len(ids)
        return embedded(self, ids, *rest)

    def counted_run(body: Body, texts: Sequence[packed.Pieces], *rest: Any) -> list[Any]:
        counts["tokens"] += sum(len(pieces[0]) for pieces in texts)
        return run(body, texts, *rest)

    with ExitStack() as patches:
        for name in plain:
            patches.enter_context(patch.object(MiniLM, name, recording(name)))
        patches.enter_context(patch.object(Body, "embedded", counted_embedded))
        patches.enter_context(patch.object(packed, "run", counted_run))
        pipeline = begun(folder)
        for stage_run in pipeline.runs:
            carry_out(pipeline, stage_run)
    return calls, kinds, counts["positions"], counts["tokens"]


def report(calls: list[list[str]], kinds: list[str], positions: int, tokens: int, options: argparse.Namespace) -> None:
    """Replay the calls and print seconds, texts a second, and the ratio to sentence-transformers with distinct
    texts."""
    import torch
    from sentence_transformers import SentenceTransformer

    from quit.models.folders import minilm_folder
    from quit.models.minilm import packed
    from quit.models.minilm.encoder import MiniLM

    torch.set_num_threads(options.threads)
    packed._cores = lambda: options.threads
    packed._pool.cache_clear()  # the recorded build had a thread a core
    texts = [text for call in calls for text in call]
    distinct = list(dict.fromkeys(texts))
    ours, theirs = MiniLM(), SentenceTransformer(str(minilm_folder()), device="cpu")
    theirs.max_seq_length = 256

    def as_called() -> None:
        for call, kind in zip(calls, kinds, strict=True):
            getattr(ours, kind)(call)

    rows: dict[str, tuple[Callable[[], object], int]] = {
        "ours, as called": (as_called, len(texts)),
        "ours, one call": (lambda: ours.encode(texts), len(texts)),
        "sentence-transformers": (lambda: theirs.encode(texts, show_progress_bar=False), len(texts)),
        "sentence-transformers, distinct texts": (
            lambda: theirs.encode(distinct, show_progress_bar=False),
            len(distinct),
        ),
    }
    if options.int8:
        isa = "avx512_vnni" if torch.backends.cpu.get_cpu_capability() == "AVX512" else "avx2"
        task = {"folder": str(minilm_folder()), "texts": distinct, "threads": options.threads, "isa": isa}
        encode = in_another_process(options.int8, task)
        encode()
        rows["sentence-transformers, ONNX in 8 bits, distinct texts"] = (encode, len(distinct))
    seconds: dict[str, float] = {name: float("inf") for name in rows}
    for _ in range(options.repeats):  # in turns, so that a busy moment hits all of them alike
        for name, (encode, _) in rows.items():
            start = time.perf_counter()
            encode()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    base = seconds["sentence-transformers, distinct texts"]
    print(f"{len(calls)} calls, {len(texts):,} texts, {len(distinct):,} of them distinct, {options.threads} threads")
    print(
        f"positions computed in the build, all networks: {positions:,} for {tokens:,} tokens ({positions / tokens:.3f})"
    )
    for name, (_, count) in rows.items():
        print(f"{name:54s} {seconds[name]:7.1f} s {count / seconds[name]:8.0f} texts/s  x{seconds[name] / base:.2f}")


def in_another_process(python: Path, task: dict[str, object]) -> Callable[[], object]:
    """Return a function that lets ``benchmarks/encoder_int8.py`` encode the texts of the task."""
    script = Path(__file__).with_name("encoder_int8.py")
    process = subprocess.Popen([python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert process.stdin and process.stdout
    lines, replies = process.stdin, process.stdout

    def ask(line: str) -> None:
        lines.write(line + "\n")
        if not replies.readline():
            raise RuntimeError(f"{script.name} has failed.")

    ask(json.dumps(task))
    return lambda: ask("again")


if __name__ == "__main__":
    main()
