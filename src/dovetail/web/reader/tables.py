"""What the page of a table shows: its columns, its problems with their remedies, and what may be chosen."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import QueryParams

from dovetail.pipeline.files.check.check_table import TableCheck, check_table
from dovetail.pipeline.files.check.column import Kind
from dovetail.pipeline.files.check.declared import Declared
from dovetail.pipeline.files.check.problem import many
from dovetail.web.planner.answers import Kept
from dovetail.web.reader.declare import EPSILON
from dovetail.web.reader.shelf import OpenedTable

TITLES = {
    "stops": "Decide before you run",
    "confirm": "Assumed; confirm before a release",
    "settled": "Settled by the configuration",
    "note": "Good to know",
}
_MOST_CHECKS = 12


class TableChecks:
    """Checks of opened tables, each made once for what was declared."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept[TableCheck]] = {}

    def __call__(self, table: OpenedTable, asked: Declared) -> TableCheck:
        """What is in the table, and what is wrong with it."""
        kept = self._kept.setdefault(
            table.id, Kept(lambda declared: check_table(table.path, declared), most=_MOST_CHECKS)
        )
        return kept(declared=asked)

    def forget(self, table: OpenedTable) -> None:
        """Drop what is known of a table."""
        self._kept.pop(table.id, None)


def check_view(table: OpenedTable, found: TableCheck, query: QueryParams, config: str) -> dict[str, Any]:
    """Values for the template; the texts of a table are escaped there."""
    asked = found.asked
    problems = [problem.document() for problem in found.problems]
    return {
        "rows": many(found.n, "row"),
        "columns": [
            {
                "name": name,
                "kind": str(column.kind),
                "distinct": f"{column.distinct:,}",
                "missing": f"{column.missing:,}",
                "private": name == asked.private,
                "public": name in asked.public,
                "fit": column.kind in (Kind.CATEGORY, Kind.NUMBER),
            }
            for name, column in found.columns.items()
        ],
        "problems": [(status, title, mine) for status, title in TITLES.items() if (mine := _of(problems, status))],
        "private": asked.private,
        "person": asked.person or "",
        "stops": found.stops,
        "categories": query.get("categories", "") or ", ".join(asked.categories or ()),
        "lower": query.get("lower", ""),
        "upper": query.get("upper", ""),
        "epsilon": query.get("epsilon", "") or EPSILON,
        "query": str(query),
        "config": config,
    }


def _of(problems: list[dict[str, Any]], status: str) -> list[dict[str, Any]]:
    return [problem for problem in problems if problem["status"] == status]
