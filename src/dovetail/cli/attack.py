"""`dovetail attack`: what a real attacker gets out of files; one function for each attack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl
import typer

from dovetail.attack.experiment.reidentify import ForestAttack, ReidentificationResult, reidentify
from dovetail.attack.experiment.report_law import PARTS
from dovetail.attack.experiment.run_attack import BLIND_GUESS, AttackResult, attack_released
from dovetail.attack.experiment.subset_search import SubsetSearch, reidentify_subset, subset_bound
from dovetail.attack.experiment.success_bound import SuccessBound
from dovetail.cli.options import (
    RandomizerName,
    RandomizerSettings,
    ShufflerSettings,
    TableOptions,
    add_verbs,
    chosen,
    given,
    section_options,
    settings_group,
)
from dovetail.cli.output import Facts, Force, Grid, Json, Seed, description_of, entropy_of, show, write_whole
from dovetail.cli.progress import progress_bar
from dovetail.cli.stages import GroupOptions, shuffle_section
from dovetail.core.display import upward
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, OutputError, ParameterError, UnsupportedError
from dovetail.core.extras import require
from dovetail.core.missing import Missing
from dovetail.core.settings import split_names
from dovetail.core.stages import ATTACKS, RANDOMIZERS, SHUFFLERS, Attack, FrequencyRandomizer, Reports, Shuffler
from dovetail.job.attacks import AttackExperiment, as_guessed, blind_guess, bound_of, mount
from dovetail.job.build import fit_beside
from dovetail.job.config import RandomizeSection, ShuffleSection
from dovetail.report.document import to_jsonable
from dovetail.report.number_format import missing_reason, percent, percent_up
from dovetail.shuffle.identity import Identity
from dovetail.table.data_section import DataSection, parse_section
from dovetail.table.reader import TableReader
from dovetail.table.released import (
    PLACE,
    described_columns,
    from_columns,
    read_history,
    read_releases,
    rows_of_people,
    shared_columns,
)

# `dovetail attack NAME` for every attack on values, and `attack subset`: what releases of a table give away.
#
# The verbs are made from the registry: an attack that declares itself has one.


@dataclass(frozen=True)
class MechanismOptions:
    """Randomizer and shuffler of the values that are attacked."""

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

    def randomize(self, settings: Any, *, bounded: bool | None = None) -> RandomizeSection:
        """The section [randomize]; `bounded` if a range of numbers is declared, None where it cannot be."""
        of_numbers = RANDOMIZERS[self.randomizer].question == "mean"
        if of_numbers and bounded is None:
            raise ParameterError(f"--randomizer {self.randomizer} is about numbers; this attack is about answers.")
        if of_numbers and not bounded:
            raise ParameterError(
                f"--randomizer {self.randomizer} needs --lower and --upper, the range of the numbers."
            )
        if bounded and not of_numbers:
            fit = ", ".join(kind.name for kind in RANDOMIZERS if kind.question == "mean")
            raise ParameterError(
                f"--lower and --upper are of numbers, and --randomizer {self.randomizer} is about answers of a list: "
                f"use one of {fit}."
            )
        raw = {"randomizer": self.randomizer, "epsilon": self.epsilon, **chosen(settings)}
        return parse_section(RandomizeSection, raw, name="options", at="randomize")

    def shuffle(self, groups: GroupOptions, settings: Any) -> ShuffleSection:
        """The section [shuffle]."""
        return parse_section(
            ShuffleSection, shuffle_section(self.shuffler, self.alpha, groups, settings), name="options"
        )


if TYPE_CHECKING:
    NumberOptions = Any
else:
    NumberOptions = section_options("NumberOptions", DataSection, "lower", "upper", "grid", "clip")


@dataclass(frozen=True)
class KnownOptions:
    """Public columns that the attacker knows besides those of the groups."""

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


def verb_of(kind: type[Attack]) -> Callable[..., None]:
    """The verb of one attack; its help is the first paragraph about the class."""

    def verb(
        table: Table,
        private: Private,
        mechanism: MechanismOptions,
        numbers: NumberOptions,
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
        if not kind.guesses_numbers and numbers.section():
            raise ParameterError(f"the {kind.label} attack is about answers of a list; likelihood guesses numbers.")
        bounded = None not in (numbers.lower, numbers.upper) if kind.guesses_numbers else None
        randomize, shuffle = mechanism.randomize(randomizing, bounded=bounded), mechanism.shuffle(groups, shuffling)
        experiment = AttackExperiment.of(
            str(table), private=private, person=known.person, similar=split_names(known.similar),
            randomize=randomize, shuffle=shuffle, reach=known.reach, values=numbers.section(),
            read=written.reader(table), rng=rng,
        )  # fmt: skip
        collection, settings = experiment.collection, chosen(attack)
        who = rng.permutation(collection.n)[: effort.targets]
        learned, asked = as_guessed(experiment.knowledge(), collection, parts=settings.get("parts", PARTS), rng=rng)
        with progress_bar(hidden=output.as_json) as progress:
            found = mount(
                kind, learned, asked, collection, who, settings=settings, rng=rng, shuffles=effort.shuffles,
                randomizations=effort.randomizations,
                progress=lambda done, total: progress(f"attack: {kind.label}", done, total),
            )  # fmt: skip
        bound = bound_of(asked, collection.randomizer, collection.shuffler, targets=who)
        tell(found, experiment, experiment.names[who], output, told_bound(bound))

    verb.__annotations__["attack"] = settings_group("AttackSettings", [kind])
    verb.__doc__ = help_of(kind)
    return verb


def told_bound(bound: SuccessBound | Missing) -> dict[str, Any]:
    """The bound beside an attack, and the theorems that it follows from."""
    if isinstance(bound, Missing):
        return {"bound": bound, "bound_by": bound}
    return {"bound": bound.value, "bound_by": bound.told}


def help_of(kind: type[Attack]) -> str:
    """Help of an attack's verb: what it does, and an example."""
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
        assert isinstance(experiment.randomizer, FrequencyRandomizer)  # `mechanism` refuses those of numbers
        bound: float | Missing = subset_bound(experiment.randomizer, experiment.collection.shuffler, subset=wanted)
    except UnsupportedError as error:
        bound = Missing(str(error))
    tell(found, experiment, experiment.names[wanted], output, {"bound": bound})


