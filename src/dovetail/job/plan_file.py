"""A plan as a configuration for `run`: its numbers are set, what only the table knows is marked to be filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Table

from dovetail.core.checks import nearest
from dovetail.core.errors import ConfigError, OutputError
from dovetail.job.config import RunConfig
from dovetail.plan.dummies import DummiesPlan, UserDummiesPlan
from dovetail.plan.planner import CollectionPlan
from dovetail.report.plans import DUMMIES, TRUSTED
from dovetail.table.columns import Problem, Status, choose
from dovetail.table.data_section import RULES, DataSection, read_decisions, read_toml

_FILL_IN = "FILL IN"
HEAD = "A plan. `dovetail check TABLE --private COLUMN --plan THIS_FILE` makes the configuration of a table of it."
BY_HAND = "A plan. Replace what says FILL IN, then: dovetail run THIS_FILE"
MOST_LISTED = 20  # categories that are written out to be replaced


def plan_toml(plan: CollectionPlan, *, constant_values: bool = False) -> str:
    """The text of the configuration; `run` promises the same for the same n and number of categories.

    Where values never change, each person draws one answer for all rounds.
    """
    document = tomlkit.document()
    document.add(tomlkit.comment(HEAD))
    document.add("schema_version", tomlkit.item(1))
    document.add("mode", tomlkit.item("rehearsal"))
    document["mode"].comment('"rehearsal" knows the truth and is for trying; "release" is what leaves the house')
    document.add("data", _data(plan))
    chosen = {one.name: getattr(plan.randomizer, one.name) for one in plan.randomizer.settings()}
    settings = {name: value for name, value in chosen.items() if value is not None}
    document.add("randomize", _table(randomizer=plan.randomizer.name, epsilon=plan.randomizer.epsilon, **settings))
    if constant_values:
        document.add("memoize", _table(constant_values=True))
    document.add("shuffle", _shuffle(plan))
    document.add("promise", _promise(plan))
    return tomlkit.dumps(document)


def dummies_toml(plan: DummiesPlan | UserDummiesPlan) -> str:
    """The same for a plan that trusts the shuffler, or people together, with the noise."""
    document = tomlkit.document()
    document.add(tomlkit.comment(HEAD))
    document.add("schema_version", tomlkit.item(1))
    document.add("mode", tomlkit.item("rehearsal"))
    data = _table(path=f"{_FILL_IN}.csv", private=_FILL_IN)
    if plan.span is not None:
        digits = isinstance(plan, DummiesPlan) and plan.kind == "digits"
        for name, value in plan.measured.items():
            if name != "grid" or not digits:
                data.add(name, tomlkit.item(value))
        if not digits:
            data["grid"].comment(f"{plan.points:,} points; numbers are rounded to a neighbour at random")
    else:
        names = [f"{_FILL_IN} {place}" for place in range(1, min(plan.dummies.k, MOST_LISTED) + 1)]
        data.add("categories", tomlkit.item(names))
        data["categories"].comment(f"exactly {plan.dummies.k:,} values, known beforehand and not read off the table")
    document.add("data", data)
    promise = _table(trust=plan.central.trust, epsilon=plan.asked)
    if plan.central.delta > 0.0:
        promise.add("delta", tomlkit.item(plan.central.delta))
    promise["trust"].comment(TRUSTED[plan.central.trust])
    if isinstance(plan, DummiesPlan) and plan.kind != "geometric":
        promise.add("dummies", tomlkit.item(plan.kind))
        promise["dummies"].comment(DUMMIES[plan.kind])
    if isinstance(plan, DummiesPlan) and plan.rounds > 1:
        promise.add("rounds", tomlkit.item(plan.rounds))
        promise["rounds"].comment("releases about the same people that keep this epsilon together")
    if isinstance(plan, UserDummiesPlan):
        promise.add("honest", tomlkit.item(plan.central.honest_n))
        promise["honest"].comment(f"of {plan.n:,} people: so many answers and dummies have to arrive")
    document.add("promise", promise)
    return tomlkit.dumps(document)


def question_toml(config: Mapping[str, Any]) -> str:
    """The text of a configuration that a plan was made with."""
    document = tomlkit.document()
    document.add(tomlkit.comment(BY_HAND if config["data"]["path"].endswith(".parquet") else HEAD))
    for name, value in config.items():
        document.add(name, _table(**value) if isinstance(value, Mapping) else tomlkit.item(value))
    document["mode"].comment('"rehearsal" knows the truth and is for trying; "release" is what leaves the house')
    return tomlkit.dumps(document)


def read_plan(place: Path) -> dict[str, Any]:
    """The configuration that a plan wrote, without what it leaves open in [data].

    Raises
    ------
    ConfigError
        For any other file, and for plans of vectors and strings, which are completed by hand.
    """
    raw = read_toml(place)
    data = raw.get("data")
    if not isinstance(data, dict) or data.get("private") != _FILL_IN:
        raise ConfigError(f"{place}: is no plan as `dovetail plan --out` writes it.")
    if "vector" in raw or raw.get("question", {}).get("ask") == "vector":
        raise ConfigError(f"{place}: is a plan for vectors: write `path` and `private` into it.")
    return raw


def complete(text: str, plan: Mapping[str, Any], public: Sequence[str]) -> tuple[str, list[Problem]]:
    """A configuration of a table with the numbers of a plan, and what the plan leaves open."""
    if not plan:
        return text, []
    document = tomlkit.parse(text)
    data: Any = document["data"]
    for key in ("lower", "upper", "grid", "missing"):
        if key in plan["data"]:
            data[key] = plan["data"][key]
    for name in ("question", "randomize", "memoize", "shuffle", "promise"):
        if name in document:
            del document[name]
        if name in plan:
            document[name] = _filled(plan[name], public)
    open_ = [key for name in ("question", "shuffle") for key in _open(document.get(name, {}), name)]
    return tomlkit.dumps(document), [
        *(
            Problem(
                f"the plan leaves `{key}` open",
                "configuration",
                "name the column there",
                Status.STOPS,
                (choose("such as", **{key: "COLUMN"}),) if key.startswith("question.") else (),
            )
            for key in open_
        ),
        *_without_a_word(data, plan),
    ]


def _without_a_word(data: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of "no answer" as an answer, where the plan is for a mean that has no word for it."""
    if "lower" not in data or data.get("missing", "refuse") in RULES or "question" in plan:
        return
    own = {"randomize.randomizer": "krr"} if "randomize" in plan else {}
    own |= {"promise.dummies": "geometric"} if plan.get("promise", {}).get("dummies") == "digits" else {}
    for key, value in own.items():
        yield Problem(
            f"the plan is for a mean, and its `{key}` has no word for {data['missing']!r}", "configuration",
            "take another one, or plan --question nonresponse", Status.STOPS,
            (choose(f"take {value}", **{key: value}),),
        )  # fmt: skip


