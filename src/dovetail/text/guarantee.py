"""Sentence privacy as a value: how much one released embedding tells about one sentence of its document."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from dovetail.core.checks import not_negative_or_infinite, whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import SIMULATED, LocalDP
from dovetail.core.numeric.rounding import round_up_to_double

UNIT = "one sentence, replaced by any other sentence"
NOT_PROTECTED = (
    "that a document was sent at all",
    "what is public: the encoder, the candidates and every parameter",
    "how many sentences there are: one more or one less costs half of epsilon",
    "a change of text that moves boundaries of sentences: it counts once for each sentence that it changes",
    "copies: documents of the same sentences in one release count as documents of different people",
)


@dataclass(frozen=True)
class SentenceDP:
    r"""What a released document embedding reveals about any one sentence of the document.

    .. math:: \Pr[M(x) \in O] \le e^{\epsilon} \Pr[M(x') \in O]
              \quad \text{for all } O \text{ and all lists } x, x' \text{ of } k \text{ sentences that differ in one}

    The unit is the sentence after splitting. It is incomparable with word-level metric privacy, which promises less
    for words that are close and says nothing of the rest of a sentence.

    Parameters
    ----------
    epsilon : float, at least 0, nats
    source : str
        The construction behind it.
    unit : str
        What is replaced in a neighbouring document.
    not_protected : tuple of str
        What is told whatever epsilon is.
    caveats : tuple of str
        What takes the promise away, such as simulated randomness.

    Source
    ------
    Meehan, Mrini, Chaudhuri (2022), Sentence-level Privacy for Document Embeddings, ACL, Definition 3.1.
    """

    epsilon: float
    source: str = ""
    unit: str = UNIT
    not_protected: tuple[str, ...] = NOT_PROTECTED
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        not_negative_or_infinite("epsilon", self.epsilon)

    def implies(self, other: object) -> bool:
        """Whether whoever has this guarantee also has `other`, about the same unit."""
        same = isinstance(other, SentenceDP) and other.unit == self.unit
        return same and not self.caveats and self.epsilon <= other.epsilon  # type: ignore[attr-defined]

    def compose(self, other: SentenceDP) -> SentenceDP:
        """Two releases of the same document: epsilons add (basic composition, Dwork et al. 2006)."""
        if other.unit != self.unit:
            raise UnsupportedError(f"Guarantees about {self.unit!r} and {other.unit!r} do not add; state each.")
        return replace(
            self,
            epsilon=add(self.epsilon, other.epsilon),
            source=f"basic composition of [{self.source}] and [{other.source}]",
            caveats=tuple(dict.fromkeys(self.caveats + other.caveats)),
        )

    def sentences(self, changed: int) -> float:
        """Epsilon between documents that differ in `changed` sentences (group privacy); words changed in one
        sentence count as that one sentence.

        >>> SentenceDP(2.0).sentences(3)
        6.0
        """
        return multiply(whole("changed", changed, least=0), self.epsilon)

    def whole_document(self, most_sentences: int) -> LocalDP:
        """What one release promises about the whole document, of at most `most_sentences` sentences.

        This, and not the epsilon of a sentence, is what amplification by shuffling starts from.
        """
        return LocalDP(
            self.sentences(whole("most_sentences", most_sentences, least=1)),
            source=f"group privacy over {most_sentences} sentences of [{self.source}]",
            caveats=self.caveats,
        )

    def drawn_from(self, provenance: str) -> SentenceDP:
        """This guarantee for randomness of the given provenance; simulation takes it away and says so."""
        return self if provenance == "device" else replace(self, caveats=(*self.caveats, SIMULATED))


def add(*epsilons: float) -> float:
    """The sum, rounded up.

    >>> add(*[0.1] * 10)  # doubles of .1 are above a tenth
    1.0000000000000002
    """
    if math.inf in epsilons:
        return math.inf
    return round_up_to_double(sum((Fraction(one) for one in epsilons), Fraction(0)))


def multiply(count: int, epsilon: float) -> float:
    """`count` times epsilon, rounded up; nothing changed costs nothing."""
    if count == 0 or epsilon == math.inf:
        return 0.0 if count == 0 else math.inf
    return round_up_to_double(count * Fraction(epsilon))
