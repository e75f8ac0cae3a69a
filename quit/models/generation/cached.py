"""A generator behind the generation cache: what it replied is never asked for again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from quit.common.progress import note
from quit.common.rows import first_by
from quit.errors import SettingsError
from quit.models.generation.base import ChatRequest, Completion, Generator, cache_key
from quit.models.generation.cache import Entry, GenerationCache
from quit.models.generation.meter import Meter
from quit.settings import RunSettings
from quit.text.words import counted

_FEW_REFUSED = 5  # prompts of a stage: so many, or fewer, say nothing about a share
_POLL_SECONDS = 0.5  # seconds between chances to be interrupted while another caller asks


class CachedGenerator:
    """Completions, from the cache where they are, else from the generator. ``cache=None`` asks for everything."""

    max_refused = RunSettings().max_refused  # share of a stage's prompts

    def __init__(self, generator: Generator, cache: GenerationCache | None, meter: Meter | None = None) -> None:
        self.name = generator.name
        self.identity = generator.identity
        self._generator = generator
        self._cache = cache
        self._meter = meter or Meter()
        self._prompts: Counter[str] = Counter()  # of each stage, by its template
        self._refused: Counter[str] = Counter()

    def complete(self, requests: Sequence[ChatRequest]) -> list[Completion]:
        """Return one completion per request, in order.

        Equal requests are asked for once, also by shards of this process at the same time. Two processes may both ask;
        then both have the reply that was on disk first. Empty replies are returned and not kept, except cut and
        withheld ones. Raises what the generator raises; every reply it gave before that is in the cache.
        """
        keys = [cache_key(self.identity, request) for request in requests]
        distinct = first_by(zip(keys, requests, strict=True))
        self._prompts.update(request.template.identity for request in distinct.values())
        replies: dict[bytes, Completion] = {}
        self._meter.add(self.name, expected=len(distinct))
        if self._cache is None:
            self._ask(distinct, replies)
        while open_keys := [key for key in distinct if key not in replies]:
            assert self._cache is not None  # without one, every reply is there by now
            with self._cache.asking(open_keys) as (free_keys, events):
                cached = self._cache.find(free_keys)
                replies |= cached
                for key, completion in cached.items():
                    self._check(distinct[key], completion)
                self._meter.add(self.name, cached=len(cached))
                self._ask({key: distinct[key] for key in free_keys if key not in cached}, replies)
            for event in events:
                while not event.wait(_POLL_SECONDS):
                    pass
        self._meter.add(self.name, origins=Counter(reply.origin for reply in replies.values()))
        if cut := sum(reply.finish_reason == "length" and not reply.text.strip() for reply in replies.values()):
            note(
                f"{self.name}: {counted(cut, 'reply was', 'replies were')} cut before the answer began. Raise "
                "thinking_tokens in the profile; all of the model's replies are then asked for again.",
                loud=True,
            )
        return [replies[key] for key in keys]

    def release(self) -> None:
        """Give back the memory of a model in this process; the next request loads it again."""
        self._generator.release()

    def _check(self, request: ChatRequest, completion: Completion) -> None:
        """Raise :class:`SettingsError` where too large a share of a stage's prompts is refused."""
        stage = request.template.identity
        self._refused[stage] += completion.is_refused
        refused, prompts = self._refused[stage], self._prompts[stage]
        if completion.is_refused and refused > max(_FEW_REFUSED, self.max_refused * prompts):
            raise SettingsError(
                f"{self.name}: {refused:,} of {prompts:,} prompts from {request.template.name} are refused, more than "
                f"run.max_refused = {self.max_refused:g} ({refused / prompts:.1%}; the last, of {request.group}: "
                f"{completion.finish_reason.partition(': ')[2]}). Each counts as NO ANSWER. Ask another "
                "model or shorten what it is asked; or raise run.max_refused."
            )

    def _ask(self, requests: Mapping[bytes, ChatRequest], replies: dict[bytes, Completion]) -> None:
        """Ask the generator, in order; returns once every reply is in ``replies`` and on disk."""
        if not requests:
            return
        keys = list(requests)
        commits: list[Future[None]] = []

        def on_reply(position: int, completion: Completion) -> Future[None] | None:
            key = keys[position]
            request = requests[key]
            replies[key] = completion
            self._meter.add(self.name, requests=1, empty=int(not completion.text.strip()), **completion.tokens)
            if self._cache is None or completion.is_empty:
                return None
            entry = Entry(key, self.identity, request.template.identity, request.group, request.sample, completion)
            if not completion.is_failed:
                commits.append(self._cache.add(entry))
            self._check(request, completion)
            return None if completion.is_failed else commits[-1]

        try:
            with self._meter.busy(self.name):
                self._generator.generate(list(requests.values()), on_reply)
        finally:
            for commit in list(commits):
                commit.result()
        if self._cache is not None:  # the reply on disk counts: another process may have been first
            replies |= self._cache.find(keys)
