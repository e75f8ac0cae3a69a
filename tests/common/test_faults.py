"""Errors as Python and libraries raise them, and what they say of the machine."""

import errno
import os
from pathlib import Path

import pytest

from quit.common.faults import fault_of_a_file, fault_of_the_machine, is_too_little_memory


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        OSError("libtorch.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        RuntimeError("libgomp: Thread creation failed: Resource temporarily unavailable"),
        RuntimeError("std::bad_alloc"),
    ],
)
def test_too_little_memory_in_the_words_of_python_and_libraries(error: Exception) -> None:
    assert is_too_little_memory(error) and "ulimit -v" in str(fault_of_the_machine(error))


def test_a_full_gpu_is_not_helped_by_a_higher_limit_of_the_system() -> None:
    text = str(fault_of_the_machine(RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")))
    assert "too little memory" in text and "GPU" in text and "ulimit" not in text


@pytest.mark.parametrize("name", ["out of memory.jsonl", "start new thread", "std::bad_alloc"])
def test_the_name_of_a_file_says_nothing_of_memory(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        (tmp_path / name).read_bytes()
    assert fault_of_the_machine(raised.value) is None
    assert name in str(fault_of_a_file(raised.value))


def test_other_faults_of_programs_are_none_of_the_machine() -> None:
    for error in (RuntimeError("Thread pool resource closed"), ValueError("x"), KeyError("x")):
        assert fault_of_the_machine(error) is None and fault_of_a_file(error) is None
