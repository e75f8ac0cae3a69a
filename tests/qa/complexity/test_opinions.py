"""What language models say of questions, and what could not be read."""

from quit.models.factory import Models
from quit.models.generation import ChatRequest
from quit.qa.complexity.opinions import opinion_models
from quit.qa.settings import QaSettings
from tests.qa.complexity.test_retrieval_complexity import rating
from tests.qa.scripted import Talks
from tests.qa.scripted import settings as talking


def test_opinions_of_language_models() -> None:
    def reply(request: ChatRequest) -> str:
        if request.template.name == "complex_question":
            return {"Who?": "Yes", "What?": "no."}.get(request.fields["question"], "Well,")
        sentence, declined = "The answer to this question is Letsie III.", "NO ANSWER (Letsie III)"
        answers = {"Who?": sentence, "What?": "Letsie III", "When?": declined}
        return answers.get(request.fields["question"], "The answer to this question is Moshoeshoe II.")

    settings = talking(complexity={"baseline_model": "tiny", "answer_model": "tiny"})
    models = opinion_models(Talks(settings, reply), settings)
    items = [rating(query_id=text, text=text)[0] for text in ("Who?", "What?", "When?", "Why?")]
    for _ in range(2):  # alike when it is asked again
        said, correct = (models[name](items) for name in ("said_complex", "correct"))
        assert said.verdicts == [True, False, None, None]
        assert correct.verdicts == [True, True, False, False], "a sentence may be right"
        assert said.facts["baseline_replies"] == {"verdicts": 4, "unread": 2}
        counts = {"answers": 4, "no_answer": 1, "tokens": 64, "cut": 0, "unread_verdicts": 0}
        assert correct.facts["answer_replies"] == counts
    assert opinion_models(Models(QaSettings()), QaSettings()) == {}
