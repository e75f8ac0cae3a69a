"""A trace for people."""

from __future__ import annotations

from collections import Counter

from quit.qa.sunar.trace import BatchTrace, Trace

_SHOWN = 5


def lines(trace: Trace) -> list[str]:
    """Return a trace as text. ``*`` marks relevant documents, ``< id`` the one that a neighbour came from."""
    relevant = set(trace["relevant"])
    text_lines = [f"question: {trace['question']}"]
    if trace["answers"]:
        text_lines.append(f"gold: {'; '.join(trace['answers'])}")
    text_lines.append(f"planner: {trace['planner']}")
    for number, step in enumerate(trace["steps"], start=1):
        text_lines += ["", f"{number}. {step['sub_question']}", f"   answer: {step['answer']}"]
        text_lines.append(f"   first stage: {step['first_stage']} documents; read: {_names(step['read'], relevant)}")
        for batch_number, batch in enumerate(step.get("batches", ())):
            text_lines += [f"   batch {batch_number} from {batch['pool']}{_uncertainty(batch)}"]
            text_lines += [f"      {row}" for row in _documents(batch, relevant)]
    end = trace["ended"]
    text_lines += ["", f"ended: {end['reason']}" + (f" ({end['answer']})" if end["answer"] else "")]
    relevant_in_pool = sum(document in relevant for document in trace["pool"])
    text_lines.append(
        f"relevant documents in the pool: {relevant_in_pool} of {len(relevant)}; "
        f"evidence: {_names(trace['evidence'][:10], relevant)}"
    )
    if trace["mer"]:
        text_lines.append(f"meta reasoner: {trace['mer']['answer'] or '(no answer)'}")
    replies = trace["replies"]
    if replies.get("calls"):
        counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in replies.items())
        text_lines.append(f"language model: {counts}")
    return [*text_lines, f"prediction: {trace['prediction']} (from {trace['prediction_from']})"]


def _uncertainty(batch: BatchTrace) -> str:
    if "s" not in batch:
        return ""
    counts = Counter(batch["answers"]) if "answers" in batch else {each[0]: len(each) for each in batch["sets"]}
    return f", s = {batch['s']}: " + "; ".join(f"{count} x {answer!r}" for answer, count in counts.items())


def _documents(batch: BatchTrace, relevant: set[str]) -> list[str]:
    rows = []
    parents = batch.get("parents") or [""] * len(batch["documents"])
    results = zip(batch["documents"], batch["scores"], batch["rescored"], parents, strict=True)
    for row_number, (document, score, second_score, parent) in enumerate(results):
        if row_number < _SHOWN or document in relevant:
            row = f"{_marked(document, relevant)}  {score:.3f} -> {second_score:.3f}"
            rows.append(f"{row}  < {_marked(parent, relevant)}" if parent else row)
    hidden_count = len(batch["documents"]) - len(rows)
    return [*rows, f"... and {hidden_count} more"] if hidden_count else rows


def _names(documents: list[str], relevant: set[str]) -> str:
    return " ".join(_marked(document, relevant) for document in documents) or "none"


def _marked(document: str, relevant: set[str]) -> str:
    return f"{document}*" if document in relevant else document
