"""The settings of these tests are the review's."""

from __future__ import annotations

import pytest

from quit.settings import Settings


@pytest.fixture
def settings(review_settings: Settings) -> Settings:
    return review_settings
