r"""Two mechanisms that are one to the strong adversary and two to the uninformed one.

Every record is a bit and e^epsilon = odds. M is randomized response on the last record. M' is the same where the
others' binary sum is 0 and inverts its odds where it is 1: randomized response on the parity of all records. For
few people the full channels from datasets to outputs are exact fractions; for many only the last person's own
channel is needed, since the others enter M' through the parity of their sum alone:

.. math:: \Pr(\text{even}) = \tfrac12 + \tfrac12 (1 - 2 b)^{n - 1}

for n - 1 others who hold a one with probability b each. Third comes a shuffle without randomizer beside the
publication of everything: equal to the strong adversary, far apart to the uninformed one.
"""

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
from studies.record import command, picture, record

from dovetail.core.channel import KRRChannel
from dovetail.leak.qif import inputs as prior
from dovetail.leak.qif.channels import cascade, deterministic, hidden_choice, identity
from dovetail.leak.qif.inputs import Numbers, attribute, normalize
from dovetail.leak.qif.shuffle_channels import exact_channel
from dovetail.leak.qif.vulnerability import posterior_vulnerability
from dovetail.leak.vulnerability import vulnerability

ODDS = (3, 9)
SHARES = (Fraction(1, 2), Fraction(2, 5), Fraction(1, 100))  # of ones among the others
EVEN = normalize([1, 1])

Row = dict[str, Any]


def datasets(n: int) -> list[tuple[int, ...]]:
    """All of {0, 1}^n, in the order of `leak.prior`."""
    return list(product((0, 1), repeat=n))


def mechanisms(n: int, odds: int) -> dict[str, Numbers]:
    """M and M' as exact channels (datasets, outputs)."""
    response = exact_channel(KRRChannel(2, keep=odds, lie=1))
    return {
        "M": cascade(deterministic(lambda x: x[-1], datasets(n)), response),
        "M'": cascade(deterministic(lambda x: sum(x) % 2, datasets(n)), response),
    }


def last_person(share: Fraction, *, n: int, odds: int) -> dict[str, Numbers]:
    """M and M' as channels of the last record alone, the others unknown: (2, 2)."""
    response = exact_channel(KRRChannel(2, keep=odds, lie=1))
    even = Fraction(1, 2) + (1 - 2 * share) ** (n - 1) / 2
    return {"M": response, "M'": hidden_choice(response, response[:, ::-1], weight=even)}


def unknown(share: Fraction, *, n: int, target: int) -> Numbers:
    """The others hold a one with this probability each, the target with one half."""
    others = normalize([share.denominator - share.numerator, share.numerator])
    return prior.product([EVEN if person == target else others for person in range(n)])


def known(values: tuple[int, ...], *, target: int) -> Numbers:
    """The others hold exactly these values."""
    people = [prior.point(2, secret=value) for value in values]
    return prior.product([*people[:target], EVEN, *people[target:]])


def small(n: int, odds: int) -> list[Row]:
    """Every adversary on the full channels."""
    rows = []
    for (name, channel), (person, target) in product(mechanisms(n, odds).items(), (("first", 0), ("last", n - 1))):
        gain = attribute([x[target] for x in datasets(n)])
        beliefs: list[tuple[str, Fraction | None, Numbers]] = [
            ("uninformed", share, unknown(share, n=n, target=target)) for share in SHARES
        ]
        beliefs += [("strong", None, known(values, target=target)) for values in datasets(n - 1)]
        rows += [
            row(name, n, odds, person, adversary, share, posterior_vulnerability(law, channel, gain=gain))
            for adversary, share, law in beliefs
        ]
    return rows


def large(n: int, odds: int) -> list[Row]:
    """The last person, the others unknown: her own channel is all that n enters."""
    return [
        row(name, n, odds, "last", "uninformed", share, posterior_vulnerability(EVEN, channel), method="own channel")
        for share in SHARES
        for name, channel in last_person(share, n=n, odds=odds).items()
    ]


def shuffle(n: int) -> list[Row]:
    """The same person in a shuffle of the bare values, and in a table of them."""
    channel, half = KRRChannel(2, keep=3, lie=1), SHARES[0]  # `shuffled` does not depend on the randomizer
    alone = vulnerability(channel, n=n).shuffled
    strong = vulnerability(channel, n=n, adversary="strong", known=(n - 1, 0)).shuffled
    told = posterior_vulnerability(EVEN, identity(2))
    values = [("shuffle", "uninformed", alone), ("shuffle", "strong", strong)]
    values += [("table", "uninformed", told), ("table", "strong", told)]
    return [row(name, n, 0, "last", adversary, half, value, method="shuffled") for name, adversary, value in values]


