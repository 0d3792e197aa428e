"""Label inference: the class of what a crop does not show, guessed from its embedding, and how sure the guess is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.checks import floats, whole
from dovetail.core.errors import DataError, ParameterError

# Exact nearest neighbours in a public set, with ties that no order of the files decides.


Distance = Literal["euclidean", "cosine"]
Rows = NDArray[np.float64]  # (n, d)
Codes = NDArray[np.int64]  # (n,), classes as 0, 1, ..

SAME = 1e-9  # distances this close, as a share of the embeddings' length, are equal: rounding cannot tell them apart
_BLOCK = 4_000_000  # distances held at a time


class Votes(NamedTuple):
    """Votes of the K nearest public rows of queries for each class; all float arrays (n, classes).

    `copies` are the votes at distance 0, `nearness` the sum of 1 / distance over the other votes.
    """

    counts: Rows
    copies: Rows
    nearness: Rows


def votes(
    queries: Rows, public: Rows, codes: Codes, *, classes: int, neighbours: int, distance: Distance = "euclidean"
) -> Iterator[Votes]:
    r"""Votes of the K nearest public rows for each query, in blocks of queries, in order.

    All public rows at the distance of the K-th nearest enter with equal weight, which adds up to what is left of K:

    .. math:: w_x = 1 \text{ if } d_x < d_K, \quad (K - |\{d < d_K\}|) / |\{d = d_K\}| \text{ if } d_x = d_K

    so the votes depend on no order of the public rows. Candidates come from a matrix product with a margin above its
    rounding; their distances are then computed directly, because products break ties and exact copies.

    Parameters
    ----------
    queries, public : float arrays (n, d) and (N, d)
    codes : int array (N,)
        The class of each public row.
    neighbours : int, 1 to N
        K.
    distance : "euclidean" or "cosine"
        Cosine: rows are scaled to length 1 first.

    Notes
    -----
    O(n N d) time; O(N) memory beyond the arguments.
    """
    queries, public = _comparable(queries, public, distance)
    length = np.linalg.norm(public, axis=1).max()
    squares = (public**2).sum(axis=1)
    step = max(1, _BLOCK // len(public))
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        scale = np.linalg.norm(block, axis=1) + length
        row, column = _candidates(block, public, squares, scale, neighbours)
        far = _direct(block, public, row, column)
        yield _count(row, codes[column], far, scale, len(block), classes, neighbours)


def _comparable(queries: Rows, public: Rows, distance: Distance) -> tuple[Rows, Rows]:
    """Rows whose Euclidean distances are asked for; moved to the middle of the public set, which costs no digits."""
    if distance == "cosine":
        lengths = [np.linalg.norm(rows, axis=1, keepdims=True) for rows in (queries, public)]
        if any((each == 0.0).any() for each in lengths):
            raise DataError("`distance` must be euclidean where an embedding is zero, got cosine.")
        queries, public = queries / lengths[0], public / lengths[1]
    middle = public.mean(axis=0)
    return queries - middle, public - middle


def _candidates(
    block: Rows, public: Rows, squares: Rows, scale: Rows, neighbours: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs that may be among the K nearest or tie with the K-th: squared distances up to a margin above the K-th."""
    approximate = (block**2).sum(axis=1)[:, None] + squares - 2.0 * block @ public.T
    kth = approximate.min(axis=1) if neighbours == 1 else np.partition(approximate, neighbours - 1)[:, neighbours - 1]
    rounding = 8.0 * (block.shape[1] + 8) * np.finfo(np.float64).eps * scale**2
    reach = np.sqrt(np.maximum(kth, 0.0) + rounding) + 2.0 * SAME * scale
    row, column = np.nonzero(approximate <= (reach**2 + rounding)[:, None])
    return row, column


