"""Files of every kind, damaged in one place: what they lose is named, and nothing ends in a traceback."""

import gzip
import json
import random
from pathlib import Path

import pytest

from quit.errors import QuitError
from quit.qa.corpora.sources import CORPUS_SOURCES, parse_corpus_source
from quit.qa.settings import Corpora
from tests.qa.corpora.test_questions import COMPLEX, NATURAL, STRATEGY
from tests.qa.corpora.test_twowiki import RECORD
from tests.qa.corpora.worlds import musique_record

NILE, LIMA = ("Nile", "A river."), ("Lima", "A capital.")
DOCUMENTS = [{"_id": f"d{number}", "title": "T", "text": f"text {number}"} for number in range(3)]
MUSIQUE = [musique_record(f"2hop__{number}", [NILE, LIMA], [0, 1]) for number in range(3)]
HOTPOT = {key: value for key, value in RECORD.items() if key != "evidences"} | {"level": "hard"}
FILES = {
    "musique": "".join(json.dumps(record) + "\n" for record in MUSIQUE),
    "2wiki": json.dumps([RECORD | {"_id": f"x{number}"} for number in range(3)]),
    "hotpotqa": json.dumps([HOTPOT | {"_id": f"x{number}"} for number in range(3)]),
    "cwq": json.dumps([COMPLEX | {"ID": f"x{number}"} for number in range(3)]),
    "strategyqa": json.dumps([STRATEGY | {"qid": f"x{number}"} for number in range(3)]),
    "nq": "".join(json.dumps(NATURAL | {"example_id": number}) + "\n" for number in range(3)),
    "jsonl": "".join(json.dumps(row) + "\n" for row in DOCUMENTS),
}
TIMES = 200


def _damaged(content: bytes, draw: random.Random) -> bytes:
    """Return bytes with one place cut out, overwritten, doubled or torn."""
    at = draw.choice([place for place in range(len(content)) if content[place - 1 : place] not in (b"}", b"\n")])
    end = min(len(content), at + draw.choice([1, 2, 5, 20]))
    middle = draw.choice([b"", b"\xff", b'"', b"null", b"3", b"\n", content[at:end] * 2])
    return content[:at] + (b"" if draw.random() < 0.1 else middle + content[end:])


def _held(source: str) -> tuple[int, int, int]:
    """Return documents, whole questions and rejects."""
    records = [*parse_corpus_source(source).read(Corpora())]
    documents = sum(len(record.documents) for record in records)
    return documents, sum(bool(record.queries) for record in records), sum(len(record.rejects) for record in records)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", FILES)
def test_nothing_leaves_a_damaged_file_without_being_named(tmp_path: Path, kind: str, packed: bool) -> None:
    draw, path = random.Random(kind), tmp_path / "f.jsonl"
    content = FILES[kind].encode()
    path.write_bytes(content)
    whole = _held(f"{kind}:{path}")
    assert whole[2] == 0 and sum(whole) >= 3
    losses = 0
    for _ in range(TIMES):
        content_here = _damaged(gzip.compress(content) if packed else content, draw)
        path.write_bytes(content_here)
        try:
            documents, questions, rejects = _held(f"{kind}:{path}")
        except QuitError as error:
            assert str(path) in str(error) or path.name in str(error)
            losses += 1
            continue
        has_fewer = documents < whole[0] or questions < whole[1]
        assert not has_fewer or rejects, content_here
        losses += has_fewer
    assert losses > TIMES / 10


def test_every_kind_of_one_file_is_damaged() -> None:
    assert {*FILES} == {*CORPUS_SOURCES} - {"quit", "beir"}
