"""Caps on spending, against servers that count what they charge."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from quit.engine.workspace import Workspace
from quit.errors import CapReached, QuitError
from quit.models.generation import CachedGenerator, ChatRequest, GenerationCache
from quit.models.generation.base import Completion, ModelOptions
from quit.models.generation.ledger import Account, Amount, Ledger
from quit.models.generation.server import ServerGenerator
from quit.models.prompting import load_prompt
from quit.settings import ServerSettings
from quit.settings.models import LanguageModel
from tests.paths import starter_file
from tests.running import call_quit
from tests.servers.builds import TWO_HINTS, served, write_profile
from tests.servers.rude import Fault, RudeServer, failure

MODEL = LanguageModel(model="rude", price_prompt=2.0, price_cached=0.5, price_completion=8.0)
FREE = tuple(map(failure, (409, 425, 429, 503, 529)))
LOST = (*map(failure, (408, 500, 502, 504, 524)), Fault(cut=30), Fault(reset=True), Fault(finish_reason="abort"))
OVERLONG = Fault(content="x " * 400)


class Charging:
    """A server that fails at random and adds up what it charges: for all that it has begun to answer.

    ``overlong``: replies of more than ``max_tokens``, which it tells; the cost leaves out what is beyond.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.cost = 0.0
        self.overlong = 0

    def __call__(self, number: int, payload: Any) -> Fault:
        fault = self.draw.choice((Fault(content="Paris"),) * 8 + FREE + LOST + (Fault(content=""),))
        if self.draw.random() < 0.01:
            fault = self.draw.choice((failure(400), OVERLONG))
        if fault not in FREE:
            reply = len((fault.content or "").split()) if fault.status == 200 else self.draw.randint(1, 32)
            prompt = len(json.dumps(payload["messages"]).split())
            self.overlong += reply > payload["max_tokens"]
            self.cost += MODEL.cost(prompt, 0, min(reply, payload["max_tokens"])) or 0.0
        return fault


@pytest.mark.slow
def test_300_random_runs_never_pass_their_caps_and_keep_every_reply(tmp_path: Path) -> None:
    reached = ended = overrun = 0
    with RudeServer() as server:
        for seed in range(300):
            charging = server.script = Charging(seed)
            cap = charging.draw.uniform(0.0005, 0.06)
            ledger, paid = Ledger(cap), []
            how = {"concurrency": 8, "attempts": 50, "timeout_seconds": 5}
            settings = ServerSettings(name="s", base_urls=(server.base_url,), **how)
            generator = ServerGenerator("r", ModelOptions("rude"), settings, account=Account(ledger, MODEL.cost))
            requests = [ChatRequest(load_prompt("probe"), {"question": f"Q{n}?"}, 32) for n in range(20)]
            with GenerationCache(tmp_path / f"{seed}.sqlite") as cache:
                try:
                    CachedGenerator(generator, cache).complete(requests)
                    ended += 1
                except CapReached as error:
                    overrun += "does not keep its limit" in str(error)
                    reached += 1
                except QuitError:
                    pass
                paid = cache.statistics()
            assert charging.cost <= ledger.spent.cost + 1e-12
            assert ledger.spent.cost <= cap or 0 < charging.overlong <= 8, "those in flight with the first"
            assert sum(row["replies"] for row in paid) <= 20
    assert reached > 50 and ended > 20 and overrun > 5


@pytest.mark.parametrize("status", [409, 425, 429, 503, 529, 408, 500, 502, 504, 520, 522, 524])
def test_a_lost_reply_is_free_only_where_nothing_was_begun(status: int) -> None:
    ledger = Ledger(cost=1.0)
    request = ChatRequest(load_prompt("probe"), {"question": "Q?"}, 32)
    with RudeServer([failure(status)]) as server:
        settings = ServerSettings(name="s", base_urls=(server.base_url,))
        account = Account(ledger, MODEL.cost)
        generator = ServerGenerator("r", ModelOptions("rude"), settings, account=account)
        generator.generate([request], lambda *_: None)
    replica = generator._replicas[0]
    worst = account.worst(replica.body(request), 32)
    assert (ledger.spent.cost > worst.cost) is (status in (408, 500, 502, 504, 520, 522, 524))


