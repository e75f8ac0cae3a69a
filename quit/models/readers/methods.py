"""Six ways to score a closed set of answers against the parts of a passage.

They share the encoder, so what one cannot know none knows; they differ in what they compare and in what they make of
the order of the hints, so that they fail on different passages. A seventh is a subclass with a ``score_parts``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from quit.models.readers.closed_set import Answers, ClosedSetReader
from quit.models.readers.pool import answer_tokens

NAME: tuple[str, ...] = ("{}",)
STATEMENTS = ("It is {}.", "This is about {}.", "What is known about {}?")
"""A bare name is far from the sentences the encoder was trained on; a mean over templates moves it nearer."""


class VectorReader(ClosedSetReader):
    """Reads a passage as one vector: the weighted sum of its parts' vectors, compared with the bare answer's.

    Primacy: later hints count less.
    """

    method = "minilm-vector"
    position_decay = 0.85
    question_weight = 0.4
    templates = NAME

    def score_parts(self, texts: Sequence[str], answers: Answers) -> list[np.ndarray]:
        """Return cosine similarities."""
        vectors = self.answer_vectors(answers)
        return [vectors @ encoded for encoded in self.encoder.encode(texts)]


class StatementReader(VectorReader):
    """Compares each part with statements that the answer completes. Recency: later hints count more."""

    method = "minilm-statement"
    position_decay = 1.15
    question_weight = 0.4
    templates = STATEMENTS


class ContrastReader(VectorReader):
    """Scores an answer by how much better it goes with a part than with the collection's hints on average.

    The mean over the background plays the part of the unconditional probability in pointwise mutual information:
    answers that go with everything (hubs) lose their lead. ``contrast`` is the share of that mean that is subtracted.
    """

    method = "minilm-contrast"
    position_decay = 0.9
    question_weight = 0.4
    contrast = 0.5
    templates = NAME + STATEMENTS

    def score_parts(self, texts: Sequence[str], answers: Answers) -> list[np.ndarray]:
        """Return cosine similarities less a share of the background's."""
        vectors = self.answer_vectors(answers)
        usual = np.float32(self.contrast) * (vectors @ self.pool.background_mean(self.encoder))
        return [vectors @ encoded - usual for encoded in self.encoder.encode(texts)]

    @classmethod
    def method_settings(cls) -> dict[str, object]:
        """Return the templates and the contrast."""
        return super().method_settings() | {"contrast": cls.contrast}


class EvidenceReader(VectorReader):
    """Adds evidence hint by hint, as a Bayesian would who distrusts each hint a little.

    Each part gives a probability over the answers (softmax of cosines over ``temperature``), mixed with ``doubt`` of
    the uniform one, so that one misleading hint cannot rule the right answer out; the passage's score is the weighted
    sum of the logarithms. Recency: old evidence leaks.
    """

    method = "minilm-evidence"
    position_decay = 1.25
    question_weight = 0.4
    named_penalty = 4.0
    temperature = 0.05
    doubt = 0.3
    templates = NAME + STATEMENTS

    def score_parts(self, texts: Sequence[str], answers: Answers) -> list[np.ndarray]:
        """Return log-probabilities, relative to the uniform one."""
        count = np.float32(len(answers.surfaces))
        scores = []
        for cosine in super().score_parts(texts, answers):
            weight = np.exp((cosine - cosine.max()) / np.float32(self.temperature))
            probability = weight / weight.sum()
            scores.append(np.log(np.float32(1 - self.doubt) * probability * count + np.float32(self.doubt)))
        return scores

    @classmethod
    def method_settings(cls) -> dict[str, object]:
        """Return the templates, temperature and doubt."""
        return super().method_settings() | {"temperature": cls.temperature, "doubt": cls.doubt}


