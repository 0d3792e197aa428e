r"""Where one guess is best beforehand, leakage falls exponentially; where several tie, it falls like 1/sqrt(n).

k-ary randomized response with p = .7 on three values, one try, shuffled. The bound is Chernoff's,

    sum over a of max_v H_av^+ e^(-n I_a),  I_a = sup_t -ln sum_v q_v e^(t H_av),

H_av the advantage of another guess a over the best one when a report says v, q_v the chance of v.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.qif import save
from studies.record import command

from dovetail.core.channel import KRRChannel
from dovetail.leak.additive_leakage import chernoff_bound, normal_limit
from dovetail.leak.vulnerability import vulnerability

CHANNEL = KRRChannel.of(3, 0.7)
PRIORS = {"one guess is best": (0.5, 0.3, 0.2), "uniform": (1 / 3, 1 / 3, 1 / 3)}


def edges(prior: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """H (other guesses, reports) and q (reports,)."""
    joint = np.array(prior)[:, None] * CHANNEL.matrix()
    best, law = int(np.argmax(prior)), joint.sum(axis=0)
    return np.delete((joint - joint[best]) / law, best, axis=0), law


def case(name: str, n: int) -> dict[str, Any]:
    """One prior and one number of people; the bound and its exponent where one guess is best, else the limit."""
    prior, uniform = PRIORS[name], name == "uniform"
    seen = vulnerability(CHANNEL, n=n, prior=prior)
    return {
        "prior": name,
        "n": n,
        "leakage": seen.randomized_shuffled_leakage,
        "chernoff": None if uniform else chernoff_bound(*edges(prior), n),
        "limit": normal_limit(CHANNEL, n=n) if uniform else None,
    }


def main(full: bool, out: Path) -> pl.DataFrame:
    """60 n up to 7,000 in full, 5 up to 3,000 as a toy."""
    ns = np.unique(np.geomspace(1, 7_000, 60).round().astype(int)).tolist() if full else [1, 10, 100, 1_000, 3_000]
    table = pl.DataFrame([case(name, n) for name in PRIORS for n in ns], infer_schema_length=None)
    return save(table, out, __file__, full=full, draw=drawn)


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the claim says, seen in this table."""
    single, tied = (table.filter(prior=name).sort("n") for name in PRIORS)
    last, many = single.row(-1, named=True), tied.row(-1, named=True)
    exponents = [-math.log(last[column]) / last["n"] for column in ("chernoff", "leakage")]
    return {
        "where one guess is best the leakage stays below Chernoff's bound": bool(
            (single["leakage"] <= single["chernoff"]).all()
        ),
        "and its exponent is the bound's": exponents[0] <= exponents[1] <= 1.1 * exponents[0],
        "for the uniform prior it is mu_3 / sqrt(3 n) (p - s), to 1 % at the largest n": bool(
            abs(many["leakage"] / many["limit"] - 1.0) < 0.01
        ),
        "every further person hides the others a little more": bool(
            all((rows["leakage"].diff().drop_nulls() < 0.0).all() for rows in (single, tied))
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """Both priors with logarithmic leakage, against n and against log n."""
    figure, (axis, wide) = pyplot.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    single, tied = (table.filter(prior=name) for name in PRIORS)
    for panel in (axis, wide):
        panel.plot(single["n"], single["leakage"], color="C0", linestyle="-", label="prior .5 .3 .2")
        panel.plot(single["n"], single["chernoff"], color="C0", linestyle=":", label="its Chernoff bound")
        panel.plot(tied["n"], tied["leakage"], color="C1", linestyle="-", label="uniform prior")
        panel.plot(tied["n"], tied["limit"], color="C1", linestyle=":", label="its limit, 1/sqrt(n)")
        panel.set(yscale="log", xlabel="people n", ylim=(1e-30, 2.0))
    axis.set(ylabel="leakage V - V(prior)", xlim=(0, 1_000), title="k = 3, p = .7, shuffled")
    wide.set(xscale="log", title="the same against log n")
    axis.legend(fontsize="small")
    return figure


if __name__ == "__main__":
    command(main, __doc__)