def _search(
    experiment: AttackExperiment, wanted: Any, effort: SearchOptions, *, rng: Entropy, hidden: bool
) -> AttackResult:
    values, shuffler = experiment.collection.survey.values, experiment.collection.shuffler
    randomizer = experiment.randomizer
    assert isinstance(randomizer, FrequencyRandomizer)
    with progress_bar(hidden=hidden) as progress:
        progress("learn the shuffler", 0, 1)
        search = SubsetSearch.learn(randomizer, values, shuffler, subset=wanted, draws=effort.draws, rng=rng)
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
    show(document, _facts(document), as_json=output.as_json)


def _facts(document: dict[str, Any]) -> Facts:
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
        "mechanism": f"{document['randomizer']}, ε = {upward(document['epsilon'])}; {shuffler}",
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
    return Facts(f"Attack: {document['name']}", rows)


# `dovetail attack released`: what an attacker gets out of files that were released, scored against a known truth.


_RANGE = ("lower", "upper", "grid")
ONE = Missing("one release tells nothing about others; give several released files")

AttackSettings: Any = settings_group("AttackSettings", ATTACKS)


@dataclass(frozen=True)
class MadeOptions:
    """How the reports were made, for files that do not say so."""

    randomizer: Annotated[str | None, typer.Option(help="For files that do not say how they were made.")] = None
    epsilon: Annotated[float | None, typer.Option(help="With --randomizer: local epsilon, nats.")] = None

    def told(self, settings: Any) -> dict[str, Any]:
        """Return what the options say; empty without --randomizer."""
        found = given({"randomizer": self.randomizer, "epsilon": self.epsilon}) | chosen(settings)
        if found and (self.randomizer is None or self.epsilon is None):
            raise ParameterError(
                "--randomizer and --epsilon go together, for files that do not say how they were made."
            )
        return found


