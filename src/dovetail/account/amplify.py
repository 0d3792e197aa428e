"""What a shuffled collection promises: the central guarantee, by a theorem that covers it."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.account.attack_lower import attack_lower
from dovetail.account.clones import MOST_PEOPLE, ClonePair, Kind
from dovetail.core.bracket import Bracket
from dovetail.core.channel import Channel
from dovetail.core.checks import privacy_budget, real, refuse, whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import Randomizer

SOURCES: dict[Kind, str] = {
    "stronger clones": (
        "Blanket of max(R0, R1): stronger-clone pair for one fixed pure randomizer "
        "(docs/theory/stronger-clones.md), after Feldman, McMillan, Talwar (2022)"
    ),
    "clones": (
        "Feldman, McMillan, Talwar (2021), Hiding Among the Clones, Theorem 2.1 of the workshop version, "
        "evaluated numerically"
    ),
}


def amplify(
    randomizer: Randomizer | Channel | float,
    *,
    n: int,
    delta: float,
    honest: int | None = None,
    adaptive: bool = False,
) -> CentralDP:
    r"""The central guarantee of n reports after a uniform shuffle.

    .. math:: \epsilon = \min\{\epsilon_0, \; \inf\{e : \delta_{\mathrm{pair}}(e; \epsilon_0, n) \le \delta\}\}

    Everybody uses this one randomizer, once, independently, and the batch is permuted uniformly before anybody
    looks. When people bring their own randomizers nothing here applies: a report can then name its sender.

    Parameters
    ----------
    randomizer : Randomizer, Channel, or epsilon0 as a float above 0 and at most 700, nats
        Only its pure local guarantee is used.
    n : int, 1 .. 1e12
        Valid reports of distinct people in the batch.
    delta : float, at least 0, below 1
        At 0 shuffling amplifies nothing and epsilon0 is returned.
    honest : int, 1 .. n, optional
        How many of these people are assumed to follow the protocol and keep their reports secret; default all.
    adaptive : bool
        Whether a person's randomizer may be chosen after seeing the reports before hers (the same promise epsilon0,
        values in random order); the clone pair holds then, stronger clones are not used.

    Raises
    ------
    UnsupportedError
        When the local guarantee has delta above 0: these theorems are for pure local privacy.

    Examples
    --------
    >>> promise = amplify(1.0, n=10_000, delta=1e-6, honest=5_000)
    >>> promise.method, round(promise.all, 4), round(promise.honest, 4)
    ('stronger clones', 0.0432, 0.0627)

    Source
    ------
    `SOURCES`, quoted in the guarantee.
    """
    epsilon0, caveats = _local(randomizer)
    people = whole("n", n, least=1, most=MOST_PEOPLE)
    trusted = people if honest is None else whole("honest", honest, least=1, most=people)
    kind: Kind = "clones" if adaptive else "stronger clones"
    numeric = ClonePair(epsilon0, trusted, kind).epsilon(_share(delta))
    everybody = numeric if trusted == people else ClonePair(epsilon0, people, kind).epsilon(delta)
    return CentralDP(
        all=min(everybody.upper, numeric.upper),
        honest=numeric.upper,
        colluding=epsilon0,
        delta=float(delta),
        n=people,
        honest_n=trusted,
        method=kind,
        source=SOURCES[kind],
        numeric=numeric,
        attack_lower=min(attack_lower(epsilon0, trusted, delta, near=numeric.upper), numeric.upper),
        caveats=caveats,
    )


def amplify_groups(randomizer: Randomizer | Channel | float, *, sizes: Iterable[int], delta: float) -> CentralDP:
    """The central guarantee when reports are shuffled uniformly within public groups, each on its own.

    Two neighbouring collections differ in one group, and the other groups' reports do not depend on the difference,
    so a person is protected by her own group's size. The smallest group is quoted; alone in a group, a person keeps
    her local epsilon.

    Parameters
    ----------
    randomizer : as in `amplify`
    sizes : whole numbers (groups,), at least 1 each
        Honest reports per group.
    delta : float, at least 0, below 1

    Examples
    --------
    >>> amplify_groups(1.0, sizes=[500, 1], delta=1e-6).epsilon
    1.0
    """
    counts = [whole("sizes", size, least=1, most=MOST_PEOPLE) for size in sizes]
    if not counts:
        raise refuse("sizes", "at least one group", counts)
    smallest = min(counts)
    if smallest > 1:
        return amplify(randomizer, n=smallest, delta=delta)
    epsilon0, caveats = _local(randomizer)
    return CentralDP(
        all=epsilon0,
        honest=epsilon0,
        colluding=epsilon0,
        delta=_share(delta),
        n=1,
        honest_n=1,
        method="local",
        source="a group of one is not shuffled: the local guarantee remains",
        numeric=Bracket(epsilon0, epsilon0),
        attack_lower=attack_lower(epsilon0, 1, delta),
        caveats=caveats,
    )


def _local(randomizer: Randomizer | Channel | float) -> tuple[float, tuple[str, ...]]:
    """epsilon0 and what takes the promise away."""
    if isinstance(randomizer, Randomizer):
        promise = randomizer.guarantee
        if promise.delta > 0.0:
            raise UnsupportedError(
                f"Amplification by clones is proved for pure local privacy; this randomizer has delta "
                f"{promise.delta:g}. Use a pure randomizer; its local guarantee also holds after shuffling."
            )
        return privacy_budget("epsilon0", promise.epsilon), promise.caveats
    if isinstance(randomizer, Channel):
        return privacy_budget("epsilon0", randomizer.epsilon), ()
    return privacy_budget("epsilon0", randomizer), ()


def _share(delta: float) -> float:
    if not 0.0 <= real("delta", delta) < 1.0:
        raise refuse("delta", "at least 0 and below 1", delta)
    return float(delta)
