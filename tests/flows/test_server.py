"""Whether a Prefect server answers, without one."""

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from quit.errors import ServerError
from quit.flows.server import check_health
from tests.servers.serving import serving


@pytest.mark.parametrize(
    ("status", "says"), [(200, "is not the API"), (404, "is not the API"), (403, "is not the API")]
)
def test_what_answers_at_the_address_is_told_from_what_is_down(status: int, says: str) -> None:
    """A page of a proxy, and an address that lacks ``/api``."""
    with (
        serving(lambda *_: (status, b"<html>Sign in</html>", {})) as url,
        temporary_settings({PREFECT_API_URL: f"{url}/"}),
        pytest.raises(ServerError, match=says) as raised,
    ):
        check_health()
    assert url in str(raised.value)
