"""The rounds of a stream as tables and as a chart: thinned to what an eye can read, which each caption says."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING
from typing import Any, NamedTuple

from dovetail.estimate.mean import in_range
from dovetail.report.number_format import ABSENT, Document, Unit, missing_reason, percent, upward
from dovetail.report.tables import Table, median_error, shows_truth

MOST_POINTS = 120  # of the chart
MOST_ROWS = 12  # of the table

UNIT = Unit.of("mean")


class RoundBin(NamedTuple):
    """Consecutive rounds put together: the mean of their estimates, as a window query would answer it.

    `value` and `interval` are what is possible of that, `unbiased` is the mean itself.
    """

    first: int
    last: int
    rounds: int
    unbiased: float
    value: float
    error: float
    interval: tuple[float, float]
    truth: float | None
    n: int
    absent: int
    held_back: int

    @property
    def middle(self) -> float:
        """The round at which a chart draws it."""
        return (self.first + self.last) / 2

    @property
    def known(self) -> bool:
        """True if any of its rounds has an estimate."""
        return math.isfinite(self.value)

    @property
    def label(self) -> str:
        """Its stamps."""
        return f"{self.first:,}" if self.first == self.last else f"{self.first:,} to {self.last:,}"


def bin_rounds(document: Document, most: int) -> list[RoundBin]:
    """The series up to its last estimate, in at most so many bins of equally many rounds.

    The interval of a bin has the half width of its standard error, sqrt(sum se^2) / k, and of its mean bias bound, in
    the proportion that single rounds have: noise of different rounds is independent.
    """
    series = document["rounds"]["series"]
    count = _until(series)
    size = max(1, math.ceil(count / most))
    return [_bin(series, range(start, min(start + size, count)), document) for start in range(0, count, size)]


def _until(series: Document) -> int:
    """Rounds up to the last one with an estimate; all of them where none has one."""
    known = [place for place, value in enumerate(series["value"]) if value is not None]
    return known[-1] + 1 if known else len(series["value"])


def _bin(series: Document, places: range, document: Document) -> RoundBin:
    known = [place for place in places if series["value"][place] is not None]
    value = error = reach = math.nan
    if known:
        value = math.fsum(series["value"][place] for place in known) / len(known)
        errors = [float(series["standard_error"][place]) for place in known]
        error = math.sqrt(math.fsum(part * part for part in errors)) / len(known)
        bias = math.fsum(float(series["bias_bound"][place]) for place in known) / len(known)
        reach = bias + error * _quantile(series, known[0])
    possible, interval = _possible(document, value, (value - reach, value + reach))
    truth = [series["truth"][place] for place in known] if "truth" in series and shows_truth(document) else []
    total = {name: sum(series[name][place] for place in places) for name in ("n", "absent", "held_back")}
    return RoundBin(
        series["t"][places[0]],
        series["t"][places[-1]],
        len(places),
        value,
        possible,
        error,
        interval,
        math.fsum(truth) / len(truth) if truth else None,
        **total,
    )


def _possible(document: Document, value: float, interval: tuple[float, float]) -> tuple[float, tuple[float, float]]:
    """Clip to the declared range; as it is in a document that does not say the range."""
    lower, upper = (document["collection"].get(name) for name in ("lower", "upper"))
    if lower is None or upper is None or math.isnan(value):
        return value, interval
    return in_range(value, interval, (float(lower), float(upper)))


def _quantile(series: Document, place: int) -> float:
    """Standard errors in a half width, read off a round."""
    low, high = (series["unbiased_interval"] if "unbiased_interval" in series else series["interval"])[place]
    error = float(series["standard_error"][place])
    return ((high - low) / 2 - float(series["bias_bound"][place])) / error if error else 0.0


def series_table(document: Document) -> Table:
    """Estimates round by round, or of several rounds together where there are many."""
    bins = bin_rounds(document, MOST_ROWS)
    level, error = percent(document["estimates"]["level"]), _typical(bins)
    truth = any(each.truth is not None for each in bins)
    columns: tuple[str, ...] = ("round" if bins[0].rounds == 1 else "rounds", "estimate", f"{level} interval")
    beside = _asks_unbiased(document)
    columns += (("unbiased",) if beside else ()) + (("truth",) if truth else ()) + ("reports", "absent", "held back")
    rows = tuple(
        (
            each.label,
            *_cells(each.value, each.interval, error, each.known),
            *((UNIT(each.unbiased, error) if each.known else ABSENT,) if beside else ()),
            *((UNIT(each.truth, error) if each.truth is not None else ABSENT,) if truth else ()),
            *(f"{number:,}" for number in (each.n, each.absent, each.held_back)),
        )
        for each in bins
    )
    notes = [*_moved([(each.unbiased, each.value) for each in bins if each.known], error)]
    if bins[0].rounds > 1:
        notes.append(f"Each row is the mean of up to {bins[0].rounds:,} rounds; report.json has them one by one.")
    rest = document["rounds"]["series"]["t"][_until(document["rounds"]["series"]) :]
    if rest:
        notes.append(f"From round {rest[0]:,} to {rest[-1]:,} no device that had a value had budget left.")
    return Table(columns, rows, tuple(notes))


def window_table(document: Document) -> Table:
    """Answers to window queries; no rows where none was asked for."""
    windows = document["windows"]
    if missing_reason(windows) is not None:
        return Table((), (), (f"Windows do not apply: {missing_reason(windows)}",))
    rows = windows["rows"]
    error = median_error([{"standard_error": [row["standard_error"]]} for row in rows])
    truth = shows_truth(document) and any("truth" in row for row in rows)
    columns: tuple[str, ...] = ("window", "estimate", f"{percent(windows['level'])} interval", "noise error")
    beside = _asks_unbiased(document)
    columns += (("unbiased",) if beside else ()) + (("truth",) if truth else ()) + ("reports", "missing rounds")
    known = [row for row in rows if missing_reason(row["value"]) is None]
    return Table(
        columns,
        tuple(
            (
                f"{row['from']:,} to {row['to']:,}",
                *_cells(_shown(row), row["interval"], error, row in known),
                UNIT(row["standard_error"], error, ROUND_CEILING),
                *((UNIT(row["value"], error) if row in known else ABSENT,) if beside else ()),
                *((UNIT(row["truth"], error) if "truth" in row else ABSENT,) if truth else ()),
                f"{row['n']:,}",
                missing_rounds(row["missing"]),
            )
            for row in rows
        ),
        (
            f"The mean of {windows['width']:,} rounds each, counted back from the last; missing rounds are left out.",
            *_moved([(row["value"], _shown(row)) for row in known], error),
        ),
    )


def _shown(row: Document) -> Any:
    return row.get("possible", row["value"])  # a document of before has none


def _asks_unbiased(document: Document) -> bool:
    """True if [estimate] asks for what is unbiased beside what is possible."""
    return bool((document["config"].get("estimate") or {}).get("unbiased", False))


def _moved(pairs: Sequence[tuple[float, float]], error: float) -> list[str]:
    """Says where what is shown is not what was unbiased, and how far that biases it: see `in_range`."""
    moved = [pair for pair in pairs if UNIT(pair[0], error) != UNIT(pair[1], error)]
    if not moved:
        return []
    low, high = (UNIT(end([pair[0] for pair in moved]), error) for end in (min, max))
    return [
        f"{len(moved):,} of {len(pairs):,} are shown at the nearest end of the declared range, where the mean must "
        f"lie; unbiased they are {low} to {high}, `value` in report.json ([estimate] unbiased = true shows them). "
        "Near an end this biases what is shown inwards, by at most half the noise error; intervals cover no less."
    ]


def missing_rounds(stamps: Sequence[int]) -> str:
    """Name missing rounds where there are few; else count them."""
    return ", ".join(f"{t:,}" for t in stamps) or "none" if len(stamps) <= 3 else f"{len(stamps):,} rounds"


def budget_table(document: Document) -> Table:
    """Table of the rounds: their cost, and what came of them."""
    rounds = document["rounds"]
    cap = "none" if missing_reason(rounds["cap"]) is not None else f"ε = {upward(rounds['cap'])}"
    central = rounds["central_of_a_round"]
    after = ABSENT if missing_reason(central) is not None else f"ε = {upward(central['epsilon'])}"
    both = document["central"]
    together = ABSENT if missing_reason(both) is not None else f"ε = {upward(both['epsilon'])}"
    rows = (
        ("local: reports of one device", f"ε = {upward(rounds['local_of_a_round']['epsilon'])}",
         f"ε = {upward(rounds['largest_spent'])}"),
        ("central: the shuffled batches", after, together),
        ("order: who sent which report", f"α = {upward(rounds['alpha_of_a_round'])}",
         f"α = {upward(rounds['alpha_of_all_rounds'])}"),
    )  # fmt: skip
    notes = [
        f"Budget of a device: {cap}. The device that spent most: ε = {upward(rounds['largest_spent'])}; "
        f"{rounds['devices_at_cap']:,} of {rounds['devices']:,} devices have reached the cap.",
        *(
            f"No central bound for one round: {missing_reason(central)}."
            for _ in range(missing_reason(central) is not None)
        ),
        *(
            f"No central bound for all rounds: {missing_reason(both)}."
            for _ in range(missing_reason(both) is not None)
        ),
        _counts(rounds),
        *_people(rounds),
    ]
    return Table(("promise", "one round", "all rounds"), rows, tuple(notes))


def _counts(rounds: Document) -> str:
    gaps = rounds["missing"] + rounds["silent"]
    stamps = f"{gaps:,} of {rounds['last'] - rounds['first'] + 1:,} rounds have no estimate"
    return (
        f"{rounds['reports']:,} reports in {rounds['rounds']:,} rounds; {rounds['absent']:,} times a device was "
        f"absent, {rounds['held_back']:,} times it was held back because its budget was spent{_turns(rounds)}. "
        f"{stamps}."
    )


def _people(rounds: Document) -> list[str]:
    """Say what n counts in a round, for either guarantee."""
    counted = [n for n in rounds["series"].get("central_n", []) if n is not None]
    if not counted:
        return []
    span = f"{min(counted):,}" if min(counted) == max(counted) else f"{min(counted):,} to {max(counted):,}"
    return [
        f"In a round the central promise counts {span} honest reports that were really sent together; the local one "
        "counts the reports of one device, no matter who else sends."
    ]


def _turns(rounds: Document) -> str:
    resting = rounds.get("resting", 0)  # a document of before has none
    return f", {resting:,} times it was not its turn" if resting else ""


def _cells(value: Any, interval: Any, error: float, known: bool) -> tuple[str, str]:
    return (UNIT(value, error), UNIT.interval(interval, error)) if known else (ABSENT, ABSENT)


def _typical(bins: Sequence[RoundBin]) -> float:
    return median_error([{"standard_error": [each.error for each in bins if each.known]}])
