"""Secrets are taken out of texts in one place, through which errors and log records pass as they are made."""

import logging
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quit.cli import main
from quit.common.faults import without_secrets_in_errors
from quit.common.logs import without_secrets_in_logs
from quit.errors import InputError, QuitError, ServerError, SettingsError
from quit.export import push
from quit.settings import ServerSettings
from quit.text import secrets
from quit.text.secrets import contains_secret, register_secret, shown, without_secrets
from tests.servers.keys import ACCESS, KEY, pieces


@pytest.fixture(autouse=True, scope="module")
def _sent():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "_SENT", {})
        register_secret(KEY, ACCESS)
        yield


def _holds_a_piece(text: str) -> bool:
    return any(piece in text for piece in pieces())


@given(st.text(max_size=20), st.integers(0, 31), st.integers(0, 31), st.text(max_size=20), st.integers(1, 3))
def test_no_piece_of_a_sent_key_is_left_and_nothing_else_goes(before, start, end, after, times) -> None:
    piece = KEY[start:end]
    text = (before + piece + after) * times
    clean = without_secrets(text)
    assert not _holds_a_piece(clean)
    if not _holds_a_piece(text) and "://" not in text:
        assert clean == text


def test_the_longest_run_of_a_key_is_one_mask_and_what_others_say_is_masked_before_it_is_cut() -> None:
    assert without_secrets(f"<{KEY[3:20]}> {KEY}{KEY}") == f"<({ACCESS})> ({ACCESS})({ACCESS})"
    assert shown("x" * 290 + KEY, 300) == "x" * 290 + f"({ACCESS}"[:10] + "..."
    assert shown("http://user:p@ss'word@host/x", 20) == "http://host/x"
    assert shown("a\n\x1b[31m\ud83d b") == "a ?[31m? b"


def test_a_short_value_is_no_secret_and_a_whole_key_is_told_from_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_SENT", dict(secrets._SENT))
    register_secret("EMPTY", "VLLM_ACCESS")
    assert without_secrets("EMPTY") == "EMPTY" and not contains_secret("EMPTY")
    assert contains_secret(f"It is {KEY}.") and not contains_secret(KEY[:-1])
    assert contains_secret(f"It is {KEY[:9]}\n  {KEY[9:]}.")


def test_an_error_holds_no_secret_and_one_of_others_goes_on_only_without() -> None:
    error = ServerError(f"bad key {KEY}", 7)
    assert error.args == (f"bad key ({ACCESS})", 7)
    assert pickle.loads(pickle.dumps(error)).args == error.args

    @without_secrets_in_errors
    def work(error: Exception) -> None:
        raise error

    for error in (ZeroDivisionError("plain"), OSError(2, "gone", "file"), ServerError(KEY)):
        with pytest.raises(type(error)) as raised:
            work(error)
        assert raised.value is error
    with pytest.raises(QuitError, match="FileNotFoundError") as raised:
        work(OSError(2, "gone", KEY))
    assert not _holds_a_piece(str(raised.value)) and raised.value.__suppress_context__


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch):
    factory = logging.getLogRecordFactory()
    without_secrets_in_logs()
    without_secrets_in_logs()  # twice is once
    yield
    logging.setLogRecordFactory(factory)


def test_a_log_record_holds_no_secret(records: None, caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("quit.test")
    try:
        raise ValueError(f"key {KEY}") from OSError(KEY)
    except ValueError:
        log.exception("failed with %s and %r", KEY, {"key": KEY})
    log.warning("plain %d", 3)
    assert caplog.text.count(f"({ACCESS})") == 4 and not _holds_a_piece(caplog.text)
    assert "Traceback" in caplog.text and caplog.records[-1].args == (3,)
    log.warning("not a number: %d", KEY)
    assert "not a number" in caplog.text and not _holds_a_piece(caplog.text)
    caplog.clear()
    try:
        raise InputError("no such file: name another")
    except InputError as error:
        log.exception("failed with %s", error)
    assert "failed with no such file: name another" in caplog.text and "Traceback" not in caplog.text


@pytest.mark.parametrize(("error", "debug"), [(ServerError, True), (ValueError, False)])
def test_a_traceback_shows_no_secret(error, debug, records, monkeypatch, capsys) -> None:
    value = "tok-in-the-environment"

    def fail(*_: object, **__: object) -> None:
        raise error(f"refused {value}") from OSError(f"it was {value}")

    monkeypatch.setenv("QUIT_TEST_TOKEN", value)
    monkeypatch.setattr("quit.cli.assembled", lambda _: fail)
    with pytest.raises(SystemExit) as raised:
        main(["--debug", "status"] if debug else ["status"])
    output = capsys.readouterr().err
    assert raised.value.code == 1 and "Traceback" in output
    assert "tok-in" not in output and output.count("(QUIT_TEST_TOKEN)") == 2


def _key_of_a_server() -> str | None:
    return ServerSettings(name="s", base_urls=("http://127.0.0.1:9/v1",), api_key_env="QUIT_TEST_KEY").key()


@pytest.mark.parametrize("value", ["sk–0123456789", "sk-01234\n56789", "schlüssel", "sk-0123\x7f56789"])
@pytest.mark.parametrize(
    ("variable", "read"),
    [("QUIT_TEST_KEY", _key_of_a_server), ("HF_TOKEN", push.token)],
)
def test_a_key_that_no_header_takes_is_named_and_not_shown(value, variable, read, monkeypatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError, match=f"{variable} has characters that no key or token has") as caught:
        read()
    assert value[:6] not in str(caught.value)
