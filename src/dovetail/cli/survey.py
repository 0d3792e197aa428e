"""`dovetail survey`: a form that anybody can host, from its keys to the printed invitations."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from dovetail.cli.options import add_verbs, verb_group
from dovetail.cli.progress import tell
from dovetail.core.errors import ConfigError
from dovetail.core.extras import require

app = verb_group(
    "survey",
    """A survey that anybody can host: a page that randomizes answers in the browser, and the servers behind it.

    In order: new (a folder with keys and questions), invite (a link for each person), build (the page, one file for
    any web server) and run (page, shuffler and analyzer on this machine). docs/tutorials/web-survey.md walks through.
    """,
)

_Folder = Annotated[Path, typer.Argument(help="Folder of the survey.")]


def _new(
    folder: Annotated[Path, typer.Argument(help="Folder to make.")],
    title: Annotated[str, typer.Option(help="Heading of the page.")],
    question: Annotated[list[str], typer.Option(help="A question; once for each of several.")],
    answers: Annotated[list[str], typer.Option(help="Its answers, separated by |, in the order of the questions.")],
    epsilon: Annotated[float, typer.Option(help="Local epsilon of each answer, nats; see `dovetail plan`.")] = 1.5,
    minimum: Annotated[int, typer.Option(help="Answers before anything is shown.")] = 100,
    close_at: Annotated[int | None, typer.Option(help="Answers that end the survey before its time.")] = None,
    days: Annotated[float, typer.Option(help="How long answers are taken, from now on.")] = 14.0,
    open: Annotated[bool, typer.Option("--open", help="One link for everybody: answers can be stuffed.")] = False,
    tokens: Annotated[
        bool,
        typer.Option("--tokens", help="Invitations buy tokens: the shuffler has no list of people (experimental)."),
    ] = False,
    together: Annotated[
        bool,
        typer.Option("--together", help="All answers of a person in one report: all or none arrive."),
    ] = False,
    language: Annotated[str, typer.Option(help="Of the page: en or de.")] = "en",
    page: Annotated[str, typer.Option(help="Address of the page.")] = "http://127.0.0.1:8400",
    shuffler: Annotated[str, typer.Option(help="Address of the shuffler.")] = "http://127.0.0.1:8401",
    analyzer: Annotated[str, typer.Option(help="Address of the analyzer.")] = "http://127.0.0.1:8402",
    issuer: Annotated[str, typer.Option(help="With --tokens: address of the issuer.")] = "http://127.0.0.1:8404",
    relay: Annotated[
        str | None,
        typer.Option(help="Where pages send, so that the shuffler sees no address: a relay to SHUFFLER/ohttp."),
    ] = None,
    analyzer_key: Annotated[
        str | None,
        typer.Option(help="Public key of another operator's analyzer (`dovetail collect keys analyzer`)."),
    ] = None,
) -> None:
    """Make the folder of a survey: keys of all roles, a signed campaign for each question, configurations.

    Without --analyzer-key one operator holds everything. The page then says so, and promises what the noise of each
    answer promises, and no more.

    Example: dovetail survey new commute --title "Your way to work" --question "How do you come?" --answers "bike|car"
    """
    require("starlette", extra="serve")
    from dovetail.collect.survey.folder import NewSurvey, Places
    from dovetail_protocol.keys import SealingKey

    if len(question) != len(answers):
        raise ConfigError(f"{len(question)} questions and {len(answers)} lists of answers: give --answers for each.")
    if open and tokens:
        raise ConfigError("--open and --tokens do not go together: a token is for somebody who was invited.")
    named = tuple(tuple(part.strip() for part in each.split("|")) for each in answers)
    made = NewSurvey(
        title=title,
        questions=tuple(zip(question, named, strict=True)),
        epsilon=epsilon,
        minimum=minimum,
        days=days,
        access="open" if open else "tokens" if tokens else "invitations",
        language=language,
        places=Places(page, shuffler, analyzer, issuer, relay),
        analyzer=None if analyzer_key is None else SealingKey.parse("analyzer-key", analyzer_key),
        close_at=close_at,
        together=together,
    )
    made.write(folder, start=datetime.now(UTC).replace(microsecond=0))
    typer.echo(f"{folder}: {len(named)} questions. Next: dovetail survey {'run' if open else 'invite'} {folder}")


def _invite(
    folder: _Folder,
    count: Annotated[int, typer.Option(help="How many people are invited.")],
    out: Annotated[Path, typer.Option(help="The sheet of links to print; a secret.")] = Path("invitations.html"),
) -> None:
    """Make an invitation for each person, as a sheet of links and QR codes to print and cut.

    A link is good for one browser. Its code is in no file but the sheet: the folder keeps a hash of it.

    Example: dovetail survey invite commute --count 300 --out links.html
    """
    require("starlette", extra="serve")
    from dovetail.collect.survey.folder import Survey
    from dovetail.collect.survey.invitations import Invitations, save_links

    survey = Survey.load(folder)
    if survey.access == "open":
        raise ConfigError(f"{folder} is open to everybody: its link is {survey.page}")
    invitations = Invitations.load(folder)
    tell(f"make {count:,} invitations")
    save_links(survey, invitations.invite(count), out)
    typer.echo(f"{out}: {count:,} links, {len(invitations):,} in all. Keep it secret: no other file has the codes.")


def _build(
    folder: _Folder,
    out: Annotated[Path, typer.Option(help="The page.")] = Path("index.html"),
) -> None:
    """Write the page of a survey as one file, for any web server, and print its SHA-256.

    Publish the digest at a place that the host of the page cannot change: the host can change its script.

    Example: dovetail survey build commute --out public/index.html
    """
    require("starlette", extra="serve")
    from hashlib import sha256

    from dovetail.collect.survey.folder import Survey
    from dovetail.collect.survey.page import build_page
    from dovetail.core.errors import OutputError

    page = build_page(Survey.load(folder)).encode()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(page)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written ({error.strerror}).") from None
    typer.echo(f"{out}: {len(page):,} bytes, sha256 {sha256(page).hexdigest()}")


def _run(
    folder: _Folder,
    only: Annotated[
        Literal["page", "shuffler", "analyzer", "issuer"] | None,
        typer.Option(help="Only this one, such as on a second machine."),
    ] = None,
) -> None:
    """Run the page and all servers of a survey on this machine until Ctrl-C.

    Each listens on the loopback, on the port of its address; a proxy with TLS makes them public.

    Example: dovetail survey run commute
    """
    require("starlette", extra="serve")
    from dovetail.collect.survey.desk import run_survey

    run_survey(folder, only, typer.echo)


add_verbs(app, {"new": _new, "invite": _invite, "build": _build, "run": _run})

VERBS = {"survey": app}
