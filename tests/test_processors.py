"""The embedded models give the same bits on every x86-64 processor with AVX2: here, here with older instructions, and
as two other processors."""

import json
import os
import shutil
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.running import run_process

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


@cache
def _hashes(*command: str, **variables: str) -> dict[str, str]:
    return json.loads(run_process(*command, "-m", "tests.processors", **variables).out.splitlines()[-1])


@pytest.mark.slow
def test_older_instructions_and_one_thread_give_the_same_bits() -> None:
    assert _hashes(sys.executable, **OLDER) == _hashes(sys.executable)


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["Haswell", "EPYC"])
def test_another_processor_gives_the_same_bits(processor: str) -> None:
    emulator = shutil.which("qemu-x86_64")
    if emulator is None:
        pytest.skip("qemu-x86_64 is not installed")
    python = str(Path(sys.executable).resolve())  # an emulator follows no link
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    emulated = _hashes(emulator, "-cpu", processor, python, PYTHONPATH=paths, FEW_TEXTS="1")
    assert emulated == _hashes(sys.executable, FEW_TEXTS="1")
