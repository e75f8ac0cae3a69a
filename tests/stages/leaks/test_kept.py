"""Kept findings are those of a full check, whatever was checked before: texts, people's words, settings and models."""

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from quit.common.cache import ContentStore
from quit.settings import Leakage
from quit.stages.leaks.find import LeakItem, find_leaks_of
from quit.stages.leaks.kept import cached_leaks_of

HINTS = ("The Nile crocodile lives there.", "Its delta is in Egypt.", "It is ten times as long.", "\ud800")


@st.composite
def _items(draw) -> LeakItem:
    hints = draw(st.lists(st.sampled_from(HINTS), max_size=3, unique=True))
    overrides = [draw(st.sampled_from((None, True, False))) for _ in hints]
    answers = draw(st.lists(st.sampled_from(("Nile", "Delta", "10", "Egypt")), min_size=1, max_size=2))
    question = draw(st.sampled_from(("Which river?", "Which delta?")))
    return LeakItem(question, answers, hints, draw(st.sampled_from(([], overrides))))


class Model:
    """An equivalence model and encoder of that name, which counts the pairs that it judges."""

    def __init__(self, identity: str) -> None:
        self.identity, self.judged = identity, 0

    def probability(self, pairs):
        self.judged += len(pairs)
        return np.array([len(self.identity + pair.candidate) % 3 / 2 for pair in pairs])


ENCODER = SimpleNamespace(identity="near", encode=lambda texts: np.ones((len(texts), 1)))
CHECK = st.tuples(st.lists(_items(), max_size=4), st.sampled_from(("one", "three")), st.sampled_from((0.5, 0.9)))


@settings(max_examples=30, deadline=None)
@given(st.lists(CHECK, max_size=4))
def test_kept_findings_are_those_of_a_full_check(checks) -> None:
    with TemporaryDirectory() as folder:
        store = ContentStore(Path(folder) / "leaks.sqlite", "findings", "Findings")
        for items, name, threshold in checks:
            leakage, model = Leakage(threshold=threshold), Model(name)
            full = find_leaks_of(items, model, ENCODER, leakage)
            assert cached_leaks_of(items, model, ENCODER, leakage, store) == full
            model.judged = 0
            assert cached_leaks_of(items, model, ENCODER, leakage, store) == full and model.judged == 0
