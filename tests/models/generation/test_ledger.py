"""Caps on spending, against servers that count what they charge."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from quit.engine.workspace import Workspace
from quit.errors import CapReached, QuitError
from quit.models.generation import ChatRequest, limits
from quit.models.generation.base import Completion, ModelOptions
from quit.models.generation.ledger import Account, Amount, Ledger
from quit.models.generation.replica import PassingFault, Replica
from quit.models.generation.server import ServerGenerator
from quit.models.prompting import load_prompt
from quit.settings import ServerSettings
from quit.settings.models import LanguageModel
from tests.paths import starter_file
from tests.running import call_quit
from tests.servers.builds import TWO_HINTS, served, write_profile
from tests.servers.rude import Fault, RudeServer, failure

MODEL = LanguageModel(model="rude", price_prompt=2.0, price_cached=0.5, price_completion=8.0)
FREE, LOST = (409, 425, 429, 503, 529), (408, 500, 502, 504, 520, 522, 524)
UNDERCOUNTED = ("total alone", "thoughts beside")


class Charging:
    """A server that fails at random and adds up what it has generated, whether or not it says so.

    ``overlong``: replies of more than ``max_tokens``, which it tells; the cost leaves out what is beyond.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.cost = 0.0
        self.overlong = 0

    async def ask(self, replica: Replica, session: Any, body: bytes) -> tuple[int, bytes]:
        """Answer a request, in the place of HTTP."""
        for _ in range(self.draw.randint(0, 3)):
            await asyncio.sleep(0)
        payload, draw = json.loads(body), self.draw
        kind = draw.choice(("fine",) * 8 + ("free", "lost", "lost", "late", "cut", "uncounted", "empty") + UNDERCOUNTED)
        kind = draw.choice(("overlong", "refused")) if draw.random() < 0.01 else kind
        prompt, most = len(json.dumps(payload["messages"])) // 4, payload["max_tokens"]
        reply = 400 if kind == "overlong" else draw.randint(1, most)
        if kind == "free":
            raise replica.chat.fault(draw.choice(FREE), b"", {})
        self.overlong += reply > most
        self.cost += MODEL.cost(prompt, 0, min(reply, most)) or 0.0
        if kind in ("lost", "refused"):
            raise replica.chat.fault(400 if kind == "refused" else draw.choice(LOST), b"", {})
        if kind == "late":
            raise PassingFault("no reply within 5 s", overloaded=True)
        part = draw.randint(0, reply // 2)
        usage = {
            "total alone": {"prompt_tokens": prompt, "completion_tokens": part, "total_tokens": prompt + reply},
            "thoughts beside": {
                "prompt_tokens": prompt,
                "completion_tokens": part,
                "completion_tokens_details": {"reasoning_tokens": reply - part},
            },
            "uncounted": draw.choice(({}, {"prompt_tokens": prompt}, {"total_tokens": 7})),
        }.get(kind, {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply})
        message = {"content": "" if kind == "empty" else "Paris"}
        body = json.dumps({"choices": [{"finish_reason": "stop", "message": message}], "usage": usage}).encode()
        return 200, body[: len(body) // 2] if kind == "cut" else body


def test_300_random_runs_never_pass_their_caps_and_keep_every_reply(tmp_path: Path, monkeypatch) -> None:
    reached = ended = overrun = 0
    monkeypatch.setattr(limits, "BACKOFF_CAP_SECONDS", 0.0)

    async def nowhere(*_: Any) -> str:
        return ""

    monkeypatch.setattr(Replica, "ask_origin", nowhere)
    for seed in range(300):
        charging = Charging(seed)
        monkeypatch.setattr(Replica, "_ask", lambda *arguments, charging=charging: charging.ask(*arguments))
        cap = charging.draw.uniform(0.0005, 0.06)
        ledger = Ledger(cap)
        how = {"concurrency": 8, "attempts": 50}
        settings = ServerSettings(name="s", base_urls=("http://127.0.0.1:9/v1",), **how)
        options, account = ModelOptions("m", thinking="drop"), Account(ledger, MODEL.cost)
        generator = ServerGenerator("r", options, settings, account=account)
        requests = [ChatRequest(load_prompt("probe"), {"question": f"Q{n}?"}, 32) for n in range(20)]
        replies: list[int] = []
        try:
            generator.generate(requests, lambda position, _, replies=replies: replies.append(position))
            ended += 1
        except CapReached as error:
            overrun += "does not keep its limit" in str(error)
            reached += 1
        except QuitError:
            pass
        assert charging.cost <= ledger.spent.cost + 1e-12
        assert ledger.spent.cost <= cap or 0 < charging.overlong <= 8, "those in flight with the first"
        assert 0 <= ledger.assumed.cost <= ledger.spent.cost + 1e-12
        assert len(replies) == len({*replies})
    assert reached > 50 and ended > 20 and overrun > 5


@pytest.mark.parametrize("status", FREE + LOST)
def test_a_lost_reply_is_free_only_where_nothing_was_begun(status: int) -> None:
    ledger = Ledger(cost=1.0)
    request = ChatRequest(load_prompt("probe"), {"question": "Q?"}, 32)
    with RudeServer([failure(status)]) as server:
        settings = ServerSettings(name="s", base_urls=(server.base_url,))
        account = Account(ledger, MODEL.cost)
        generator = ServerGenerator("r", ModelOptions("rude"), settings, account=account)
        generator.generate([request], lambda *_: None)
    replica = generator._replicas[0]
    worst = account.worst(replica.chat.body(request), 32)
    assert (ledger.spent.cost > worst.cost) is (status in LOST)


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
    ledger.open(tmp_path, Amount(1.0, 500))
    for _ in range(37):
        asyncio.run(ledger.reserve(Amount(0.07, 10), request=False))
    after = Ledger(cost=10.0)  # nothing was closed
    after.open(tmp_path, Amount())
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
