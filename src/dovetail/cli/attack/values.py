"""`dovetail attack NAME` for every attack on values, and `attack subset`: what releases of a table give away.

The verbs are made from the registry: an attack that declares itself has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from dovetail.attack.experiment.result import BLIND_GUESS, AttackResult
from dovetail.attack.experiment.run_attack import run_attack
from dovetail.attack.experiment.success_bound import SuccessBound
from dovetail.attack.reidentify.subset import SubsetSearch, reidentify_subset, subset_bound
from dovetail.cli.console.mechanism_options import (
    GroupOptions,
    RandomizerName,
    RandomizerSettings,
    ShufflerSettings,
    chosen,
    settings_group,
    shuffle_section,
)
from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.output import (
    Force,
    Json,
    Seed,
    entropy_of,
    print_json,
    print_rows,
    write_whole,
)
from dovetail.cli.console.progress import progress_bar
from dovetail.cli.console.table_options import TableOptions
from dovetail.core.attack import Attack
from dovetail.core.entropy import Entropy
from dovetail.core.errors import OutputError, ParameterError, UnsupportedError
from dovetail.core.registries import ATTACKS, SHUFFLERS
from dovetail.core.settings import split_names
from dovetail.pipeline.config.parse import parse_section
from dovetail.pipeline.config.sections import RandomizeSection, ShuffleSection
from dovetail.pipeline.evaluate.attack_experiment import AttackExperiment
from dovetail.pipeline.evaluate.attacks import bound_of
from dovetail.report.document import Missing, to_jsonable
from dovetail.report.number_format import missing_reason, percent, percent_up


@dataclass(frozen=True)
class MechanismOptions:
    """What randomizes and shuffles the values that are attacked."""

    epsilon: Annotated[float, typer.Option(help="Local epsilon of each report, nats.")]
    randomizer: RandomizerName = "krr"
    shuffler: Annotated[
        str | None,
        typer.Option(
            help="What shuffles; default: best with --alpha, within_groups with groups alone, otherwise uniform. "
            f"One of {', '.join(SHUFFLERS.names())}."
        ),
    ] = None
    alpha: Annotated[float | None, typer.Option(help="Order privacy of the shuffler, nats.")] = None

    def randomize(self, settings: Any) -> RandomizeSection:
        """The section [randomize]."""
        raw = {"randomizer": self.randomizer, "epsilon": self.epsilon, **chosen(settings)}
        return parse_section(RandomizeSection, raw, name="options", at="randomize")

    def shuffle(self, groups: GroupOptions, settings: Any) -> ShuffleSection:
        """The section [shuffle]."""
        return parse_section(
            ShuffleSection, shuffle_section(self.shuffler, self.alpha, groups, settings), name="options"
        )


@dataclass(frozen=True)
class KnownOptions:
    """What the attacker knows besides the columns of the groups."""

    similar: Annotated[
        str, typer.Option(help="Public columns that the attacker knows besides, separated by commas.")
    ] = ""
    reach: Annotated[
        float | None, typer.Option(help="Distance within which people are alike (r*); default: --radius.")
    ] = None
    person: Annotated[str | None, typer.Option(help="Column that names people; default: row numbers from 1.")] = None


@dataclass(frozen=True)
class OutputOptions:
    """Where the result goes."""

    seed: Seed = None
    out: Annotated[Path | None, typer.Option(help="CSV with the success against each person.")] = None
    force: Force = False
    as_json: Json = False


Table = Annotated[Path, typer.Argument(help="CSV or Parquet, a row for each person: the truth and public columns.")]
Private = Annotated[str, typer.Option(help="Private column: the values that are guessed.")]
Targets = Annotated[int, typer.Option(min=1, help="People who are attacked, drawn at random.")]


@dataclass(frozen=True)
class EffortOptions:
    """Whom an attack is mounted on, and how often."""

    targets: Targets = 10_000
    shuffles: Annotated[int, typer.Option(min=2, help="Orders that are drawn.")] = 10
    randomizations: Annotated[int, typer.Option(min=1, help="Releases in each order.")] = 50


@dataclass(frozen=True)
class SearchOptions:
    """How long the attacker on a subset learns and attacks."""

    draws: Annotated[int, typer.Option(min=1, help="Orders from which the attacker learns the shuffler.")] = 500
    trials: Annotated[int, typer.Option(min=1, help="Releases that are attacked.")] = 500


def register(group: typer.Typer) -> None:
    """Add the attacks on values to `dovetail attack`."""
    for kind in ATTACKS:
        group.command(kind.name)(flatten(verb_of(kind)))
    group.command("subset")(flatten(subset))


def verb_of(kind: type[Attack]) -> Callable[..., None]:
    """The verb of one attack; its help is the first paragraph about the class."""

    def verb(
        table: Table,
        private: Private,
        mechanism: MechanismOptions,
        randomizing: RandomizerSettings,
        groups: GroupOptions,
        shuffling: ShufflerSettings,
        known: KnownOptions,
        attack: Any,
        written: TableOptions,
        output: OutputOptions,
        effort: EffortOptions,
    ) -> None:
        check_place(output.out)
        rng = entropy_of(output.seed)
        randomize, shuffle = mechanism.randomize(randomizing), mechanism.shuffle(groups, shuffling)
        experiment = AttackExperiment.of(
            str(table), private=private, person=known.person, similar=split_names(known.similar),
            randomize=randomize, shuffle=shuffle, reach=known.reach, read=written.reader(table), rng=rng,
        )  # fmt: skip
        who = rng.permutation(experiment.collection.n)[: effort.targets]
        found = _mount(kind, experiment, who, chosen(attack), effort, rng=rng, hidden=output.as_json)
        bound = bound_of(experiment.knowledge(), experiment.randomizer, experiment.collection.shuffler, targets=who)
        tell(found, experiment, experiment.names[who], output, told_bound(bound))

    verb.__annotations__["attack"] = settings_group("AttackSettings", [kind])
    verb.__doc__ = help_of(kind)
    return verb


def told_bound(bound: SuccessBound | Missing) -> dict[str, Any]:
    """The bound beside an attack, and the theorems that it follows from."""
    if isinstance(bound, Missing):
        return {"bound": bound, "bound_by": bound}
    return {"bound": bound.value, "bound_by": bound.source}


def _mount(
    kind: type[Attack],
    experiment: AttackExperiment,
    targets: Any,
    settings: dict[str, Any],
    effort: EffortOptions,
    *,
    rng: Entropy,
    hidden: bool,
) -> AttackResult:
    """Learn, then attack these people again and again."""
    collection, randomizer = experiment.collection, experiment.randomizer
    with progress_bar(hidden=hidden) as progress:
        progress("learn", 0, 1)
        learned = kind.prepare(
            experiment.knowledge(), randomizer, collection.shuffler, targets=targets, rng=rng, **settings
        )
        progress("learn", 1, 1)
        return run_attack(
            learned, randomizer, collection.survey.values, collection.shuffler, rng=rng,
            shuffles=effort.shuffles, randomizations=effort.randomizations,
            progress=lambda done, total: progress(f"attack: {kind.label}", done, total),
        )  # fmt: skip


def help_of(kind: type[Attack]) -> str:
    """What an attack does, and an example of its verb."""
    sentence = (kind.__doc__ or "").strip().split("\n\n")[0]
    example = f"dovetail attack {kind.name} survey.csv --private secret --epsilon 2 --labels age"
    return f"{sentence}\n\nExample: {example}"


def subset(
    table: Table,
    private: Private,
    mechanism: MechanismOptions,
    randomizing: RandomizerSettings,
    groups: GroupOptions,
    shuffling: ShufflerSettings,
    people: Annotated[str, typer.Option(help="Whose reports are looked for: names or row numbers, by commas.")],
    written: TableOptions,
    output: OutputOptions,
    person: Annotated[str | None, typer.Option(help="Column that names people; default: row numbers from 1.")] = None,
    effort: SearchOptions = SearchOptions(),
) -> None:
    """Pick the places of a release that hold the reports of some people: right when more than half are.

    The attacker knows everybody's value and the shuffler. `bound` is what Theorem 4.2 of Meehan et al. (2022) allows.

    Example: dovetail attack subset survey.csv --private secret --epsilon 1 --people 3,17 --labels age
    """
    check_place(output.out)
    rng, names = entropy_of(output.seed), split_names(people)
    if not names:
        raise ParameterError("--people must name at least one person.")
    experiment = AttackExperiment.of(
        str(table), private=private, person=person, similar=[], randomize=mechanism.randomize(randomizing),
        shuffle=mechanism.shuffle(groups, shuffling), read=written.reader(table), rng=rng,
    )  # fmt: skip
    wanted = experiment.places_of(names)
    found = _search(experiment, wanted, effort, rng=rng, hidden=output.as_json)
    try:
        bound: float | Missing = subset_bound(experiment.randomizer, experiment.collection.shuffler, subset=wanted)
    except UnsupportedError as error:
        bound = Missing(str(error))
    tell(found, experiment, experiment.names[wanted], output, {"bound": bound})


def _search(
    experiment: AttackExperiment, wanted: Any, effort: SearchOptions, *, rng: Entropy, hidden: bool
) -> AttackResult:
    values, shuffler = experiment.collection.survey.values, experiment.collection.shuffler
    with progress_bar(hidden=hidden) as progress:
        progress("learn the shuffler", 0, 1)
        search = SubsetSearch.learn(
            experiment.randomizer, values, shuffler, subset=wanted, draws=effort.draws, rng=rng
        )
        progress("learn the shuffler", 1, 1)
        return reidentify_subset(
            search, values, shuffler, trials=effort.trials, rng=rng,
            progress=lambda done, total: progress("attack", done, total),
        )  # fmt: skip


def check_place(out: Path | None) -> None:
    """The success against each person can be written there."""
    if out is not None and out.suffix.lower() != ".csv":
        raise OutputError(f"{out}: the success against each person is written as CSV; use .csv.")


def tell(
    found: AttackResult, experiment: AttackExperiment, people: pl.Series, output: OutputOptions, more: dict[str, Any]
) -> None:
    """Print the result, `more` beside it or instead, and write what it reached against each person."""
    out = output.out
    if out is not None:
        frame = pl.DataFrame([people, pl.Series("success", found.by_person)])
        write_whole(out, frame.write_csv, force=output.force)
    document = to_jsonable(
        {
            "schema_version": 1,
            **found.summary(),
            "n": experiment.collection.n,
            "randomizer": experiment.randomizer.name,
            "epsilon": experiment.randomizer.guarantee.epsilon,
            "shuffler": experiment.collection.shuffler.name,
            "alpha": experiment.collection.shuffler.guarantee.alpha,
            **more,
            "files": {"people": Missing("name a file with --out") if out is None else str(out)},
        }
    )
    print_json(document) if output.as_json else _print(document)


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
        "chance": percent(document["chance"])
        + (f"; the attack alone {percent(document['alone'])}" if document["mounted"] == BLIND_GUESS else ""),
        "vulnerable": f"{percent(document['vulnerable'])} {often}" if none is None else f"none: {none}",
        "mechanism": f"{document['randomizer']}, ε = {document['epsilon']:g}; {shuffler}",
        "attacked": f"{document['targets']:,} of {document['n']:,} people; {document['shuffles']:,} orders, "
        f"{document['randomizations']:,} release{'s' * (document['randomizations'] > 1)} in each",
    }
    if document["remark"]:
        rows["learned"] = document["remark"]
    if "bound" in document:
        none = missing_reason(document["bound"])
        by = f" ({document['bound_by']})" if "bound_by" in document else ""
        rows["bound"] = f"{percent_up(document['bound'])}{by}" if none is None else f"none known: {none}"
    if missing_reason(document["files"]["people"]) is None:
        rows["people"] = document["files"]["people"]
    print_rows(f"Attack: {document['name']}", rows)
