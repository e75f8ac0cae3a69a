"""What a build says of its language models' servers and kept replies before it begins, and asking again."""

import json
from pathlib import Path

import pytest

from quit.engine.pipeline import Pipeline
from quit.engine.workspace import Workspace
from quit.errors import ServerError, SettingsError
from quit.models.generation import Completion
from quit.models.generation.base import cache_key
from quit.models.generation.cache import Entry
from quit.models.language_models import generator_identity, language_reader
from quit.operations.plan import planned_questions
from quit.operations.replies import check_servers, forget_replies
from quit.settings import parse
from quit.sources import parse_source
from tests.paths import starter_file
from tests.running import call_quit
from tests.servers import rude
from tests.servers.builds import TWO_HINTS, served, write_profile
from tests.servers.rude import RudeServer

ABSENT = "http://127.0.0.1:9/v1"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path / "cache"))
    return starter_file(tmp_path / "two.jsonl", 1, 5, 2)


def _build_of(source: Path, **sections: object) -> Pipeline:
    return Pipeline(Workspace.create(source.parent / "W"), parse(sections), [parse_source(f"jsonl:{source}")])


def _pipeline(source: Path, *urls: str) -> Pipeline:
    """A build whose readers, one of each server, are called a, b and so on."""
    names = "abcd"[: len(urls)]
    readers = [{"name": n, "role": "labeler", "kind": "server", "server": n, "model": f"org/{n}"} for n in names]
    how = {"base_url_env": "QUIT_BASE_URL", "flavour": "openai"}
    servers = [{"name": n, "base_urls": [url], **how} for n, url in zip(names, urls, strict=True)]
    return _build_of(source, readers=readers, servers=servers)


def _keep(pipeline: Pipeline, questions: int, origin: str) -> None:
    """Keep the replies of the first reader's probe to so many questions."""
    spec = pipeline.settings.readers[0]
    reader = language_reader(spec, pipeline.settings)
    for question in planned_questions(pipeline)[0][:questions]:
        for sample in range(pipeline.settings.probe.repetitions):
            request = reader.request(type(question)(question.question_id, question.question), sample)
            key = cache_key(generator_identity(spec), request)
            reply = Completion("x", "stop", origin=origin)
            pipeline.models.cache.add(Entry(key, generator_identity(spec), "probe", "", sample, reply)).result()


def test_the_first_server_is_asked_whether_it_is_there(source: Path) -> None:
    with RudeServer() as later, pytest.raises(ServerError, match="The server of a did not answer") as raised:
        check_servers(_pipeline(source, ABSENT, later.base_url))
    for part in (ABSENT, "refused", "ollama serve", "QUIT_BASE_URL"):
        assert part in str(raised.value)
    assert later.looks == 0


REFUSALS = [(401, "Incorrect API key provided"), (403, "Forbidden"), (400, "API key not valid: API_KEY_INVALID")]


@pytest.mark.parametrize(("status", "message"), REFUSALS)
def test_a_wrong_key_is_refused_before_anything_is_built(source: Path, notes, status: int, message: str) -> None:
    with RudeServer() as first:
        first.models = rude.failure(status, message)
        with pytest.raises(SettingsError, match=rf"refuses the API key of a \(HTTP {status}\)\. Set api_key_env"):
            check_servers(_pipeline(source, first.base_url))
        first.models = rude.failure(status, "You have insufficient permissions. Missing scopes: api.model.read")
        check_servers(_pipeline(source, first.base_url))  # a restricted key may ask, but not list
    assert notes == []


def test_the_key_of_every_server_is_checked(source: Path) -> None:
    with RudeServer() as first, RudeServer() as later:
        later.models = rude.failure(401)
        with pytest.raises(SettingsError, match=f"{later.base_url} refuses the API key of b "):
            check_servers(_pipeline(source, first.base_url, later.base_url))
        assert not first.requests and not later.requests


