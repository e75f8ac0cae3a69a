"""Make the environments of the servers that tests start, and fetch the language model that they serve, before the
tests run: ``python -m tests.servers.prepare``."""

import pytest

from annotation.server import label_studio_programs
from quit.errors import InputError, MissingDependency
from quit.models.fetching import fetch
from tests.servers.moto import moto_environment
from tests.servers.vllm import vllm_environment


def main() -> None:
    """Make what is missing. What cannot be made here is said and left out: the tests that need it skip."""
    try:
        print(f"vLLM: {vllm_environment()}")
    except pytest.skip.Exception as reason:
        print(f"vLLM: left out: {reason}")
    try:
        print(f"moto: {moto_environment()}")
    except pytest.skip.Exception as reason:
        print(f"moto: left out: {reason}")
    try:
        print(f"Label Studio: {label_studio_programs(print)}")
    except MissingDependency as reason:
        print(f"Label Studio: left out: {reason}")
    try:
        print(f"SmolLM2: {fetch('smollm2')}")
    except (MissingDependency, InputError) as reason:
        print(f"SmolLM2: left out: {reason}")


if __name__ == "__main__":
    main()
