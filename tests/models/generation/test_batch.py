"""Batches at a server that charges for each reply it makes, killed between any two requests."""

import json
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from quit.engine.workspace import Workspace
from quit.errors import ServerError, SettingsError, Waiting, WorkspaceError
from quit.models.generation import CachedGenerator, ChatRequest, GenerationCache, Meter
from quit.models.generation import batch as batches
from quit.models.generation.base import ModelOptions
from quit.models.generation.batch import BatchGenerator
from quit.models.generation.ledger import Account, Amount, Ledger
from quit.models.prompting import load_prompt
from quit.settings import ServerSettings
from tests.comparing import files_of
from tests.paths import ROOT, starter_file
from tests.running import Result, call_quit
from tests.servers.batches import BatchServer, batch_server
from tests.servers.builds import TWO_HINTS, served, write_profile
from tests.servers.rude import RudeServer
from tests.servers.vllm import vllm_environment

REQUESTS = [ChatRequest(load_prompt("probe"), {"question": f"Q{number}?"}, 32) for number in range(7)]
TEXTS = [f"A to Q{number}?" for number in range(7)]


class Killed(BaseException):
    """In the place of SIGKILL."""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIT_CACHE", str(tmp_path))
    monkeypatch.setattr(batches, "MAX_REQUESTS", 5)


def _question(body: Any) -> str:
    return body["messages"][-1]["content"].rpartition("Question: ")[2].split("\n")[0]


def _faulty(number: int, body: Any) -> str:
    """The first batch fails in part, the second expires in part; one reply is empty at first."""
    question = _question(body)
    if number == 0 and question in ("Q1?", "Q2?"):
        return "500"
    if number == 0 and question == "Q4?":
        return ""
    return "expired" if number == 1 and question == "Q6?" else f"A to {question}"


def _once(server: BatchServer, ledger: Ledger | None = None, meter: Meter | None = None) -> list[str]:
    """Ask as one run of the program does, and return the texts."""
    settings = ServerSettings(name="s", base_urls=(server.base_url,), flavour="openai", batch=True)
    account = Account(ledger or Ledger(), lambda prompt, cached, reply: (prompt * 2 + reply * 8) / 2e6)
    with GenerationCache() as cache:
        meter = meter or Meter()
        generator = BatchGenerator("r", ModelOptions("m"), settings, meter, account)
        return [reply.text for reply in CachedGenerator(generator, cache, meter).complete(REQUESTS)]


def _until_done(server: BatchServer, ledger: Ledger | None = None, meter: Meter | None = None) -> list[str]:
    for _ in range(12):
        try:
            return _once(server, ledger, meter)
        except Waiting:
            server.end_batches()
        except Killed:
            pass
    raise AssertionError("the replies never came")


def test_what_fails_expires_or_is_empty_is_asked_again_and_nothing_else() -> None:
    with batch_server(_faulty) as server:
        with pytest.raises(Waiting, match=r"batch_0 \(5 requests\), batch_1 \(2 requests\)"):
            _once(server)
        with pytest.raises(Waiting, match="batch_0"):
            _once(server)
        assert len(server.batches) == 2
        for _ in range(2):
            assert _until_done(server) == TEXTS
            assert len(server.batches) == 3 and sum(server.charged.values()) == 8  # the empty one was paid, too


def test_the_tokens_of_all_replies_that_were_paid_are_counted() -> None:
    meter = Meter()
    with batch_server(_faulty) as server:
        _until_done(server, meter=meter)
        assert meter.snapshot()["r"].prompt_tokens == 100 * sum(server.charged.values()) == 800


def test_replies_that_came_with_a_part_of_the_batches_are_asked_again_once_they_are_dropped() -> None:
    """... as ``--fresh-replies`` does: the notes give no reply out twice."""
    with batch_server(_faulty) as server:
        assert _until_done(server) == TEXTS
        with GenerationCache() as cache:
            assert cache.drop(ModelOptions("m").identity) == len(TEXTS)
        server.outcome = lambda _, body: f"B to {_question(body)}"
        assert _until_done(server) == [text.replace("A", "B", 1) for text in TEXTS]


