"""`dovetail collect demo`: the service as real processes on this machine, for a minute."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dovetail.cli.collect.simulate import comparison_document, print_rounds
from dovetail.cli.console.options import as_whole
from dovetail.cli.console.output import Json, print_json, print_rows
from dovetail.core.checks import positive, whole
from dovetail.core.errors import DovetailError, OutputError, UnreachableError
from dovetail.core.extras import require

if TYPE_CHECKING:
    from dovetail.collect.simulate.demo import DemoResult


def register(app: typer.Typer) -> None:
    """Add the verb to `dovetail collect`."""
    app.command("demo")(_demo)


def _demo(
    devices: Annotated[float, typer.Option(help="Number of devices.")] = 500,
    rounds: Annotated[float, typer.Option(help="Number of rounds.")] = 10,
    trust: Annotated[
        Literal["local", "users"],
        typer.Option(help="users: answers as they are, among dummies that the other devices send."),
    ] = "local",
    period: Annotated[float, typer.Option(help="Seconds over which the answers of a round are spread.")] = 2.0,
    out: Annotated[
        Path | None,
        typer.Option(help="A new folder for keys, configurations, stores and logs; else they go, if all goes well."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the servers up until Ctrl-C, to look at the page.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run shuffler and analyzer as two processes on free loopback ports, and devices that report to them over HTTP.

    Prints the URL of the live page first, and when all rounds are counted the estimates beside the truth and the
    guarantee. A round ends when every device has been heard: a slow machine takes longer and counts the same. Both
    servers are stopped at the end, also by Ctrl-C. Exit status 1 if something fails, or if the reports that were
    counted are not those that were acknowledged; the logs stay then, and the message says where.

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
    with _folder(out) as folder:
        site = demo.prepare_demo(folder, devices=size, rounds=count, trust=trust)
        with _explained(folder), run_servers(site) as check:
            if not as_json:
                typer.echo(f"the page: {site.analyzer}/ (shuffler at {site.shuffler}; {count * seconds:g} s or more)")
            with _held(site.analyzer, keep=keep):
                shown = demo.run_demo(site, period=seconds, check=check)
                _print(shown, as_json=as_json)
                if shown.counted != shown.heard:
                    raise OutputError(f"{shown.heard:,} reports were acknowledged, and {shown.counted:,} counted.")


class _Failed(UnreachableError):
    """The demo has failed, and its folder stays."""


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    """The folder of the demo; where nobody has named one it goes, except after a failure."""
    folder = out or Path(mkdtemp(prefix="dovetail-demo-"))
    try:
        yield folder
    except _Failed:
        raise
    except BaseException:
        _remove(folder, out)
        raise
    _remove(folder, out)


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Failures say where the logs are."""
    try:
        yield
    except DovetailError as error:
        raise _Failed(f"{str(error).rstrip('.')}. Configurations, stores and logs are in {folder}.") from None


def _remove(folder: Path, out: Path | None) -> None:
    if out is None:
        shutil.rmtree(folder)


@contextmanager
def _held(url: str, *, keep: bool) -> Iterator[None]:
    """With `keep` the servers stay up after it has gone well, and after a failure too."""
    try:
        yield
    except DovetailError as error:
        if keep:
            typer.echo(f"error: {error}", err=True)
            _wait(url)
        raise
    if keep:
        _wait(url)


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
