"""The embedded models give the same bits on every x86-64 processor with AVX2: here, here with older instructions, and
as two other processors."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OLDER = {
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Haswell",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "MKL_CBWR": "COMPATIBLE",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OMP_NUM_THREADS": "1",
}
"""How numpy, torch and their libraries are told to do without newer instructions, and with one thread."""
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    """Hashes by this processor."""
    return _hashes([sys.executable, "-m", "tests.processors"])


def _hashes(command: list[str], **variables: str) -> dict[str, str]:
    ended = subprocess.run(
        command, env={**os.environ, **variables}, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.slow
def test_older_instructions_and_one_thread_give_the_same_bits(here: dict[str, str]) -> None:
    assert _hashes([sys.executable, "-m", "tests.processors"], **OLDER) == here


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["Haswell", "EPYC"])
def test_another_processor_gives_the_same_bits(here: dict[str, str], processor: str) -> None:
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        pytest.skip("qemu-x86_64 is not installed")
    python = str(Path(sys.executable).resolve())  # an emulator follows no link
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    assert _hashes([emulator, "-cpu", processor, python, "-m", "tests.processors"], PYTHONPATH=paths) == here
