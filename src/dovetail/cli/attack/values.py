"""`dovetail attack majority|correlation|definetti|subset`: what an attacker gets out of releases of a known table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
import typer

from dovetail.attack.experiment.result import AttackResult
from dovetail.attack.experiment.run_attack import run_attack
from dovetail.attack.reidentify.subset import SubsetSearch, reidentify_subset, subset_bound
from dovetail.cli.console.options import given
from dovetail.cli.console.output import (
    Force,
    Json,
    Seed,
    entropy_of,
    print_json,
    print_rows,
    progress_bar,
    write_whole,
)
from dovetail.core.entropy import Entropy
from dovetail.core.errors import OutputError, ParameterError, UnsupportedError
from dovetail.pipeline.attack_experiment import Scene
from dovetail.pipeline.config.sections import AttackName, ShufflerName
from dovetail.pipeline.evaluate.attacks import NAMES, attacker
from dovetail.report.document import Missing, to_jsonable
from dovetail.report.number_format import missing_reason, percent

Table = Annotated[Path, typer.Argument(help="CSV or Parquet, a row for each person: the truth and public columns.")]
Private = Annotated[str, typer.Option(help="Private column: the values that are guessed.")]
Epsilon = Annotated[float, typer.Option(help="Local epsilon of each report, nats.")]
RandomizerName = Literal["krr", "hadamard", "unary", "local_hashing"]
Randomizer = Annotated[RandomizerName, typer.Option(help="What randomizes each value.")]
Shuffled = Annotated[
    ShufflerName | None,
    typer.Option(
        help="What shuffles; default: best with --alpha, within_groups with groups alone, otherwise uniform."
    ),
]
Alpha = Annotated[float | None, typer.Option(help="Order privacy of the shuffler, nats.")]
Labels = Annotated[str | None, typer.Option(help="Public column: groups of equal (or near) labels.")]
Points = Annotated[str | None, typer.Option(help="Public columns of coordinates, separated by commas.")]
Radius = Annotated[float | None, typer.Option(help="Groups within this distance (r).")]
Nearest = Annotated[int | None, typer.Option(help="Groups of this many nearest people, the owner included.")]
Similar = Annotated[str, typer.Option(help="Public columns that the attacker knows besides, separated by commas.")]
Reach = Annotated[float | None, typer.Option(help="Distance within which people vote (r*); default: --radius.")]
Votes = Annotated[int, typer.Option(min=1, max=1000, help="Reports that vote on each target.")]
Person = Annotated[str | None, typer.Option(help="Column that names people; default: row numbers from 1.")]
Targets = Annotated[int, typer.Option(min=1, help="People who are attacked, drawn at random.")]
Shuffles = Annotated[int, typer.Option(min=2, help="Orders that are drawn.")]
Randomizations = Annotated[int, typer.Option(min=1, help="Releases in each order.")]
Out = Annotated[Path | None, typer.Option(help="CSV with the success against each person.")]


def register(group: typer.Typer) -> None:
    """Add the attacks on values to `dovetail attack`."""
    for command in (majority, correlation, definetti, subset):
        group.command(command.__name__)(command)


def majority(
    table: Table, private: Private, epsilon: Epsilon, randomizer: Randomizer = "krr", shuffler: Shuffled = None,
    alpha: Alpha = None, labels: Labels = None, points: Points = None, radius: Radius = None,
    nearest: Nearest = None, similar: Similar = "", reach: Reach = None, votes: Votes = 25, person: Person = None,
    targets: Targets = 10_000, shuffles: Shuffles = 10, randomizations: Randomizations = 50, seed: Seed = None,
    out: Out = None, force: Force = False, as_json: Json = False,
) -> None:  # fmt: skip
    """Guess each value by the reports of similar people nearby: the majority vote.

    Example: dovetail attack majority survey.csv --private secret --epsilon 2 --labels age --similar income
    """
    _mount("majority", {**locals()}, votes=votes)


def correlation(
    table: Table, private: Private, epsilon: Epsilon, randomizer: Randomizer = "krr", shuffler: Shuffled = None,
    alpha: Alpha = None, labels: Labels = None, points: Points = None, radius: Radius = None,
    nearest: Nearest = None, similar: Similar = "", person: Person = None, targets: Targets = 10_000,
    shuffles: Shuffles = 10, randomizations: Randomizations = 50, seed: Seed = None, out: Out = None,
    force: Force = False, as_json: Json = False,
) -> None:  # fmt: skip
    """Guess each value by how values hang together with public numbers: a Gaussian process.

    Example: dovetail attack correlation homes.csv --private secret --epsilon 2 --points x,y --radius 0.1
    """
    _mount("correlation", {**locals()})


def definetti(
    table: Table, private: Private, epsilon: Epsilon, randomizer: Randomizer = "krr", shuffler: Shuffled = None,
    alpha: Alpha = None, labels: Labels = None, points: Points = None, radius: Radius = None,
    nearest: Nearest = None, similar: Similar = "", person: Person = None, targets: Targets = 10_000,
    shuffles: Shuffles = 10, randomizations: Randomizations = 50, seed: Seed = None, out: Out = None,
    force: Force = False, as_json: Json = False,
) -> None:  # fmt: skip
    """Guess each value by what the shuffled batch itself tells about people of the same class: the de Finetti attack.

    A class is people whose public columns are all equal; the shuffler must be identity, uniform or within groups.

    Example: dovetail attack definetti survey.csv --private secret --epsilon 2 --labels town --similar age
    """
    _mount("definetti", {**locals()})


def subset(
    table: Table, private: Private, epsilon: Epsilon,
    people: Annotated[str, typer.Option(help="Whose reports are looked for: names or row numbers, by commas.")],
    randomizer: Randomizer = "krr", shuffler: Shuffled = None, alpha: Alpha = None, labels: Labels = None,
    points: Points = None, radius: Radius = None, nearest: Nearest = None, person: Person = None,
    draws: Annotated[int, typer.Option(min=1, help="Orders from which the attacker learns the shuffler.")] = 500,
    trials: Annotated[int, typer.Option(min=1, help="Releases that are attacked.")] = 500,
    seed: Seed = None, out: Out = None, force: Force = False, as_json: Json = False,
) -> None:  # fmt: skip
    """Pick the places of a release that hold the reports of some people: right when more than half are.

    The attacker knows everybody's value and the shuffler. `bound` is what Theorem 4.2 of Meehan et al. (2022) allows.

    Example: dovetail attack subset survey.csv --private secret --epsilon 1 --people 3,17 --labels age
    """
    options = {**locals()}
    check_place(out)
    rng, names = entropy_of(seed), names_in(people)
    if not names:
        raise ParameterError("--people must name at least one person.")
    scene = _scene(options, rng)
    wanted = scene.places_of(names)
    with progress_bar(hidden=as_json) as progress:
        progress("learn the shuffler", 0, 1)
        search = SubsetSearch.learn(
            scene.randomizer, scene.survey.values, scene.shuffler, subset=wanted, draws=draws, rng=rng
        )
        progress("learn the shuffler", 1, 1)
        found = reidentify_subset(
            search, scene.survey.values, scene.shuffler, trials=trials, rng=rng,
            progress=lambda done, total: progress("attack", done, total),
        )  # fmt: skip
    try:
        bound: float | Missing = subset_bound(scene.randomizer, scene.shuffler, subset=wanted)
    except UnsupportedError as error:
        bound = Missing(str(error))
    tell(found, scene, scene.names[wanted], options, {"bound": bound})


def _mount(name: AttackName, options: dict[str, Any], **settings: Any) -> None:
    """Release again and again, attack every time."""
    check_place(options["out"])
    rng = entropy_of(options["seed"])
    scene = _scene(options, rng)
    targets = rng.permutation(scene.survey.n)[: options["targets"]]
    with progress_bar(hidden=options["as_json"]) as progress:
        progress("learn", 0, 1)
        learned = attacker(name, scene.known, scene.randomizer, scene.shuffler, targets=targets, rng=rng, **settings)
        progress("learn", 1, 1)
        found = run_attack(
            learned, scene.randomizer, scene.survey.values, scene.shuffler, rng=rng,
            shuffles=options["shuffles"], randomizations=options["randomizations"],
            progress=lambda done, total: progress(f"attack: {NAMES[name]}", done, total),
        )  # fmt: skip
    tell(found, scene, scene.names[targets], options, {})


def _scene(options: dict[str, Any], rng: Entropy) -> Scene:
    groups = groups_of(options)
    usual = "best" if options["alpha"] is not None else "within_groups" if groups else "uniform"
    return Scene.of(
        str(options["table"]),
        private=options["private"],
        person=options["person"],
        similar=names_in(options.get("similar", "")),
        randomize={"randomizer": options["randomizer"], "epsilon": options["epsilon"]},
        shuffle=given(
            {"shuffler": options["shuffler"] or usual, "alpha": options["alpha"], "groups": groups or None}
        ),
        reach=options.get("reach"),
        rng=rng,
    )


def groups_of(options: dict[str, Any]) -> dict[str, Any]:
    """The section of groups that the options describe; empty where they describe none."""
    described = {name: options[name] for name in ("labels", "radius", "nearest")}
    return given(described | {"points": names_in(options["points"]) if options["points"] else None})


def names_in(text: str) -> list[str]:
    """Names that are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def check_place(out: Path | None) -> None:
    """The success against each person can be written there."""
    if out is not None and out.suffix.lower() != ".csv":
        raise OutputError(f"{out}: the success against each person is written as CSV; use .csv.")


