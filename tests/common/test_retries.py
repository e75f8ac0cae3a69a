"""Another try after a pause."""

import time

import pytest

from quit.common.retries import with_retries


@pytest.mark.parametrize(
    ("faults", "retries", "pauses", "result"),
    [
        ([], 2, [], "done"),
        ([OSError, OSError], 2, [3.0, 6.0], "done"),
        ([OSError] * 4, 3, [3.0, 6.0, 12.0], OSError),
        ([OSError, ValueError], 3, [3.0], ValueError),  # another try does not help
        ([OSError], 0, [], OSError),
    ],
)
def test_each_pause_is_twice_as_long_and_other_faults_end_it(monkeypatch, faults, retries, pauses, result) -> None:
    slept, lines, left = [], [], list(faults)
    monkeypatch.setattr(time, "sleep", slept.append)

    def work() -> str:
        if left:
            raise left.pop(0)("a fault.")
        return "done"

    def run() -> str:
        return with_retries(work, retries, 3.0, lambda error: isinstance(error, OSError), lines.append)

    if result == "done":
        assert run() == "done"
    else:
        with pytest.raises(result):
            run()
    assert slept == pauses
    assert lines == [
        f"a fault. Trying again in {pause:g} s ({number} of {retries})." for number, pause in enumerate(pauses, 1)
    ]
