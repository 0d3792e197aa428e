"""`dovetail collect clock`: what the shuffler knows about time, and an operator's word that its clock is right."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.console.output import Json, print_json, print_rows
from dovetail.core.extras import require


def register(app: typer.Typer) -> None:
    """Add the verb to `dovetail collect`."""
    app.command("clock")(_clock)


def _clock(
    config: Annotated[Path, typer.Argument(help="shuffler.toml, on the shuffler's own machine.")],
    confirm: Annotated[
        bool, typer.Option("--confirm", help="This machine's clock is right now: go on by it, also backwards.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the record of time beside this machine's clock; --confirm lets a shuffler that halted go on.

    A shuffler that sees its clock jump takes, closes and releases nothing. Set the clock right: it goes on by itself.
    If the clock is right and the record is not, as after a long outage or the restore of an old backup, confirm it;
    rounds whose time has passed close then. A running shuffler needs no restart.

    Examples:
    dovetail collect clock shuffler.toml;
    dovetail collect clock shuffler.toml --confirm
    """
    for module in ("sqlalchemy", "httpx", "paho.mqtt", "prometheus_client"):
        require(module, extra="serve")
    from dovetail.collect.clock import SystemClock
    from dovetail.collect.shuffler import trusted_clock
    from dovetail.collect.shuffler.shuffler_config import load
    from dovetail.collect.store.shuffler_store import open_shuffler_store

    found = load(config)
    store = open_shuffler_store(found.store_url(config.parent, "shuffler"))
    reading = trusted_clock.read(SystemClock())
    try:
        if confirm:
            trusted_clock.confirm(reading, store)
        record = store.moment()
    finally:
        store.close()
    limits = trusted_clock.ClockLimits(found.clock.largest_step_seconds, found.clock.longest_outage_days)
    agrees = record is None or trusted_clock.agrees(reading, record, limits)
    document = {
        "clock": _minute(reading.wall),
        "record": None if record is None else _minute(record.time),
        "halted": record is not None and record.halted,
        "agrees": agrees,
        "confirmed": 0 if record is None else record.confirmed,
    }
    if as_json:
        print_json(document)
        return
    rows = {name: "none yet" if value is None else str(value) for name, value in document.items()}
    print_rows("Confirmed" if confirm else "Clock", rows)


def _minute(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%MZ")
