"""Reports: citations are read as written, scores follow from single verdicts, and a rambling model breaks nothing."""

from collections.abc import Callable
from itertools import starmap

import pytest

from quit.models.generation import CachedGenerator, ChatRequest
from quit.qa.bandits import reports
from quit.qa.settings.bandits import Reports
from tests.qa.scripted import Scripted, scripted

NUGGETS = [("Which land?", "Lesotho"), ("Who leads it?", "Letsie III"), ("Since when?", "1996")]
TASK = reports.ReportTask(
    "q1",
    "Who leads the land of the blankets?",
    (("d1", "Lesotho is known for blankets."), ("d2", "Letsie III is king of Lesotho."), ("d3", "Bread is baked.")),
    tuple(starmap(reports.Nugget, NUGGETS)),
)


def judge_of(reply: Callable[[ChatRequest], str]) -> reports.ReportJudge:
    return reports.ReportJudge(scripted(reply), attempts=2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is Lesotho [1]. Its king is Letsie III [2, 3].",
         [("It is Lesotho.", (0,)), ("Its king is Letsie III.", (1, 2))]),
        ("It is Lesotho.[1][1] Its king reigns. [2]", [("It is Lesotho.", (0,)), ("Its king reigns.", (1,))]),
        ("- One thing [1]\n- Another", [("- One thing", (0,)), ("- Another", ())]),
        ("It is Lesotho [1].\n[3] [1]\n\nIts king reigns.", [("It is Lesotho.", (0, 2)), ("Its king reigns.", ())]),
        ("Nothing here", [("Nothing here", ())]),
        ("Version 2.5 is out [0].", [("Version 2.5 is out.", (1 << 30,))]),
        ("Über alles [1]. Élan [2]. été [3]. Ωmega", [("Über alles.", (0,)), ("Élan. été.", (1, 2)), ("Ωmega", ())]),
        ("Dr. Smith won [1]. U.S. Army left [2].", [("Dr. Smith won.", (0,)), ("U.S. Army left.", (1,))]),
        ("一 [1]。二。[2]三", [("一。", (0,)), ("二。", (1,)), ("三", ())]),
        ("It is [" + "1" * 5000 + "].", [("It is.", (111_111_110,))]),
        ("[1] [2]", []),
        ("  \n ", []),
    ],
)  # fmt: skip
def test_sentences_and_their_citations(text: str, expected: list) -> None:
    assert [(one.text, one.cited) for one in reports.parse_report(text)] == expected


def test_scores_follow_from_verdicts() -> None:
    def reply(request: ChatRequest) -> str:
        fields = request.fields
        if "sentence" in fields:  # the first document supports the first sentence, the second one the second
            return "Yes" if fields["document"].split()[0] in fields["sentence"] else "No, it does not."
        return "yes." if fields["answer"] in fields["report"] else "No"

    text = "It is Lesotho [1][2]. Letsie III leads it [2][9]. It is nice."
    scores = judge_of(reply).score(TASK, text)
    # citations: (1 -> d1 yes), (1 -> d2 no), (2 -> d2 yes), (2 -> invented no); nuggets: two of three; sentences: two
    # of three
    assert (scores.citations, scores.invented, scores.unread, scores.verdicts) == (4, 1, 0, 6)
    assert scores.citation_support == pytest.approx(2 / 4)
    assert scores.sentence_support == pytest.approx(2 / 3)
    assert scores.nugget_coverage == pytest.approx(2 / 3)


def test_a_rambling_judge_supports_nothing_and_is_counted() -> None:
    """Of an empty report it is asked nothing."""
    for text, unread in (("It is Lesotho [1].", 4), (" ", 0)):
        scores = judge_of(lambda request: "Well, that depends").score(TASK, text)
        assert (scores.citation_support, scores.nugget_coverage, scores.sentence_support) == (0.0, 0.0, 0.0)
        assert scores.unread == unread


def test_the_writer_sees_numbered_documents_and_skips_empty_selections(monkeypatch) -> None:
    monkeypatch.setattr(reports, "DOCUMENT_WORDS", 2)
    model = Scripted(lambda request: " It is Lesotho [1]. ")
    empty = reports.ReportTask("q2", "Who?", (), ())
    drafts = reports.drafts(CachedGenerator(model, None), Reports(), [empty, TASK])
    assert drafts == [("", False), ("It is Lesotho [1].", False)]
    [request] = model.requests
    assert request.fields["documents"] == "[1] Lesotho is\n\n[2] Letsie III\n\n[3] Bread is"
