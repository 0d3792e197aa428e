"""`dovetail collect simulate`: a whole collection in one process, with everything that goes wrong."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from dovetail.cli.collect.campaign_options import RandomizerOptions
from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.options import as_whole
from dovetail.cli.console.output import Json, print_json, print_rows
from dovetail.cli.console.progress import progress_bar
from dovetail.core.checks import whole
from dovetail.core.errors import ParameterError
from dovetail.core.extras import require

if TYPE_CHECKING:
    from dovetail.collect.simulate.simulation import RoundResult, SimulationResult


@dataclass(frozen=True)
class FaultOptions:
    """How often which fault happens."""

    loss: Annotated[float, typer.Option(help="Share of messages lost, and of acknowledgements.")] = 0.1
    duplicate: Annotated[float, typer.Option(help="Share of messages that arrive twice.")] = 0.05
    delay: Annotated[float, typer.Option(help="Share of messages that arrive when nobody waits any more.")] = 0.05
    crash: Annotated[float, typer.Option(help="Share of operations in which a role dies.")] = 0.001


def register(app: typer.Typer) -> None:
    """Add the verb to `dovetail collect`."""
    app.command("simulate")(flatten(_simulate))


def _simulate(
    campaign: Annotated[
        Path | None, typer.Option(help="A campaign file, signed or not, whose rules are simulated with other keys.")
    ] = None,
    example: Annotated[
        Literal["commute", "appliance"],
        typer.Option(help="Without --campaign: a question with four answers, or RASE's fleet of appliances."),
    ] = "commute",
    trust: Annotated[
        Literal["local", "users"],
        typer.Option(help="Without --campaign; users: commute's answers as they are, among dummies of the devices."),
    ] = "local",
    classes: Annotated[
        str | None,
        typer.Option(help="Without --campaign: devices of commute in public classes, such as careful=1,standard=4."),
    ] = None,
    devices: Annotated[float, typer.Option(help="Number of devices.")] = 300,
    rounds: Annotated[float, typer.Option(help="Number of rounds.")] = 10,
    faults: FaultOptions = FaultOptions(),
    seed: Annotated[int, typer.Option(min=0, help="Of the answers and the faults; reports are never seeded.")] = 1,
    as_json: Json = False,
) -> None:
    """Run devices, shuffler and analyzer in one process under a frozen clock, and check every report.

    Messages are lost, repeated and delayed, roles die in the middle of their work and come back on what they had
    stored. A watcher that holds all keys then says whether an acknowledged report was lost or counted twice, and how
    the estimates compare with the truth. Exit status 1 if anything was lost or doubled. About 1 ms for each device
    and round.

    Example: dovetail collect simulate --devices 1000 --crash 0.01
    """
    for module in ("sqlalchemy", "httpx", "prometheus_client"):
        require(module, extra="serve")
    from dovetail.collect.simulate.faults import FaultRates
    from dovetail.collect.simulate.simulation import simulate
    from dovetail.collect.simulate.throwaway_campaign import (
        APPLIANCE,
        COMMUTE,
        ThrowawayCampaign,
        among_classes,
        among_people,
        schedule,
        simulated_document,
    )

    count, size = whole("--rounds", as_whole(rounds), least=1), whole("--devices", as_whole(devices), least=1)
    known = {"commute": COMMUTE, "appliance": APPLIANCE}[example]
    if trust == "users" and (campaign is not None or example != "commute"):
        raise ParameterError("--trust users goes with the example commute: others have their trust in their file.")
    if trust == "users":
        known = among_people(people=size * 4 // 5, rounds=count)  # of each round, whatever goes wrong
    if classes is not None and (campaign is not None or example != "commute" or trust == "users"):
        raise ParameterError(
            "--classes go with the example commute and --trust local: others have them in their file."
        )
    if classes is not None:
        known = among_classes(RandomizerOptions(classes=classes).by_class())
    known |= {"rounds": schedule(count)}
    world = ThrowawayCampaign.of(known if campaign is None else simulated_document(campaign, rounds=count), size)
    with progress_bar(hidden=as_json) as show:
        found = simulate(
            world, faults=FaultRates(**asdict(faults)), seed=seed, progress=lambda done: show("rounds", done, count)
        )
    document = _document(world.campaign.id, found)
    if as_json:
        print_json(document)
    else:
        _print(document)
    if not found.sound:
        raise typer.Exit(1)


def _document(id: str, found: SimulationResult) -> dict[str, Any]:
    return {
        "campaign": id,
        "sound": found.sound,
        "reports": vars(found.verdict),
        "miscounted": found.miscounted,
        "messages": found.messages,
        "crashes": found.crashes,
        "level": found.level,
        "rounds": [comparison_document(each) for each in found.results],
    }


def comparison_document(each: RoundResult) -> dict[str, Any]:
    """A counted batch beside the truth, for JSON."""
    return {
        "rounds": list(each.rounds),
        "n": each.n,
        "truth": each.truth.tolist(),
        "value": each.value.tolist(),
        "interval": each.interval.tolist(),
        "covered": each.covered,
    }


def print_rounds(rounds: list[dict[str, Any]], level: float) -> None:
    """Counted batches beside the truth, as a table."""
    table = Table("rounds", "n", "truth", "estimate", f"{100 * level:g} % intervals that hold it")
    for each in rounds:
        numbers = [" ".join(f"{number:.4g}" for number in each[name]) for name in ("truth", "value")]
        held = f"{each['covered']} of {len(each['truth'])}"
        table.add_row(", ".join(map(str, each["rounds"])), f"{each['n']:,}", *numbers, held)
    Console().print(table)


def _print(document: dict[str, Any]) -> None:
    reports, crashes = document["reports"], document["crashes"]
    print_rows(
        f"{document['campaign']}, simulated",
        {
            "reports drawn": f"{reports['drawn']:,}",
            "acknowledged": f"{reports['acknowledged']:,}",
            "in batches": f"{reports['batched']:,}",
            "waiting, dropped": f"{reports['waiting']:,}, {reports['dropped']:,}, as the campaign's rules have it",
            "crashes": ", ".join(f"{count:,} {role}" for role, count in crashes.items()),
            "messages": ", ".join(f"{count:,} {kind}" for kind, count in document["messages"].items()),
            "lost": f"{reports['lost']:,}",
            "counted twice": f"{reports['doubled']:,}",
            "two reports of one device": f"{reports['second']:,} in a round, {reports['crowded']:,} in a batch",
            "batches changed, miscounted": f"{reports['changed']:,}, {document['miscounted']:,}",
            "budgets overspent": f"{reports['overspent']:,}",
        },
    )
    print_rounds(document["rounds"], document["level"])
