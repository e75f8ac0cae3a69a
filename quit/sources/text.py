"""Repair of the text that sources hold, and recognition of hints that are none.

All cases occur in real files: WikiHint's mojibake and no-break spaces, Copilot's citation marks (`[^1^][2]`),
and what language models write around a list of hints ("Sure, here are ten hints:").
"""

from __future__ import annotations

import re
import unicodedata

from quit.text.invisible import without_invisible

# At most three digits and no leading zero: `[1999]` and `[0]` are content.
_MARK = r"\[\^?[1-9]\d{0,2}\^?\](?:\(https?://[^\s)]*\))?"
_WIKI_MARK = r"\[(?:citation needed|(?:note|nb) \d{1,3})\]"
_CHAT_MARK = r"【\d[\d:]*†[^】]*】"
_MARKS = re.compile(rf"(?:\s*(?:{_MARK}|{_WIKI_MARK}|{_CHAT_MARK}))+", re.IGNORECASE)
_DOUBLE_STOP = re.compile(r"(?<!\.)\.\s?\.(?!\.)")

_BOLD = re.compile(r"\*\*(.+?)\*\*")
_NUMBERING = re.compile(
    r"(?:hint\s*#?\d{1,2}\s*[:.)\-–—]\s*|hint\s*:\s*|\(?\d{1,2}[.)]\s+|[-*•]\s+)(?=\S)",
    re.IGNORECASE,
)

_NOTHING = r"n/?a|nan|none|null|empty|unknown|not available|no hints?(?: available)?|(?:hints?|clues?)(?: #?\d{1,2})?"
_YES = r"(?:sure|certainly|of course|absolutely|okay|ok|great)\b(?: thing)?"
_HINTS = r"\b(?:hints?|clues?)\b"
_CANNOT = r"\bi (?:can't|cannot|can not|couldn't|could not|don't|do not|am not|am unable)\b"
_BOILERPLATE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:{_NOTHING})\s*[.:!]*",
        rf"{_YES}\s*[!.,:]*",
        rf"{_YES}[\s!.,:]+(?:(?:here|below)\b|i (?:can|will|would)\b|i'(?:ll|d)\b|happy to\b).*",
        rf"(?:here|below|the following|these) (?:is|are)\b[^:]{{0,80}}{_HINTS}[^:]{{0,200}}:",
        r"(?:here|below) are\b[^:]{0,80}\b(?:hints|clues)\b[^:]{0,200}",
        r"(?:hints?|clues?) (?:for|to|about) (?:the|this|your) (?:question|answer)\b.{0,200}",
        rf"(?:i'm|i am) (?:very |so )?(?:sorry|afraid)\b.{{0,40}}{_CANNOT}.*",
        rf"(?:sorry|i apologi[sz]e|unfortunately)\b.{{0,20}}{_CANNOT}.*",
        r"as an? (?:ai|artificial intelligence|(?:large )?language model)\b.*\bi\b.*",
        r"i hope (?:this|these|that|it|you)\b.{0,120}\b(?:helps?|helpful|enjoy|useful|hints?|clues?|guess)\b.*",
        r"(?:please )?let me know (?:if|when|whether|what|how)\b.{0,200}",
        rf"(?:would|do) you (?:like|want|need)\b.{{0,60}}{_HINTS}.{{0,60}}",
        r"(?:good luck|have fun)(?: (?:guessing|with .{1,40}))?\s*[!.]*",
        r"learn more\s*:.*",
        r"source\s*: (?:conversation with )?(?:bing|chatgpt|bard)\b.*",
        r"<?https?://\S+>?",
    )
)


def repair(text: str) -> str:
    """Return ``text`` in NFC without mojibake, HTML entities and invisible characters, white space collapsed."""
    if not (text.isascii() and text.isprintable() and "&" not in text):
        # ftfy finds nothing to do in plain printable ASCII, which is nearly all of the data: 160,203 hints in seconds.
        text = unicodedata.normalize("NFC", _fixed(without_invisible(text)))
    return " ".join(text.split())


def _fixed(text: str) -> str:
    import ftfy  # here, since most commands repair nothing

    # Text is shown as text, never as HTML, so an entity is always a fault (ftfy's "auto" gives up where a `<` occurs).
    return ftfy.fix_text(text, unescape_html=True, explain=False)


def strip_citations(text: str) -> str:
    """Return ``text`` without citation marks such as ``[^1^]``, ``[1]``, ``[^1^][2]``.

    >>> strip_citations("It weighs 120-180 kg[^1^]..")
    'It weighs 120-180 kg.'
    """
    bare, marks = _MARKS.subn("", text)
    # A mark often stands between two full stops; an ellipsis is left alone.
    return _DOUBLE_STOP.sub(".", bare).strip() if marks else text


def strip_numbering(text: str) -> str:
    """Return ``text`` without leading numbering, bullets or "Hint 3:", and without Markdown's bold.

    >>> strip_numbering("1. **Hint 1:** It is a country.")
    'It is a country.'
    """
    text = _BOLD.sub(r"\1", text).strip()
    for _ in range(3):  # "1. - Hint 1: ..." is the deepest nesting worth undoing
        shorter = _NUMBERING.sub("", text, count=1) if _NUMBERING.match(text) else text
        if shorter == text:
            break
        text = shorter
    return text


def clean_hint(text: str) -> str:
    """Return a hint repaired, without citation marks and numbering."""
    return repair(strip_numbering(strip_citations(repair(text))))


def is_boilerplate(hint: str) -> bool:
    """Return whether a cleaned hint says nothing about an answer: empty, a stub, or what a chat model wrote around it.

    Deliberately narrow: whole texts only, and a sentence that merely holds "hint", "sure" or "sorry" is kept.
    """
    letters = [char for char in hint if char.isalnum()]
    if not letters or (len(letters) <= 2 and hint.isascii()):
        return True
    return any(pattern.fullmatch(hint) for pattern in _BOILERPLATE)
