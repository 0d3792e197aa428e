"""`dovetail account` for people in public groups: what each group is promised, and what everybody is."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.console.options import as_whole
from dovetail.cli.console.output import foreign
from dovetail.core.display.losses import downward
from dovetail.core.errors import ParameterError

if TYPE_CHECKING:
    from dovetail.account.amplify import Subject

FORM = "NAME=PEOPLE or NAME=PEOPLE,HONEST, such as town=20000,15000"
COLUMNS = ("name", "n", "honest")


@dataclass(frozen=True)
class Groups:
    """Public groups that are shuffled by themselves."""

    group: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead of --n: one public group (a class, an atom, a key), NAME=PEOPLE or NAME=PEOPLE,HONEST, "
            "once for each. It is promised what a shuffle of it alone promises."
        ),
    ] = None
    groups_file: Annotated[
        Path | None, typer.Option(help="Instead of --group: CSV with the columns name, n and, if wanted, honest.")
    ] = None

    @property
    def given(self) -> bool:
        """Whether groups are asked about."""
        return bool(self.group) or self.groups_file is not None

    def sizes(self) -> dict[str, tuple[int, int]]:
        """People of each group, and those assumed honest."""
        from dovetail.core.checks import whole

        if self.group and self.groups_file is not None:
            raise ParameterError("give --group or --groups-file, not both.")
        rows = _read(self.groups_file) if self.groups_file is not None else [_row(text) for text in self.group or []]
        found: dict[str, tuple[int, int]] = {}
        for name, people, honest in rows:
            if not name or name in found:
                raise ParameterError(f"each group needs a name of its own, got {name!r}.")
            n = whole(f"n of {name}", _number(people), least=1)
            found[name] = n, n if not honest else whole(f"honest of {name}", _number(honest), least=1, most=n)
        return found


def groups_document(subject: Subject, epsilon0: float, groups: Groups, *, delta: float) -> dict[str, Any]:
    """The JSON document: every group with its guarantee, the weakest of which all people have."""
    from dovetail.account.clones.binomial_tail import without_compiled_loops
    from dovetail.account.composition.personal import ShuffledGroup, personal_guarantees
    from dovetail.core.verdict import judge_central, warnings_of

    sizes = groups.sizes()
    parts = {name: ShuffledGroup(subject, n, honest) for name, (n, honest) in sizes.items()}
    with without_compiled_loops():
        found = personal_guarantees(parts, delta=delta)
    smallest = min(n for n, _ in sizes.values())
    return {
        "epsilon": found.worst.epsilon,
        "weakest": found.weakest,
        "epsilon0": epsilon0,
        "n": sum(n for n, _ in sizes.values()),
        "delta": delta,
        "groups": [
            {
                "name": name,
                "n": one.n,
                "honest": one.honest_n,
                "epsilon": one.epsilon,
                "all": one.all,
                "colluding": one.colluding,
                "attack_lower": one.attack_lower,
                "method": one.method,
                "source": one.source,
            }
            for name, one in found.each.items()
        ],
        "notes": list(warnings_of(delta, smallest, honest=found.worst.honest_n, epsilon0=epsilon0)),
        "verdict": judge_central(found.worst).document(),
    }


def print_groups(document: dict[str, Any]) -> None:
    """A row for each group, the weakest last and by name."""
    from rich.console import Console
    from rich.table import Table

    from dovetail.report.number_format import upward

    table = Table(title="What a person of each group is promised", title_justify="left", title_style="bold", box=None)
    table.add_column("group", overflow="fold")
    for name in ("people", "honest", "epsilon", "attack"):
        table.add_column(name, justify="right")
    table.add_column("method", overflow="fold")
    for one in document["groups"]:
        table.add_row(
            foreign(one["name"]),
            f"{one['n']:,}",
            f"{one['honest']:,}",
            upward(one["epsilon"]),
            downward(one["attack_lower"]),
            one["method"],
        )
    console = Console()
    console.print(table)
    for line in (
        f"everybody, whatever her group: {upward(document['epsilon'])}, as in {document['weakest']}",
        "Groups must be public and must not depend on private values; who looks may know everybody else's.",
        f"protection: {document['verdict']['sentence']}",
        *document["notes"],
    ):
        console.print(foreign(line), markup=False, highlight=False)


def _row(text: str) -> tuple[str, str, str]:
    name, mark, rest = text.rpartition("=")
    if not mark:
        raise ParameterError(f"--group must be {FORM}, got {text!r}.")
    people, _, honest = rest.partition(",")
    return name.strip(), people.strip(), honest.strip()


def _read(path: Path) -> list[tuple[str, str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            if not {"name", "n"} <= set(table.fieldnames or ()) <= set(COLUMNS):
                raise ParameterError(f"{path} must have the columns name, n and, if wanted, honest.")
            rows = [(row["name"] or "", row["n"] or "", row.get("honest") or "") for row in table]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise ParameterError(f"--groups-file {path} cannot be read: {why}.") from None
    if not rows:
        raise ParameterError(f"{path} must have a row for each group, got none.")
    return [(name.strip(), n.strip(), honest.strip()) for name, n, honest in rows]


def _number(text: str) -> Any:
    """A count as it is typed, such as 2e4; anything else as it is, for the message."""
    try:
        return as_whole(float(text))
    except ValueError:
        return text
