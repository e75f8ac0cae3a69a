"""Replies that were paid for: in the store after a while, on every machine that resumes."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from quit.engine.pipeline import Pipeline
from quit.engine.shared_replies import UNDER, SharedReplies
from quit.engine.workspace import Workspace
from quit.errors import ServerError, WorkspaceError
from quit.models.factory import Models
from quit.models.generation import CachedGenerator, ChatRequest, Completion, GenerationCache
from quit.models.generation.cache import Entry
from quit.models.prompting import load_prompt
from quit.settings import load
from quit.settings.settings import Remote
from quit.store.objects import open_objects
from tests.models.generation.test_cache import Counting
from tests.running import until


def _entry(number: int, reply: str | None = None) -> Entry:
    answer = Completion(reply or f"reply {number}", "stop", 10 + number, 3)
    return Entry(number.to_bytes(32, "big"), "model", "prompt", f"q{number}", 0, answer)


def _keys(*numbers: int) -> list[bytes]:
    return [number.to_bytes(32, "big") for number in numbers]


def test_what_one_machine_was_given_another_finds(place: str, tmp_path: Path) -> None:
    store = open_objects(place)
    with GenerationCache(tmp_path / "a.sqlite") as here, GenerationCache(tmp_path / "b.sqlite") as there:
        here.add(_entry(1)).result()  # before the workspace was: not what it rests on, until it is asked for
        replies = SharedReplies(store, here)
        for number in (2, 3):
            here.add(_entry(number)).result()
        assert replies.flush() == 2 and replies.flush() == 0 and len(store.listing(UNDER)) == 1
        here.find(_keys(1, 2, 9))
        assert replies.flush() == 1 and len(store.listing(UNDER)) == 2
        there.add(_entry(2, "their own")).result()
        brought = SharedReplies(store, there)
        # A key that is there already keeps its first reply.
        entries = (_entry(1), _entry(2, "their own"), _entry(3))
        assert there.find(_keys(1, 2, 3, 4)) == {entry.key: entry.completion for entry in entries}
        assert brought.flush() == 0  # what came from the store does not go there again
        assert len(store.listing(UNDER)) == 2


def test_a_copy_that_fails_is_made_later_and_a_damaged_one_is_named(place, tmp_path, monkeypatch) -> None:
    store = open_objects(place)
    with GenerationCache(tmp_path / "a.sqlite") as here:
        replies = SharedReplies(store, here)
        here.add(_entry(1)).result()

        def refuse(key: str, value: bytes) -> None:
            raise WorkspaceError("no")

        with monkeypatch.context() as broken:
            broken.setattr(store, "write", refuse)
            with pytest.raises(WorkspaceError):
                replies.flush()
        assert replies.flush() == 1
        store.write(f"{UNDER}/1-x.parquet", b"PAR1")
        with pytest.raises(WorkspaceError, match="1-x.parquet cannot be"):
            SharedReplies(store, here)


def test_new_replies_are_copied_while_a_run_goes_on(place: str, tmp_path: Path) -> None:
    store = open_objects(place, Remote(replies_seconds=0.1))
    with GenerationCache(tmp_path / "a.sqlite") as here:
        SharedReplies(store, here)
        here.add(_entry(1)).result()
        assert len(until(lambda: store.listing(UNDER), seconds=120)) == 1


def test_the_next_machine_pays_only_for_what_was_never_answered(place: str, tmp_path: Path) -> None:
    """A run breaks off in the middle of a batch; the store knows all it was answered, the next machine asks for the
    rest."""
    store = open_objects(place)
    requests_of_runs: list[list[str]] = []
    for number, fail_after in enumerate((5, None)):
        model = Counting(fail_after=fail_after)
        with GenerationCache(tmp_path / f"{number}.sqlite") as cache:
            replies = SharedReplies(store, cache)
            requests = [ChatRequest(load_prompt("probe"), {"question": text}, 32) for text in "abcdefgh"]
            with pytest.raises(ServerError) if fail_after else nullcontext():
                texts = [reply.text for reply in CachedGenerator(model, cache).complete(requests)]
                assert texts == [f"to {text}" for text in "abcdefgh"]
            replies.flush()
        requests_of_runs.append(model.asked)
    assert requests_of_runs == [list("abcde"), list("fgh")]


def test_the_models_of_a_pipeline_keep_their_replies_in_its_workspace(place, tmp_path, monkeypatch, machine) -> None:
    settings = load("embedded", ["remote.lease_seconds=7"]).settings
    for name in ("first", "second"):
        machine(name)
        monkeypatch.setenv("QUIT_CACHE", str(tmp_path / name))
        workspace = Workspace.create(place)
        models = Models(settings)
        Pipeline(workspace, settings, [], models=models)
        assert workspace.store.objects.how.lease_seconds == 7
        with workspace.lock(60):
            cache = models.cache
            assert cache is not None
            assert [reply.text for reply in cache.find(_keys(5)).values()] == ([] if name == "first" else ["reply 5"])
            cache.add(_entry(5)).result()
        cache.close()
    assert len(workspace.store.objects.listing(UNDER)) == 1