def _direct(block: Rows, public: Rows, row: NDArray[np.intp], column: NDArray[np.intp]) -> Rows:
    """The distance of each pair, from differences."""
    step = max(1, _BLOCK // block.shape[1])
    parts = [
        np.linalg.norm(block[row[at : at + step]] - public[column[at : at + step]], axis=1)
        for at in range(0, len(row), step)
    ]
    return np.concatenate(parts)


def _count(
    row: NDArray[np.intp], code: Codes, far: Rows, scale: Rows, n: int, classes: int, neighbours: int
) -> Votes:
    order = np.lexsort((far, row))  # `row` is sorted already, so places stay within their row
    starts = np.searchsorted(row, np.arange(n))
    kth = far[order][starts + neighbours - 1][row]
    same = SAME * scale[row]
    inside, tied = far < kth - same, np.abs(far - kth) <= same
    left = neighbours - np.bincount(row, inside, minlength=n)
    weight = inside + tied * (left / np.bincount(row, tied, minlength=n))[row]
    copy = far <= same
    nearness = weight * ~copy / np.where(copy, 1.0, far)

    def total(weights: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.bincount(row * classes + code, weights, minlength=n * classes).reshape(n, classes))

    return Votes(total(weight), total(weight * copy), total(nearness))


Labels = NDArray[np.generic]  # (n,), whole numbers or texts
Marks = NDArray[np.bool_]  # (n, classes)
Scores = NDArray[np.float64]  # (n,)

_EQUAL = 1e-9  # fractional votes this close are equal
_DIGITS = 12  # of entropies: equal votes in another order give equal confidence
DISTANCES: tuple[Distance, ...] = ("euclidean", "cosine")


@dataclass(frozen=True)
class LabelInference:
    """One guess for each attacked image.

    Parameters
    ----------
    correct : float array (n,)
        Chance that the guess is right: 1 or 0, and a fraction where several classes tie to the end.
    confidence : float array (n,)
        Larger is surer: minus the entropy of the votes in nats, or the largest logit.
    """

    correct: Scores
    confidence: Scores

    @property
    def n(self) -> int:
        """Number of attacked images."""
        return len(self.correct)

    @property
    def accuracy(self) -> float:
        """Share of images whose class is guessed, in expectation over unresolved ties."""
        return float(self.correct.mean())


def infer_by_neighbours(
    crops: ArrayLike,
    labels: ArrayLike,
    *,
    public: ArrayLike,
    public_labels: ArrayLike,
    neighbours: int = 100,
    distance: Distance = "euclidean",
) -> LabelInference:
    r"""Guess each crop's class by the majority of its K nearest public rows, in the same encoder's embedding.

    .. math:: \hat y = \arg\max_c v_c, \qquad \text{confidence} = \sum_c (v_c / K) \ln (v_c / K)

    Ties of the majority go to the class with more votes at distance 0, then to the larger sum of 1 / distance; what
    is tied still counts as right with the chance of a fair draw. Nothing depends on an order of rows.

    The same code attacks any collection: with a released table as the public set and people's public columns as
    crops, it guesses their private values.

    Parameters
    ----------
    crops : float array (n, d)
        Embeddings of what the attacker has: parts of images without the object, or what is known of a person.
    labels : array (n,), whole numbers or texts
        What is to be guessed.
    public, public_labels : arrays (N, d) and (N,)
        The public set in the same embedding, and its labels; every label to be guessed must occur, and two at least.
    neighbours : int, 1 to N
        K. The dissertation uses 100 of at least 100 in each class, and finds little change above 50.
    distance : "euclidean" (as published, without scaling) or "cosine"

    Source
    ------
    Meehan and others (2023), Do SSL Models Have Deja Vu?, sections 1.3.1 and A.0.2; ties are ours.
    """
    mine, theirs = _matrix("crops", crops), _matrix("public", public)
    wanted, given = (
        clean_labels("labels", labels, len(mine)),
        clean_labels("public_labels", public_labels, len(theirs)),
    )
    if mine.shape[1] != theirs.shape[1]:
        raise DataError(f"`public` must have {mine.shape[1]} columns like `crops`, got {theirs.shape[1]}.")
    most = whole("neighbours", neighbours, least=1)
    if most > len(theirs):
        raise ParameterError(f"`neighbours` must be at most the public set's {len(theirs)} rows, got {neighbours}.")
    if distance not in DISTANCES:
        raise ParameterError(f"`distance` must be euclidean or cosine, got {distance!r}.")
    classes, codes = np.unique(given, return_inverse=True)
    truth = codes_of(wanted, classes)
    parts = votes(mine, theirs, codes, classes=len(classes), neighbours=most, distance=distance)
    winners, confidence = [], []
    for part in parts:
        winners.append(_winners(part))
        confidence.append(_confidence(part.counts, most))
    return LabelInference(_chance(np.concatenate(winners), truth), np.concatenate(confidence))


def infer_by_logits(logits: ArrayLike, labels: ArrayLike, *, classes: ArrayLike) -> LabelInference:
    """The classifier variant: the guess is the largest logit's class, its confidence that logit.

    Parameters
    ----------
    logits : float array (n, C)
    labels : array (n,)
    classes : array (C,)
        The label that each column stands for.
    """
    rows = _matrix("logits", logits)
    names = clean_labels("classes", classes, rows.shape[1])
    known, columns = np.unique(names, return_index=True)
    if len(known) < len(names):
        raise DataError("`classes` must name each class once.")
    truth = columns[codes_of(clean_labels("labels", labels, len(rows)), known)]
    top = rows.max(axis=1)
    return LabelInference(_chance(rows == top[:, None], truth), top)


def codes_of(labels: Labels, classes: Labels) -> NDArray[np.int64]:
    """The place of each label in the sorted classes.

    Raises
    ------
    DataError
        For a label that is none of the classes, and when there is only one class: nothing is left to guess.
    """
    if len(classes) < 2:
        raise DataError(f"`public_labels` must hold at least two classes, got {classes[0]!s} alone.")
    if labels.dtype.kind != classes.dtype.kind and "U" in (labels.dtype.kind, classes.dtype.kind):
        raise DataError("`labels` and `public_labels` must both be texts or both be numbers.")
    place = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
    strange = np.flatnonzero(classes[place] != labels)
    if strange.size:
        raise DataError(f"`labels` must occur in the public labels, got {labels[strange[0]]!s}.")
    return place.astype(np.int64)


def clean_labels(name: str, labels: ArrayLike, n: int) -> Labels:
    """Labels as an array of whole numbers or texts, one for each of n rows, none missing."""
    try:
        found = np.asarray(labels)
    except ValueError:
        raise DataError(f"`{name}` must be one label for each row, got rows of different lengths.") from None
    if found.ndim != 1 or len(found) != n:
        shape = found.shape if found.ndim != 1 else len(found)
        raise DataError(f"`{name}` must be one label for each of {n} rows, got {shape}.")
    missing = _missing(found)
    if missing:
        raise DataError(f"`{name}` must be given for every row; {missing} of {n} are missing.")
    if found.dtype.kind == "O":
        found = found.astype(str)
    if found.dtype.kind == "f" and (found == np.floor(found)).all():
        found = found.astype(np.int64)
    if found.dtype.kind not in "iubU":
        raise DataError(f"`{name}` must be whole numbers or texts, got values of type {found.dtype}.")
    return found


def _missing(labels: Labels) -> int:
    if labels.dtype.kind == "f":
        return int(np.isnan(labels).sum())
    if labels.dtype.kind == "O":
        return sum(one is None or one == "" or one != one for one in labels)
    return int((labels == "").sum()) if labels.dtype.kind == "U" else 0


def _matrix(name: str, values: ArrayLike) -> NDArray[np.float64]:
    rows = floats(name, values)
    if rows.ndim != 2 or not rows.size:
        raise DataError(f"`{name}` must be a table of embeddings (n, d), got an array of shape {rows.shape}.")
    return rows


def _winners(part: Votes) -> Marks:
    """The classes that tie for the guess after all three criteria."""
    left = np.ones(part.counts.shape, dtype=bool)
    for criterion in part:
        best = np.where(left, criterion, -np.inf).max(axis=1, keepdims=True)
        left &= criterion >= best - _EQUAL * np.maximum(1.0, best)
    return left


def _chance(winners: Marks, truth: NDArray[np.int64]) -> Scores:
    return np.asarray(winners[np.arange(len(winners)), truth] / winners.sum(axis=1))


def _confidence(counts: NDArray[np.float64], neighbours: int) -> Scores:
    """Minus the entropy of the votes; summed in order of size, so that equal votes are equally sure."""
    shares = np.sort(counts, axis=1) / neighbours
    terms = shares * np.log(np.where(shares > 0.0, shares, 1.0))
    return np.asarray(terms.sum(axis=1).round(_DIGITS) + 0.0)


def smallest_class(labels: Sequence[object] | Labels) -> int:
    """Number of public rows of the rarest class."""
    return int(np.unique(np.asarray(labels), return_counts=True)[1].min())
