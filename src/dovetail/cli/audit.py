"""`dovetail audit`: is a privacy claim what it says; options and printing, no mathematics."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail import __version__
from dovetail.cli.options import add_verbs, as_share, given, number, verb_group
from dovetail.cli.output import Facts, Force, Grid, Json, description_of, show
from dovetail.cli.progress import progress_bar, tell
from dovetail.cli.run import write_dossier
from dovetail.core.errors import ConfigError, DataError, ParameterError
from dovetail.ledger.files import read_json

if TYPE_CHECKING:
    from dovetail.audit.claim import AuditedClaim, FiledClaim
    from dovetail.audit.release import Release

FAILS, TOO_FEW = 1, 3

app = verb_group(
    "audit",
    """Is a privacy claim what it says: proved, possible, or impossible because a known attack needs more.

    claim: one claim, from its numbers alone. claims: a file of claims, for continuous integration. A proved claim is
    a proved formula: the software may still do something else. mechanism: calls it many times and looks for outputs
    that say too much. release: a released folder, from outside.
    `dovetail collect audit` is another verb: it verifies the audit log of a collection service.
    """,
)


@dataclass(frozen=True)
class ClaimOptions:
    """Options that state a claim and the mechanism that it is about."""

    epsilon: Annotated[float, typer.Option(help="The claimed epsilon, nats.")]
    delta: Annotated[float, typer.Option(parser=as_share, help="The claimed delta, in [0, 1).")] = 0.0
    epsilon0: Annotated[
        list[float] | None,
        typer.Option(
            parser=number, metavar="NUMBER", help="Local epsilon of one report; repeat it for several questions."
        ),
    ] = None
    randomizer: Annotated[
        str,
        typer.Option(
            help="any: the claim is about every randomizer with --epsilon0, as a formula is. unknown: about one that "
            "was not told. Or its name with settings, such as krr:k=10, to be judged by its own law."
        ),
    ] = "any"
    n: Annotated[
        float | None, typer.Option(help="Reports that are shuffled together; without it each report lies open.")
    ] = None
    honest: Annotated[float | None, typer.Option(help="People assumed honest; default all.")] = None
    rounds: Annotated[float, typer.Option(help="How often everything is done, each time afresh.")] = 1
    rate: Annotated[
        float | None,
        typer.Option(
            parser=as_share,
            help="Share of the people in a random sample; --epsilon0 is of what is run on the sample.",
        ),
    ] = None
    sampling: Annotated[str | None, typer.Option(help="With --rate: poisson (the default) or fixed-size.")] = None
    neighbours: Annotated[
        str | None, typer.Option(help="replace or add-remove: what may change about one person.")
    ] = None
    parts: Annotated[
        str | None,
        typer.Option(
            help="With several --epsilon0: same-people answer all (the default), disjoint people one each, or "
            "by-value, as the cells of a histogram."
        ),
    ] = None
    noise: Annotated[
        str | None,
        typer.Option(
            help="Instead of --epsilon0, noise on a number: laplace, gaussian, discrete-laplace (or geometric), "
            "discrete-gaussian, or unbiased for every unbiased answer with this standard deviation."
        ),
    ] = None
    sensitivity: Annotated[
        float | None, typer.Option(help="With --noise: how far one person moves the number (default 1).")
    ] = None
    clip: Annotated[
        float | None,
        typer.Option(
            help="Instead of --sensitivity, the largest norm of what one person adds; needs --neighbours: a replaced "
            "value moves the sum twice as far."
        ),
    ] = None
    scale: Annotated[
        float | None, typer.Option(help="With --noise: b of exp(-abs(y) / b), or the standard deviation.")
    ] = None


def _claim(
    claim: ClaimOptions,
    strict: Annotated[bool, typer.Option("--strict", help="Status 1 unless the claim is proved.")] = False,
    as_json: Json = False,
) -> None:
    """Judge one privacy claim from its numbers: impossible, unsupported, possible, proved or unknown.

    Impossible: an attack needs more than is claimed. Unsupported: so it does for some randomizer, and yours was not
    told. Proved: a theorem gives no more than is claimed. Possible: between the two. Unknown: outside every theorem
    here. Status 1 if it is impossible.

    Examples:
    dovetail audit claim --epsilon0 8 --n 1000 --delta 1e-5 --epsilon .86;
    dovetail audit claim --epsilon0 1 --n 1e4 --delta 1e-6 --epsilon .05 --randomizer krr:k=10;
    dovetail audit claim --noise gaussian --scale 4 --delta 1e-5 --epsilon 1;
    dovetail audit claim --epsilon0 1 --rate 1% --epsilon .02
    """
    from dovetail.audit.claim import FiledClaim, audit_claim

    tell("attacks and proofs")
    filed = FiledClaim("", given(asdict(claim)))
    found = audit_claim(**filed.given)
    show({**found.document(), "version": __version__}, *_blocks(found), as_json=as_json)
    if filed.fails(found, strict=strict):
        raise typer.Exit(FAILS)


def _claims(
    file: Annotated[Path, typer.Argument(help="TOML with a [[claim]] table for each claim, or the same as JSON.")],
    strict: Annotated[
        bool, typer.Option("--strict", help="A claim without `expect` fails unless it is proved.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Judge a file of privacy claims, and fail where one is not what it says.

    Each [[claim]] has the options of `dovetail audit claim` as keys, and may have a name, a source (such as a link)
    and expect, the verdict that it should have. A claim fails if its verdict is another; without expect, if it is
    impossible. Status 0: none fails, 1: one fails, 2: the file cannot be read.

    Example: dovetail audit claims claims.toml
    """
    from dovetail.audit.claim import read_claims

    claims = read_claims(file)
    judged: list[tuple[FiledClaim, AuditedClaim]] = []
    with progress_bar(hidden=as_json) as progress:
        for done, claim in enumerate(claims):
            progress("claims", done, len(claims))
            try:
                judged.append((claim, claim.audit()))
            except ConfigError as error:
                raise ConfigError(f"{file}: {error}") from None
    failed = [claim.name for claim, found in judged if claim.fails(found, strict=strict)]
    documents = [
        {"name": claim.name, **found.document(), "expect": claim.expect, "claimed_in": claim.source,
         "fails": claim.name in failed}
        for claim, found in judged
    ]  # fmt: skip
    document: dict[str, Any] = {"claims": documents, "failed": failed, "version": __version__}
    show(document, *_table(judged, failed), as_json=as_json)
    if failed:
        raise typer.Exit(FAILS)


