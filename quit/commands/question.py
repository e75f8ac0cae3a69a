"""What the terminal shows of one question: its story, and decisions about its hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from quit.common.ids import HINT_CHARACTERS, is_given, own_id
from quit.common.rows import Row, grouped
from quit.render import terminal
from quit.render.table import BASES, VERDICTS, Table, number, plain_name
from quit.text.words import counted

if TYPE_CHECKING:
    from quit.status.story import Story


def describe_override(row: Row) -> str:
    """Return one override as a line: what, which, who, when, why."""
    return f"{row['decision']} {row['hint_id'] or ''}, by {row['by']} at {row['created_at']} ({row['reason']})"


def override_line(row: Row) -> str:
    """Return one override as a line of a list; one that was replaced or withdrawn says so, and one whose hint is
    gone."""
    mark = "" if row["in_force"] else " (no more)"
    remark = ". No hint of the question has that text now, so it changes nothing" if row["hint_gone"] else ""
    return f"Override {row['override_id']}{mark}: {describe_override(row)}{remark}"


def print_question(life: Story, passages: int) -> None:
    """Print one question's story; ``passages`` limits how many passages are listed (0: all)."""
    terminal.line(f"[bold]{escape(life['question_id'])}[/]")
    if question := life["question"]:
        gold = "Gold" if all(row["origin"] for row in life["valid_answers"]) else "Answers as published"
        terminal.line(f"{escape(question['question'])}\n{gold}: {escape('; '.join(question['answers']))}")
    _print_origins(life)
    _print_hints(life)
    _print_probe_and_split(life)
    if life["passages"]:
        _print_passages(life, passages)
    _print_verdicts(life)
    _print_reviews(life)


def _print_origins(life: Story) -> None:
    for row in life["origins"]:
        terminal.line(f"From {row['source']} {escape(row['where'])} ({escape(row['record_id'])})")
    for reject in life["rejects"]:
        where = escape(f" {reject['hint_id']}" if reject["hint_id"] else "")
        reason = f"{plain_name(reject['reason'])} ({escape(reject['detail'])})"
        terminal.line(f"[yellow]Left out[/] at {reject['stage']}{where}: {reason}")
    if life["candidates"]:
        terminal.line(f"Candidates: {escape(', '.join(life['candidates']))}")
    if life["drawn_candidates"]:
        names = ", ".join(row["candidate"] for row in life["drawn_candidates"])
        terminal.line(f"Candidates drawn from the collection: {escape(names)}")


def _print_hints(life: Story) -> None:
    several = len({row["file"] for row in life["hints"]}) > 1  # one file is named above
    given = any(is_given(life["question_id"], row["hint_id"]) for row in life["hints"])
    rows = [
        ("" if row["rank"] is None or not row["selected"] else HINT_CHARACTERS[row["rank"]],
         own_id(life["question_id"], row["hint_id"]) if given else row["hint_id"].rpartition("-")[2],
         number(row["convergence"], ".2f", ""), row["hint"], *[row["file"]] * several)
        for row in life["hints"]
    ]  # fmt: skip
    if rows:
        note = "digit: in the passages below; id: place in the source; both from 0"
        title, heads = "Hints", ("digit", "id", "convergence", "hint")
        if given:
            note = "contains: probability that a gold answer is in the passage, 1 by rules"
            title, heads = "Given passages", ("digit", "id", "contains", "passage")
        terminal.line()
        terminal.show([Table(title, (*heads, *["from"] * several), rows, (1, 3, 4), note)])
    for row in life["leak_findings"]:
        overridden = "; overridden: no leak" if row["overridden"] else ""
        terminal.line(
            f"{'Answer' if given else 'Leak'} in {row['hint_id']}: "
            f"{escape(row['span'])!r} for {escape(row['answer'])!r} "
            f"({plain_name(row['method'])}, {row['probability']:.2f}{overridden})"
        )
    for row in life["overrides"]:
        terminal.sentence(override_line(row))


def _print_probe_and_split(life: Story) -> None:
    if (row := life["description"]) and row["coarse"]:
        producer = escape(row["type_producer"].partition("@")[0])
        difficulty = f"difficulty {row['difficulty']:.2f} ({row['difficulty_bin']})"
        names = f"{plain_name(row['coarse'])}, {plain_name(row['fine'])}"
        terminal.line(f"\nType {escape(names)} ({producer}); {difficulty}")
    for row in life["probe"]:
        if row["repetition"] == 0:
            terminal.line(f"Without hints, {row['reader']}: {escape(row['answer'])} ({VERDICTS[row['correct']]})")
    if row := life["split"]:
        parametric = {True: " (parametrically answerable)", False: " (not parametrically answerable)", None: ""}
        terminal.line(f"Split: {row['split']}{parametric[row['parametric']]}")


def _print_passages(life: Story, limit: int) -> None:
    """Print passages with their labels and each distinct answer with the numbers of the readers that gave it."""
    rows = life["passages"]
    by_answers = sorted(rows, key=lambda row: -len(row["answers"]))  # not every reader is asked about every passage
    names = dict.fromkeys(name for row in by_answers for name in row["answers"])
    numbers = {name: position for position, name in enumerate(names, 1)}
    terminal.line(f"\n[bold]{counted(len(rows), 'passage')}[/]; readers in brackets, * is a labeler:")
    for name, position in numbers.items():
        mark = "*" if name in life["labelers"] else " "
        terminal.line(f"  {position}{mark} {escape(name)}", soft_wrap=True)
    lines = []
    for row in rows[: limit or None]:
        numbers_of = grouped((answer, str(numbers[name])) for name, answer in row["answers"].items())
        answers = (f"{answer} ({' '.join(readers)})" for answer, readers in numbers_of.items())
        label = str(row["label"])
        lines.append((row["permutation"], label, ", ".join(answers)))
    terminal.show([Table("", ("passage", "label", "answers"), lines, (2,), more=len(rows) - len(lines))])
    if life["embedded_labels"]:
        terminal.sentence(life["embedded_labels"])


def _print_verdicts(life: Story) -> None:
    has_votes = any(row["votes"] for row in life["verdicts"])
    rows = [
        ("unknown" if (row["correct"], row["basis"]) == (None, None) else VERDICTS[row["correct"]], row["answer"],
         row["passages"], BASES.get(row["basis"], "published"),
         *[", ".join(f"{vote['judge']}: {VERDICTS[vote['correct']]}" for vote in row["votes"])] * has_votes)
        for row in life["verdicts"]
    ]  # fmt: skip
    if rows:
        terminal.line()
        heads = ("verdict", "answer", "times given", "because of", *["each judge"] * has_votes)
        terminal.show([Table("Verdicts", heads, rows, (1, 3, 4))])
        terminal.line(f"Valid answers: {escape('; '.join(row['answer'] for row in life['valid_answers']))}")


def _print_reviews(life: Story) -> None:
    for row in life["reviews"]:
        if row["kind"] == "annotation":
            aside = "" if row["counts"] else ", does not count"
            terminal.line(f"Reviewed by {escape(row['annotator'])} ({row['state']}, version {row['version']}{aside})")
        elif row["text"]:
            terminal.line(f"  {row['kind']}: {escape(row['text'])}")
    for row in life["changes"]:
        what = row["change"].replace("_", " ")
        if row["change"] == "label":
            what = f"{row['passages']} labels {row['before']} -> {row['after']}"
        cause = "review" if row["reviews"] or what.startswith("answer") else "the second leakage filter"
        terminal.line(f"Changed by {cause}: {what}: {escape(row['reason'])}")
