"""How much of the prompts a real vLLM server computes, by order of the passages and size of its prefix cache.

    python -m benchmarks.prefix_reuse ../shared/data/wikihint/test_first50.json --questions 4 --out prefix_reuse.jsonl

For every cache size and order a fresh server answers all passages of some WikiHint questions behind a fixed few-shot
prefix of about a thousand tokens. Reported: prompt tokens computed (the server's own counters), the least that blocks of
that size allow, requests a second, and the client's share of one core.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from quit.construct.passages import permutations
from tests.servers.checkpoints import STARTER, Shape, checkpoint
from tests.servers.vllm import VllmServer

Messages = list[dict[str, str]]
Ask = Callable[[Messages], Awaitable[str]]
"""Sends one prompt and returns the reply: the seam for another client."""

NAME = "benchmark"
INSTRUCTION = "Answer with a few words only, from the context. If it does not tell, say NO ANSWER."
ORDERS = ("depth-first", "by-length", "random")


def few_shot(examples: int) -> Messages:
    """Return the fixed prefix: an instruction and worked examples out of the starter collection."""
    messages: Messages = [{"role": "system", "content": INSTRUCTION}]
    rows = [json.loads(line) for line in STARTER.read_text(encoding="utf-8").splitlines()]
    for row in rows[:: len(rows) // examples][:examples]:
        messages.append({"role": "user", "content": turn(row["question"], row["hints"])})
        messages.append({"role": "assistant", "content": row["answers"][0]})
    return messages


def turn(question: str, hints: Sequence[str]) -> str:
    """Return a user's turn. The question stands last, so that passages share their first hints."""
    return f"Context: {' '.join(hints)}\nQuestion: {question}"


def prompts(file: Path, questions: int, order: str, examples: int, seed: int) -> list[Messages]:
    """Return the prompts of all passages of the first questions of a WikiHint file, in an order of ``ORDERS``.

    ``depth-first`` and ``by-length`` go question by question; ``random`` shuffles all of them.
    """
    prefix = few_shot(examples)
    found: list[Messages] = []
    for row in json.loads(file.read_text(encoding="utf-8"))[:questions]:
        hints = [hint["hint"] for hint in row["hints"][:5]]
        passages = permutations(len(hints))
        if order == "by-length":
            passages.sort(key=len)
        for passage in passages:
            text = turn(row["question"]["question"], [hints[index] for index in passage])
            found.append([*prefix, {"role": "user", "content": text}])
    if order == "random":
        random.Random(seed).shuffle(found)
    return found


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


@asynccontextmanager
async def httpx_ask(base_url: str, concurrency: int):
    """Yield the plainest client there is."""
    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    async with httpx.AsyncClient(base_url=base_url, timeout=600, limits=limits, trust_env=False) as client:

        async def ask(messages: Messages) -> str:
            payload = {"model": NAME, "messages": messages, "temperature": 0, "max_tokens": 8}
            reply = await client.post("/chat/completions", json=payload)
            return reply.raise_for_status().json()["choices"][0]["message"]["content"]

        yield ask


async def send(ask: Ask, todo: Sequence[Messages], concurrency: int) -> list[str]:
    """Return the replies; requests start in the order given, ``concurrency`` at once."""
    replies: list[str] = [""] * len(todo)
    queue = iter(enumerate(todo))

    async def work() -> None:
        for number, messages in queue:
            replies[number] = await ask(messages)

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return replies


def measure(base_url: str, todo: Sequence[Messages], concurrency: int, client=httpx_ask) -> dict[str, float]:
    """Return requests a second and the client's CPU seconds for each second of the run."""

    async def run() -> None:
        async with client(base_url, concurrency) as ask:
            await send(ask, todo, concurrency)

    before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    asyncio.run(run())
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
    parser.add_argument("--examples", type=int, default=5, help="worked examples in the prefix")
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
                todo = prompts(options.file, options.questions, order, options.examples, options.seed)
                tokens = [
                    tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
                    for messages in todo
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
