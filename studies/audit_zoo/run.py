"""The zoo: mechanisms with a fault and correct ones, all audited as black boxes at a false-alarm rate of 1e-9.

Without --full the faults that need at most 20,000 calls, and a fifth of the calls for the correct ones.
"""

from pathlib import Path
from time import process_time
from typing import Any

import polars as pl
from studies.audit_zoo.boxes import CORRECT, FAULTS, Row
from studies.qif import save
from studies.record import command

from dovetail.audit.claim import audit_claim
from dovetail.audit.game import audit_mechanism
from dovetail.cli.progress import each
from dovetail.core.entropy import simulation

FULL_CALLS, TOY_CALLS, EASY = 60_000, 4_000, 20_000
SEED = 42


def audited(row: Row, kind: str, calls: int) -> dict[str, Any]:
    """One row of the table."""
    began = process_time()
    found = audit_mechanism(
        row.make(), row.inputs, epsilon=row.epsilon, delta=row.delta, calls=calls, devices=row.devices,
        rng=simulation(SEED),
    )  # fmt: skip
    return {
        "mechanism": row.name, "kind": kind, "source": row.source, "claim": row.epsilon, "delta": row.delta,
        "calls": calls, "alarm": found.alarm, "lower": found.lower, "event": found.event,
        "blind": found.lower < row.epsilon / 2, "seconds": process_time() - began,
    }  # fmt: skip


def main(full: bool, out: Path) -> pl.DataFrame:
    """One row for each mechanism."""
    asked = [(row, "fault", row.calls) for row in FAULTS if full or row.calls <= EASY]
    asked += [(row, "correct", FULL_CALLS if full else TOY_CALLS) for row in CORRECT]
    rows = [audited(*one) for one in each(asked, "audit the zoo")]
    return save(pl.DataFrame(rows, infer_schema_length=None), out, __file__, full=full, draw=drawn)


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the claim says, seen in this table; the last line is a claim that no number of calls helps with."""
    faults, correct = (table.filter(kind=kind) for kind in ("fault", "correct"))
    return {
        "every fault raises an alarm": bool(faults["alarm"].all()) and faults.height >= 8,
        "no correct mechanism does": not correct["alarm"].any() and correct.height >= 20,
        "no lower end of a correct mechanism is above its claim": bool((correct["lower"] <= correct["claim"]).all()),
        "the classic Gaussian at epsilon 20, which no calls refute, is refuted as a claim": audit_claim(
            epsilon=20.0, delta=1e-5, noise="gaussian", scale=0.2422
        ).verdict
        == "impossible",
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """What shows of each claim: above 1 is an alarm."""
    rows = table.sort("kind", pl.col("lower") / pl.col("claim"), descending=[True, False])
    figure, axis = pyplot.subplots(figsize=(8, 0.19 * rows.height + 1.0))
    for kind, color in (("fault", "C3"), ("correct", "C0")):
        some = rows.with_row_index("place").filter(kind=kind)
        axis.barh(some["place"], some["lower"] / some["claim"], color=color, label=kind)
    axis.set_yticks(range(rows.height), rows["mechanism"], fontsize=7)
    axis.axvline(1.0, color="black", linewidth=0.8)
    axis.set(xlabel="lower end on epsilon over the claim, false alarms below 1e-9", xscale="symlog", xlim=(0, None))
    axis.legend(fontsize="small")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)
