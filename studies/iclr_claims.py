"""What is claimed of the curves between LDP and a uniform shuffle; a band is one standard deviation."""

import polars as pl
from polars import DataFrame


def ends(table: DataFrame, name: str) -> dict[str, bool]:
    """The two lines that bound the curves of a set: nothing lies below the one by more than two bands of each."""
    rows = table.filter(set=name)
    low, high = (rows.filter(mechanism=end).row(0, named=True) for end in ("LDP", "uniform"))
    return {
        f"{name}: nothing leaves more to learn than no shuffle": bool(
            (rows["lambda"] + 2.0 * (band(rows, "lambda") + low["lambda_sd"]) >= low["lambda"]).all()
        ),
        f"{name}: after a uniform shuffle the place tells nothing": high["lambda"] > high["lambda_overall"] - 0.03,
    }


def between(table: DataFrame, name: str) -> dict[str, bool]:
    """How the best mechanism goes from one line to the other."""
    rows = table.filter(set=name, mechanism="best").sort("group_size")
    return {
        f"{name}: rho falls with the group for the best mechanism": goes(rows, "rho", sign=-1),
        f"{name}: lambda rises with the group for the best mechanism": goes(rows, "lambda", sign=1),
    }


def compared(table: DataFrame, name: str) -> dict[str, bool]:
    """The best mechanism against the published one at equal alpha and groups."""
    ours, theirs = (
        table.filter(set=name, mechanism=mechanism).sort("alpha", "size") for mechanism in ("best", "published")
    )
    bands = band(ours, "lambda") + band(theirs, "lambda")
    return {
        f"{name}: best lambda is nowhere above the published mechanism's": bool(
            (ours["lambda"] <= theirs["lambda"] + bands).all()
        ),
        f"{name}: best lambda is below it, bands apart, somewhere": bool(
            (ours["lambda"] + bands < theirs["lambda"]).any()
        ),
    }


def band(rows: DataFrame, column: str) -> pl.Series:
    """Half the width of the band."""
    return rows[f"{column}_sd"]


def goes(rows: DataFrame, column: str, *, sign: int) -> bool:
    """Whether no step goes against `sign` by more than the bands, and the two ends are apart by more than theirs."""
    values, bands = sign * rows[column], band(rows, column)
    steps = values.diff().drop_nulls() + bands[1:] + bands[:-1]
    return bool((steps >= 0).all()) and values[-1] - bands[-1] > values[0] + bands[0]


def listed(table: DataFrame, name: str, *columns: str) -> str:
    """Means and standard deviations of a set as lines of a markdown table, without its head."""
    lines = []
    for row in table.filter(set=name).iter_rows(named=True):
        case = [plain(row["mechanism"]), *(plain(row[key]) for key in ("alpha", "size", "group_size", "theta_n"))]
        found = [f"{row[column]:.3f} ± {row[f'{column}_sd']:.3f}" for column in columns]
        lines.append("| " + " | ".join(case + found) + " |")
    return "\n".join(lines)


def plain(value: str | float | None) -> str:
    """Three digits or more, or a dash."""
    if isinstance(value, float):
        return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
    return value or "-"
