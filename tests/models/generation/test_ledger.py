"""Caps on spending, against servers that count what they charge."""

import asyncio
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from quit.engine.workspace import Workspace
from quit.errors import CapReached, QuitError
from quit.models.generation import CachedGenerator, ChatRequest, GenerationCache
from quit.models.generation.base import Completion, ModelOptions
from quit.models.generation.ledger import UNLIMITED, Account, Amount, Ledger
from quit.models.generation.server import ServerGenerator
from quit.models.prompting import load_prompt
from quit.settings import ServerSettings
from quit.settings.models import LanguageModel
from tests.paths import starter_file
from tests.running import call_quit
from tests.servers.builds import TWO_HINTS, served, write_profile
from tests.servers.rude import Fault, RudeServer, failure, too_many

MODEL = LanguageModel(model="rude", price_prompt=2.0, price_cached=0.5, price_completion=8.0)
FREE = (too_many(0.001), failure(500), failure(503), failure(400))
PAID = (Fault(cut=30), Fault(reset=True), Fault(content=""), Fault(finish_reason="abort"), Fault(content="x " * 400))


class Charging:
    """A server that fails at random and adds up what it charges: for all but HTTP errors, by its own count."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.cost = 0.0

    def __call__(self, number: int, payload: Any) -> Fault:
        fault = self.draw.choice((Fault(content="Paris"),) * 6 + FREE[:3] + PAID)
        if self.draw.random() < 0.01:
            fault = FREE[3]
        if fault.status == 200:
            text = "NO ANSWER" if fault.content is None else fault.content
            reply = min(len(text.split()), payload["max_tokens"])
            prompt = len(json.dumps(payload["messages"]).split())
            self.cost += MODEL.cost(prompt, 0, reply) or 0.0
        return fault


@pytest.mark.slow
def test_200_random_runs_never_pass_their_caps_and_keep_every_reply(tmp_path: Path) -> None:
    reached = ended = 0
    with RudeServer() as server:
        for seed in range(200):
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
                except CapReached:
                    reached += 1
                except QuitError:
                    pass
                paid = cache.statistics()
            assert charging.cost <= ledger.spent.cost + 1e-12 and ledger.spent.cost <= cap
            assert sum(row["replies"] for row in paid) <= 20
    assert reached > 50 and ended > 20


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


def test_parts_of_workers_never_add_up_to_more_than_the_cap() -> None:
    ledger = Ledger(cost=8.0)
    parts = [ledger.part(1 / 4) for _ in range(6)]
    assert [round(part.cost, 4) for part in parts[:3]] == [2.0, 1.5, 1.125]
    assert all(math.isinf(part.tokens) for part in parts) and ledger.spent.cost < 8
    ledger.settle(parts[0], Amount(0.5, 100), request=False)
    assert ledger.spent == Amount(pytest.approx(sum(part.cost for part in parts) - 1.5), 100)
    worker = Ledger()
    worker.grant(parts[1])
    assert worker.cap == parts[1] and Ledger().part(1 / 2) == UNLIMITED


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
