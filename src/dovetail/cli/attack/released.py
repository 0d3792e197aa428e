"""`dovetail attack released`: what an attacker gets out of files that were released, scored against a known truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from dovetail.attack.experiment.run_attack import attack_released
from dovetail.cli.attack.values import (
    KnownOptions,
    OutputOptions,
    Private,
    Targets,
    check_place,
    tell,
    told_bound,
)
from dovetail.cli.console.mechanism_options import GroupOptions, RandomizerSettings, chosen, settings_group
from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.options import given
from dovetail.cli.console.output import description_of, entropy_of
from dovetail.cli.console.table_options import TableOptions
from dovetail.core.attack import Attack
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.registries import ATTACKS, RANDOMIZERS
from dovetail.core.settings import split_names
from dovetail.core.stages import Reports, Shuffler
from dovetail.pipeline.config.build import fit_beside
from dovetail.pipeline.config.parse import parse_section
from dovetail.pipeline.config.sections import RandomizeSection, ShuffleSection
from dovetail.pipeline.evaluate.attack_experiment import AttackExperiment
from dovetail.pipeline.evaluate.attacks import bound_of
from dovetail.pipeline.files.released_rows import rows_of_people, shared_columns
from dovetail.pipeline.files.report_columns import described_columns, from_columns
from dovetail.pipeline.files.table_reader import TableReader
from dovetail.report.document import Missing
from dovetail.shuffle.identity import Identity

ONE = Missing("one release tells nothing about others; give several released files")

AttackSettings: Any = settings_group("AttackSettings", ATTACKS)


@dataclass(frozen=True)
class MadeOptions:
    """How the reports were made, for files that do not say so."""

    randomizer: Annotated[str | None, typer.Option(help="For files that do not say how they were made.")] = None
    epsilon: Annotated[float | None, typer.Option(help="With --randomizer: local epsilon, nats.")] = None

    def told(self, settings: Any) -> dict[str, Any]:
        """What the options say; empty without --randomizer."""
        found = given({"randomizer": self.randomizer, "epsilon": self.epsilon}) | chosen(settings)
        if found and (self.randomizer is None or self.epsilon is None):
            raise ParameterError(
                "--randomizer and --epsilon go together, for files that do not say how they were made."
            )
        return found


@dataclass(frozen=True)
class AttackOptions:
    """Which attack, and on whom."""

    attack: Annotated[str, typer.Option(help=f"Which attack: {', '.join(ATTACKS.names())}.")] = "majority"
    targets: Targets = 10_000


def register(group: typer.Typer) -> None:
    """Add the verb to `dovetail attack`."""
    _released.__annotations__["settings"] = AttackSettings
    group.command("released")(flatten(_released))


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
    kind, rng = ATTACKS[chosen_attack.attack], entropy_of(output.seed)
    taken = {one.name for one in kind.settings()}
    read = written.reader(truth, *files)
    tables = {str(path): _read(path, read) for path in files}
    made = _made(files, made_options.told(randomizing))
    near = groups.section() or (made["shuffle"] or {}).get("groups")
    experiment, batches = _experiment(tables, truth, private, known, made, given({"groups": near}), read, rng)
    who = rng.permutation(experiment.collection.n)[: chosen_attack.targets]
    attacking = kind.prepare(
        experiment.knowledge(batches[0]), experiment.randomizer, _shuffler(kind, made, experiment), targets=who,
        rng=rng, **{name: value for name, value in chosen(settings).items() if name in taken},
    )  # fmt: skip
    found = attack_released(attacking, experiment.collection.survey.values, batches, rng=rng)
    one = {"interval": ONE, "vulnerable": ONE} if len(files) == 1 else {}
    shuffle = made.get("shuffle") or {}
    alpha = shuffle.get("alpha")
    more = {
        "shuffler": shuffle.get("shuffler", Missing("the file does not say how it was shuffled")),
        "alpha": Missing("the file does not say what its order promises") if alpha is None else alpha,
    }
    bound = bound_of(experiment.knowledge(), experiment.randomizer, experiment.collection.shuffler, targets=who)
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
    keys = ("randomizer", "epsilon", "categories", "shuffle", "columns", *own)
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
    if RANDOMIZERS[str(made["randomizer"])].question != "frequency":
        raise DataError(f"{files[0]}: holds reports about numbers; the attacks guess categories.")
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
        reach=known.reach, categories=made["categories"],
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
    """What shuffled the files, for attacks that ask which places it mixes."""
    if kind.asks_what_is_mixed and not made["described"]:
        raise DataError(
            f"the {kind.label} attack needs to know what was mixed; the files do not say how they were made."
        )
    if not kind.asks_what_is_mixed or made["shuffle"] is None:
        return Identity(experiment.collection.n)
    section = parse_section(ShuffleSection, given(made["shuffle"]), name="the file")
    return fit_beside(section, experiment.collection.survey.public, n=experiment.collection.n)