def row(
    name: str,
    n: int,
    odds: int,
    person: str,
    adversary: str,
    share: Fraction | None,
    value: Any,
    method: str = "full channel",
) -> Row:
    """One line of the table."""
    return {
        "mechanism": name,
        "n": n,
        "odds": odds,
        "target": person,
        "adversary": adversary,
        "ones": None if share is None else str(share),
        "vulnerability": float(value),
        "exact": str(value) if isinstance(value, Fraction) and value.denominator < 10**12 else "",
        "method": method,
    }


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write strong_or_uninformed.csv and .png: full channels to n = 7 and own channels to n = 10,000 in full."""
    few, many = (range(2, 8), (2, 3, 5, 10, 30, 100, 1000, 10_000)) if full else (range(2, 5), (2, 4, 100))
    rows = [line for n, odds in product(few, ODDS) for line in small(n, odds)]
    rows += [line for n, odds in product(many, ODDS) for line in large(n, odds)]
    rows += [line for n in (100, 1_000_000) for line in shuffle(n)]
    table = pl.DataFrame(rows)
    table.write_csv(out / "strong_or_uninformed.csv")
    picture(out / "strong_or_uninformed.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=0, full=full)
    return table


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What is claimed, seen in this table."""
    truth = pl.col("odds") / (pl.col("odds") + 1)
    close = (pl.col("vulnerability") - truth).abs() < 1e-12
    last = table.filter((pl.col("target") == "last") & (pl.col("method") != "shuffled"))
    strong, blind = last.filter(pl.col("adversary") == "strong"), last.filter(pl.col("adversary") == "uninformed")
    even, one, two = (blind.filter(condition) for condition in (pl.col("ones") == "1/2", M, MARKED))
    first = table.filter((pl.col("target") == "first") & (pl.col("adversary") == "strong"))
    shuffled = {(line["mechanism"], line["adversary"]): line["vulnerability"] for line in _largest(table)}
    return {
        "to the strong adversary both are one, whatever the others hold": _all(strong, close),
        "M tells the uninformed adversary as much as the strong one": _all(one, close),
        "M' tells her nothing where every value is equally likely": _all(
            even.filter(MARKED), pl.col("exact") == "1/2"
        ),
        "where the others' parity is not even, M' tells her something, and less than M": _all(
            two.filter((pl.col("ones") != "1/2") & (pl.col("method") == "full channel")),
            (pl.col("vulnerability") > 0.5) & (pl.col("vulnerability") < truth),
        ),
        "the own channel says what the full channel says": _agree(blind),
        "about any other person M tells the strong adversary nothing, M' as much as about the last": _all(
            first.filter(MARKED), close
        )
        and _all(first.filter(M), pl.col("exact") == "1/2"),
        "a shuffle hides nothing from the strong adversary and nearly everything from the uninformed one": (
            shuffled["shuffle", "strong"] == shuffled["table", "strong"] == 1.0
            and shuffled["shuffle", "uninformed"] < 0.501 < shuffled["table", "uninformed"]
        ),
    }


M, MARKED = pl.col("mechanism") == "M", pl.col("mechanism") == "M'"


def _all(rows: pl.DataFrame, condition: pl.Expr) -> bool:
    return rows.height > 0 and bool(rows.select(condition.all()).item())


def _largest(table: pl.DataFrame) -> list[Row]:
    rows = table.filter(pl.col("method") == "shuffled")
    return rows.filter(pl.col("n") == rows["n"].max()).to_dicts()


def _agree(blind: pl.DataFrame) -> bool:
    keys = ["mechanism", "n", "odds", "ones"]
    full, own = (blind.filter(pl.col("method") == method) for method in ("full channel", "own channel"))
    both = full.join(own, on=keys)
    same = (pl.col(name) == pl.col(f"{name}_right") for name in ("exact", "vulnerability"))
    return _all(both, pl.all_horizontal(same))


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """What the uninformed adversary learns about the last record, against n."""
    figure, axes = pyplot.subplots(figsize=(6.0, 3.8))
    rows = table.filter((pl.col("method") == "own channel") & (pl.col("odds") == ODDS[0])).sort("n")
    for (name, ones), line in rows.group_by("mechanism", "ones", maintain_order=True):
        if name == "M'" or ones == "1/2":
            label = "M, whatever the others hold" if name == "M" else f"M', share of ones among the others {ones}"
            axes.plot(line["n"], line["vulnerability"], marker="o", label=label)
    axes.set(xscale="log", xlabel="people", ylabel="chance of naming the last record", ylim=(0.48, 0.78))
    axes.legend(fontsize="small")
    return figure


if __name__ == "__main__":
    command(main, __doc__)
