"""The variants of SUNAR: each has its settings over the profile's, and none that does not exist."""

import pytest

from quit.qa.settings import Sunar
from quit.qa.sunar.variants import VARIANTS, Variant, effective


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_runs_with_its_settings_over_the_profiles(name: str) -> None:
    profile, changes = Sunar(first=30, rerank_first=70, top=3), VARIANTS[name].changes
    settings = effective(profile, name)
    assert {key: getattr(settings, key) for key in changes} == {**changes} and settings.top == 3
    assert settings.planner == changes.get("planner", "gold")  # no language model: not `auto`
    assert settings.first == (70 if settings.retrieval in ("rerank", "prf") else 30)


@pytest.mark.parametrize("changes", [{"retreival": "nar"}, {"retrieval": "narr"}, {"asu": "perhaps"}])
def test_a_setting_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch, changes: dict) -> None:
    monkeypatch.setitem(VARIANTS, "wrong", Variant("wrong", changes))
    with pytest.raises(ValueError, match="retreival|retrieval|asu"):
        effective(Sunar(), "wrong")