@pytest.mark.parametrize("after", [False, True])
def test_killed_between_any_two_requests_nothing_is_lost_or_paid_twice(after: bool, monkeypatch, tmp_path) -> None:
    chunks, count, point = BatchGenerator._chunks, 0, 0

    async def dying(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == point and not after:
            raise Killed
        async for chunk in chunks(*arguments):
            yield chunk
        if count == point and after:
            raise Killed

    monkeypatch.setattr(BatchGenerator, "_chunks", dying)
    for point in range(1, 40):
        monkeypatch.setenv("QUIT_CACHE", str(tmp_path / str(point)))
        count = 0
        with batch_server(_faulty) as server:
            assert _until_done(server) == TEXTS
            assert sum(server.charged.values()) == 8 and len(server.charged) == 7
        if count < point:
            break
    assert point > 12


def test_a_withheld_reply_is_taken_once_and_is_empty() -> None:
    with batch_server(lambda number, body: "content_filter") as server:
        assert [_until_done(server) for _ in range(2)] == [[""] * 7] * 2
        assert set(server.charged.values()) == {1}


def test_a_prompt_that_the_filter_refuses_is_withheld_and_the_others_are_answered() -> None:
    with batch_server(lambda number, body: "400 content_filter" if _question(body) == "Q3?" else "A") as server:
        assert [_until_done(server) for _ in range(2)] == [["A"] * 3 + [""] + ["A"] * 3] * 2
        assert len(server.charged) == 6


def test_a_refused_request_names_the_setting_and_the_others_are_kept() -> None:
    with batch_server(lambda number, body: "400" if _question(body) == "Q3?" else "A") as server:
        with pytest.raises(SettingsError, match=r'omit = \["seed"\]'):
            _until_done(server)
        server.outcome = lambda number, body: "A"
        assert _until_done(server) == ["A"] * 7
        assert set(server.charged.values()) == {1}


def test_a_server_without_batches_and_a_batch_that_fails_are_named() -> None:
    message = "takes no batches .HTTP 404 for /files.: set batch"
    with RudeServer() as server, pytest.raises(SettingsError, match=message):
        _once(server)  # type: ignore[arg-type]
    with batch_server(lambda number, body: "A") as server:
        for _ in range(8):
            with pytest.raises(Waiting):
                _once(server)
            for batch in server.batches:
                batch |= {"status": "failed", "errors": {"data": [{"message": "The file is too old"}]}}
        made = len(server.batches)
        with pytest.raises(
            ServerError, match="failed 8 times on 7 requests .* the batch is failed .*The file is too old"
        ):
            _once(server)
        with pytest.raises(Waiting):
            _once(server)  # all are asked anew
        assert len(server.batches) == made + 2


@pytest.mark.parametrize("says", [" Limit: 1,000 enqueued tokens.", ""])
def test_batches_are_cut_to_what_may_wait_at_the_vendor_and_sent_in_turn(says: str) -> None:
    with batch_server(lambda number, body: f"A to {_question(body)}") as server:
        for _ in range(24):
            try:
                assert _once(server) == TEXTS
                break
            except Waiting:
                sizes = [len(server.files[batch["input_file_id"]]) / 4 for batch in server.batches]
                waiting = [at for at, batch in enumerate(server.batches) if batch["status"] == "in_progress"]
                for at in waiting[1:] if sum(sizes[at] for at in waiting) > 1000 else []:
                    error = {"code": "token_limit_exceeded", "message": f"Enqueued token limit reached.{says}"}
                    server.batches[at] |= {"status": "failed", "errors": {"data": [error]}}
                if waiting and sizes[waiting[0]] > 1000:
                    error = {"code": "token_limit_exceeded", "message": f"Enqueued token limit reached.{says}"}
                    server.batches[waiting[0]] |= {"status": "failed", "errors": {"data": [error]}}
                server.end_batches()
        else:
            raise AssertionError("the replies never came")
    assert set(server.charged.values()) == {1} and len(server.charged) == 7


def test_a_state_in_other_words_is_understood_or_named() -> None:
    for state, error in (("COMPLETED", None), ("Baking", SettingsError)):
        with batch_server(lambda number, body: "A") as server:
            server.batches.clear()
            with pytest.raises(Waiting):
                _once(server)
            server.end_batches()
            for batch in server.batches:
                batch["status"] = state
            if error is None:
                assert _once(server) == ["A"] * 7
                with GenerationCache() as cache:
                    cache.drop(ModelOptions("m").identity)
            else:
                with pytest.raises(
                    SettingsError, match='with the word .Baking., which is not known.*words = . "Baking"'
                ):
                    _once(server)


def test_a_good_line_is_not_lost_to_an_error_line_of_the_same_request() -> None:
    with batch_server(lambda number, body: f"A to {_question(body)}") as server:
        with pytest.raises(Waiting):
            _once(server)
        server.end_batches()
        for name in [name for name in server.files if name.startswith("output")]:
            first = json.loads(server.files[name].splitlines()[0])
            bad = first | {"response": {"status_code": 500, "body": {"error": {"message": "twice"}}}}
            server.files[name] = b"\n".join([json.dumps(bad).encode(), server.files[name], json.dumps(bad).encode()])
        assert _once(server) == TEXTS


def test_a_line_that_cannot_be_read_costs_no_other_reply(notes: list[str]) -> None:
    """Its own request is asked for again, like one without a line; blank lines and codes as texts do no harm."""
    with batch_server(lambda number, body: f"A to {_question(body)}") as server:
        with pytest.raises(Waiting):
            _once(server)
        server.end_batches()
        name = next(name for name in server.files if name.startswith("output"))
        lines = [
            line.replace(b'"status_code": 200', b'"status_code": "200"') for line in server.files[name].splitlines()
        ]
        server.files[name] = b"\n".join([lines[0][:40], *lines[1:], b"  ", b"[]", b'{"custom_id": null}'])
        with pytest.raises(Waiting):
            _once(server)
        assert [line for line in notes if "3 lines of the replies in the batch batch_0 cannot be read" in line]
        server.end_batches()
        assert _once(server) == TEXTS and sorted(server.charged.values()) == [*[1] * (len(TEXTS) - 1), 2]


@pytest.mark.parametrize("form", ["without a status", "without a body", "as a text"])
def test_a_completion_in_a_row_of_another_form_is_taken(form: str) -> None:
    with batch_server(lambda number, body: f"A to {_question(body)}") as server:
        with pytest.raises(Waiting):
            _once(server)
        server.end_batches()
        name = next(name for name in server.files if name.startswith("output"))
        rows = [json.loads(line) for line in server.files[name].splitlines()]
        for row in rows:
            reply = row["response"]["body"]
            forms = {
                "without a status": {"body": reply},
                "without a body": reply,
                "as a text": {"body": json.dumps(reply)},
            }
            row["response"] = forms[form]
        server.files[name] = "\n".join(map(json.dumps, rows)).encode()
        assert _once(server) == TEXTS


def test_thoughts_that_nobody_asked_for_hold_up_no_other_reply_and_are_asked_again_once() -> None:
    thinks = [True]

    def answer(number: int, body: Any) -> str:
        reply = f"A to {_question(body)}"
        return f"<think>hm</think>{reply}" if thinks[0] and _question(body) == "Q1?" else reply

    with batch_server(answer) as server:
        with pytest.raises(Waiting):
            _once(server)
        server.end_batches()
        with pytest.raises(SettingsError, match="thinking"):
            _once(server)
        with GenerationCache() as cache:
            assert sum(row["replies"] for row in cache.statistics()) == len(TEXTS) - 1
        thinks[0] = False
        with pytest.raises(Waiting):
            _once(server)
        server.end_batches()
        assert _once(server) == TEXTS and sorted(server.charged.values()) == [*[1] * (len(TEXTS) - 1), 2]


def test_a_damaged_file_of_notes_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "batches.sqlite").write_bytes(b"no database at all" * 500)
    with (
        batch_server(lambda number, body: "x") as server,
        pytest.raises(WorkspaceError, match=r"batches.*Move it away"),
    ):
        _once(server)