def _filled(section: Mapping[str, Any], public: Sequence[str]) -> Any:
    """A section of a plan, with the one public column as that of the groups."""
    table = tomlkit.table()
    for key, value in section.items():
        item = value
        if isinstance(value, Mapping):
            item = tomlkit.inline_table()
            item.update({k: public[0] if v == _FILL_IN and len(public) == 1 else v for k, v in value.items()})
        table.add(key, item)
    return table


def _open(section: Mapping[str, Any], name: str) -> Iterator[str]:
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _open(value, f"{name}.{key}")
        elif isinstance(value, str) and value.startswith(_FILL_IN):
            yield f"{name}.{key}"


def decide(text: str, lines: Sequence[str], *, name: str) -> str:
    """The configuration with these lines of TOML below [data]: keys are set, labels join those that are there.

    Keys of the configuration itself are set there, such as `mode`, or `randomize.epsilon` of another section.

    Raises
    ------
    ConfigError
        For what is no TOML or no key of either, and for a configuration without [data].
    """
    chosen, document = read_decisions(lines), tomlkit.parse(text)
    above = {key: chosen.pop(key) for key in [*chosen] if key in RunConfig.model_fields and key != "data"}
    for key in chosen:
        if key not in DataSection.model_fields:
            raise ConfigError(f"--set: [data] has no key `{key}`{nearest(key, list(DataSection.model_fields))}")
    for key, value in above.items():
        if isinstance(value, dict):
            document.setdefault(key, tomlkit.table()).update(value)
        else:
            document[key] = value
    data: Any = document.get("data")
    if not isinstance(data, dict):
        raise ConfigError(f"{name}: has no table [data].")
    for column, labels in chosen.pop("labels", {}).items():
        if "labels" not in data:
            data["labels"] = tomlkit.table(is_super_table=True)
        data["labels"].setdefault(column, tomlkit.table()).update(labels)
    if chosen.get("missing") in RULES and data.get("missing") in data.get("categories", []):
        data["categories"] = [one for one in data["categories"] if one != data["missing"]]
    for key, value in chosen.items():
        if isinstance(value, dict) and key in data:
            data[key].update(value)
        else:
            data[key] = value
    if "unconfirmed" in data:
        left = [key for key in data["unconfirmed"] if key not in chosen]
        data["unconfirmed"] = left
        if not left:
            del data["unconfirmed"]
    return tomlkit.dumps(document)


def write_dummies_plan(plan: DummiesPlan | UserDummiesPlan, place: Path) -> None:
    """Write `dummies_toml`."""
    _write(dummies_toml(plan), place)


def write_plan(plan: CollectionPlan, place: Path, *, constant_values: bool = False) -> None:
    """Write `plan_toml`."""
    _write(plan_toml(plan, constant_values=constant_values), place)


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
