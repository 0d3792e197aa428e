"""A plan as a configuration for `run`: its numbers are set, what only the table knows is marked to be filled in."""

from __future__ import annotations

from pathlib import Path

import tomlkit
from tomlkit.items import Table

from dovetail.core.errors import OutputError
from dovetail.plan.dummies import DummiesPlan, UserDummiesPlan
from dovetail.plan.planner import CollectionPlan
from dovetail.report.plans import TRUSTED

_FILL_IN = "FILL IN"
MOST_LISTED = 20  # categories that are written out to be replaced


def plan_toml(plan: CollectionPlan) -> str:
    """The text of the configuration; `run` promises the same for the same n and number of categories."""
    document = tomlkit.document()
    document.add(tomlkit.comment("A plan. Replace what says FILL IN, then: dovetail run THIS_FILE"))
    document.add("schema_version", tomlkit.item(1))
    document.add("mode", tomlkit.item("rehearsal"))
    document["mode"].comment('"rehearsal" knows the truth and is for trying; "release" is what leaves the house')
    document.add("data", _data(plan))
    chosen = {one.name: getattr(plan.randomizer, one.name) for one in plan.randomizer.settings()}
    settings = {name: value for name, value in chosen.items() if value is not None}
    document.add("randomize", _table(randomizer=plan.randomizer.name, epsilon=plan.epsilon0, **settings))
    document.add("shuffle", _shuffle(plan))
    document.add("promise", _promise(plan))
    return tomlkit.dumps(document)


def dummies_toml(plan: DummiesPlan | UserDummiesPlan) -> str:
    """The same for a plan that trusts the shuffler, or people together, with the noise."""
    document = tomlkit.document()
    document.add(tomlkit.comment("A plan. Replace what says FILL IN, then: dovetail run THIS_FILE"))
    document.add("schema_version", tomlkit.item(1))
    document.add("mode", tomlkit.item("rehearsal"))
    data = _table(path=f"{_FILL_IN}.csv", private=_FILL_IN)
    if plan.span is not None:
        for name, value in plan.measured.items():
            data.add(name, tomlkit.item(value))
        data["grid"].comment(f"{plan.dummies.k:,} points; numbers are rounded to a neighbour at random")
    else:
        names = [f"{_FILL_IN} {place}" for place in range(1, min(plan.dummies.k, MOST_LISTED) + 1)]
        data.add("categories", tomlkit.item(names))
        data["categories"].comment(f"exactly {plan.dummies.k:,} values, known beforehand and not read off the table")
    document.add("data", data)
    promise = _table(trust=plan.central.trust, epsilon=plan.asked, delta=plan.central.delta)
    promise["trust"].comment(TRUSTED[plan.central.trust])
    if isinstance(plan, UserDummiesPlan):
        promise.add("honest", tomlkit.item(plan.central.honest_n))
        promise["honest"].comment(f"of {plan.n:,} people: so many answers and dummies have to arrive")
    document.add("promise", promise)
    return tomlkit.dumps(document)


def write_dummies_plan(plan: DummiesPlan | UserDummiesPlan, place: Path) -> None:
    """Write `dummies_toml`."""
    _write(dummies_toml(plan), place)


def write_plan(plan: CollectionPlan, place: Path) -> None:
    """Write `plan_toml`."""
    _write(plan_toml(plan), place)


def _write(text: str, place: Path) -> None:
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{place}: {error.strerror or 'cannot be written'}.") from None


def _table(**values: object) -> Table:
    table = tomlkit.table()
    for name, value in values.items():
        table.add(name, tomlkit.item(value))
    return table


def _data(plan: CollectionPlan) -> Table:
    asked = plan.requirements
    table = _table(path=f"{_FILL_IN}.csv", private=_FILL_IN)
    table["path"].comment("the table, beside this file: CSV or Parquet")
    table["private"].comment("the column that nobody may learn about one person")
    if asked.k is None:
        table.add("lower", tomlkit.item(asked.lower))
        table.add("upper", tomlkit.item(asked.upper))
        grid = getattr(plan.randomizer, "grid", asked.grid)
        if grid is not None:
            table.add("grid", tomlkit.item(grid))
    else:
        names = [f"{_FILL_IN} {place}" for place in range(1, min(asked.k, MOST_LISTED) + 1)]
        table.add("categories", tomlkit.item(names))
        table["categories"].comment(f"exactly {asked.k:,} values, known beforehand and not read off the table")
    if asked.smallest_group is not None:
        table.add("public", tomlkit.item([_FILL_IN]))
        table["public"].comment("the column that says who is in which group")
    return table


def _shuffle(plan: CollectionPlan) -> Table:
    table = _table(shuffler=plan.shuffler)
    people = plan.requirements.smallest_group
    if people is not None:
        groups = tomlkit.inline_table()
        groups.update({"labels": _FILL_IN, "radius": 0})
        table.add("groups", groups)
        table["groups"].comment(f"the plan holds while the smallest group has {people:,} people")
    return table


def _promise(plan: CollectionPlan) -> Table:
    asked = plan.requirements
    table = _table(delta=asked.delta)
    if asked.honest < asked.n:
        table.add("honest", tomlkit.item(asked.honest))
    table["delta"].comment(f"planned for {asked.n:,} people: central epsilon {plan.epsilon!r}")
    return table
