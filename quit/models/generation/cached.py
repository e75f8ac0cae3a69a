"""A generator behind the generation cache: asks only for what was never answered, keeps each reply before it counts."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from quit.models.folders import former_identity
from quit.models.generation.base import ChatRequest, Completion, Generator, cache_key
from quit.models.generation.cache import Entry, GenerationCache
from quit.models.generation.claims import Claims
from quit.models.generation.meter import Meter

_TICK = 0.5  # seconds between looks at what another process is asking for


def known_replies(
    cache: GenerationCache, identity: str, requests: Mapping[bytes, ChatRequest]
) -> dict[bytes, Completion]:
    """Return the replies that the cache has to requests by their keys, also those under a model folder's former identity."""
    replies = cache.find(list(requests))
    missing = [key for key in requests if key not in replies]
    if missing and (former := former_identity(identity)) is not None:
        keys = {cache_key(former.identity, requests[key]): key for key in missing}
        replies |= {keys[key]: reply for key, reply in cache.find(list(keys), former.since).items()}
    return replies


class CachedGenerator:
    """Completions, from the cache where they are, else from the generator. ``cache=None`` asks for everything."""

    def __init__(self, generator: Generator, cache: GenerationCache | None, meter: Meter | None = None) -> None:
        self.name = generator.name
        self.identity = generator.identity
        self._generator = generator
        self._cache = cache
        self._meter = meter or Meter()
        self._claims = Claims(cache.path) if cache is not None else None
        self._in_flight: dict[bytes, threading.Event] = {}
        self._lock = threading.Lock()

    def complete(self, requests: Sequence[ChatRequest]) -> list[Completion]:
        """Return one completion a request, in order.

        Equal requests are asked for once, also by two shards, or two processes that share the cache, at the same time. Empty
        replies are returned and not kept.
        Raises what the generator raises; every reply it gave before that is in the cache.
        """
        keys = [cache_key(self.identity, request) for request in requests]
        first: dict[bytes, ChatRequest] = {}
        for key, request in zip(keys, requests, strict=True):
            first.setdefault(key, request)
        found: dict[bytes, Completion] = {}
        self._meter.add(self.name, expected=len(first))
        while len(found) < len(first):
            missing = [key for key in first if key not in found]
            missing = self._look_up({key: first[key] for key in missing}, found)
            mine, others = self._claim(missing)
            elsewhere = 0
            try:
                asked = self._claims.take(mine) if self._claims is not None else set(mine)
                elsewhere = len(mine) - len(asked)
                try:
                    # Between the first look and the claim, someone else may have asked and let go.
                    wanted = self._look_up({key: first[key] for key in mine if key in asked}, found)
                    if wanted:
                        self._ask([(key, first[key]) for key in wanted], found)
                finally:
                    if self._claims is not None:
                        self._claims.release(list(asked))
            finally:
                self._release(mine)
            for event in others:
                event.wait()
            if elsewhere:
                time.sleep(_TICK)
        return [found[key] for key in keys]

    def _look_up(self, wanted: Mapping[bytes, ChatRequest], found: dict[bytes, Completion]) -> list[bytes]:
        """Add what the cache has to ``found``; returns the keys it does not have."""
        if self._cache is None or not wanted:
            return list(wanted)
        known = known_replies(self._cache, self.identity, wanted)
        found |= known
        self._meter.add(self.name, cached=len(known))
        return [key for key in wanted if key not in known]

    def _ask(self, wanted: list[tuple[bytes, ChatRequest]], found: dict[bytes, Completion]) -> None:
        written: list[Future[None]] = []

        def done(place: int, completion: Completion) -> Future[None] | None:
            key, request = wanted[place]
            found[key] = completion
            self._meter.add(
                self.name,
                requests=1,
                empty=int(not completion.text.strip()),
                prompt_tokens=completion.prompt_tokens,
                completion_tokens=completion.completion_tokens,
                cached_tokens=completion.cached_tokens,
            )
            if self._cache is None or not completion.text.strip():
                return None
            entry = Entry(key, self.identity, request.template.identity, request.group, request.sample, completion)
            kept = self._cache.add(entry)
            written.append(kept)
            return kept

        try:
            with self._meter.busy(self.name):
                self._generator.generate([request for _, request in wanted], done)
        finally:
            for each in list(written):
                each.result()

    def _claim(self, keys: Sequence[bytes]) -> tuple[list[bytes], list[threading.Event]]:
        with self._lock:
            others = [self._in_flight[key] for key in keys if key in self._in_flight]
            mine = [key for key in keys if key not in self._in_flight]
            for key in mine:
                self._in_flight[key] = threading.Event()
            return mine, others

    def _release(self, keys: Sequence[bytes]) -> None:
        with self._lock:
            for key in keys:
                self._in_flight.pop(key).set()
