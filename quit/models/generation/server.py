"""Any server that speaks OpenAI's chat completions: vLLM first, Ollama, llama.cpp, vendors. One or several replicas."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
import time
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from typing import Any

import aiohttp

from quit.common.progress import note
from quit.errors import ServerError
from quit.models.generation.base import ChatRequest, ModelOptions, OnReply
from quit.models.generation.chat import Chat
from quit.models.generation.ledger import Account, Ledger
from quit.models.generation.meter import Meter
from quit.models.generation.replica import Replica, RequestBatch, stop
from quit.models.generation.serving import CONNECT_SECONDS
from quit.settings import ServerSettings


class ServerGenerator:
    """A model on one or several equal servers.

    A question's requests go to one replica, in order, so that its prefix cache serves them. A replica that does not
    answer leaves its questions to the others until it is back; so does one at which a request has used up its
    ``attempts``, for the whole call. No other layer repeats a request.
    Only a connection that cannot be made is not counted: the server is absent, and is waited for, ``patience_seconds``
    between two replies. Raises :class:`SettingsError` where the API key is not set.
    """

    def __init__(
        self,
        name: str,
        options: ModelOptions,
        server: ServerSettings,
        meter: Meter | None = None,
        account: Account | None = None,
    ) -> None:
        self.name = name
        self.identity = options.identity
        self._server = server
        meter, account = meter or Meter(), account or Account(Ledger())
        self._ledger = account.ledger
        urls, key = server.urls(), server.key()
        model_names: list[str] = []
        chats = [Chat(name, url, options, server, model_names) for url in urls]
        self._replicas = [Replica(chat, key, meter, account) for chat in chats]

    def generate(self, requests: Sequence[ChatRequest], on_reply: OnReply) -> None:
        """See :class:`quit.models.generation.base.Generator`."""
        run(self._generate(requests, on_reply))

    def release(self) -> None:
        """See :class:`quit.models.generation.base.Generator`: there is nothing in this process."""

    async def _generate(self, requests: Sequence[ChatRequest], on_reply: OnReply) -> None:
        last_reply = time.monotonic()
        timeout = aiohttp.ClientTimeout(total=self._server.timeout_seconds, connect=CONNECT_SECONDS)
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector, trust_env=False) as session:
            batch = RequestBatch(session, requests, on_reply)
            while positions := [position for position in range(len(requests)) if position not in batch.with_reply]:
                usable = [replica for replica in self._replicas if replica not in batch.failed_replicas]
                present = [replica for replica in usable if not replica.is_gone]
                if not present:
                    present = await self._wait_for_any(session, usable, last_reply)
                queues: dict[Replica, list[int]] = defaultdict(list)
                for position in positions:
                    queues[_of_group(present, requests[position].group)].append(position)
                tasks = {asyncio.ensure_future(replica.work(batch, queues[replica])): replica for replica in queues}
                running = set(tasks)
                look = asyncio.ensure_future(self._look_for_lost(batch, usable))
                try:
                    while running:
                        finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
                        for task in finished:
                            try:
                                task.result()
                            except ServerError:
                                replica = tasks[task]
                                batch.failed_replicas.add(replica)
                                if len(batch.failed_replicas) == len(self._replicas):
                                    raise
                                for position in queues[replica]:
                                    del batch.attempts[position]
                                what = f"{self.name}: {replica.url} is left out for now ({replica.last_fault})"
                                note(f"{what}. Its requests go to the other servers.", loud=True)
                            except Exception:
                                batch.is_ending = True
                                if running:  # They were paid for: let them come in before it is raised.
                                    await asyncio.wait(running, timeout=self._server.timeout_seconds)
                                raise
                finally:
                    await stop([*tasks, look])
                batch.is_shared_anew = False
                if len(batch.with_reply) > len(requests) - len(positions):
                    last_reply = time.monotonic()

    async def _look_for_lost(self, batch: RequestBatch, replicas: Sequence[Replica]) -> None:
        """Ask those of ``replicas`` that are gone, while others answer, now and then; when one is back, requests are
        shared out anew."""
        pause, before = 1.0, len(batch.with_reply)
        while not batch.is_shared_anew:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 10.0)
            gone = [replica for replica in replicas if replica.is_gone and len(batch.with_reply) > before]
            for replica in gone:
                replica.chat.tell("gone", "is gone. Its requests go to the other servers until it is back.")
                if await replica.is_back(batch.session):
                    note(f"{self.name}: {replica.url} is back.", loud=True)
                    batch.is_shared_anew = True

    async def _wait_for_any(
        self, session: aiohttp.ClientSession, replicas: Sequence[Replica], last_reply: float
    ) -> list[Replica]:
        """Wait until some of ``replicas`` are back, and return them.

        ``last_reply``: when patience began, by the monotonic clock. Raises :class:`ServerError` when it is over, and
        ``Stopped`` after an interrupt.
        """
        pause = 1.0
        while (left := last_reply + self._server.patience_seconds - time.monotonic()) > 0:
            self._ledger.check_not_stopped()
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, 10.0)
            back = [replica for replica in replicas if await replica.is_back(session)]
            if back:
                return back
        waited = time.monotonic() - last_reply
        faults = "; ".join(f"{replica.url} ({replica.last_fault})" for replica in self._replicas)
        raise ServerError(
            f"The server of {self.name} did not answer: {faults}. Waited {waited:.0f} s for it (patience_seconds of "
            f"{self._server.name}). What it answered before is kept. {self._server.remedy_for(faults)} Then run the "
            "same command again."
        )


def _of_group(replicas: Sequence[Replica], group: str) -> Replica:
    """Return the replica of a group: highest hash of both (rendezvous), so a lost replica moves its own groups only."""
    return max(replicas, key=lambda replica: hashlib.sha256(f"{replica.url}\x1f{group}".encode()).digest())


_LOOPS: list[asyncio.AbstractEventLoop] = []
_MAKING = threading.Lock()
os.register_at_fork(after_in_child=_LOOPS.clear)  # its thread is not in the child


def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop on which this process talks to servers, on its own thread.

    There must be one only: shards share the replicas' limits, which know no locks.
    """
    with _MAKING:
        if not _LOOPS:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="model-servers", daemon=True).start()
            _LOOPS.append(loop)
        return _LOOPS[0]


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Carry out a coroutine on that loop and return its result; an interrupt cancels it."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
