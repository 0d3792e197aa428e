"""Attacks on releases of documents: whose sentence was it, and was this sentence in it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.evaluation.inversion import inversion_success
from dovetail.text.integer_rows import Rows

Attack = Literal["inversion", "membership"]


@dataclass(frozen=True)
class AttackSuccess:
    """Mean success of an attack over documents, exact over the mechanism's randomness in each.

    Parameters
    ----------
    attack : str
        inversion: which of `possible` sentences was in the document? membership: was this one, or another?
    possible : int
        Sentences among which the attacker chooses; one of them was in the document, each equally likely.
    chance : float
    nearest : float
        Names the sentence nearest to the released embedding.
    best : float
        Knows the mechanism and all other sentences: the most that anybody reaches.
    best_error : float
        Standard error of `best` over documents.
    bound : float
        What epsilon implies: nobody reaches more in any document.
    documents : int
    """

    attack: Attack
    possible: int
    chance: float
    nearest: float
    best: float
    best_error: float
    bound: float
    documents: int


def attack_documents(
    documents: Sequence[Rows],
    mechanism: DeepCandidate,
    *,
    attack: Attack,
    possible: int = 10,
    most_documents: int = 50,
    rng: Entropy,
) -> AttackSuccess:
    r"""Attack one sentence of each of some documents, with sentences of other documents as alternatives.

    .. math:: \Pr[\text{right}] \le \frac{e^\epsilon}{e^\epsilon + L - 1}, \qquad L = 2 \text{ for membership}

    Parameters
    ----------
    documents : sequence of int16 arrays (k, d)
    mechanism : DeepCandidate
    attack : str
        inversion or membership.
    possible : int, at least 2
        L, for inversion.
    most_documents : int, at least 1
        Documents that are attacked, the first ones that have sentences.
    rng : Entropy
        Chooses sentences; a simulation.
    """
    size = 2 if attack == "membership" else whole("possible", possible, least=2)
    targets = _targets(documents, size, most_documents, rng)
    found = [inversion_success(mechanism, known, choices) for known, choices in targets]
    if not found:
        raise DataError(f"there must be documents with sentences, and {size - 1} different sentences in others.")
    best = np.array([one.best for one in found])
    return AttackSuccess(
        attack, size, found[0].chance, float(np.mean([one.nearest for one in found])), float(best.mean()),
        float(best.std() / np.sqrt(len(best))), found[0].bound, len(found),
    )  # fmt: skip


def _targets(documents: Sequence[Rows], size: int, most: int, rng: Entropy) -> Iterator[tuple[Rows, Rows]]:
    """What is known of each attacked document, and what its last sentence may be: its own one and others'."""
    read = [one[one.any(axis=1)] for one in documents]
    owners = np.repeat(np.arange(len(read)), [len(one) for one in read])
    pool = np.concatenate([*read]) if read else np.zeros((0, 1), dtype=np.int16)
    for place in [one for one in range(len(read)) if len(read[one])][:most]:
        own = read[place]
        target = int(rng.below(len(own), 1)[0])
        others = np.unique(pool[owners != place], axis=0)
        others = others[(others != own[target]).any(axis=1)]
        if len(others) < size - 1:
            continue
        picked = others[rng.permutation(len(others))[: size - 1]]
        yield np.delete(own, target, axis=0), np.concatenate([own[target : target + 1], picked])
