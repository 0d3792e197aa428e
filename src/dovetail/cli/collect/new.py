"""`dovetail collect new`: write a campaign."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dovetail.cli.collect.keys import read_public
from dovetail.cli.collect.sign import write
from dovetail.cli.console.options import Beta, Precision, Rho, as_whole, given
from dovetail.cli.console.output import Force, Json, print_json, write_whole
from dovetail.collect.toml import toml
from dovetail.core.checks import privacy_budget, whole
from dovetail.core.errors import ParameterError
from dovetail.core.rounding import round_up_to_double
from dovetail_protocol.campaign import draft

Kind = Literal["krr", "hadamard", "unary", "local_hashing", "laplace", "budget_laplace"]
NUMBERS = ("laplace", "budget_laplace")


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("new")(_new)


def _new(
    owner: Annotated[Path, typer.Option(help="Public keys of the owner (owner.key.pub).")],
    shuffler: Annotated[Path, typer.Option(help="Public keys of the shuffler (shuffler.key.pub).")],
    analyzer: Annotated[Path, typer.Option(help="Public keys of the analyzer (analyzer.key.pub).")],
    out: Annotated[Path, typer.Option("--out", help="The campaign file to write.")] = Path("campaign.toml"),
    id: Annotated[str | None, typer.Option(help="Name of the campaign: letters, digits, - and _.")] = None,
    question: Annotated[str | None, typer.Option(help="What people are asked, in one sentence.")] = None,
    randomizer: Annotated[
        Kind | None, typer.Option(help="Default krr with --categories or --k, laplace with --lower and --upper.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Local epsilon of one report, nats.")] = 1.0,
    categories: Annotated[str | None, typer.Option(help="Possible answers, with commas between them.")] = None,
    k: Annotated[float | None, typer.Option(help="Number of possible answers, where they have no names.")] = None,
    lower: Annotated[float | None, typer.Option(help="For numbers: the smallest possible answer.")] = None,
    upper: Annotated[float | None, typer.Option(help="For numbers: the largest possible answer.")] = None,
    grid: Annotated[
        float | None, typer.Option(help="For numbers: width of a step; default 1/1024 of the range.")
    ] = None,
    beta: Beta = None,
    rho: Rho = None,
    precision: Precision = None,
    groups: Annotated[str | None, typer.Option(help="Public groups that reports name, with commas.")] = None,
    count: Annotated[float, typer.Option(help="Number of rounds.")] = 24,
    period: Annotated[float, typer.Option(help="Length of a round, seconds.")] = 3600.0,
    start: Annotated[
        datetime | None, typer.Option(help="When the first round begins, UTC; default the next full minute.")
    ] = None,
    grace: Annotated[float, typer.Option(help="For how long a round still takes its late reports, seconds.")] = 0.0,
    manual: Annotated[
        bool, typer.Option("--manual", help="Rounds are closed by hand instead of by the clock.")
    ] = False,
    minimum: Annotated[float, typer.Option(help="Valid reports of distinct devices that a batch must have.")] = 1000,
    small: Annotated[
        Literal["wait", "merge", "drop"], typer.Option(help="What happens to a round that has fewer.")
    ] = "wait",
    late: Annotated[
        Literal["refuse", "next"], typer.Option(help="What happens to reports after the end.")
    ] = "refuse",
    close_at: Annotated[float | None, typer.Option(help="Close a round early, on so many reports.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="delta of the central guarantee; default 1e-6, or 0.01/minimum if smaller.")
    ] = None,
    honest: Annotated[float | None, typer.Option(help="People assumed honest; default all.")] = None,
    dishonest: Annotated[float, typer.Option(help="People assumed dishonest.")] = 0,
    device_budget: Annotated[
        float | None, typer.Option(help="What a device spends at most, nats; default epsilon times the rounds.")
    ] = None,
    open: Annotated[bool, typer.Option("--open", help="No roster: anybody may send; promises less.")] = False,
    http: Annotated[str | None, typer.Option(help="Where devices send over HTTP, a URL.")] = None,
    mqtt: Annotated[str | None, typer.Option(help="Where devices send over MQTT, a URL.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a campaign with comments, to be read, changed by hand, explained with check and signed with sign.

    On a terminal it asks for what is needed and was not given. Order-private shuffles are added by hand: see
    docs/samples/collect/campaign.toml.

    Examples:
    dovetail collect new --id commute --question "How do you get to work?" --categories walk,bike,car
    --owner owner.key.pub --shuffler shuffler.key.pub --analyzer analyzer.key.pub --http http://127.0.0.1:8401
    """
    name, question = _ask("id", id, "Name of the campaign"), _ask("question", question, "What is asked")
    names = _names(categories)
    if not (names or k or lower is not None or upper is not None):
        raise ParameterError("what people can answer is missing: give --categories, --k, or --lower and --upper.")
    numbers: dict[str, Any] = {"lower": lower, "upper": upper, "grid": grid}
    kind = randomizer or ("laplace" if lower is not None or upper is not None else "krr")
    if kind in NUMBERS:
        parameters = given({**numbers, "epsilon": epsilon, "beta": beta, "rho": rho, "precision": precision})
    else:
        parameters = given({**numbers, "k": as_whole(k) if not names else len(names), "epsilon": epsilon})
    rounds, least = whole("--count", as_whole(count), least=1), whole("--minimum", as_whole(minimum), least=1)
    spent = (
        round_up_to_double(Fraction(privacy_budget("--epsilon", epsilon)) * rounds)
        if device_budget is None
        else device_budget
    )
    keys = read_public(owner, "owner") | read_public(analyzer, "analyzer") | read_public(shuffler, "shuffler")
    schedule = (
        {"schedule": "manual"} if manual else {"schedule": "period", "start": _start(start), "period_seconds": period}
    )
    tables: dict[str, dict[str, Any]] = {
        "": {"schema_version": 1, "id": name, "version": 1, "question": question},
        "randomizer": {"name": kind, **parameters, **({"categories": names} if names else {})},
        "groups": {"names": _names(groups)} if groups else {},
        "rounds": {**schedule, "count": rounds, "grace_seconds": grace},
        "batch": {"minimum": least, "small": small, "late": late, **given({"close_at": as_whole(close_at)})},
        "shuffle": {"shuffler": "uniform"},
        "promise": {
            "delta": min(1e-6, 0.01 / least) if delta is None else delta,
            **given({"assumed_honest": as_whole(honest)}),
            "assumed_dishonest": as_whole(dishonest),
            "authentication": "none" if open else "roster",
            "device_budget": spent,
        },
        "keys": {"suite": keys["analyzer"].partition(":")[0], **keys},
        "endpoints": given({"http": http, "mqtt": mqtt}),
    }
    body = toml(tables, COMMENTS).encode()
    made = draft(body)
    write_whole(out, lambda scratch: write(body, scratch), force=force)
    if as_json:
        print_json({"campaign": made.id, "file": str(out), "device_budget": made.promise.device_budget})
    else:
        typer.echo(f"{out}: explain it with `dovetail collect check`, then sign it with `dovetail collect sign`")


COMMENTS = {
    "": "A campaign: one file for all roles. Explain it with `dovetail collect check`, sign it with `sign`.\n"
    "# Whoever changes it later raises `version` and signs again; the id stays.",
    "randomizer": "How a device randomizes one answer; epsilon in nats.",
    "groups": "Public groups: a report names one of them in the clear for the analyzer.",
    "rounds": "Each device sends at most one report a round.",
    "batch": "What leaves the shuffler: never fewer than `minimum` valid reports of distinct devices.",
    "shuffle": "Who sent which report is forgotten.",
    "promise": "What the promise to people assumes, and what one device spends at most (nats).",
    "keys": "Public keys of the roles; secret ones never leave their machines.",
    "endpoints": "Where devices send.",
}


def _ask(option: str, found: str | None, question: str) -> str:
    if found is not None:
        return found
    if not sys.stdin.isatty():
        raise ParameterError(f"--{option} is missing ({question.lower()}).")
    return str(typer.prompt(question))


def _names(found: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in found.split(",")) if found else ()


def _start(found: datetime | None) -> datetime:
    if found is not None:
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return (datetime.now(UTC) + timedelta(minutes=1)).replace(second=0, microsecond=0)
