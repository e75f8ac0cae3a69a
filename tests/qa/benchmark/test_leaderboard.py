"""What is not ours on the page."""

from quit.evaluate.circularity import Circularity
from quit.qa.benchmark.leaderboard import page
from quit.qa.contracts.benchmark import COMPARISONS, FIGURES, RESULTS


def test_the_leaderboard_escapes_everything_that_is_not_ours() -> None:
    evil = "<script>alert('x')</script>&\""
    row = {"corpus": evil, "retriever": evil, "reranker": "", "reader": evil, "strategy": "norm", "k": 1,
           "metric": evil, "value": 0.5, "low": 0.4, "high": 0.6, "questions": 3}  # fmt: skip
    pair = {**row, "a": evil, "b": evil, "difference": 0.1, "p_randomisation": 0.5, "p_t": 0.5, "p_holm": 1.0}
    points = [
        {**row, "figure": figure, "line": evil, "x": evil if figure == "5" else "1", "y": 0.5, "passages": 1}
        for figure in ("4 left", "4 right", "5", "6")
    ]
    compared, figures = (
        table.from_rows([{name: each[name] for name in table.schema.names} for each in rows])
        for table, rows in ((COMPARISONS, [pair]), (FIGURES, points))
    )
    bound = {**row, "retriever": "oracle", "value": 1.0}
    output = page({evil: evil}, RESULTS.from_rows([row, bound]), compared, figures, Circularity([evil], {evil: [evil]}))
    assert "<script" not in output and "&lt;script&gt;" in output and "http" not in output and "src=" not in output
    assert 'best">50.00' in output and 'best">100.00' not in output  # a bound is no system