@dataclass(frozen=True)
class AttackOptions:
    """Which attack, and on whom."""

    attack: Annotated[
        str | None,
        typer.Option(
            help=f"Which attack: {', '.join(ATTACKS.names())}. Default: likelihood; majority for files that do not "
            "say how they were made."
        ),
    ] = None
    targets: Targets = 10_000


def _released(
    files: Annotated[
        list[Path], typer.Argument(help="Released tables of the same people: reports beside public columns.")
    ],
    truth: Annotated[
        Path, typer.Option(help="CSV or Parquet, a row for each person: the truth, for scoring, and public columns.")
    ],
    private: Private,
    made_options: MadeOptions,
    randomizing: RandomizerSettings,
    groups: GroupOptions,
    known: KnownOptions,
    settings: Any,
    written: TableOptions,
    output: OutputOptions,
    chosen_attack: AttackOptions = AttackOptions(),
) -> None:
    """Attack files that `run`, `randomize` and `shuffle` have written, or tables like them.

    A person is sought at the row that has all columns which the truth and the file share; among equal rows at
    any of them. Files without public columns were mixed evenly. Who is near is said by the file, or by options.

    Example: dovetail attack released z.parquet --truth survey.csv --private secret --labels age --similar income
    """
    check_place(output.out)
    rng = entropy_of(output.seed)
    read = written.reader(truth, *files)
    tables = {str(path): _read(path, read) for path in files}
    made = _made(files, made_options.told(randomizing))
    near = groups.section() or (made["shuffle"] or {}).get("groups")
    kind = ATTACKS[chosen_attack.attack or ("likelihood" if made["described"] else "majority")]
    if RANDOMIZERS[str(made["randomizer"])].question == "mean" and not kind.guesses_numbers:
        raise DataError(
            f"{files[0]}: holds numbers; {kind.label} guesses answers of a list: use --attack likelihood."
        )
    taken, options = {one.name for one in kind.settings()}, chosen(settings)
    for name in options:
        if name not in taken:
            raise ParameterError(f"--{name} is no setting of the {kind.label} attack; choose another with --attack.")
    experiment, batches = _experiment(tables, truth, private, known, made, given({"groups": near}), read, rng)
    who = rng.permutation(experiment.collection.n)[: chosen_attack.targets]
    parts = options.get("parts", PARTS)
    learned, asked = as_guessed(experiment.knowledge(batches[0]), experiment.collection, parts=parts, rng=rng)
    attacking = kind.prepare(
        learned, experiment.randomizer, _shuffler(kind, made, experiment), targets=who, rng=rng, **options
    )
    found = attack_released(attacking, asked.survey.values, batches, rng=rng)
    found = replace(found, chance=blind_guess(asked, who))
    one = {"interval": ONE, "vulnerable": ONE} if len(files) == 1 else {}
    shuffle = made.get("shuffle") or {}
    alpha = shuffle.get("alpha")
    more = {
        "shuffler": shuffle.get("shuffler", Missing("the file does not say how it was shuffled")),
        "alpha": Missing("the file does not say what its order promises") if alpha is None else alpha,
    }
    bound = bound_of(asked, experiment.randomizer, experiment.collection.shuffler, targets=who)
    tell(found, experiment, experiment.names[who], output, {**one, **more, **told_bound(bound)})


def _read(path: Path, read: TableReader) -> pl.DataFrame:
    table = read(str(path))
    if table.height == 0:
        raise DataError(f"{path}: the table has no rows.")
    return table


def _made(files: list[Path], told: dict[str, Any]) -> dict[str, Any]:
    """How the reports were made: by the files, which must agree, or by options."""
    found = [description_of(path) for path in files]
    own = [one.name for kind in RANDOMIZERS for one in kind.settings()]
    keys = ("randomizer", "epsilon", "categories", *_RANGE, "shuffle", "columns", *own)
    made = {key: found[0].get(key) for key in keys}
    for path, other in zip(files[1:], found[1:], strict=True):
        differs = next((key for key in keys if other.get(key) != made[key]), None)
        if differs is not None:
            raise DataError(f"{path}: was made with another {differs} than {files[0]}; attack each by itself.")
    if made["randomizer"] is None and "randomizer" not in told:
        raise DataError(f"{files[0]}: does not say how its reports were made; give --randomizer and --epsilon.")
    if made["randomizer"] is not None and "randomizer" in told:
        raise ParameterError(f"{files[0]}: says how its reports were made; drop --randomizer and --epsilon.")
    made |= told
    question = RANDOMIZERS[str(made["randomizer"])].question
    if question not in ("frequency", "mean"):
        raise DataError(
            f"{files[0]}: holds reports about {question}s; this verb guesses answers of a list and numbers."
        )
    return {**made, "described": bool(found[0])}


