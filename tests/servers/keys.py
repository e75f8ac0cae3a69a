"""A key, and the search for it in everything that a program has written and said."""

from pathlib import Path

ACCESS = "QUIT_TEST_ACCESS"
"""An environment variable whose name does not sound like a secret's: that a profile calls it one has to be enough."""
KEY = "sk-Zq81vTmXw5Lr0NyBc7JdUe2PgA4H"
"""31 characters of which no eight are a word."""
_PIECE = 8


def pieces(key: str = KEY) -> set[str]:
    """Return all pieces of eight characters."""
    return {key[start : start + _PIECE] for start in range(len(key) - _PIECE + 1)}


def assert_kept(folder: Path, *texts: str) -> None:
    """Fail where a file under ``folder``, its name, or one of ``texts`` has eight characters of the key in a row."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files, "nothing was written, so nothing would be found"
    for piece in pieces():
        for path in files:
            assert piece not in str(path) and piece.encode() not in path.read_bytes(), f"{path} has {piece}"
        for text in texts:
            assert piece not in text, f"{piece} in {text}"
