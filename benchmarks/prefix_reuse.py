"""How much of the prompts a real vLLM server computes, by order of the passages and size of its prefix cache.

    python -m benchmarks.prefix_reuse ../shared/data/wikihint/test_first50.json --questions 4 --out prefix_reuse.jsonl

For every cache size and order a fresh server answers all passages of some WikiHint questions behind the reader's
few-shot prompt, asked by the client that builds use. Reported: prompt tokens computed (the server's own counters), the
least that blocks of that size allow, requests a second, and the client's share of one core.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from quit.models.generation import ChatRequest
from quit.models.generation.base import ModelOptions
from quit.models.generation.server import ServerGenerator
from quit.models.prompting import load_prompt
from quit.models.protocols import Prompt
from quit.models.readers.llm import depth_first
from quit.settings import ServerSettings
from quit.stages.labelling.passages import permutations
from tests.servers.checkpoints import Shape, checkpoint
from tests.servers.vllm import VllmServer

NAME = "benchmark"
ORDERS = ("depth-first", "by-length", "random")


def requests_of(file: Path, questions: int, order: str, seed: int) -> list[ChatRequest]:
    """Return what a reader asks about all passages of the first questions of a WikiHint file, in an order of
    ``ORDERS``.

    ``depth-first`` is the order of :class:`quit.models.readers.llm.LLMReader`, whatever order it is given;
    ``by-length`` too goes question by question; ``random`` shuffles all of them.
    """
    template = load_prompt("reader")
    prompts: list[Prompt] = []
    for number, row in enumerate(json.loads(file.read_text(encoding="utf-8"))[:questions]):
        hints = [hint["hint"] for hint in row["hints"][:5]]
        for passage in sorted(permutations(len(hints)), key=len):
            prompts.append(Prompt(f"q{number}", row["question"]["question"], tuple(hints[index] for index in passage)))
    if order == "random":
        random.Random(seed).shuffle(prompts)
    if order == "depth-first":
        prompts = [prompts[place] for place in depth_first(prompts)]
    return [
        ChatRequest(template, {"context": " ".join(one.hints), "question": one.question}, 8, group=one.question_id)
        for one in prompts
    ]


def ideal(tokens: Iterable[Sequence[int]], block: int) -> int:
    """Return the prompt tokens computed with an endless cache of full blocks, each known by all tokens up to its end.

    A prompt's last token is always computed, so a prompt of whole blocks finds at most all but its last.
    """
    known: set[int] = set()
    computed = 0
    for ids in tokens:
        chain = 0
        hits = 0
        unbroken = True
        for number in range(len(ids) // block):
            chain = hash((chain, tuple(ids[number * block : (number + 1) * block])))
            unbroken = unbroken and chain in known and number < (len(ids) - 1) // block
            hits += unbroken
            known.add(chain)
        computed += len(ids) - hits * block
    return computed


def measure(base_url: str, todo: Sequence[ChatRequest], concurrency: int) -> dict[str, float]:
    """Return requests a second and the client's CPU seconds for each second of the run."""
    settings = ServerSettings(name="benchmark", base_urls=(base_url,), concurrency=concurrency, timeout_seconds=600)
    client = ServerGenerator("benchmark", ModelOptions(NAME), settings)
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    client.generate(todo, lambda place, completion: None)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {
        "seconds": round(wall, 2),
        "requests_per_s": round(len(todo) / wall, 2),
        "client_cpu": round(used / wall, 3),
    }


def main() -> None:
    """Run the benchmark and print a line for each configuration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="WikiHint JSON file")
    parser.add_argument("--questions", type=int, default=4)
    parser.add_argument("--orders", nargs="+", choices=ORDERS, default=list(ORDERS))
    parser.add_argument("--caches", nargs="+", type=int, default=[8192, 16384, 65536, 0], help="tokens; 0: no caching")
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="append the rows to this JSON Lines file")
    options = parser.parse_args()

    from transformers import AutoTokenizer

    folder = checkpoint("llama", options.seed, shape=Shape(layers=options.layers, hidden=options.hidden))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for cache in options.caches:
        with VllmServer(
            folder, NAME, cache_tokens=cache or None, caching=cache > 0, block=options.block, max_len=4096
        ) as server:
            for order in options.orders if cache else options.orders[:1]:  # without a cache the order changes nothing
                todo = requests_of(options.file, options.questions, order, options.seed)
                tokens: list[Any] = [
                    tokenizer.apply_chat_template(one.messages(), add_generation_prompt=True, return_dict=False)
                    for one in todo
                ]
                if order != options.orders[0]:
                    server.restart()
                before = server.metrics()["prompt_tokens_computed"]
                times = measure(server.base_url, todo, options.concurrency)
                computed = int(server.metrics()["prompt_tokens_computed"] - before)
                least = ideal(tokens, options.block)
                row = {
                    **{
                        "cache_tokens": cache,
                        "order": order,
                        "concurrency": options.concurrency,
                        "block": options.block,
                    },
                    **{"requests": len(todo), "prompt_tokens": sum(map(len, tokens)), "computed": computed},
                    **{"ideal": least, "computed_to_ideal": round(computed / least, 4), **times},
                }
                print(json.dumps(row), flush=True)
                if options.out:
                    with options.out.open("a", encoding="utf-8") as output:
                        output.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