@pytest.mark.parametrize("fault", ["another project's key", "a deleted file"])
def test_a_batch_or_file_that_is_gone_is_named_with_what_to_do(fault: str) -> None:
    with batch_server(lambda number, body: "A") as server:
        with pytest.raises(Waiting):
            _once(server)
        server.end_batches()
        if fault == "a deleted file":
            server.files.clear()
        else:
            server.key = "Bearer another"
        for _ in range(2):
            with pytest.raises(
                SettingsError, match=r"does not find the batch batch_[01] of r.*set batch = false for .* s,"
            ):
                _once(server)
        assert len(server.batches) == 2


@pytest.mark.slow
def test_openais_own_client_gets_along_with_the_scripted_server() -> None:
    program = [vllm_environment() / "python", ROOT / "tests" / "servers" / "openai_client.py"]
    with batch_server(lambda number, body: "Paris") as server:
        client = subprocess.Popen([*program, server.base_url], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert client.stdout and client.stdout.readline() == "in_progress ['batch_0'] {'quit': 'tag'}\n"
        server.end_batches()
        assert client.communicate("\n") == ("completed Paris\n", None)


def test_spending_is_that_of_the_replies() -> None:
    ledger = Ledger(cost=1.0)
    with batch_server(lambda number, body: "A") as server:
        _until_done(server, ledger)
    assert ledger.spent.cost == pytest.approx(7 * (100 * 2 + 2 * 8) / 2e6) and ledger.spent.tokens == 7 * 102


def test_a_cap_that_comes_after_a_batch_was_made_counts_its_replies_once() -> None:
    ledger = Ledger(cost=1.0)
    with batch_server(lambda number, body: "A") as server:
        with pytest.raises(Waiting):
            _once(server)  # without a cap
        server.end_batches()
        assert _once(server, ledger) == ["A"] * 7
    assert ledger.spent.cost == pytest.approx(7 * (100 * 2 + 2 * 8) / 2e6)


def test_a_batch_of_replies_that_do_not_say_what_they_cost_counts_as_its_worst_case() -> None:
    ledger = Ledger(cost=1.0)
    with batch_server(lambda number, body: "A") as server:
        with pytest.raises(Waiting):
            _once(server, ledger)
        reserve = ledger.spent
        server.end_batches()
        for name, content in server.files.items():
            server.files[name] = content.replace(b'"prompt_tokens": 100, ', b"", 1)
        assert _once(server, ledger) == ["A"] * 7
    assert ledger.spent == pytest.approx(reserve)


def test_a_workspace_that_collects_anothers_batch_gains_no_money_by_it(tmp_path: Path) -> None:
    ledgers = [Ledger(cost=1.0), Ledger(cost=1.0)]
    for number, ledger in enumerate(ledgers):
        (tmp_path / str(number)).mkdir()
        ledger.open(tmp_path / str(number), Amount())
    with batch_server(lambda number, body: "A") as server:
        with pytest.raises(Waiting):
            _once(server, ledgers[0])
        server.end_batches()
        assert _once(server, ledgers[1]) == ["A"] * 7
    cost = 7 * (100 * 2 + 2 * 8) / 2e6
    assert ledgers[0].spent.cost > cost and ledgers[1].spent.cost == pytest.approx(cost)


def test_a_download_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, faults = BatchServer.answer, [503, 500]

    def busy(server: BatchServer, method: str, path: str, *rest: Any) -> tuple[int, bytes, Any]:
        if path.endswith("/content") and faults:
            return faults.pop(), b"{}", {"Retry-After": "0.01"}
        return answer(server, method, path, *rest)

    monkeypatch.setattr(BatchServer, "answer", busy)
    monkeypatch.setattr(batches, "pause", lambda attempt, after: after)
    with batch_server(lambda number, body: "A") as server:
        assert _until_done(server) == ["A"] * 7
    assert not faults


def test_an_address_may_have_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """... as Azure's older ones, also where a batch is looked for by its tag, on the second page."""
    answer, queries = BatchServer.answer, []

    def versioned(server: BatchServer, method: str, path: str, headers: Any, body: bytes) -> tuple[int, bytes, Any]:
        address = urlsplit(path)
        queries.append(dict(parse_qsl(address.query)))
        if method == "GET" and address.path == "/v1/batches":
            page = {"data": server.batches, "has_more": False}
            page = page if "after" in queries[-1] else {"data": [{"id": "other"}], "has_more": True}
            return 200, json.dumps(page).encode(), {}
        reply = answer(server, method, address.path, headers, body)
        return (500, b"{}", {}) if method == "POST" and address.path == "/v1/batches" else reply

    monkeypatch.setattr(BatchServer, "answer", versioned)
    with batch_server(lambda number, body: "A") as server:
        server.base_url += "?api-version=1"
        assert _until_done(server) == ["A"] * 7
    assert {query.pop("api-version") for query in queries} == {"1"}
    assert {"limit": "100"} in queries and {"limit": "100", "after": "other"} in queries


def test_a_list_of_batches_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch was noted and never made; the server lists others, page after page."""
    answer, pages, killed = BatchServer.answer, [], [1]

    def endless(server: BatchServer, method: str, path: str, *rest: Any) -> tuple[int, bytes, Any]:
        if path.startswith("/v1/batches?"):
            pages.append(path)
            return 200, b'{"data": [{"id": "other"}], "has_more": true}', {}
        if method == "POST" and path == "/v1/batches" and killed:
            killed.pop()
            return 500, b"{}", {}
        return answer(server, method, path, *rest)

    monkeypatch.setattr(BatchServer, "answer", endless)
    monkeypatch.setattr(batches, "_PAGES", 3)
    with batch_server(lambda number, body: "A") as server:
        with pytest.raises(ServerError, match="takes no batch of r"):
            _once(server)
        assert len(pages) == 3
        assert _until_done(server) == ["A"] * 7


@pytest.mark.slow
def test_a_build_waits_and_goes_on_to_the_bytes_of_a_live_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = starter_file(tmp_path / "three.jsonl", 1, 7, 2)

    def reply(body: Any) -> str:
        return _question(body)[:9]

    def build(name: str, url: str, code: int | None = None) -> Result:
        batch = {"flavour": "openai", "batch": name == "batch"}
        sections = served(url, "r", server=batch, run={"shard_questions": 1}, **TWO_HINTS)
        profile = write_profile(tmp_path / "p.toml", sections)
        monkeypatch.setenv("QUIT_CACHE", str(tmp_path / f"cache-{name}"))
        return call_quit("build", "-p", profile, "-s", source, "-w", tmp_path / name, code=code)

    codes = []
    with batch_server(lambda number, body: reply(body)) as server:
        while codes[-1:] != [0] and len(codes) < 9:
            result = build("batch", server.base_url)
            codes.append(result.code)
            if len(codes) == 1:
                assert "r waits for batches" in result.err and "batch_" in result.err
            server.end_batches()
        assert codes == [10, 10, 0]  # the probe's three repetitions at once, then the passages of all shards
        assert set(server.charged.values()) == {1, 3}
    with RudeServer(reply=reply) as live:
        build("live", live.base_url, code=0)
    assert Workspace.open(tmp_path / "batch").read("labels").num_rows == 3 * 4
    assert files_of(tmp_path / "batch" / "tables") == files_of(tmp_path / "live" / "tables")
