"""Real processes that ask for the same: each request is paid for once, also when the one who asks is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from quit.models.generation.cache import Claims
from tests.conftest import ROOT
from tests.servers import rude
from tests.servers.rude import RudeServer

ASKER = """
import sys
from pathlib import Path
from quit.models.generation import CachedGenerator, ChatRequest, GenerationCache
from quit.models.generation.base import ModelOptions
from quit.models.generation.server import ServerGenerator
from quit.models.prompting import load_prompt
from quit.settings import ServerSettings

url, cache, count, at_once = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
server = ServerSettings(name="s", base_urls=(url,), concurrency=at_once)
prompt = load_prompt("probe")
asked = [ChatRequest(prompt, {"question": f"Q{n}?"}, 32, group=f"q{n}") for n in range(count)]
with GenerationCache(cache) as opened:
    replies = CachedGenerator(ServerGenerator("r", ModelOptions("m"), server), opened).complete(asked)
print(" ".join(reply.text for reply in replies))
"""


def _question(payload) -> str:
    return payload["messages"][-1]["content"].rpartition("Question: ")[2].strip()


def _start(server: RudeServer, cache: Path, count: int, at_once: int = 4) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ASKER, server.base_url, str(cache), str(count), str(at_once)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def _times(server: RudeServer) -> Counter[str]:
    return Counter(_question(request.payload) for request in server.requests)


@pytest.mark.slow
def test_several_processes_ask_for_each_request_once(tmp_path: Path) -> None:
    with RudeServer(lambda number, payload: rude.slow(0.1), reply=_question) as server:
        askers = [_start(server, tmp_path / "g.sqlite", 30) for _ in range(3)]
        outputs = [asker.communicate(timeout=120) for asker in askers]
        times = _times(server)
    expected = " ".join(f"Q{n}?" for n in range(30))
    assert [out.strip() for out, _ in outputs] == [expected] * 3, outputs
    assert times == {f"Q{n}?": 1 for n in range(30)}
    assert not list((tmp_path / "g-claims").iterdir()), "who ends leaves nothing behind"


@pytest.mark.slow
def test_a_killed_processs_claims_go_to_the_next(tmp_path: Path) -> None:
    with RudeServer(lambda number, payload: rude.slow(0.3), reply=_question) as server:
        first = _start(server, tmp_path / "g.sqlite", 20, at_once=2)
        while len(server.answered) < 4:
            assert first.poll() is None
            time.sleep(0.02)
        second = _start(server, tmp_path / "g.sqlite", 20, at_once=2)
        time.sleep(1.0)
        os.kill(first.pid, signal.SIGKILL)
        first.communicate()
        out, faults = second.communicate(timeout=120)
        times = _times(server)
    assert out.split() == [f"Q{n}?" for n in range(20)], faults
    assert set(times) == {f"Q{n}?" for n in range(20)}
    assert sum(times.values()) - 20 <= 2, "what a kill costs is what was in flight"


def test_a_claim_is_one_processs_until_it_lets_go(tmp_path: Path) -> None:
    mine, other = Claims(tmp_path / "g.sqlite"), Claims(tmp_path / "g.sqlite")
    keys = [bytes([n]) * 32 for n in range(3)]
    assert mine.take(keys[:2]) == set(keys[:2])
    assert other.take(keys) == {keys[2]}
    assert mine.take(keys) == set(keys[:2]), "what is mine stays mine"
    mine.close()
    assert other.take(keys) == set(keys), "letting go does not touch another one's claim"
    assert mine.take(keys) == set() == mine.take([])