def _experiment(
    tables: dict[str, pl.DataFrame],
    truth: Path,
    private: str,
    known: KnownOptions,
    made: dict[str, Any],
    groups: dict[str, Any],
    read: TableReader,
    rng: Entropy,
) -> tuple[AttackExperiment, list[Reports]]:
    """The people of the truth, and the reports of every file at the places of these people."""
    public = {path: table.drop(described_columns(table, made)) for path, table in tables.items()}
    columns = [name for name in read(str(truth)).columns if name != private]
    shared = {path: shared_columns(path, table, columns) for path, table in public.items()}
    own = [one.name for one in RANDOMIZERS[made["randomizer"]].settings()]
    randomize = given({name: made.get(name) for name in ("randomizer", "epsilon", *own)})
    experiment = AttackExperiment.of(
        str(truth), private=private, person=known.person, similar=split_names(known.similar),
        randomize=parse_section(RandomizeSection, randomize, name="options", at="randomize"),
        shuffle=parse_section(ShuffleSection, {"shuffler": "identity", **groups}, name="options"),
        reach=known.reach, values=given({name: made[name] for name in ("categories", *_RANGE)}),
        beside=list(dict.fromkeys(name for names in shared.values() for name in names)), read=read, rng=rng,
    )  # fmt: skip
    survey = experiment.collection.survey
    everybody = pl.DataFrame([*survey.people, *survey.public])
    batches = []
    for path, table in tables.items():
        reports = from_columns(experiment.randomizer, table, experiment.collection.categories)
        batches.append(reports[rows_of_people(path, table, everybody, shared=shared[path])])
    return experiment, batches


def _shuffler(kind: type[Attack], made: dict[str, Any], experiment: AttackExperiment) -> Shuffler:
    """Shuffler of the files, for attacks that ask which places it mixes."""
    if kind.asks_what_is_mixed and not made["described"]:
        raise DataError(
            f"the {kind.label} attack needs to know what was mixed; the files do not say how they were made."
        )
    if not kind.asks_what_is_mixed or made["shuffle"] is None:
        return Identity(experiment.collection.n)
    section = parse_section(ShuffleSection, given(made["shuffle"]), name="the file")
    return fit_beside(section, experiment.collection.survey.public, n=experiment.collection.n)


LONGEST = 20  # devices that are printed


@dataclass(frozen=True)
class ColumnOptions:
    """Columns that the attacker reads."""

    features: Annotated[str, typer.Option(help="Columns the attacker looks at, separated by commas.")] = "value"
    device: Annotated[str, typer.Option(help="Column that names the sender.")] = "device"
    batch: Annotated[str | None, typer.Option(help="Column of rounds: what was shuffled together.")] = None
    place: Annotated[
        bool, typer.Option("--place", help="Also look at the place in the batch: without it no shuffle is seen.")
    ] = False

    def read_options(self) -> dict[str, Any]:
        """Arguments for the readers of history and releases."""
        names = [name.strip() for name in self.features.split(",") if name.strip()]
        if not names and not self.place:
            raise ParameterError("--features must name at least one column, or give --place.")
        if PLACE in names and self.place:
            raise ParameterError(
                f"--place adds a feature {PLACE!r}, which --features names already; rename the column."
            )
        return {"device": self.device, "features": names, "batch": self.batch, "place": self.place}


