"""What is escaped before it is printed, and how long an error's message may be."""

import json
import logging
import unicodedata

import pytest

from quit.common.logs import without_secrets_in_logs
from quit.common.terminal import echo
from quit.errors import InputError
from quit.text.invisible import LONGEST, visible

DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def test_controls_directions_and_surrogates_are_escaped_and_nothing_else_is() -> None:
    marks = {0x61C, 0x200E, 0x200F, 0x2028, 0x2029}
    for code in range(0x11000):
        char = chr(code)
        obeyed = unicodedata.category(char) in ("Cc", "Cs") or unicodedata.bidirectional(char) in DIRECTIONS
        expected = (obeyed and char not in "\n\t") or code in marks
        assert visible(char) == (f"\\u{code:04x}" if expected else char), hex(code)


def test_json_says_the_same_when_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a\u202e": "\x1b[2J\x9b\u2028é\n", "b": "\x7f"}
    echo(json.dumps(value, ensure_ascii=False))
    output = capsys.readouterr().out
    assert json.loads(output) == value and "\x7f" not in output and "\u202e" not in output


def test_a_message_is_visible_and_no_longer_than_people_read(caplog: pytest.LogCaptureFixture) -> None:
    text = str(InputError(f"c.jsonl, line 3: the id \x1b\x07 is {'x' * 180_000}. Correct the file."))
    assert text.startswith(r"c.jsonl, line 3: the id \u001b\u0007 is xxx") and text.endswith("x. Correct the file.")
    assert len(text) < LONGEST + 50 and "176," in text  # how much is left out
    assert str(InputError("x" * LONGEST)) == "x" * LONGEST
    without_secrets_in_logs()
    logging.getLogger("quit.test").warning("left out: %s", "\x1b[2J\u202e")
    assert caplog.messages == [r"left out: \u001b[2J\u202e"]
