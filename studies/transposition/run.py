r"""One swap is enough: Theorem 2.1's single-transposition process and slot-adaptive protocols against the clone pair.

Person 1's value goes to a uniform slot a, the displaced value to slot 1 (one swap), or all values are permuted
uniformly. Slot i then answers by binary randomized response whose question, a bit for every history z_1 .. z_{i-1},
is whether the report shall agree with the value or with its complement, and whose epsilon is epsilon0 or less. The
law of z_1 .. z_n is computed exactly, for every data set of the others.
"""

from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from studies.record import command, picture, record

from dovetail.account.clones import ClonePair

SEED = 21
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9)  # epsilon / epsilon0
EPSILON0S = (0.5, 1.0, 2.0, 4.0)

Protocol = NDArray[np.float64]  # (2^n - 1 histories, 2 values): probability of reporting a one
Law = NDArray[np.float64]  # (2^n,), over z in binary, the first slot the highest bit


def fixed(n: int, epsilon0: float) -> Protocol:
    """Everybody answers the same question."""
    truth = 1.0 / (1.0 + np.exp(-epsilon0))
    return np.tile([1.0 - truth, truth], (2**n - 1, 1))


def adaptive(n: int, epsilon0: float, rng: np.random.Generator) -> Protocol:
    """A random question and a random epsilon up to epsilon0 for every history; half of them at epsilon0 itself."""
    strength = epsilon0 * np.where(rng.random(2**n - 1) < 0.5, 1.0, rng.random(2**n - 1))
    truth = 1.0 / (1.0 + np.exp(-strength))
    says = np.where(rng.random(2**n - 1) < 0.5, truth, 1.0 - truth)
    return np.stack([1.0 - says, says], axis=1)


def slots_law(protocol: Protocol, values: tuple[int, ...]) -> Law:
    """The law of z_1 .. z_n when slot i holds values[i]."""
    law = np.ones(1)
    for depth, value in enumerate(values):
        one = protocol[2**depth - 1 : 2 ** (depth + 1) - 1, value]
        law = np.stack([law * (1.0 - one), law * one], axis=1).ravel()
    return law


def released(protocol: Protocol, people: tuple[int, ...], *, swap: bool) -> Law:
    """The law after one uniform swap with person 1, or after a uniform permutation."""
    orders = [swapped(people, a) for a in range(len(people))] if swap else sorted(set(permutations(people)))
    return np.asarray(np.mean([slots_law(protocol, order) for order in orders], axis=0))


def swapped(people: tuple[int, ...], a: int) -> tuple[int, ...]:
    """Person 1 and person a + 1 exchanged."""
    order = list(people)
    order[0], order[a] = order[a], order[0]
    return tuple(order)


def worst(protocol: Protocol, n: int, epsilon: float, *, swap: bool) -> float:
    """The largest delta over the others' values and both directions."""
    found = 0.0
    for others in product((0, 1), repeat=n - 1):
        zero, one = (released(protocol, (mine, *others), swap=swap) for mine in (0, 1))
        for p, q in ((zero, one), (one, zero)):
            found = max(found, float(np.maximum(p - np.exp(epsilon) * q, 0.0).sum()))
    return found


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write transposition.csv and .png: n <= 5 and 200 random protocols each in full, n <= 3 and 10 as a toy."""
    sizes, count = ((2, 3, 4, 5), 200) if full else ((2, 3), 10)
    rng = np.random.default_rng(SEED)
    rows = []
    for n, epsilon0 in product(sizes, EPSILON0S):
        protocols = {"one question": [fixed(n, epsilon0)]}
        protocols["adaptive"] = [adaptive(n, epsilon0, rng) for _ in range(count)]
        for share, (kind, cases), swap in product(SHARES, protocols.items(), (True, False)):
            epsilon = share * epsilon0
            exact = max(worst(case, n, epsilon, swap=swap) for case in cases)
            rows.append(
                {
                    "n": n,
                    "epsilon0": epsilon0,
                    "epsilon": epsilon,
                    "protocol": kind,
                    "mixing": "one swap" if swap else "permutation",
                    "protocols": len(cases),
                    "exact": exact,
                    "clones": ClonePair(epsilon0, n, "clones").delta(epsilon).upper,
                    "stronger_clones": ClonePair(epsilon0, n).delta(epsilon).upper,
                }
            )
    table = pl.DataFrame(rows)
    table.write_csv(out / "transposition.csv")
    picture(out / "transposition.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table; 1e-12 is rounding."""
    swap, mixed = (table.filter(pl.col("mixing") == name) for name in ("one swap", "permutation"))
    still = mixed.filter(pl.col("protocol") == "one question")
    return {
        "no protocol exceeds the clone pair": bool((table["exact"] <= table["clones"] + 1e-12).all()),
        "after a permutation one question never exceeds stronger clones": bool(
            (still["exact"] <= still["stronger_clones"] + 1e-12).all()
        ),
        "one swap does exceed stronger clones: they need the permutation": bool(
            (swap["exact"] > swap["stronger_clones"] * 1.001).any()
        ),
        "a whole permutation hides at least as well as one swap": bool(
            (mixed["exact"] <= swap["exact"] + 1e-12).all()
        ),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """delta against epsilon for the largest n: exact values below the bound."""
    n = table["n"].max()
    figure, axes = pyplot.subplots(1, 4, figsize=(14, 3.6))
    for axis, epsilon0 in zip(axes, EPSILON0S, strict=True):
        rows = table.filter((pl.col("n") == n) & (pl.col("epsilon0") == epsilon0))
        for (kind, mixing), line in rows.group_by("protocol", "mixing", maintain_order=True):
            axis.plot(line["epsilon"], line["exact"], marker="o", label=f"{kind}, {mixing}")
        first = rows.unique("epsilon", maintain_order=True)
        axis.plot(first["epsilon"], first["clones"], color="black", label="clones (bound)")
        axis.set(title=f"n = {n}, epsilon0 = {epsilon0:g}", xlabel="epsilon")
    axes[0].set_ylabel("delta")
    axes[0].legend(fontsize="x-small")
    return figure


if __name__ == "__main__":
    command(main, __doc__)