class LateReader(ClosedSetReader):
    """Late interaction (ColBERT's MaxSim) in both directions, plus a share of the cosine of the whole texts.

    Each token of the answer finds its best token in the part, each token of the part its best in the answer; the two
    means are added. Tokens alone know little about what a text is about, hence ``whole``, the weight of the cosine.
    """

    method = "minilm-late"
    position_decay = 0.9
    question_weight = 0.4
    longest = 8
    whole = 3.0
    named_penalty = 0.9
    some = 2000

    def warm(self, texts: Sequence[str]) -> None:
        """Encode tokens as well."""
        self.encoder.encode_tokens(texts)
        super().warm(texts)

    def score_parts(self, texts: Sequence[str], answers: Answers) -> list[np.ndarray]:
        """Return the two MaxSim means plus the weighted cosine."""
        vectors = self.answer_vectors(answers)
        of_parts = self.encoder.encode_tokens(texts)
        scores = [np.float32(self.whole) * (vectors @ encoded) for encoded in self.encoder.encode(texts)]
        rows = np.arange(len(answers.surfaces)) if answers.rows is None else answers.rows
        if answers.rows is None:
            listed = answer_tokens(self.encoder, answers.surfaces, self.longest)
            flat, starts = np.concatenate(listed), np.cumsum([0, *(len(tokens) for tokens in listed)])
        else:
            flat, starts = self.pool.tokens(self.encoder, self.longest)
        for start in range(0, len(rows), self.some):  # in slices, so that a pool of any size fits
            slice_rows = rows[start : start + self.some]
            lengths = starts[slice_rows + 1] - starts[slice_rows]
            offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
            index = np.repeat(starts[slice_rows] - offsets, lengths) + np.arange(lengths.sum())
            of_answers = flat[index].astype(np.float32)
            for score, of_part in zip(scores, of_parts, strict=True):
                if not len(of_part):
                    continue
                similar = of_answers @ of_part.T
                of_tokens = np.add.reduceat(similar.max(axis=1), offsets) / lengths.astype(np.float32)
                covered = np.maximum.reduceat(similar, offsets, axis=0).mean(axis=1)
                score[start : start + self.some] += of_tokens + covered
        return scores

    @classmethod
    def method_settings(cls) -> dict[str, object]:
        """Return the token limit and the weight of the whole."""
        return super().method_settings() | {"longest": cls.longest, "whole": cls.whole}


class NamesReader(VectorReader):
    """Looks at who and what a part names: titles in quotes and runs of capitalised words, each encoded on its own.

    A name is close to the names it keeps company with (an album to its band), and in a whole sentence that is
    diluted. The mean similarity to a part's names, weighted by ``names``, is added to the part's own.
    """

    method = "minilm-names"
    position_decay = 0.85
    question_weight = 0.4
    names = 0.6
    templates = NAME + STATEMENTS

    def warm(self, texts: Sequence[str]) -> None:
        """Encode the names as well."""
        self.encoder.encode([*texts, *(name for text in texts for name in names_in(text))])

    def score_parts(self, texts: Sequence[str], answers: Answers) -> list[np.ndarray]:
        """Return cosines of parts plus weighted mean cosines of the names in them."""
        vectors = self.answer_vectors(answers)
        scores = []
        for text in texts:
            named = names_in(text)
            probe, *of_names = self.encoder.encode([text, *named])
            if named:  # the mean of cosines is the cosine with the mean: one product a part
                probe = probe + np.float32(self.names) * np.stack(of_names).mean(axis=0)
            scores.append(vectors @ probe)
        return scores

    @classmethod
    def method_settings(cls) -> dict[str, object]:
        """Return the templates and the weight of the names."""
        return super().method_settings() | {"names": cls.names}


_QUOTED = re.compile(r"[\"“]([^\"“”]{3,60})[\"”]|(?<!\w)['‘]([^'‘’]{3,60})['’](?!\w)")
_TOKEN = re.compile(r"[\w'’.\-]+|[^\w\s]")
_JOINING = frozenset({"of", "the", "de", "and", "in", "for"})


def names_in(text: str) -> list[str]:
    """Return the distinct names of a text in order: quoted titles, then runs of capitalised words and numbers.

    A capitalised word that opens the text is no name by itself.
    """
    names = [(match.group(1) or match.group(2)).strip(" ,.") for match in _QUOTED.finditer(text)]
    tokens = _TOKEN.findall(text)
    run: list[str] = []
    for index, token in enumerate([*tokens, ""]):
        following = tokens[index + 1] if index + 1 < len(tokens) else ""
        joins = bool(run) and token in _JOINING and following[:1].isupper()
        if token[:1].isupper() or token[:1].isdigit() or joins:
            run.append(token)
        else:
            if run and not (len(run) == 1 and index == 1):
                names.append(" ".join(run).strip(".'’-"))
            run = []
    return list(dict.fromkeys(name for name in names if len(name) > 1))
