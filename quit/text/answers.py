"""Whether two texts are the same answer: their keys are equal. The rule with examples: docs/reference/answers.md."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from quit.text.invisible import without_invisible
from quit.text.normalize import fold, is_punctuation, strip_accents

VERSION = 1
"""Of the rule; rises where a text gets another key. A release says by which rule it has its keys."""
_MARKS = str.maketrans(
    dict.fromkeys("‘’‚‛ʼʻ´′", "'") | dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("™®©")
    | {"♯": "#", "♭": "b", "×": "x", "˚": "°"}
)  # fmt: skip
POWER = re.compile("[⁰¹²³⁴-⁹⁻]+")
_CHARGE = re.compile("[⁰¹²³⁴-⁹]*[⁺⁻](?![⁰¹²³⁴-⁹])")
_FRACTION = re.compile("(?<=[0-9])(?=[¼-¾⅐-⅞])")
_DASH = re.compile("[‐-―−⸺⸻]")
_WORD = re.compile(r"[^\W\d_]{2,}")
_PLAIN = re.compile(r"(?:(?:[a-z][a-z0-9]*|[0-9]+(?:st|nd|rd|th|s)?(?! (?:[0-9]{3}\b|per|x )))(?: |\Z))+")
"""A text that only an article makes differ from its key: words, and numbers that nothing joins."""
_LETTER_NAMES = "flat|sharp|natural|major|minor|positive|negative|plus|minus|levels?"
"""Before these, *a* is a letter: of a note, a blood group, a grade."""
_ARTICLE = re.compile(rf"(?:the|an) (?=\w)|a (?!(?:{_LETTER_NAMES})\b)(?=[^\W\d]{{2}})")
_GROUPED = re.compile(
    r"(?<![\d.,])[1-9](?:\d{0,2}(?P<sign>[ ,'])\d{3}(?:(?P=sign)\d{3})*|\d?(?:,\d\d)+,\d{3})(?!,?\d|/)"
)
_CURRENCY = "$€£¥₤₹₽₩₪"
_QUOTE = re.compile(r"""(?<!\w)["'*_]|''""")
_QUOTED = re.compile(r"(?<!\w)([\"'])([^\"']+)\1(?!\w)")
_EMPHASISED = re.compile(r"(?<!\w)(\*+|_+)([^*_]+)\1(?!\w)")
_NUMBERS = tuple(
    (re.compile(pattern), form)
    for pattern, form in (
        (r"(?<![\w.])\.(?=\d)", "0."),
        (r"(?<=\d) (?:percent|per cent)\b", "%"),
        (r" (?=[%‰])", ""),
        (r"(?<=\d) ?° ?", "°"),
        (r"(?<=\d) ([-+:/x=^]) (?=[-+]?\d)", r"\1"),
        (rf"([{_CURRENCY}<>]) (?=[-.\d])", r"\1"),
        (rf"(?<![\w.{_CURRENCY}])(\d+(?:\.\d+)?) ?([{_CURRENCY}])(?!\w)", r"\2\1"),
    )
)
"""Spellings of numbers with signs, and the one that counts."""
_SIGN = re.compile(
    rf"""(?=[^\w\s]|_)(?:(?P<kept>
      (?<=\d)[.:](?=\d) | (?<![\w.])\.(?=\w)            # 3.14, 9:45, .NET
    | (?<=[^\W])[/=^](?=[\w-]) | (?<=°)/(?=\w)          # 1/2, km/h, e8=Q, 10^-3
    | (?<=\d)-(?=\d) | (?<!\w)[-+<>](?=\.?\d|[{_CURRENCY}∞√π])  # 1914-1918, -40
    | (?<=\Aa)-(?!(?:{_LETTER_NAMES})\b)(?=[^\W\d]{{2}})                         # A-bomb
    | (?:(?<=\b[a-z])|(?<=\b[a-z]\w)|(?<=\b[a-z]\w\w)|(?<=\d))[-*](?!\w)  # AB-, A*
    | (?<=[\w+])\+ | (?<=\w)\# | (?<=\d)[%‰](?!\w) | [{_CURRENCY}]     # C++, F#, 50%
    | (?<=\d)\*(?=\d) | (?<=\d)"(?!\w) | (?<=\d)'(?!s\b) | (?<=\b[a-z])['"](?!\w)  # 3*4, 6'2", c'
    ) | (?P<nothing>(?<=[^\W\d])\.(?=[^\W\d]) | \.(?!\w) | ['*]) | .)""",
    re.VERBOSE,
)
_THREE = re.compile(r"\d[ ,']\d{3}")
_SPELT = re.compile(r"[^\w ,;()!?.'\"-]|\d (?:[-x]|per)|(?<![\w.])\.\d")
_DIGIT = re.compile(r"\d")
_BETWEEN = re.compile(r"(?<=\d)[\0 ]*\0[\0 ]*(?=\d{3}(?!\d))")
_UNIT = re.compile(r"\b(\d+)(?=(?!(?:st|nd|rd|th|s)\b|x\d)[^\W\d])")


@lru_cache(maxsize=65536)
def answer_key(text: str) -> str:
    """Return the identity of an answer: two texts with one key are the same answer wherever that decides something.

    It keeps the signs that make answers differ (``-12``, ``2.71``, ``1/2``, ``9:45``, ``F#``, ``A+``). The key of a key
    is itself; only a blank answer has an empty one.
    """
    key = _shortened(text)
    while (again := _shortened(key)) != key:
        key = again
    return key


def _shortened(text: str) -> str:
    flat = " ".join(text.casefold().split())
    if _PLAIN.fullmatch(flat):
        return _without_article(flat)
    if not flat.isascii():
        flat = _letters(text)
    flat = _without_article(flat.replace("&", " and ").lstrip(" ([{¿¡"))
    if _QUOTE.search(flat):
        flat = _QUOTED.sub(r"\2", _EMPHASISED.sub(r"\2", flat)).replace("''", '"')
    flat = flat.replace("--", " ")
    if _DIGIT.search(flat):
        if _THREE.search(flat):
            flat = _GROUPED.sub(lambda match: re.sub(r"\D", "", match[0]), flat)
        if _SPELT.search(flat):
            for pattern, form in _NUMBERS:
                flat = pattern.sub(form, flat)
        # A mark between two numbers is no space that groups their digits.
        flat = _BETWEEN.sub(", ", _SIGN.sub(_kept, flat)).replace("\0", " ")
        flat = _UNIT.sub(r"\1 ", flat)
    else:
        flat = _SIGN.sub(_kept, flat).replace("\0", " ")
    return " ".join(flat.split()) or " ".join(text.casefold().split())


def _kept(match: re.Match[str]) -> str:
    if match["kept"] is not None:
        return match[0]
    return "" if match["nothing"] is not None else "\0" if is_punctuation(match[0]) else match[0]


def _letters(text: str) -> str:
    """Return a text with one form of each letter, dash and number, without accents in words (not the angstrom's)."""
    text = POWER.sub(lambda match: "^" + match[0], _CHARGE.sub(lambda match: fold(match[0]), text))
    text = unicodedata.normalize("NFKC", _FRACTION.sub(" ", without_invisible(text).translate(_MARKS)))
    text = fold(_WORD.sub(lambda match: strip_accents(match[0]), _DASH.sub("-", text)))
    return " ".join(text.replace("⁄", "/").split())


def _without_article(text: str) -> str:
    while match := _ARTICLE.match(text):
        text = text[match.end() :]
    return text
