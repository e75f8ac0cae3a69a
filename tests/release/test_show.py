"""What commands say of gates."""

from quit.release.gates import GateResult
from quit.release.show import gate_lines


def test_a_gate_that_is_not_passed_says_why_and_what_was_found():
    results = [
        GateResult("schema", "Programs rely on columns.", "passed", 0),
        GateResult("missing-passage", "Readers are compared.", "failed", 2, ("q1", "q2")),
        GateResult("unjudged-answer", "It counts as wrong.", "waived", 1, ("q3",), "seen by two people"),
        GateResult("human-coverage", "Errors stay.", "not asked", 0, ("0 of 5 judged",)),
    ]
    assert gate_lines(results) == [
        "passed    schema",
        "failed    missing-passage", "          2 violations. Readers are compared.", "          q1", "          q2",
        "waived    unjudged-answer", "          Waived: seen by two people", "          q3",
        "not asked human-coverage", "          0 of 5 judged",
    ]  # fmt: skip
