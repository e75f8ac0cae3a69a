"""Make the environments of the servers that tests start, and fetch the language model that they serve, before the
tests run: ``python -m tests.servers.prepare``."""

import pytest

from quit.annotation.server import label_studio_programs
from quit.errors import InputError, MissingDependency
from quit.models.fetching import fetch
from tests.label_studio import first_server
from tests.servers.prefect import prefect_database
from tests.servers.vllm import vllm_environment
from tests.test_light import light_environment


def main() -> None:
    """Make what is missing. What cannot be made here is said and left out: the tests that need it skip."""
    makers = {"vLLM": vllm_environment, "base": light_environment}
    makers |= {"Label Studio": lambda: label_studio_programs(print), "its database": first_server}
    makers |= {"Prefect's database": prefect_database, "SmolLM2": lambda: fetch("smollm2")}
    for name, make in makers.items():
        try:
            print(f"{name}: {make()}")
        except (MissingDependency, InputError, pytest.skip.Exception) as reason:
            print(f"{name}: left out: {reason}")


if __name__ == "__main__":
    main()
