"""`dovetail collect submit`, `simulate` and `demo`: one device, many in one process, and a service for a minute."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dovetail.cli.collect.new import RandomizerOptions
from dovetail.cli.collect.query import InsecureHttp
from dovetail.cli.options import as_whole
from dovetail.cli.output import Facts, Grid, Json, Paste, show
from dovetail.cli.progress import progress_bar
from dovetail.collect.simulate.faults import FaultRates
from dovetail.core.checks import positive, whole
from dovetail.core.display import mute
from dovetail.core.errors import DovetailError, OutputError, ParameterError, UnreachableError
from dovetail.core.extras import require
from dovetail_device.session import (
    VISIBLE,
    TransportName,
    first_use,
    line,
    open_device,
    read_value,
    receipts_document,
    status,
    submit,
)

if TYPE_CHECKING:
    from dovetail.collect.simulate.demo import DemoResult
    from dovetail.collect.simulate.simulation import RoundResult, SimulationResult


# `dovetail collect submit`: what a device does, from this machine; the same as `dovetail-device submit`.


@dataclass(frozen=True)
class FileOptions:
    """The two files of a device."""

    campaign: Annotated[Path, typer.Option(help="The signed campaign file.")]
    keys: Annotated[Path, typer.Option(help="The device's key file; `dovetail collect keys device` makes one.")]


@mute
@dataclass(frozen=True)
class ReportOptions:
    """The value, and the round that it belongs to."""

    value: Annotated[
        str, typer.Option(help=f"The value: a category or a number; - (the default) reads one line. Note: {VISIBLE}")
    ] = "-"
    round: Annotated[int | None, typer.Option(help="The round; default the one that runs now.")] = None
    group: Annotated[str | None, typer.Option(help="The public group, if the campaign has groups.")] = None


@dataclass(frozen=True)
class SessionOptions:
    """Trust, files and transport of the device; the optional arguments of `session.opened`."""

    outbox: Annotated[
        Path | None, typer.Option(help="The device's ledger; default the key file's name with .outbox.")
    ] = None
    owner: Annotated[
        str | None, typer.Option(help="The owner's public key: consent to answer it. Else the first one met is kept.")
    ] = None
    max_epsilon: Annotated[
        float | None, typer.Option(help="Refuse campaigns whose reports cost more than this, nats.")
    ] = None
    question: Annotated[
        str | None, typer.Option(help="What budgets are counted by; default the words of the question.")
    ] = None
    via: Annotated[TransportName, typer.Option(help="How to send.")] = "http"
    url: Annotated[str | None, typer.Option(help="Where to send; default the campaign's endpoint.")] = None
    user: Annotated[str | None, typer.Option(help="User name for the broker, best the same for all devices.")] = None
    password_file: Annotated[Path | None, typer.Option(help="File with the password for the broker.")] = None
    insecure_http: InsecureHttp = False
    insecure_mqtt: Annotated[
        bool,
        typer.Option("--insecure-mqtt", help="Allow plain MQTT to another machine; anybody reads the login."),
    ] = False
    trust: Annotated[
        Literal["users", "shuffler"] | None,
        typer.Option(help="Answer as it is where only dummies of other people, or of the shuffler, hide the answer."),
    ] = None
    epsilon_class: Annotated[
        str | None,
        typer.Option(
            "--class",
            help="Where people have different epsilons: your class, chosen once and never by the value; default the "
            "one with the smallest epsilon.",
        ),
    ] = None
    entitlement_file: Annotated[
        Path | None,
        typer.Option(help="File with the code or the voucher that tokens are asked for with; default the own key."),
    ] = None
    hand_over: Annotated[
        bool,
        typer.Option("--hand-over/--no-hand-over", help="Whether an owner's hand-over is followed."),
    ] = True


def _submit(
    files: FileOptions,
    report: ReportOptions,
    session: SessionOptions,
    wait: Annotated[float, typer.Option(help="Try again for so many seconds if it does not arrive.")] = 0.0,
    as_json: Json = False,
) -> int:
    """Randomize one value, once for a round, and send that report; `dovetail-device flush` sends what waits.

    A second value in the same round changes nothing: the first report is sent again, or is there already. Exit status
    1 means refused for good; a report that waits is safe in the outbox.

    Examples:
    echo walk | dovetail collect submit --campaign campaign.toml --keys meter-1.key;
    dovetail collect submit --campaign campaign.toml --keys meter-1.key --round 2 --via mqtt --wait 60
    """
    if report.value != "-":
        typer.echo(f"note: {VISIBLE}", err=True)
    with open_device(files.campaign, files.keys, **vars(session)) as device:
        if note := first_use(device):
            typer.echo(f"note: {note}", err=True)
        value = read_value(report.value, device.campaign)
        receipt = submit(device, value, report.round, group=report.group, patience=wait)
    show(receipts_document([receipt]), Paste(line(receipt)), as_json=as_json)
    return status([receipt])


# `dovetail collect simulate`: a whole collection in one process, with everything that goes wrong.


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
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Without --campaign: devices show tokens of an issuer.")
    ] = False,
    devices: Annotated[float, typer.Option(help="Number of devices.")] = 300,
    rounds: Annotated[float, typer.Option(help="Number of rounds.")] = 10,
    faults: FaultRates = FaultRates(),
    seed: Annotated[int, typer.Option(min=0, help="Of the answers and the faults; reports are never seeded.")] = 1,
    as_json: Json = False,
) -> None:
    """Run devices, shuffler and analyzer in one process under a frozen clock, and check every report.

    Messages are lost, repeated and delayed, roles die in the middle of their work and come back on what they had
    stored. A watcher that holds all keys then says whether an acknowledged report was lost or counted twice, and how
    the estimates compare with the truth. Exit status 1 if anything was lost or doubled. About 1 ms for each device
    and round, 10 where devices show tokens.

    Example: dovetail collect simulate --devices 1000 --crash 0.01
    """
    for module in ("sqlalchemy", "httpx", "prometheus_client"):
        require(module, extra="serve")
    from dovetail.collect.simulate.deployment import (
        APPLIANCE,
        COMMUTE,
        ThrowawayCampaign,
        among_classes,
        among_people,
        schedule,
        simulated_document,
        with_tokens,
    )
    from dovetail.collect.simulate.simulation import simulate

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
    if tokens and campaign is not None:
        raise ParameterError("--tokens goes with an example: a campaign says in its file whether it asks for them.")
    if tokens:
        known = with_tokens(known)
    known |= {"rounds": schedule(count)}
    world = ThrowawayCampaign.of(known if campaign is None else simulated_document(campaign, rounds=count), size)
    with progress_bar(hidden=as_json) as progress:
        found = simulate(world, faults=faults, seed=seed, progress=lambda done: progress("rounds", done, count))
    document = _document(world.campaign.id, found)
    show(document, _faults(document), counted_rounds(document["rounds"], found.level), as_json=as_json)
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


def counted_rounds(rounds: list[dict[str, Any]], level: float) -> Grid:
    """Counted batches beside the truth, as a table."""
    rows = []
    for each in rounds:
        numbers = [" ".join(f"{number:.4g}" for number in each[name]) for name in ("truth", "value")]
        held = f"{each['covered']} of {len(each['truth'])}"
        rows.append((", ".join(map(str, each["rounds"])), f"{each['n']:,}", *numbers, held))
    return Grid("", ("rounds", "n", "truth", "estimate", f"{100 * level:g} % intervals that hold it"), rows)


def _faults(document: dict[str, Any]) -> Facts:
    reports, crashes = document["reports"], document["crashes"]
    return Facts(
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


# `dovetail collect demo`: the service as real processes on this machine, for a minute.


def _demo(
    devices: Annotated[float, typer.Option(help="Number of devices.")] = 500,
    rounds: Annotated[float, typer.Option(help="Number of rounds.")] = 10,
    trust: Annotated[
        Literal["local", "users"],
        typer.Option(help="users: answers as they are, among dummies that the other devices send."),
    ] = "local",
    tokens: Annotated[
        bool,
        typer.Option(
            "--tokens", help="Devices show anonymous tokens and send by a relay: issuer and relay are processes, too."
        ),
    ] = False,
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
    counted are not those that were acknowledged; the logs stay then, and the message says where. With --tokens
    OpenSSL signs once for each device and round, which takes about 20 ms of a processor.

    Example: dovetail collect demo --keep

    Example: dovetail collect demo --tokens --devices 50 --rounds 3
    """
    for module in ("uvicorn", "starlette", "sqlalchemy", "prometheus_client", "httpx", "paho.mqtt"):
        require(module, extra="serve")
    from dovetail.collect.simulate import demo
    from dovetail.collect.simulate.deployment import run_servers

    size, count = whole("--devices", as_whole(devices), least=2), whole("--rounds", as_whole(rounds), least=1)
    seconds = positive("--period", period)
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OutputError(f"{out}: is not an empty folder; name a new one.")
    for sign in (signal.SIGINT, signal.SIGTERM):  # no matter who stops us, the servers go first
        signal.signal(sign, signal.default_int_handler)
    with _folder(out) as folder:
        site = demo.prepare_demo(folder, devices=size, rounds=count, trust=trust, tokens=tokens)
        with _explained(folder), run_servers(site) as check:
            if not as_json:
                typer.echo(f"the page: {site.analyzer}/ (shuffler at {site.shuffler}; {count * seconds:g} s or more)")
            with _held(site.analyzer, keep=keep):
                shown = demo.run_demo(site, period=seconds, check=check)
                _print_demo(shown, as_json=as_json)
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


def _print_demo(shown: DemoResult, *, as_json: bool) -> None:
    rounds = [comparison_document(each) for each in shown.results]
    counts = {"drawn": shown.drawn, "acknowledged": shown.heard, "counted": shown.counted}
    document = {"reports": counts, "guarantee": shown.guarantee, "level": shown.level, "rounds": rounds}
    rows = {
        "reports drawn": f"{shown.drawn:,}",
        "acknowledged": f"{shown.heard:,}",
        "counted": f"{shown.counted:,}",
        "guarantee": shown.guarantee,
    }
    show(document, Facts("Everybody's way to work", rows), counted_rounds(rounds, shown.level), as_json=as_json)


VERBS = {"submit": _submit, "simulate": _simulate, "demo": _demo}