def tell(found: AttackResult, scene: Scene, people: pl.Series, options: dict[str, Any], more: dict[str, Any]) -> None:
    """Print the result, `more` beside it or instead, and write what it reached against each person."""
    out: Path | None = options["out"]
    if out is not None:
        frame = pl.DataFrame([people, pl.Series("success", found.by_person)])
        write_whole(out, frame.write_csv, force=options["force"])
    document = to_jsonable(
        {
            "schema_version": 1,
            **found.summary(),
            "n": scene.survey.n,
            "randomizer": scene.randomizer.name,
            "epsilon": scene.randomizer.guarantee.epsilon,
            "shuffler": scene.shuffler.name,
            "alpha": scene.shuffler.guarantee.alpha,
            **more,
            "files": {"people": Missing("name a file with --out") if out is None else str(out)},
        }
    )
    print_json(document) if options["as_json"] else _print(document)


def _print(document: dict[str, Any]) -> None:
    reach = missing_reason(document["interval"])
    if reach is None:
        low, high = document["interval"]
        reach = f"{percent(document['level'])} interval {percent(low)} to {percent(high)}"
    order = " in one order" if document["randomizations"] > 1 else ""
    often = f"of the targets: right in at least {percent(document['vulnerable_at'])} of the releases{order}"
    none = missing_reason(document["vulnerable"])
    shuffler = missing_reason(document["shuffler"]) or document["shuffler"]
    rows = {
        "success": f"{percent(document['success'])} ({reach})",
        "chance": percent(document["chance"]),
        "vulnerable": f"{percent(document['vulnerable'])} {often}" if none is None else f"none: {none}",
        "mechanism": f"{document['randomizer']}, ε = {document['epsilon']:g}; {shuffler}",
        "attacked": f"{document['targets']:,} of {document['n']:,} people; {document['shuffles']:,} orders, "
        f"{document['randomizations']:,} release{'s' * (document['randomizations'] > 1)} in each",
    }
    if "bound" in document:
        none = missing_reason(document["bound"])
        rows["bound"] = percent(document["bound"]) if none is None else f"none: {none}"
    if missing_reason(document["files"]["people"]) is None:
        rows["people"] = document["files"]["people"]
    print_rows(f"Attack: {document['name']}", rows)
