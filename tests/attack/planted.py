"""Closed forms of attacks on planted data."""

from scipy.stats import binom


def planted(agree: float, keep: float, *, town: int) -> float:
    """Success of the vote of a town of 2t + 1 people, each of the town's type with probability `agree`.

    Each report names the type with probability b = agree keep + (1 - agree) (1 - keep). With B of the 2t others and
    the own report, the type wins from t + 1 reports on.
    """
    t, b = town // 2, agree * keep + (1 - agree) * (1 - keep)
    enough, more = binom.sf(t - 1, 2 * t, b), binom.sf(t, 2 * t, b)
    same, other = keep * enough + (1 - keep) * more, (1 - keep) * enough + keep * more
    return float(agree * same + (1 - agree) * (1 - other))
