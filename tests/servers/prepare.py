"""Make the environments of the servers that tests start, before the tests run: ``python -m tests.servers.prepare``."""

from __future__ import annotations

import pytest

from tests.servers.vllm import vllm_environment


def main() -> None:
    """Make what is missing. What cannot be made here is said and left out: the tests that need it skip."""
    try:
        print(f"vLLM: {vllm_environment()}")
    except pytest.skip.Exception as reason:
        print(f"vLLM: left out: {reason}")


if __name__ == "__main__":
    main()
