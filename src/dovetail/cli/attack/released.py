"""`dovetail attack released`: what an attacker gets out of files that were released, scored against a known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from dovetail.attack.experiment.run_attack import attack_released
from dovetail.cli.attack import values
from dovetail.cli.console.options import given
from dovetail.cli.console.output import Force, Json, Seed, description_of, entropy_of
from dovetail.cli.shuffle import _fit as fit_shuffler
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.stages import Reports, Shuffler
from dovetail.pipeline.attack_experiment import Scene
from dovetail.pipeline.config.run_config import parse_section
from dovetail.pipeline.config.sections import NUMERIC, AttackName, ShuffleSection
from dovetail.pipeline.evaluate.attacks import attacker
from dovetail.pipeline.files.released_rows import rows_of_people, shared_columns
from dovetail.pipeline.files.report_columns import described_columns, from_columns
from dovetail.pipeline.files.table import read_table
from dovetail.report.document import Missing
from dovetail.shuffle.identity import Identity

ONE = Missing("one release tells nothing about others; give several released files")


def released(
    files: Annotated[
        list[Path], typer.Argument(help="Released tables of the same people: reports beside public columns.")
    ],
    truth: Annotated[
        Path, typer.Option(help="CSV or Parquet, a row for each person: the truth, for scoring, and public columns.")
    ],
    private: values.Private,
    attack: Annotated[AttackName, typer.Option(help="Which attack.")] = "majority",
    randomizer: Annotated[
        values.RandomizerName | None, typer.Option(help="For files that do not say how they were made.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="With --randomizer: local epsilon, nats.")] = None,
    labels: values.Labels = None,
    points: values.Points = None,
    radius: values.Radius = None,
    nearest: values.Nearest = None,
    similar: values.Similar = "",
    reach: values.Reach = None,
    votes: values.Votes = 25,
    person: values.Person = None,
    targets: values.Targets = 10_000,
    seed: Seed = None,
    out: values.Out = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Attack files that `run`, `randomize` and `shuffle` have written, or tables like them.

    A person is sought at the row that has all columns which the truth and the file share; among equal rows at
    any of them. Files without public columns were mixed evenly. Who is near is said by the file, or by options.

    Example: dovetail attack released z.parquet --truth survey.csv --private secret --labels age --similar income
    """
    options = {**locals()}
    values.check_place(out)
    if (randomizer is None) != (epsilon is None):
        raise ParameterError("--randomizer and --epsilon go together, for files that do not say how they were made.")
    rng = entropy_of(seed)
    tables = {str(path): _read(path) for path in files}
    made = _made(files, options)
    scene, batches = _scene(tables, made, options, rng)
    who = rng.permutation(scene.survey.n)[:targets]
    attacking = attacker(
        attack, scene.known, scene.randomizer, _shuffler(made, scene) if attack == "definetti" else scene.shuffler,
        targets=who, votes=votes, seen=batches[0], rng=rng,
    )  # fmt: skip
    found = attack_released(attacking, scene.survey.values, batches, rng=rng)
    one = {"interval": ONE, "vulnerable": ONE} if len(files) == 1 else {}
    shuffle = made.get("shuffle") or {}
    alpha = shuffle.get("alpha")
    more = {
        "shuffler": shuffle.get("shuffler", Missing("the file does not say how it was shuffled")),
        "alpha": Missing("the file does not say what its order promises") if alpha is None else alpha,
    }
    values.tell(found, scene, scene.names[who], options, {**one, **more})


def _read(path: Path) -> pl.DataFrame:
    table = read_table(str(path))
    if table.height == 0:
        raise DataError(f"{path}: the table has no rows.")
    return table


def _made(files: list[Path], options: dict[str, Any]) -> dict[str, Any]:
    """How the reports were made: by the files, which must agree, or by options."""
    found = [description_of(path) for path in files]
    keys = ("randomizer", "epsilon", "categories", "shuffle", "columns")
    made = {key: found[0].get(key) for key in keys}
    for path, other in zip(files[1:], found[1:], strict=True):
        differs = next((key for key in keys if other.get(key) != made[key]), None)
        if differs is not None:
            raise DataError(f"{path}: was made with another {differs} than {files[0]}; attack each by itself.")
    told = {name: options[name] for name in ("randomizer", "epsilon")}
    if made["randomizer"] is None and told["randomizer"] is None:
        raise DataError(f"{files[0]}: does not say how its reports were made; give --randomizer and --epsilon.")
    if made["randomizer"] is not None and told["randomizer"] is not None:
        raise ParameterError(f"{files[0]}: says how its reports were made; drop --randomizer and --epsilon.")
    if made["randomizer"] in NUMERIC:
        raise DataError(f"{files[0]}: holds reports about numbers; the attacks guess categories.")
    return {**made, **given(told), "described": bool(found[0])}


def _scene(
    tables: dict[str, pl.DataFrame], made: dict[str, Any], options: dict[str, Any], rng: Entropy
) -> tuple[Scene, list[Reports]]:
    """The people of the truth, and the reports of every file at the places of these people."""
    known, person = read_table(str(options["truth"])).columns, options["person"]
    public = {path: table.drop(described_columns(table, made)) for path, table in tables.items()}
    truth = [name for name in known if name != options["private"]]
    shared = {path: shared_columns(path, columns, truth) for path, columns in public.items()}
    beside = list(dict.fromkeys(name for names in shared.values() for name in names))
    groups = values.groups_of(options) or (made["shuffle"] or {}).get("groups")
    scene = Scene.of(
        str(options["truth"]),
        private=options["private"],
        person=person,
        similar=values.names_in(options["similar"]),
        randomize={"randomizer": made["randomizer"], "epsilon": made["epsilon"]},
        shuffle={"shuffler": "identity", **given({"groups": groups})},
        reach=options["reach"],
        categories=made["categories"],
        beside=beside,
        rng=rng,
    )
    everybody = pl.DataFrame([*scene.survey.people, *scene.survey.public])
    categories = list(scene.survey.categories or ())
    batches = []
    for path, table in tables.items():
        reports = from_columns(scene.randomizer, table, categories)
        batches.append(reports[rows_of_people(path, table, everybody, shared=shared[path])])
    return scene, batches


def _shuffler(made: dict[str, Any], scene: Scene) -> Shuffler:
    """What shuffled the files, for the places that it mixes."""
    if not made["described"]:
        raise DataError(
            "the de Finetti attack needs to know what was mixed; the files do not say how they were made."
        )
    if made["shuffle"] is None:
        return Identity(scene.survey.n)
    section = parse_section(ShuffleSection, made["shuffle"], name="the file")
    shuffler: Shuffler = fit_shuffler(section, scene.survey.public, scene.survey.n)
    return shuffler