def test_what_a_server_counts_counts_and_one_that_passes_its_limit_gets_no_further_request() -> None:
    ledger, replies = Ledger(cost=1.0), []
    requests = [ChatRequest(load_prompt("probe"), {"question": f"Q{n}?"}, 32) for n in range(9)]
    with RudeServer([Fault(content="Paris", usage={"completion_tokens": 50_000})]) as server:
        settings = ServerSettings(name="s", base_urls=(server.base_url,), concurrency=1)
        generator = ServerGenerator("r", ModelOptions("rude"), settings, account=Account(ledger, MODEL.cost))
        with pytest.raises(CapReached, match=r"counts \d+ prompt and 50,000 reply tokens .* does not keep its limit"):
            generator.generate(requests, lambda position, reply: replies.append(reply.text))
    assert len(server.requests) == 1 and replies == ["Paris"], "what was paid is kept"
    assert ledger.spent.cost > 50_000 * 8 / 1e6


def test_a_kill_forgets_nothing_that_was_spent(tmp_path: Path) -> None:
    ledger = Ledger(cost=10.0)
    ledger.open(tmp_path / "spent.json", Amount(1.0, 500))
    for _ in range(37):
        asyncio.run(ledger.reserve(Amount(0.07, 10), request=False))
    after = Ledger(cost=10.0)  # nothing was closed
    after.open(tmp_path / "spent.json", Amount())
    assert ledger.spent.cost == pytest.approx(1 + 37 * 0.07)
    assert ledger.spent.cost <= after.spent.cost <= ledger.spent.cost + 10 / 100
    ledger.close()
    assert json.loads((tmp_path / "spent.json").read_text()) == list(ledger.spent)


@pytest.mark.parametrize(
    ("reply", "amount"),
    [
        (Completion("Paris", "stop", 1000, 10), Amount(0.00208, 1010)),
        (Completion("Paris", "stop", 1000, 10, 800), Amount(0.00088, 1010)),  # 200 at 2, 800 at 0.5, 10 at 8 a million
        (Completion("Paris", "stop"), Amount(0.0041, 2050)),  # the server does not say: 2,000 bytes, 50 tokens at most
        (Completion("Paris", "stop", 1000), Amount(0.0041, 2050)),  # nor does it here
    ],
)
def test_what_a_reply_costs(reply: Completion, amount: Amount) -> None:
    account = Account(Ledger(), MODEL.cost)
    worst = account.worst(b"x" * 2000, 50)
    assert worst == Amount(pytest.approx(0.0044), 2050)
    assert account.actual(reply, worst) == pytest.approx(amount, rel=0.1)


@pytest.mark.slow
def test_a_build_stops_at_its_cap_and_goes_on_with_a_higher_one(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    command = ["build", "-p", tmp_path / "p.toml", "-s", starter_file(tmp_path / "three.jsonl", 1, 7, 2), "-w"]
    with RudeServer(reply=lambda payload: "Paris") as server:
        for prices in ({}, {"price_prompt": 2.0, "price_completion": 8.0}):
            sections = served(server.base_url, "r", reader=prices, run={"shard_questions": 1}, **TWO_HINTS)
            write_profile(tmp_path / "p.toml", sections)
            stopped = call_quit(*command, tmp_path / "W", "--max-cost", 0.012, code=9 if prices else 4)
        assert "run.max_cost: 0.0" in stopped.err and " of 0.012 is spent" in stopped.err
        assert "What is left may cost 0." in stopped.err and "quit build --max-cost" in stopped.err
        first = len(server.requests)
        call_quit("build", "-w", tmp_path / "W", code=9)
        assert len(server.requests) - first <= 1
        call_quit("build", "-w", tmp_path / "W", "--max-cost", 1)
        prompts = [json.dumps(request.payload) for request in server.requests]
        assert 0 < first < len(prompts) == len({*prompts})
        call_quit(*command, tmp_path / "V")
    tables = [Workspace.open(tmp_path / name).read("labels") for name in "VW"]
    assert tables[0].equals(tables[1]) and tables[0].num_rows == 3 * 4