def _mechanism(
    epsilon: Annotated[float, typer.Option(help="The claimed epsilon of one call, nats.")],
    mechanism: Annotated[
        str | None,
        typer.Argument(
            help="MODULE:CALLABLE of one input, or MODULE:EXPRESSION such as mine:Box(2).report; MODULE may be a "
            "file in this folder."
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(help="Instead, a program that reads one JSON value a line and writes one JSON value a line."),
    ] = None,
    inputs: Annotated[
        str | None, typer.Option(help="JSON list of inputs, every two of them neighbours, such as [0, 1].")
    ] = None,
    between: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="Instead of --inputs, search this range for the two that differ most."),
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Test the two of --inputs that differ most in a third of the calls.")
    ] = False,
    devices: Annotated[
        bool,
        typer.Option(
            "--devices",
            help="A new device for each trial, which reports twice: CALLABLE takes nothing and makes one, a program "
            "is started again.",
        ),
    ] = False,
    words: Annotated[
        float | None,
        typer.Option(
            help="CALLABLE takes its randomness as a second argument, a whole number below this: all are counted, "
            "and the verdict is exact."
        ),
    ] = None,
    delta: Annotated[float, typer.Option(parser=as_share, help="The claimed delta, in [0, 1).")] = 0.0,
    calls: Annotated[float, typer.Option(help="How often it is called.")] = 100_000,
    seconds: Annotated[float | None, typer.Option(help="Stop by then, with the calls that were made.")] = None,
    patience: Annotated[float, typer.Option(help="Seconds that one call may take.")] = 60.0,
    false_alarm: Annotated[
        float,
        typer.Option(parser=as_share, help="How often a mechanism that keeps its claim raises an alarm, at most."),
    ] = 1e-9,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Repeat the auditor's coins; only for a mechanism that cannot know them."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Test a mechanism as a black box: can its outputs be told apart more often than its epsilon allows?

    Each call gets one of the inputs by a fair coin. The first half of the calls chooses what betrays the input: the
    whole output, each of its places, its size, sums and differences, the lowest bit of a double, what it has in
    common with the call before. The second half is bet on. No alarm is no proof: rare events, other inputs, time and
    three calls together are not seen. Status 0: no alarm, 1: alarm, 2: it cannot be audited, 3: too few calls.

    Examples:
    dovetail audit mechanism mine:randomize --inputs "[0, 1]" --epsilon 1;
    dovetail audit mechanism --command "./device --report" --between 0,9 --epsilon 2 --seconds 60
    """
    from dovetail.audit.box import Program
    from dovetail.audit.box import between as range_of
    from dovetail.audit.game import TooFewCalls, audit_mechanism
    from dovetail.cli.options import as_whole
    from dovetail.core.entropy import simulation

    if (mechanism is None) == (command is None):
        raise ParameterError("audit mechanism needs MODULE:CALLABLE or --command, and not both.")
    if (inputs is None) == (between is None):
        raise ParameterError("audit mechanism needs --inputs or --between, and not both.")
    program = None if command is None else Program(command, patience=patience)
    asked = (
        program if program is not None and not devices else program.device if program else _callable(mechanism or "")
    )
    try:
        with progress_bar(hidden=as_json) as progress:
            found = audit_mechanism(
                asked,
                _inputs(inputs) if inputs is not None else range_of(*_range(between or "")),
                epsilon=epsilon,
                delta=delta,
                calls=as_whole(calls),
                devices=devices,
                search=search or between is not None,
                words=None if words is None else as_whole(words),
                seconds=seconds,
                patience=patience if program is None else 2.0 * patience,
                false_alarm=false_alarm,
                progress=progress,
                rng=None if seed is None else simulation(seed),
            )
    except TooFewCalls as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(TOO_FEW) from None
    finally:
        if program is not None:
            program.close()
    rows = {
        "result": found.sentence,
        "guesses": f"{found.right:,} right, {found.wrong:,} wrong, by the {found.event}",
        "inputs": ", ".join(map(repr, found.inputs)),
        "calls": f"{found.calls:,}",
    }
    if len(found.events) > 1:
        rows["alarms"] = ", ".join(found.events)
    title = Facts(f"Mechanism {mechanism or command}", rows)
    show({**found.document(), "version": __version__}, title, as_json=as_json)
    if found.alarm:
        raise typer.Exit(FAILS)


def _release(
    folder: Annotated[Path, typer.Argument(help="Folder that `dovetail run` wrote in the mode release.")],
    canaries: Annotated[
        Path | None,
        typer.Option(
            help="JSON about reports that you planted: places, a list of [arrival, released row] from 1 on; or right "
            "and guesses, of pairs of one group that your coin swapped."
        ),
    ] = None,
    false_alarm: Annotated[
        float, typer.Option(parser=as_share, help="How often a release that is what it says fails a check, at most.")
    ] = 1e-9,
    dossier: Annotated[
        bool, typer.Option("--dossier", help="Also write FOLDER/dossier: the register's entry, questions, a label.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Check a release from outside: report.json against itself, against the released rows, and against your canaries.

    Digests, guarantee, ledger entry and estimates are recomputed; the counts of the reports and what no value
    changes in them are compared with the randomizer that is named. Each check says what it would have seen. A passed
    audit is no proof: that devices run this randomizer shows only in their code, `dovetail audit mechanism`. Status 1
    if a check fails, 2 if the folder cannot be read.

    Example: dovetail audit release report
    """
    from dovetail.audit.release import audit_release

    tell("read the release")
    release = read_release(folder)
    tell("checks")
    checks = audit_release(
        release, canaries=None if canaries is None else read_json(canaries), false_alarm=false_alarm
    )
    failed = [check.name for check in checks if check.result == "fails"]
    if dossier:
        write_dossier(release.document, folder, force=force)
    document = {"checks": [asdict(check) for check in checks], "failed": failed, "version": __version__}
    rows = [(check.name, check.result, check.sentence, check.power) for check in checks]
    table = Grid("Checks from outside", ("check", "result", "what was seen", "what it would have seen"), rows)
    show(document, table, "A passed audit is no proof.", as_json=as_json)
    if failed:
        raise typer.Exit(FAILS)


