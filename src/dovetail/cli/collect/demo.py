"""`dovetail collect demo`: the service as real processes on this machine, for a minute."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli.collect.simulate import comparison_document, print_rounds
from dovetail.cli.console.options import as_whole
from dovetail.cli.console.output import Json, print_json, print_rows
from dovetail.core.checks import positive, whole
from dovetail.core.errors import OutputError
from dovetail.core.extras import require

if TYPE_CHECKING:
    from dovetail.collect.simulate.demo import DemoResult


def register(app: typer.Typer) -> None:
    """Add the verb to `dovetail collect`."""
    app.command("demo")(_demo)


def _demo(
    devices: Annotated[float, typer.Option(help="Number of devices.")] = 500,
    rounds: Annotated[float, typer.Option(help="Number of rounds.")] = 10,
    period: Annotated[float, typer.Option(help="Seconds of a round.")] = 2.0,
    out: Annotated[
        Path | None, typer.Option(help="A new folder for keys, configurations, stores and logs; else they go.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the servers up until Ctrl-C, to look at the page.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run shuffler and analyzer as two processes on free loopback ports, and devices that report to them over HTTP.

    Prints the URL of the live page first, and when all rounds are counted the estimates beside the truth and the
    guarantee. Both servers are stopped at the end, also by Ctrl-C. Exit status 1 if the reports that were counted are
    not those that were acknowledged.

    Example: dovetail collect demo --keep
    """
    for module in ("uvicorn", "starlette", "sqlalchemy", "prometheus_client", "httpx", "paho.mqtt"):
        require(module, extra="serve")
    from dovetail.collect.simulate import demo
    from dovetail.collect.simulate.deployment import run_servers

    size, count = whole("--devices", as_whole(devices), least=2), whole("--rounds", as_whole(rounds), least=1)
    seconds = positive("--period", period)
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OutputError(f"{out}: is not an empty folder; name a new one.")
    for sign in (signal.SIGINT, signal.SIGTERM):  # whoever stops us, the servers go first
        signal.signal(sign, signal.default_int_handler)
    with TemporaryDirectory() if out is None else nullcontext(str(out)) as folder:
        site = demo.prepare_demo(Path(folder), devices=size, rounds=count, period=seconds)
        with run_servers(site):
            if not as_json:
                typer.echo(
                    f"the page: {site.analyzer}/ (shuffler at {site.shuffler}; {count * seconds:g} s of rounds)"
                )
            shown = demo.run_demo(site)
            _print(shown, as_json=as_json)
            if keep:
                _wait(site.analyzer)
    if shown.counted != shown.heard:
        raise typer.Exit(1)


def _wait(url: str) -> None:
    typer.echo(f"the page stays at {url}/ until Ctrl-C", err=True)
    try:
        while True:
            signal.pause()
    except KeyboardInterrupt:
        return


def _print(shown: DemoResult, *, as_json: bool) -> None:
    rounds = [comparison_document(each) for each in shown.results]
    if as_json:
        counts = {"drawn": shown.drawn, "acknowledged": shown.heard, "counted": shown.counted}
        print_json({"reports": counts, "guarantee": shown.guarantee, "level": shown.level, "rounds": rounds})
        return
    rows = {
        "reports drawn": f"{shown.drawn:,}",
        "acknowledged": f"{shown.heard:,}",
        "counted": f"{shown.counted:,}",
        "guarantee": shown.guarantee,
    }
    print_rows("Everybody's way to work", rows)
    print_rounds(rounds, shown.level)
