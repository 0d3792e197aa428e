"""A vector with discrete Gaussian noise on every coordinate: the mechanism that everybody knows, drawn exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Annotated, ClassVar, Self, final

import numpy as np
from annotated_types import Gt, Lt
from numpy.typing import ArrayLike, NDArray

from dovetail.core.channel import DenseChannel
from dovetail.core.checks import positive, privacy_budget, refuse, share, whole
from dovetail.core.discrete_noise import can_draw, discrete_gaussian
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.core.guarantee import LocalDP
from dovetail.core.special import Reals, gaussian_delta
from dovetail.randomize.sampling.vector_randomizer import GaussianSteps, Tallied, VectorRandomizer

MOST_COORDINATES = 4096
SMALLEST_RADIUS = 1e-200  # from here to its inverse no step is rounded by floating point more than it says
SIGMA = 1 << 14  # grid steps, where there are several coordinates
STEPS = 8  # of the grid of a single one, whose reports are clamped
PARTS = 64  # in which the variance of a single one is a whole number
FURTHEST = 1 << 32  # grid steps, far beyond every report: sums of 2^30 people fit into 63 bits
REACH = 6.2  # standard deviations beyond the interval at which reports of a single coordinate are clamped
TAIL = 40.0  # beyond so many, discrete Gaussian noise has less mass than a double tells from 0
MOST_STEPS = 64  # of a channel
SMOOTH = 9  # variance by which discrete noise exceeds the continuous noise that it is made of

Steps = NDArray[np.int64]  # (n, d)


@final
@dataclass(frozen=True)
class Gaussian(VectorRandomizer):
    r"""Every coordinate on a public grid, with independent discrete Gaussian noise.

    .. math:: z = \lfloor x / h + u \rfloor + N_{\mathbb Z}(0, \sigma^2)^d, \qquad
              \mu = \frac{2 r / h + 2 \sqrt d}{\sqrt{\sigma^2 - 9}}, \qquad
              \Phi(\tfrac\mu2 - \tfrac\epsilon\mu) - e^\epsilon \Phi(-\tfrac\mu2 - \tfrac\epsilon\mu) \le \delta_0

    u is uniform: rounding is unbiased. For comparison with what others use, and where delta_0 > 0 is no objection;
    `ClosestDirection` has a smaller error at the same epsilon, and no delta_0.

    Parameters
    ----------
    d : int, 1 .. 4,096
        Coordinates.
    radius : float, above 0
        Vectors longer than r in Euclidean norm are shortened to it.
    epsilon : float, above 0 and at most 700, nats
    delta0 : float, above 0, below 1
        Slack of the local guarantee.

    Notes
    -----
    Two vectors are at most 2 r / h + 2 sqrt d grid steps apart, rounding included. Discrete noise of variance sigma^2
    is a post-processing of continuous noise of variance sigma^2 - 9, up to a factor of 1 + 1e-76 a coordinate, so
    delta is that of mu-Gaussian privacy. A single coordinate has a grid of 8 steps and the least noise at which
    `shift_delta`, exact, keeps delta_0; its report is clamped 6.2 sigma outside: then the channel is finite, and
    shuffling is accounted by its own law. Several coordinates have the bound for every mechanism with this promise.

    Examples
    --------
    >>> noise = Gaussian(d=100, radius=1.0, epsilon=4.0)
    >>> round(noise.error(10_000), 3), noise.guarantee.delta
    (0.239, 1e-06)

    Source
    ------
    Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy; Balle, Wang (2018), Improving the
    Gaussian Mechanism, Theorem 8; docs/theory/several-questions.md.
    """

    d: int
    radius: float
    epsilon: float
    delta0: Annotated[float, Gt(0), Lt(1)] = field(default=1e-6, kw_only=True)
    name: ClassVar[str] = "gaussian"
    is_pure: ClassVar[bool] = False
    label: ClassVar[str] = "every coordinate with discrete Gaussian noise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole("d", self.d, least=1, most=MOST_COORDINATES))
        if not SMALLEST_RADIUS <= positive("radius", self.radius) <= 1.0 / SMALLEST_RADIUS:
            raise refuse("radius", f"{SMALLEST_RADIUS:g} to {1.0 / SMALLEST_RADIUS:g}", self.radius)
        privacy_budget("epsilon", self.epsilon)
        if share("delta0", self.delta0) == 0.0:
            raise refuse("delta0", "above 0, below 1", self.delta0)
        if self.d > 1 and self._apart <= 4.0 * math.sqrt(self.d):
            raise refuse(
                "epsilon", f"larger for {self.d:,} coordinates: rounding is as far as vectors are apart", self.epsilon
            )
        if not can_draw(self.variance):
            raise refuse("epsilon", f"larger at delta0 = {self.delta0:g}: noise has at most 2^15 steps", self.epsilon)

    @cached_property
    def mu(self) -> float:
        """Of Gaussian privacy, the largest that keeps epsilon and delta0, rounded down."""
        return largest_mu(self.epsilon, self.delta0)

    @property
    def _apart(self) -> float:
        """Grid steps that two rounded vectors of several coordinates may be apart."""
        return self.mu * math.sqrt(SIGMA**2 - SMOOTH) * (1.0 - 1e-12)

    @cached_property
    def variance(self) -> Fraction:
        """sigma^2, squared grid steps: of one coordinate the least that keeps delta0."""
        if self.d > 1:
            return Fraction(SIGMA**2)
        low, high = 0, max(1, math.ceil((STEPS**2 / self.mu**2 + SMOOTH) * PARTS * (1.0 + 1e-12)))
        if not can_draw(Fraction(high, PARTS)):  # refused above; the search for less would take half a minute
            return Fraction(high, PARTS)
        while high - low > 1:  # the last one at which delta0 was seen to be kept
            middle = (low + high) // 2
            low, high = (low, middle) if shift_delta(middle / PARTS, self.epsilon) <= self.delta0 else (middle, high)
        return Fraction(high, PARTS)

    @property
    def _span(self) -> float:
        """Grid steps between two opposite vectors, which the noise is made for."""
        return float(STEPS) if self.d == 1 else self._apart - 2.0 * math.sqrt(self.d)

    @property
    def step(self) -> float:
        """h."""
        return 2.0 * self.radius / self._span

    @property
    def guarantee(self) -> LocalDP:
        source = "discrete Gaussian noise (Canonne, Kamath, Steinke 2020), delta of Balle, Wang (2018), Theorem 8"
        return LocalDP(self.epsilon, self.delta0, source=source)

    @property
    def sampled(self) -> GaussianSteps | None:
        return GaussianSteps(STEPS, math.sqrt(self.variance)) if self.d == 1 else None

    @property
    def reach(self) -> int:
        """Grid steps outside the interval at which the report of a single coordinate is clamped."""
        return math.ceil(REACH * math.sqrt(self.variance))

    def _reports(self, rows: Reals, rng: Entropy) -> Steps:
        most = 0.5 * self._span
        scaled = self.shortened(rows) * most
        uniform = (rng.words(scaled.size) >> np.uint64(11)).reshape(scaled.shape) * 2.0**-53
        up = np.floor(np.clip(scaled, -most, most) + uniform)
        steps = np.minimum(up, math.ceil(most)).astype(np.int64)  # a sum of floats may reach the next whole number
        noisy = steps + discrete_gaussian(self.variance, steps.size, rng).reshape(steps.shape)
        if self.d > 1:
            return noisy
        outside = STEPS // 2 + self.reach
        return np.asarray(np.clip(noisy, -outside, outside))

    def check_reports(self, reports: ArrayLike) -> Steps:
        seen = np.asarray(reports)
        if seen.ndim != 2 or seen.shape[1] != self.d or seen.dtype.kind not in "iu":
            raise DataError(f"`reports` must be whole numbers (n, {self.d}), got shape {seen.shape}.")
        if np.any((seen > FURTHEST) | (seen < -FURTHEST)):
            raise DataError(f"`reports` must be grid steps of at most {FURTHEST:,}.")
        return seen.astype(np.int64)

    def tally(self, reports: Steps) -> Tallied:
        """The sum (d,) of the grid steps."""
        return np.asarray(reports.sum(axis=0))

    def invert(self, counts: Tallied, n: int) -> Reals:
        """Unbiased; of one coordinate to within 1e-9 of the radius."""
        return np.asarray(self.step * (counts / n))

    def error(self, n: int) -> float:
        r"""h sqrt(d (sigma^2 + 1/4) / n): noise, and at most 1/4 of rounding."""
        return self.coordinate_error(n) * math.sqrt(self.d)

    def coordinate_error(self, n: int) -> float:
        """The same for each single coordinate."""
        return self.step * math.sqrt((float(self.variance) + 0.25) / whole("n", n, least=1))

    @property
    def report_bits(self) -> int:
        return 64 * self.d

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(3, 1.0, 1.0), cls(1, 2.0, 3.0), cls(2, 1.0, 4.0, delta0=1e-3))


def gaussian_channel(*, steps: int, sigma: float) -> DenseChannel:
    r"""Discrete Gaussian noise on the whole numbers, of values 0 .. m, clamped to [-w, m + w].

    .. math:: \Pr[y \mid x] \propto e^{-(y - x)^2 / (2 \sigma^2)}, \qquad w = \lceil 6.2\, \sigma \rceil

    For `amplify` and `compose`: clamping happens on the device, and every report has mass under every value. Its
    local epsilon is pure, and large. Shuffled among many people it promises about what Laplace noise of the same
    variance does for sigma = m, and more than that for a larger sigma.

    Parameters
    ----------
    steps : int, 1 .. 64
        m: the interval in grid steps.
    sigma : float, above 0 and at most 1,000, grid steps
        The parameter of the noise, about its standard deviation.

    Notes
    -----
    A law, not a sampler: noise must be drawn from it exactly (Canonne, Kamath, Steinke 2020), not from rounded
    floating-point normal numbers.

    Examples
    --------
    >>> from dovetail.account.amplify import amplify
    >>> noise = gaussian_channel(steps=8, sigma=8.0)
    >>> round(noise.epsilon, 2), round(amplify(noise, n=100_000, delta=1e-6).epsilon, 4)
    (6.84, 0.013)

    Source
    ------
    docs/theory/several-questions.md; Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy.
    """
    m, width = whole("steps", steps, least=1, most=MOST_STEPS), positive("sigma", sigma)
    if width > 1000.0:
        raise refuse("sigma", "above 0 and at most 1,000 grid steps", sigma)
    reach, far = math.ceil(REACH * width), math.ceil(TAIL * width) + 1
    noise = np.arange(-far, far + 1)
    masses = np.exp(-0.5 * (noise / width) ** 2)
    masses /= masses.sum()
    places = [np.clip(x + noise, -reach, m + reach) + reach for x in range(m + 1)]
    return DenseChannel(np.array([np.bincount(at, masses, m + 2 * reach + 1) for at in places]))


def shift_delta(variance: float, epsilon: float) -> float:
    r"""delta of discrete Gaussian noise under a shift by 1 to `STEPS` grid steps, the largest, rounded up.

    .. math:: \delta = \sum_{z > \sigma^2 \epsilon / k - k / 2} \Pr[Z = z] - e^\epsilon \Pr[Z = z + k]

    The sum of what is positive, over 40 standard deviations; the rest is below 1e-300. A smaller shift counts as
    well: of little noise it may tell more.

    >>> f"{shift_delta(80.0, 4.0):.1e}"
    '4.7e-06'
    """
    far = math.ceil(TAIL * math.sqrt(variance)) + STEPS + 1
    z = np.arange(-far, far + 1, dtype=np.float64)
    masses = np.exp(-(z**2) / (2.0 * variance))
    masses /= masses.sum()
    shifts = np.arange(1, STEPS + 1)[:, None]
    losses = (shifts**2 + 2.0 * shifts * z) / (2.0 * variance)  # log Pr[Z = z] / Pr[Z = z + k]
    worst = float((masses * -np.expm1(np.minimum(epsilon - losses, 0.0))).sum(axis=1).max())
    return worst * (1.0 + 1e-9) + 1e-300


def largest_mu(epsilon: float, delta: float) -> float:
    r"""The largest mu, rounded down, such that mu-Gaussian privacy gives (epsilon, delta).

    A hair of epsilon and delta pays for the factor by which discrete noise differs from rounded continuous noise.

    >>> round(largest_mu(4.0, 1e-6), 3)
    0.838
    """
    epsilon, delta = epsilon * (1.0 - 1e-12), delta * (1.0 - 1e-12)
    low, high = 0.0, 1.0
    while gaussian_delta(epsilon, mu=high).upper <= delta:
        low, high = high, 2.0 * high
    while high - low > 1e-10 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gaussian_delta(epsilon, mu=middle).upper <= delta else (low, middle)
    return low