def test_a_key_that_is_not_set_is_named_and_only_told_where_replies_are_kept(source: Path, notes: list[str]) -> None:
    pipeline = _pipeline(source, ABSENT)
    server = pipeline.settings.servers[0].model_copy(update={"api_key_env": "NOT_SET"})
    settings = pipeline.settings.model_copy(update={"servers": (server,)})
    keyless = Pipeline(pipeline.workspace, settings, pipeline.sources)
    with pytest.raises(SettingsError, match="NOT_SET is not set"):
        check_servers(keyless)
    _keep(keyless, 1, ABSENT)
    check_servers(keyless)
    [line] = notes
    assert "NOT_SET is not set" in line and "only kept replies" in line


def test_a_refused_key_is_only_told_where_all_replies_seem_to_be_kept(source: Path, notes: list[str]) -> None:
    with RudeServer() as first:
        first.models = rude.failure(401)
        pipeline = _pipeline(source, first.base_url)
        _keep(pipeline, 2, first.base_url)
        check_servers(pipeline)
    [line] = notes
    assert "refuses the API key of a (HTTP 401)" in line and "only kept replies" in line


def test_a_vendors_model_without_prices_is_told(source: Path, notes: list[str], monkeypatch) -> None:
    monkeypatch.setenv("VENDORS_KEY", "none")
    with RudeServer() as vendor:
        server = {"api_key_env": "VENDORS_KEY", "flavour": "openai"}
        for prices in ({"price_prompt": 1, "price_completion": 0}, {"price_prompt": 1}):
            reader = {"model": "rude", **prices}
            check_servers(_build_of(source, **served(vendor.base_url, "r", reader=reader, server=server)))
    assert notes == ["r has no price_completion: quit plan counts 0 for it."]


@pytest.mark.parametrize(("context", "told"), [(9000, []), (700, ["read"]), (90, ["probe", "read"])])
def test_the_longest_prompts_are_compared_with_the_context_that_a_server_tells(
    source: Path, notes: list[str], context: int, told: list[str]
) -> None:
    with RudeServer() as first:
        first.models = rude.Fault(body=json.dumps({"data": [{"id": "org/a", "max_model_len": context}]}).encode())
        check_servers(_pipeline(source, first.base_url))
        assert not first.requests
    assert [note.partition(":")[0] for note in notes] == [f"a, {stage}" for stage in told]
    assert all(f"need more than the {context} that {first.base_url} tells" in note for note in notes)


NO_LIST = [rude.failure(404), rude.failure(503), rude.NOT_JSON, rude.HALF_JSON]


@pytest.mark.parametrize("answer", [None, *NO_LIST])
def test_others_need_not_be_there_yet_and_another_model_is_only_told(source: Path, notes, answer) -> None:
    with RudeServer() as first:
        first.models = answer or first.models
        check_servers(_pipeline(source, first.base_url, ABSENT))
        assert first.looks == 1 and not first.requests
    *others, absent = notes
    assert absent.startswith(f"The server of b did not answer: {ABSENT} (")
    note_of_model = f"{first.base_url} does not list org/a, which a needs; it lists rude."
    assert others == ([] if answer else [note_of_model])  # a server without a list of models is there


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_where_replies_are_kept_no_server_is_needed(source: Path, notes: list[str], kept: int) -> None:
    pipeline = _pipeline(source, ABSENT)
    _keep(pipeline, kept, ABSENT)
    if not kept:
        with pytest.raises(ServerError, match="did not answer"):
            check_servers(pipeline)
        return
    check_servers(pipeline)
    [line] = notes
    assert "did not answer" in line and "only kept replies" in line


@pytest.mark.parametrize("kept", [0, 2])
@pytest.mark.parametrize("absent", ["reader", "judge"])
def test_an_object_of_another_process_is_missed_unless_replies_are_kept(source: Path, absent: str, kept: int) -> None:
    mine = {"name": "mine", "kind": "python", "class": "object:mine:Mine@"}
    reader = {"name": "a", "role": "labeler", "kind": "server", "server": "a", "model": "org/a"}
    sections = {"readers": [reader], "servers": [{"name": "a", "base_urls": [ABSENT]}], "judge": mine}
    pipeline = _build_of(source, **{"readers": [{**mine, "role": "labeler"}]} if absent == "reader" else sections)
    _keep(pipeline, kept, "")
    if kept and absent == "reader":
        check_servers(pipeline)
        return
    with pytest.raises(SettingsError, match="mine was given to quit.build as an object"):
        check_servers(pipeline)  # none of the judge's replies is kept


