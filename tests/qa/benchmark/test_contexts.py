"""Union_norm and Union_freq on a worked example (paper, section 5.4, equation 1)."""

from quit.qa.benchmark.contexts import ContextKind, union_freq, union_norm

# Three passages over hints A to D, ranks 1, 2, 3.
RANKED = [("A", "B"), ("C", "B"), ("B", "D", "C")]


def test_union_norm_keeps_first_occurrences_in_order() -> None:
    assert union_norm(RANKED) == ("A", "B", "C", "D")
    assert union_norm(RANKED[:1]) == ("A", "B") and union_norm([]) == ()


def test_union_freq_worked_by_hand() -> None:
    # A: rank 1, position 1                 0.6 * 1               + 0.4 * 1                 = 1.0
    # B: ranks 1, 2, 3, positions 2, 2, 1   0.6 * (1 + 1/2 + 1/3) + 0.4 * (1/2 + 1/2 + 1)   = 1.9
    # C: ranks 2, 3, positions 1, 3         0.6 * (1/2 + 1/3)     + 0.4 * (1 + 1/3)         = 1.0333
    # D: rank 3, position 2                 0.6 * 1/3             + 0.4 * 1/2               = 0.4
    assert union_freq(RANKED, 0.6, 0.4) == ("B", "C", "A", "D")
    assert union_freq(RANKED, 0.6, 0.4, max_sentences=2) == ("B", "C")
    # Positions alone: A 1, B 2, C 4/3, D 1/2. Ranks alone: A 1, B 11/6, C 5/6, D 1/3.
    assert union_freq(RANKED, 0.0, 1.0) == ("B", "C", "A", "D")
    assert union_freq(RANKED, 1.0, 0.0) == ("B", "A", "C", "D")


def test_one_passage_is_itself_by_both_and_none_is_empty() -> None:
    passage = ("C", "A", "E", "B")
    assert union_freq([passage], 0.6, 0.4) == union_norm([passage]) == passage
    assert [ContextKind(strategy, 3, 0.6, 0.4).context([]) for strategy in ("norm", "freq")] == [(), ()]


def test_ties_keep_the_order_of_first_occurrence() -> None:
    assert union_freq([("A",), ("B",)], 0.0, 1.0) == ("A", "B")
    # Each sentence is in every passage and once at each position, so all score 11/6; floats would put A first.
    assert union_freq([("B", "A", "C"), ("C", "B", "A"), ("A", "C", "B")], 0.6, 0.4) == ("B", "A", "C")


def test_a_sentence_twice_in_a_passage_counts_at_its_first_position() -> None:
    # A at 1 (and 3), B at 2: A 0.4, B 0.2 with beta alone.
    assert union_freq([("A", "B", "A")], 0.0, 0.4) == ("A", "B")
    assert union_freq([("A", "B", "B"), ("B",)], 0.0, 0.4) == ("B", "A")  # B 0.2 + 0.4, A 0.4
