"""Small files hold what they must, or one line says what to do."""

import os
from pathlib import Path

import pytest
from typing_extensions import TypedDict

from quit.common.state_files import StateFile
from quit.errors import WorkspaceError


class Counts(TypedDict):
    passages: int


FILE: StateFile[Counts] = StateFile("counts.json", Counts, "Delete it; it is counted again.")


def test_a_file_is_read_with_more_keys_than_it_must_have_and_none_is_none(tmp_path: Path) -> None:
    assert FILE.read(tmp_path) is None
    (tmp_path / FILE.name).write_text('{"passages": 3, "of a newer program": [1]}')
    assert FILE.read(tmp_path) == {"passages": 3, "of a newer program": [1]}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{}", "is damaged: passages: Field required"),
        ('{"passages": "3"}', "is damaged: passages: Input should be a valid integer"),
        ("null", "is damaged: the whole: Input should be a valid dictionary"),
        ('{"passages": 3', "cannot be read: Expecting"),
        ("[" * 100_000, "cannot be read: "),
        ("\udcff", "cannot be read: "),
    ],
)
def test_another_file_is_one_line_with_its_path_and_the_remedy(text: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / FILE.name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(WorkspaceError) as raised:
        FILE.read(tmp_path)
    message = str(raised.value)
    assert message.startswith(f"{tmp_path / FILE.name} {fault}") and "\n" not in message
    assert message.endswith(". Delete it; it is counted again.")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE.name)
    with pytest.raises(WorkspaceError, match="it is a pipe, not a file. Delete it"):
        FILE.read(tmp_path)
