"""The shuffle model for a few people, as full channels between datasets and histograms, in exact fractions.

Datasets run aaa, aab, aba, abb, ..; histograms run a:3,b:0, a:2,b:1, .. A `LabelledChannel` goes wherever a channel
goes: `posterior_vulnerability(prior, table, gain=target_gain(table))`, `refined_by(table, other)`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, product
from math import comb
from typing import Any

import numpy as np

from dovetail.core.channel import KRRChannel
from dovetail.core.checks import whole
from dovetail.core.errors import ParameterError
from dovetail.leak.qif.channels import cascade
from dovetail.leak.qif.inputs import ChannelLike, Numbers, attribute, channel_matrix, check_size, normalize

Counts = tuple[int, ...]  # one per value

MOST_FRACTIONS = 300_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, eq=False)
class LabelledChannel:
    """An exact channel whose inputs and outputs are datasets or histograms.

    Parameters
    ----------
    cells : Fraction array (inputs, outputs)
    inputs, outputs : tuples of str
        Datasets such as "aab" (a letter per person) or histograms such as "a:2,b:1".
    """

    cells: Numbers
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        return self.cells.astype(dtype or object)

    def then(self, other: LabelledChannel) -> LabelledChannel:
        """The cascade; refused unless the outputs of this one are the inputs of the other."""
        if self.outputs != other.inputs:
            raise ParameterError(
                f"`other` must take the outputs of this channel, such as {self.outputs[0]}, got inputs such as "
                f"{other.inputs[0]}."
            )
        return LabelledChannel(cascade(self, other), self.inputs, other.outputs)


def target_gain(table: LabelledChannel) -> Numbers:
    """The gain of naming the value of person 0 in one try; for tables whose inputs are datasets.

    Source: Jurado, Gonze, Alvim, Palamidessi (2023), CSF, Definition 13.
    """
    if ":" in table.inputs[0]:
        raise ParameterError(f"`table` must take datasets, got the histogram {table.inputs[0]}: it has no person 0.")
    return attribute([dataset[0] for dataset in table.inputs])


def exact_channel(channel: ChannelLike) -> Numbers:
    """The channel of one person in fractions: from the whole-number masses of k-RR, or from an exact array.

    >>> print(exact_channel(KRRChannel(2, keep=3, lie=1)))
    [[Fraction(3, 4) Fraction(1, 4)]
     [Fraction(1, 4) Fraction(3, 4)]]

    Raises
    ------
    ParameterError
        For floats, whose rows sum to 1 only nearly; `arithmetic.normalize` makes
        fractions from weights.
    """
    if isinstance(channel, KRRChannel):
        return normalize(
            [[channel.keep if x == y else channel.lie for y in range(channel.k)] for x in range(channel.k)]
        )
    cells = channel_matrix("channel", channel)
    if cells.dtype.kind == "f":
        raise ParameterError("`channel` must be a KRRChannel or hold Fractions; arithmetic.normalize makes them.")
    return normalize(cells)


def full_randomizer(channel: ChannelLike, *, n: int) -> LabelledChannel:
    r"""N: everybody randomizes her own value with the same channel.

    .. math:: N[x, y] = \prod_i R[x_i, y_i]

    Parameters
    ----------
    channel : KRRChannel or exact array (values, reports)
    n : int, at least 1

    Raises
    ------
    UnsupportedError
        Above 300,000 cells, as for all tables of this module (k = 2: n = 9; k = 3: n = 5).

    Source
    ------
    Jurado, Gonze, Alvim, Palamidessi (2023), CSF, Definition 10.
    """
    return full_randomizer_each([channel] * whole("n", n, least=1))


def full_randomizer_each(channels: Sequence[ChannelLike]) -> LabelledChannel:
    """Everybody randomizes her own value with her own channel."""
    people = [exact_channel(channel) for channel in channels]
    shapes = {person.shape for person in people}
    if len(shapes) != 1:
        raise ParameterError(f"`channels` must be at least one, all of one shape, got the shapes {sorted(shapes)}.")
    (values, reports), n = shapes.pop(), len(people)
    _check_size(values**n * reports**n)
    return LabelledChannel(
        reduce(np.kron, people), *(_dataset_names(_datasets(size, n)) for size in (values, reports))
    )


def full_shuffle(k: int, *, n: int) -> LabelledChannel:
    r"""S: the dataset in uniformly random order.

    .. math:: S[x, y] = 1[h(x) = h(y)] / \#h(x)

    Source: Jurado, Gonze, Alvim, Palamidessi (2023), CSF, Definition 7.
    """
    datasets = _datasets(k, n)
    _check_size(len(datasets) ** 2)
    counts = [_histogram(x, k) for x in datasets]
    return LabelledChannel(
        normalize([[int(a == b) for b in counts] for a in counts]), _dataset_names(datasets), _dataset_names(datasets)
    )


def reduced_shuffle(k: int, *, n: int) -> LabelledChannel:
    """S^r: the histogram of the dataset, which is all that shuffling leaves.

    Source: Jurado, Gonze, Alvim, Palamidessi (2023), CSF, Definition 8.
    """
    datasets, histograms = _datasets(k, n), _histograms(k, n)
    _check_size(len(datasets) * len(histograms))
    cells = normalize([[int(_histogram(x, k) == z) for z in histograms] for x in datasets])
    return LabelledChannel(cells, _dataset_names(datasets), _histogram_names(histograms))


def reduced_randomizer(channel: ChannelLike, *, n: int) -> LabelledChannel:
    r"""N^r: from the histogram of the values to the histogram of the reports.

    .. math:: N^r[z, \cdot] = \text{distribution of a sum of unit histograms, } z_w \text{ of them from } R[w, \cdot]

    Each row depends on its own histogram only, so no prior is needed.

    Source
    ------
    Jurado, Gonze, Alvim, Palamidessi (2023), CSF, Definition 23.
    """
    person, people = exact_channel(channel), whole("n", n, least=1)
    values, reports = person.shape
    _check_size(comb(people + values - 1, values - 1) * comb(people + reports - 1, reports - 1))
    inputs, outputs = _histograms(values, people), _histograms(reports, people)
    cells = [[pmf[z] for z in outputs] for pmf in (_histogram_distribution(person, counts) for counts in inputs)]
    return LabelledChannel(np.array(cells, dtype=object), _histogram_names(inputs), _histogram_names(outputs))


def _histogram_distribution(person: Numbers, counts: Counts) -> dict[Counts, Fraction]:
    pmf: dict[Counts, Fraction] = {(0,) * person.shape[1]: Fraction(1)}
    for value in np.repeat(np.arange(len(counts)), counts):
        grown: dict[Counts, Fraction] = defaultdict(Fraction)
        for seen, weight in pmf.items():
            for report, chance in enumerate(person[value]):
                grown[(*seen[:report], seen[report] + 1, *seen[report + 1 :])] += weight * chance
        pmf = grown
    return pmf


def _datasets(k: int, n: int) -> list[Counts]:
    values, people = _values(k), whole("n", n, least=1)
    _check_size(len(values) ** people)
    return list(product(values, repeat=people))


def _histograms(k: int, n: int) -> list[Counts]:
    return [_histogram(values, k) for values in combinations_with_replacement(_values(k), whole("n", n, least=1))]


def _values(k: int) -> range:
    return range(whole("k", k, least=1, most=len(LETTERS)))


def _histogram(values: Sequence[int], k: int) -> Counts:
    counts = Counter(values)
    return tuple(counts[value] for value in range(k))


def _dataset_names(datasets: Sequence[Counts]) -> tuple[str, ...]:
    return tuple("".join(LETTERS[value] for value in dataset) for dataset in datasets)


def _histogram_names(histograms: Sequence[Counts]) -> tuple[str, ...]:
    return tuple(",".join(f"{LETTERS[v]}:{count}" for v, count in enumerate(counts)) for counts in histograms)


def _check_size(cells: int) -> None:
    check_size(cells, "This table of fractions", "for more people use dovetail.vulnerability.", most=MOST_FRACTIONS)
