"""Where a workspace is, and which machine works on it: the fixtures of the object stores' tests."""

from tests.store.conftest import machine, place  # noqa: F401