def _reidentify(
    history: Annotated[Path, typer.Argument(help="Table of known senders: what the attacker learned beforehand.")],
    released: Annotated[
        list[Path],
        typer.Argument(help="Releases with the same columns, in their released order; the device is for scoring."),
    ],
    columns: ColumnOptions = ColumnOptions(),
    written: TableOptions = TableOptions(),
    trees: Annotated[int, typer.Option(min=1, help="Trees of the forest.")] = 100,
    permutations: Annotated[int, typer.Option(min=1, help="Reassignments of the test against chance.")] = 999,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes the forest and the test reproducible.")] = None,
    as_json: Json = False,
) -> None:
    """Re-identification by a random forest: who sent each report, against a guess that does not look.

    Intervals are over releases; a single release is cut into up to ten parts of whole rounds (--batch). Needs the
    extra `attack`.

    Example: dovetail attack reidentify history.csv released.csv --features value,hour --batch minute --place
    """
    require("sklearn.ensemble", extra="attack")
    how = {**columns.read_options(), "read": written.reader(history, *released)}
    if any(path.resolve() == history.resolve() for path in released):
        raise ParameterError(
            f"{history}: is the history and a release; an attack on what it has learned says nothing."
        )
    records, known = read_history(str(history), **how)
    releases = read_releases([str(path) for path in released], known, **how)
    rng, left = entropy_of(seed), iter(releases)
    with progress_bar(hidden=as_json) as progress:
        progress("learn the history", 0, 1)
        attack = ForestAttack.learn(records, trees=trees, rng=rng)
        progress("learn the history", 1, 1)
        result = reidentify(
            attack, lambda rng: next(left), trials=len(releases), rng=rng, permutations=permutations,
            progress=lambda done, total: progress("attack", done, total),
        )  # fmt: skip
    document = _document(result, known, releases=len(released))
    show(document, *_recognition(document), as_json=as_json)


def _document(result: ReidentificationResult, known: tuple[str, ...], *, releases: int) -> dict[str, Any]:
    per_device = zip(
        known, *(np.round(part, 6).tolist() for part in (
            result.recall_by_device, result.recall_reach_by_device,
            result.precision_by_device, result.precision_reach_by_device,
        )), strict=True,
    )  # fmt: skip
    keys = ("device", "recall", "recall_reach", "precision", "precision_reach")
    return {
        "schema_version": 1,
        "name": result.name,
        "recall": result.recall,
        "recall_interval": list(result.recall_interval),
        "precision": result.precision,
        "precision_interval": list(result.precision_interval),
        "level": result.level,
        "chance": result.chance,
        "p_value": result.p_value,
        "features": list(result.features),
        "known_devices": len(known),
        "records": result.records,
        "trials": result.trials,
        "trials_are": "releases" if releases > 1 else "parts of one release",
        "devices": [dict(zip(keys, row, strict=True)) for row in per_device],
    }


def _recognition(document: dict[str, Any]) -> Iterator[str | Facts | Grid]:
    level, heads = percent(document["level"]), ("device", "recall", "precision")
    rows = {
        "recall": _with_interval(document, "recall"),
        "precision": _with_interval(document, "precision"),
        "chance": f"{percent(document['chance'])}: a guess that does not look",
        "p-value": f"{document['p_value']:.3g}: how often guesses about relabelled devices are right as often",
        "features": ", ".join(document["features"]),
        "records": f"{document['records']:,} of {document['known_devices']:,} known devices",
        "intervals": f"{level}, over {document['trials']:,} {document['trials_are']}",
    }
    yield Facts("Re-identification by a random forest", rows)
    ranked = sorted(document["devices"], key=lambda each: -each["recall"])
    cells = [
        (each["device"], *(f"{percent(each[what])} ± {percent(each[f'{what}_reach'])}" for what in heads[1:]))
        for each in ranked[:LONGEST]
    ]
    yield Grid("Devices recognized best", heads, cells)
    if len(ranked) > LONGEST:
        yield f"{len(ranked) - LONGEST} more devices with --json."


def _with_interval(document: dict[str, Any], what: str) -> str:
    low, high = document[f"{what}_interval"]
    return f"{percent(document[what])} ({percent(low)} to {percent(high)})"


_released.__annotations__["settings"] = AttackSettings
attack = typer.Typer(help="Attacks on tables and released files, with chance level and intervals.")
add_verbs(attack, {kind.name: verb_of(kind) for kind in ATTACKS})
add_verbs(attack, {"subset": subset, "released": _released, "reidentify": _reidentify})
VERBS = {"attack": attack}