def test_fresh_replies_of_an_object_that_is_not_there_delete_nothing(source: Path) -> None:
    pipeline = _build_of(
        source, readers=[{"name": "mine", "role": "labeler", "kind": "python", "class": "object:mine:Mine@"}]
    )
    _keep(pipeline, 2, "")
    before = pipeline.models.cache.statistics()
    with pytest.raises(SettingsError, match="mine was given to quit.build as an object"):
        forget_replies(pipeline)
    assert pipeline.models.cache.statistics() == before != []


@pytest.mark.parametrize("origin", ["http://127.0.0.1:11434/v1 root=x", None])
def test_replies_of_another_server_are_told(source: Path, notes: list[str], origin: str | None) -> None:
    with RudeServer() as server:
        server.models = rude.Fault(body=b'{"data": [{"id": "org/a"}]}')
        pipeline = _pipeline(source, server.base_url)
        _keep(pipeline, 2, origin or server.base_url)
        check_servers(pipeline)
    notes_of_origin = [line for line in notes if line.startswith(f"6 kept replies of org/a come from {origin}, 20")]
    assert notes == notes_of_origin and len(notes_of_origin) == (origin is not None)


@pytest.mark.slow
def test_a_server_that_moved_is_told_and_fresh_replies_make_the_tables_again(source: Path, tmp_path: Path) -> None:
    more = {"server": {"base_url_env": "QUIT_BASE_URL"}, "probe": {"repetitions": 1}, **TWO_HINTS}
    profile = write_profile(tmp_path / "p.toml", served(ABSENT, "r", reader={"model": "rude"}, **more))

    def build(place: str, *more: str, **variables: str) -> str:
        options = () if "--fresh-replies" in more else ("-p", str(profile), "-s", f"jsonl:{source}")
        return call_quit("build", "-w", str(tmp_path / place), *options, *more, **variables).err

    def answers(place: str) -> list[str]:
        shown = call_quit("query", "-w", str(tmp_path / place), "SELECT DISTINCT raw FROM distinct_answers", "--json")
        return [row["raw"] for row in shown.json()]

    with RudeServer(reply=lambda _: "Rome") as old, RudeServer(reply=lambda _: "Oslo") as new:
        assert "come from" not in build("A", QUIT_BASE_URL=old.base_url)
        requests = len(old.requests)
        notes_of_origin = build("B", QUIT_BASE_URL=new.base_url)
        assert notes_of_origin.count(f"{requests} kept replies of rude come from {old.base_url}, ") == 1
        assert answers("B") == ["Rome"] and not new.requests
        call_quit("build", "-w", tmp_path / "B", "--fresh-replies", QUIT_BASE_URL=ABSENT, code=ServerError.exit_code)
        assert answers("B") == ["Rome"], "nothing is deleted in vain"
        assert f"{requests} kept replies deleted" in build("B", "--fresh-replies", QUIT_BASE_URL=new.base_url)
        assert answers("B") == ["Oslo"] and len(new.requests) == requests and len(old.requests) == requests
        assert answers("A") == ["Rome"]
    status = call_quit("status", "-w", str(tmp_path / "B"), "--json").json()
    assert status["origins"] == {"r": {old.base_url: requests, new.base_url: requests}}
    assert f"r: {requests} from" in call_quit("status", "-w", str(tmp_path / "B")).out
    call_quit("export", "-w", str(tmp_path / "A"), "--format", "huggingface", "--out", str(tmp_path / "out"))
    card = (tmp_path / "out" / "huggingface" / "README.md").read_text(encoding="utf-8")
    assert f"`r`: {requests} replies from {old.base_url}" in card  # and as many from the other
