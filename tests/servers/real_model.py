"""A real language model on a real vLLM: SmolLM2-135M-Instruct, as ``quit models fetch smollm2`` makes it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from quit.errors import InputError, MissingDependency
from tests.servers.vllm import VllmServer


def fetched_model() -> Path:
    """Return the folder of the model, fetched if need be.

    Skips the calling test where it cannot be fetched.
    """
    from quit.models.fetching import fetch

    try:
        return fetch("smollm2")
    except (MissingDependency, InputError) as error:
        pytest.skip(f"the model smollm2 cannot be fetched here: {error}")


@pytest.fixture(scope="session")
def real_model() -> Iterator[VllmServer]:
    """A vLLM that serves it as ``smollm2-135m`` with contexts of 4096 tokens, the same one for all tests of a worker.

    What it says is the same on every run of one machine, and may differ on another. Prompts are computed whole: vLLM
    0.32 on CPU dies of a sampled request with a seed whose prompt is computed in pieces ("CPU Generator does not use
    offset").
    """
    whole = ("--no-enable-chunked-prefill", "--max-num-batched-tokens", "8192")
    with VllmServer(fetched_model(), "smollm2-135m", max_seqs=32, more=whole) as server:
        yield server