def read_release(folder: Path) -> Release:
    """A released folder, with what its rows say of how they were made."""
    import polars as pl

    from dovetail.audit.release import Release
    from dovetail.cli.stages import asked_in
    from dovetail.table.released import from_columns

    document, places = read_json(folder / "report.json"), [folder / "sanitized.parquet"]
    if not isinstance(document, dict):
        raise DataError(f"{folder / 'report.json'}: must be an object.")
    if not places[0].is_file():
        places = sorted((folder / "sanitized").glob("*.parquet"))  # of an engine
    if not places:
        return Release(document, pl.DataFrame())
    try:
        table = pl.concat([pl.read_parquet(place) for place in places])
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{places[0].parent}: cannot be read ({type(error).__name__}).") from None
    if document.get("collection", {}).get("kind") == "vector":  # whose description is another
        return Release(document, table)
    made, *others = map(description_of, places)
    if any(other != made for other in others):
        raise DataError(f"{places[0].parent}: its files do not say the same of how their reports were made.")
    if "randomizer" not in made or "questions" in made or made.get("classes"):
        return Release(document, table)
    question, noise, people = asked_in(made, table.height)
    reports = from_columns(noise.randomizer, table, question.names)
    return Release(document, table, question, noise, people, reports)


def _callable(text: str) -> Callable[..., Any]:
    """The callable of MODULE:CALLABLE; an expression is evaluated in its module."""
    from dovetail.audit.box import as_mechanism

    name, _, path = text.partition(":")
    if not name or not path:
        raise ParameterError(f"the mechanism must be MODULE:CALLABLE, such as mine:randomize, got {text!r}.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        with redirect_stdout(io.StringIO()):
            found = eval(path, dict(vars(import_module(name))))
    except (Exception, SystemExit) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ParameterError(f"{text} cannot be loaded: {why}.") from None
    finally:
        sys.path.remove(str(Path.cwd()))
    return as_mechanism(found)


def _inputs(text: str) -> list[Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise ParameterError(f"--inputs must be a JSON list such as [0, 1], got {text!r}.")
    return found


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (json.loads(part) for part in text.split(","))
        if isinstance(low, int | float) and isinstance(high, int | float):
            return low, high
    except (ValueError, RecursionError):
        pass
    raise ParameterError(f"--between must be two numbers such as 0,9, got {text!r}.")


def _blocks(found: AuditedClaim) -> Iterator[Facts]:
    from dovetail.core.verdict import numbered

    rows = {"verdict": found.sentence, "attack": _lower(found), "proved": _upper(found)}
    if found.source:
        rows["source"] = found.source
    yield Facts(f"Claim: epsilon {found.epsilon:g}, delta {found.delta:g}", rows | numbered(found.notes))


def _table(judged: list[tuple[FiledClaim, AuditedClaim]], failed: list[str]) -> Iterator[Grid | str]:
    rows = [
        (claim.name, found.verdict, claim.expect or "", f"{found.epsilon:g}", _lower(found), _upper(found))
        for claim, found in judged
    ]
    yield Grid("Claims", ("claim", "verdict", "expected", "epsilon", "attack", "proved"), rows)
    for claim, found in judged:
        if claim.name in failed:
            yield f"{claim.name}: {found.sentence}"
    yield f"{len(judged):,} claims, {len(failed):,} fail"


def _lower(found: AuditedClaim) -> str:
    from dovetail.core.display import downward
    from dovetail.report.number_format import ABSENT

    return ABSENT if found.lower is None else downward(found.lower)


def _upper(found: AuditedClaim) -> str:
    from dovetail.core.display import upward
    from dovetail.report.number_format import ABSENT

    return ABSENT if found.upper is None else upward(found.upper)


add_verbs(app, {"claim": _claim, "claims": _claims, "mechanism": _mechanism, "release": _release})

VERBS = {"audit": app}
