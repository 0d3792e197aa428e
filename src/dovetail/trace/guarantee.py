"""What a protected trace promises: how much, about which times, against whom, and under which conditions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dovetail.core.display import upward
from dovetail.core.guarantee import SIMULATED
from dovetail.trace.loss import delta_of, epsilon_of, posterior_odds, renyi_loss

SOURCE = (
    "conditional inferential privacy, Meehan, Chaudhuri (2021), Location Trace Privacy Under Conditional Priors, "
    "AISTATS, theorem 5.3.3 of the dissertation in its exact form: mu-Gaussian differential privacy of every pair"
)

# what the number takes for granted; code enforces what it can, the rest must be read
CONDITIONS = (
    "Nothing is said for one fixed trace: probabilities are over the prior draw of the other locations and the "
    "noise.",
    "The adversary knows how traces move by the stated kernel, with any mean, and knows no other true location "
    "except "
    "one where the line for one sighting is quoted.",
    "No other function of the trace (mean, length, bounding box, speed), exact or noisy, is released beside it.",
    "Time stamps, their gaps and their number, start and end are public; motion-triggered logging reveals stops.",
    "Which times are secret depends on times alone, never on where somebody was.",
    "Kernel, variance, noise, floor and steps come from public or other people's data; no length-scale of this "
    "trace is "
    "published.",
    "The promise is about the location including the kernel's nugget, what no neighbour tells (receiver error); "
    "the place without it may be told more of.",
    "Each secret location moves by at most the radius, in metres of a local tangent plane; an adversary who "
    "knows that "
    "only roads or buildings are possible holds another prior.",
    "A further release about the same person is a further release: its loss is computed for all of them together, a "
    "repeat replays the stored noise.",
    "Map matching, clipping or rounding may read the release and public data, never the trace, and nobody draws "
    "again "
    "until it looks plausible.",
    "Noise has the operating system's entropy and a public grid; this is not proved for floating-point Gaussian "
    "noise.",
)


@dataclass(frozen=True)
class SecretLoss:
    """mu of one secret, for the adversary who knows the kernel.

    Parameters
    ----------
    places : tuple of int
        Points of the trace, from 0.
    start, end : float, seconds from the first point
    mu : float
        Upper bound.
    width : float, metres
        Twice the smallest posterior standard deviation over all directions; 0 where it was not computed.
    other_release : bool
        Whether another release about the same person promised it, within the radius of its own plan.
    """

    places: tuple[int, ...]
    start: float
    end: float
    mu: float
    width: float
    other_release: bool = False


@dataclass(frozen=True)
class TraceGuarantee:
    """mu-Gaussian differential privacy of every secret of one trace, for moves of at most `radius`.

    Parameters
    ----------
    mu : float
        The worst secret, for the adversary who knows the kernel; `math.inf` for none.
    radius : float, metres
    secrets : tuple of SecretLoss
    by_adversary : dict of str to float
        mu of the worst secret, for every adversary on the list.
    error : float, metres
        Root of the mean squared distance between true and released points.
    noise : str
        Name of the mechanism.
    releases : int
        How many releases about this person `mu` counts.

    Raises
    ------
    UnsupportedError
        Nowhere by itself; what has no guarantee is refused where the noise is designed.

    Examples
    --------
    >>> TraceGuarantee(mu=0.5, radius=100.0, secrets=(), by_adversary={}, error=300.0, noise="block").mu
    0.5
    """

    mu: float
    radius: float
    secrets: tuple[SecretLoss, ...]
    by_adversary: dict[str, float]
    error: float
    noise: str
    releases: int = 1
    conditions: tuple[str, ...] = CONDITIONS
    caveats: tuple[str, ...] = ()
    source: str = field(default=SOURCE)

    def epsilon(self, delta: float) -> float:
        """Epsilon of the pairs at this delta, nats."""
        return epsilon_of(delta, mu=self.mu)

    def delta(self, epsilon: float) -> float:
        """Delta of the pairs at this epsilon."""
        return delta_of(epsilon, mu=self.mu)

    def renyi(self, order: float) -> float:
        """The paper's loss of this order."""
        return renyi_loss(order, mu=self.mu)

    def odds(self, chance: float) -> float:
        """Posterior odds over prior odds of two places within the radius, exceeded with this chance."""
        return posterior_odds(chance, mu=self.mu)

    def drawn_from(self, provenance: str) -> TraceGuarantee:
        """This guarantee for randomness of the given provenance; simulation takes it away and says so."""
        return self if provenance == "device" else replace(self, caveats=(*self.caveats, SIMULATED))

    def lines(self) -> tuple[str, ...]:
        """What is printed: the number, the list of adversaries, the conditions."""
        count = len(self.secrets)
        what = "the secret" if count == 1 else f"each of {count:,} secrets"
        return (
            f"{what}: {upward(self.mu)}-Gaussian differential privacy for places within {self.radius:g} m "
            f"({self.releases} release{'s' if self.releases > 1 else ''} counted)",
            *(f"{name}: mu {upward(value)}" for name, value in self.by_adversary.items()),
            *self.conditions,
            *self.caveats,
        )
