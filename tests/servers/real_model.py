"""The vLLM that tests share, and SmolLM2-135M-Instruct, as ``quit models fetch smollm2`` makes it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from quit.errors import InputError, MissingDependency
from tests.servers.checkpoints import checkpoint
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
    """A vLLM that serves an untaught checkpoint with contexts of 8192 tokens, the same one for all tests of a worker.

    No test asserts what it says, and SmolLM2 takes seconds per prompt to say as little. Prompts are computed whole:
    vLLM 0.32 on CPU dies of a sampled request with a seed whose prompt is computed in pieces ("CPU Generator does not
    use offset").
    """
    whole = ("--no-enable-chunked-prefill", "--max-num-batched-tokens", "8192")
    with VllmServer(checkpoint("llama", 1), "untaught", max_len=8192, max_seqs=32, more=whole) as server:
        yield server
