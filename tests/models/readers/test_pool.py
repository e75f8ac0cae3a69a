"""The answer pool knows no gold answer and no order."""

import pytest

from quit.errors import InputError
from quit.models.readers import AnswerPool

PEOPLE = [(name, "HUM:HUMAN", "ind:Individual") for name in ("Iron Man", "the iron man", "Thor")]
OTHERS = [("Aerosmith", "HUM:HUMAN", "gr:Group"), ("Peru", "LOC:LOCATION", "country:Country"), ("Lima", None, None)]
ENTRIES = PEOPLE + OTHERS


def test_equal_answers_are_one_member_whatever_the_order():
    pool = AnswerPool.build(ENTRIES, ["One hint.", "Another hint."])
    again = AnswerPool.build([*reversed(ENTRIES), *ENTRIES], ["Another hint.", "One hint.", "One hint."])
    assert pool.answers == again.answers == ("Aerosmith", "Iron Man", "Lima", "Peru", "Thor")
    assert pool.identity == again.identity


def test_identity_follows_content():
    typed = [("Lima", "LOC:LOCATION", "city:City"), *ENTRIES]
    pools = [AnswerPool.build(entries) for entries in (ENTRIES, ENTRIES[:-1], typed)]
    pools += [AnswerPool.build(ENTRIES, ["A hint."])]
    assert len({pool.identity for pool in pools}) == 4


def test_fitting_backs_off_from_fine_to_coarse_to_all(monkeypatch):
    monkeypatch.setattr("quit.models.readers.pool.FITTING_MINIMUM", 2)
    pool = AnswerPool.build(ENTRIES)
    for coarse, fine, answers in (
        ("HUM:HUMAN", "ind:Individual", ("Iron Man", "Thor")),
        ("HUM:HUMAN", "gr:Group", ("Aerosmith", "Iron Man", "Thor")),
        ("LOC:LOCATION", "country:Country", pool.answers),
        (None, None, pool.answers),
    ):
        assert tuple(pool.answers[row] for row in pool.rows(coarse, fine)) == answers


def test_an_empty_pool_is_an_input_error():
    with pytest.raises(InputError, match="empty"):
        AnswerPool.build([("  ", None, None)])
