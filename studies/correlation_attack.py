"""The correlation attack: Gaussian-process classification of each person's value from everybody's reports.

On real data it was never better than the likelihood attack: it is here for the studies of the paper that names it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from dovetail.attack.experiment.run_attack import Guesses, People, argmax_random_ties, check_columns, check_people
from dovetail.core.checks import positive, real, refuse, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.settings import Count
from dovetail.core.stages import Attack, FrequencyRandomizer, Knowledge, Reports, Shuffler

Points = NDArray[np.float64]  # (n, d)

MOST_EXACT = 4_000  # people for whom one dense system is solved
_CHUNK = 64  # small systems solved at once: as many as a processor's cache holds
_STRUCTURES = (0.0, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Smoothness:
    r"""Correlation of values: covariance of two people's indicators of a value, in units of its variance.

    .. math:: C_{ij} = s\, e^{-|t_i - t_j|^2 / 2 \ell^2} + (1 - s)\, [i = j]

    Parameters
    ----------
    scale : float above 0, in the unit of the points
        The length l.
    structure : float in [0, 1]
        The share s that the place explains; the rest is everybody's own.

    Raises
    ------
    ParameterError
        For a scale that is not above 0, or a structure outside [0, 1].

    Examples
    --------
    >>> Smoothness(scale=1.0, structure=0.5).kernel(np.array([[0.0], [1.0]]), np.array([[0.0]])).round(3).tolist()
    [[1.0], [0.607]]
    """

    scale: float
    structure: float = 1.0

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        if not 0.0 <= real("structure", self.structure) <= 1.0:
            raise refuse("structure", "a number in [0, 1]", self.structure)

    def kernel(self, one: Points, other: Points) -> NDArray[np.float64]:
        """The part of the covariance that the places (.., m, d) and (.., o, d) explain, without `structure`."""
        gaps = (
            (one**2).sum(-1)[..., :, None] + (other**2).sum(-1)[..., None, :] - 2 * one @ np.swapaxes(other, -1, -2)
        )
        return np.asarray(np.exp(-np.maximum(gaps, 0.0) / (2.0 * self.scale**2)))


@dataclass(frozen=True, eq=False)
class Correlation(Attack):
    r"""Guesses by the best linear prediction of the indicators of the values: exact Gaussian-process regression.

    .. math:: \hat{f} = \bar{u} + C (C + \rho I)^{-1} (u - \bar{u}), \qquad \hat{x}_i = \arg\max_v \hat{f}_{iv}

    u are the unbiased indicators that a report gives, rho their noise in units of the indicators' variance, C the
    covariance of `Smoothness`. The weights depend on public data alone and are solved for once, so an attack is one
    product of matrices. With s = 0 the own report decides; a long scale gives a vote.

    Parameters
    ----------
    randomizer : FrequencyRandomizer
        KRR, Hadamard, Unary or LocalHashing.
    targets : int array (m,)
    weights : sparse float array (m, n)
        C (C + rho I)^{-1}; from `fit`.

    Raises
    ------
    DataError
        For reports that are not one for each place.
    UnsupportedError
        From `fit`, for more people than one system of equations holds, without `neighbours`.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> krr, ages = KRR(k=2, epsilon=3.0), np.repeat([20.0, 60.0], 50)
    >>> attack = Correlation.fit(krr, ages, targets=[0, 99], smoothness=Smoothness(scale=5.0))
    >>> attack.guess(krr.randomize(np.repeat([0, 1], 50), rng=simulation(1)), simulation(2)).tolist()
    [0, 1]

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, figure 1, bottom row, which
    names Gaussian processes and no more. Rasmussen, Williams (2006), Gaussian Processes for Machine Learning, (2.25)
    for the prediction, section 6.5 for classification by regression. Known noise and the local solution are ours.
    """

    name: ClassVar[str] = "correlation"
    label: ClassVar[str] = "correlation"

    @dataclass(frozen=True)
    class Settings:
        """Settings that the attacker may choose.

        Parameters
        ----------
        neighbours : int, at least 1
            People whose reports are weighed for each target.
        """

        neighbours: Count = 50

    randomizer: FrequencyRandomizer
    targets: People
    weights: csr_array

    @classmethod
    def fit(
        cls, randomizer: FrequencyRandomizer, points: ArrayLike, *, targets: ArrayLike, smoothness: Smoothness,
        neighbours: int | None = 50,
    ) -> Self:  # fmt: skip
        """Solve for the weights.

        Parameters
        ----------
        points : float array (n,) or (n, d)
            Public places, in one unit.
        targets : int array (m,)
        smoothness : Smoothness
            Known, or from `learn_smoothness`.
        neighbours : int or None
            People whose reports are used for each target, the nearest and itself; None takes everybody, up to 4,000.

        Notes
        -----
        O(m neighbours^3), about 3 s for m = 33,000 with 50 neighbours; O(n^3) with everybody.
        """
        places = check_columns("points", points)
        n = len(places)
        who = check_people("targets", targets, n=n)
        noise = _noise(randomizer)
        if neighbours is None:
            if n > MOST_EXACT:
                raise UnsupportedError(
                    f"One system of all people serves at most {MOST_EXACT:,}, got {n:,}; set `neighbours`."
                )
            return cls(randomizer, who, csr_array(_weights(places[None], who[None], smoothness, noise)[0]))
        count = min(whole("neighbours", neighbours, least=1), n)
        found = cKDTree(places).query(places[who], k=count)[1].reshape(who.size, count)
        missing = ~(found == who[:, None]).any(axis=1)
        found[missing, count - 1] = who[missing]  # people at one place can crowd the target out
        seat = (found == who[:, None]).argmax(axis=1)[:, None]
        parts = np.array_split(np.arange(who.size), -(-who.size // _CHUNK))
        rows = np.concatenate([_weights(places[found[part]], seat[part], smoothness, noise) for part in parts])
        ends = np.arange(0, found.size + 1, count)
        return cls(randomizer, who, csr_array((rows.ravel(), found.ravel(), ends), shape=(who.size, n)))

    @classmethod
    def prepare(
        cls, known: Knowledge, randomizer: FrequencyRandomizer, shuffler: Shuffler, *, targets: People, rng: Entropy,
        neighbours: int = 50, **settings: Any,
    ) -> Self:  # fmt: skip
        points, seen = known.points(), known.release(randomizer, shuffler, rng)
        smoothness = learn_smoothness(randomizer, points, seen, rng=rng)
        return cls.fit(randomizer, points, targets=targets, smoothness=smoothness, neighbours=neighbours)

    @classmethod
    def weighed(cls, n: int, settings: dict[str, Any]) -> int:
        return int(min(settings["neighbours"], n))

    def guess(self, reports: Reports, rng: Entropy | None = None) -> Guesses:
        rng = entropy_or_system(rng)
        seen = self.randomizer.indicators(reports)
        if len(seen) != self.weights.shape[1]:
            raise DataError(f"`reports` must be {self.weights.shape[1]:,}, one for each place, got {len(seen):,}.")
        mean = seen.mean(axis=0)
        return argmax_random_ties(mean + self.weights @ (seen - mean), rng)


def learn_smoothness(
    randomizer: FrequencyRandomizer, points: ArrayLike, reports: Reports, *, blocks: int = 20,
    people_each: int = 60, rng: Entropy | None = None,
) -> Smoothness:  # fmt: skip
    r"""The scale and structure that make a released batch likeliest, of 60 candidates.

    .. math:: \sum_{\text{blocks}} \sum_v \left( -\tfrac{N}{2} \log u_v^\top A^{-1} u_v - \tfrac12 \log |A| \right),
              \qquad A = C + \rho I

    with the variance of each value's indicator maximised out. Blocks are a random person each and the nearest others,
    of whom at most a third stand at one place: people at one place tell nothing about the scale.

    Parameters
    ----------
    points : float array (n,) or (n, d)
    reports : n reports in released order
    blocks, people_each : int
        Work is O(blocks people_each^3) for each of 12 scales.

    Raises
    ------
    DataError
        When all points are equal.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> krr, ages = KRR(k=2, epsilon=3.0), np.repeat(np.arange(40.0), 25)
    >>> reports = krr.randomize((ages >= 20.0).astype(np.int64), rng=simulation(1))
    >>> learn_smoothness(krr, ages, reports, rng=simulation(2)).structure > 0.5
    True

    Source
    ------
    Rasmussen, Williams (2006), Gaussian Processes for Machine Learning, (5.8); blocks as in Stein, Chi, Welty (2004),
    Approximating likelihoods for large spatial data sets.
    """
    rng = entropy_or_system(rng)
    places = check_columns("points", points)
    seen = randomizer.indicators(reports)
    if len(seen) != len(places):
        raise DataError(f"`reports` must be {len(places):,}, one for each place, got {len(seen):,}.")
    centred = seen - seen.mean(axis=0)
    wanted = whole("people_each", people_each, least=2)
    mixed = _few_at_a_place(places, rng.permutation(len(places)), most=max(1, wanted // 3))
    centres = mixed[: whole("blocks", blocks, least=1)]
    kept = np.sort(mixed)
    each = min(wanted, kept.size)
    members = kept[cKDTree(places[kept]).query(places[centres], k=each)[1].reshape(len(centres), each)]
    gaps = np.array([cdist(places[row], places[row]) for row in members])
    if not gaps.any():
        raise DataError("`points` must differ from each other; all stand at one place.")
    candidates = np.geomspace(gaps[gaps > 0].min(), 2 * gaps.max(), 12)
    noise, best = _noise(randomizer), (-np.inf, Smoothness(float(candidates[-1]), 0.0))
    for scale in candidates:
        fits = np.zeros(len(_STRUCTURES))
        for row, gap in zip(members, gaps, strict=True):
            fits += _likelihoods(np.exp(-(gap**2) / (2 * scale**2)), centred[row], noise)
        top = int(fits.argmax())
        best = max(best, (float(fits[top]), Smoothness(float(scale), _STRUCTURES[top])), key=lambda pair: pair[0])
    return best[1]


def _few_at_a_place(places: Points, order: People, *, most: int) -> People:
    """People in this order, without those who come after `most` others at the same place."""
    place = np.unique(places, axis=0, return_inverse=True)[1].ravel()[order]
    together = np.argsort(place, kind="stable")  # people of a place, each in the order given
    sizes = np.bincount(place)
    rank = np.empty_like(order)
    rank[together] = np.arange(order.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[rank < most]


def _noise(randomizer: FrequencyRandomizer) -> float:
    """Variance of the indicators' noise over that of the indicators themselves, at equal shares."""
    shares = np.full(randomizer.k, 1.0 / randomizer.k)
    return float(randomizer.variance(shares).sum() / (1.0 - 1.0 / randomizer.k))


def _weights(places: Points, seats: People, smoothness: Smoothness, noise: float) -> NDArray[np.float64]:
    """Rows `seats` (systems, targets) of C (C + noise I)^{-1} for places (systems, m, d): (systems, targets, m)."""
    own = np.eye(places.shape[1])
    law = smoothness.structure * smoothness.kernel(places, places) + (1.0 - smoothness.structure) * own
    wanted = np.take_along_axis(law, seats[:, :, None], axis=1)
    return np.swapaxes(np.linalg.solve(law + noise * own, np.swapaxes(wanted, 1, 2)), 1, 2)


def _likelihoods(kernel: NDArray[np.float64], seen: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Log likelihood for each structure, up to a constant."""
    values, vectors = eigh(kernel)
    parts = (vectors.T @ seen) ** 2  # (m, k)
    result = np.empty(len(_STRUCTURES))
    for row, s in enumerate(_STRUCTURES):
        spread = s * np.maximum(values, 0.0) + 1.0 - s + noise
        weight = np.maximum((parts / spread[:, None]).sum(axis=0), 1e-300)
        result[row] = -0.5 * (len(seen) * np.log(weight) + np.log(spread).sum()).sum()
    return result
