"""`dovetail randomize`, `shuffle` and `estimate`: one stage each, on files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from dovetail.account.gaussian_dummies import Message
from dovetail.cli.options import (
    RandomizerName,
    RandomizerSettings,
    ShufflerSettings,
    TableOptions,
    chosen,
    given,
    section_options,
)
from dovetail.cli.output import Facts, Force, Grid, Json, Seed, description_of, entropy_of, show, write_reports
from dovetail.cli.progress import tell
from dovetail.core.display import upward
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.guarantee import LocalDP, OrderPrivacy
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.question import QUESTIONS, Question
from dovetail.core.settings import split_names
from dovetail.core.stages import RANDOMIZERS, SHUFFLERS, Shuffler
from dovetail.job.build import build_collection, build_randomizer, fit_beside
from dovetail.job.collection import AnyDummies, noise_of
from dovetail.job.config import (
    EstimateSection,
    GroupsSection,
    RandomizeSection,
    RunConfig,
    ShuffleSection,
    parse_config,
)
from dovetail.job.evaluate import estimates
from dovetail.noise.local import Local
from dovetail.question.number import Number
from dovetail.question.shares import Shares
from dovetail.randomize.sampling.open_reports import OpenAnswers, OpenNumbers, randomizer_kind
from dovetail.report.document import IntervalEstimates, to_jsonable
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.sampling.dummies import (
    Dummies,
    GaussianDummies,
    SeveralDummies,
    SparseDummies,
    TruncatedGaussian,
    UserDummies,
)
from dovetail.table.csv_text import WrittenOtherwise
from dovetail.table.data_section import DataSection, parse_section
from dovetail.table.released import describe_reports, described_columns, from_columns, report_columns, to_columns

if TYPE_CHECKING:
    DataOptions = Any
    GroupOptions = Any
else:
    DataOptions = section_options(
        "DataOptions", DataSection, "categories", "lower", "upper", "grid", "public", "person", "missing", "clip"
    )
    GroupOptions = section_options(
        "GroupOptions", GroupsSection, "labels", "points", "radius", "nearest", "lists", "edges", "hops", "ids"
    )


def shuffle_section(shuffler: str | None, alpha: float | None, groups: GroupOptions, settings: Any) -> dict[str, Any]:
    """The section [shuffle]: the best shuffler with alpha, inside groups without it, else a uniform one."""
    found = groups.section()
    name = shuffler or ("uniform" if not found else "within_groups" if alpha is None else "best")
    return given({"shuffler": name, "alpha": alpha, "groups": found or None, **chosen(settings)})


# `dovetail randomize`: the device stage on a file.


def _randomize(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet.")],
    private: Annotated[str, typer.Option(help="The private column.")],
    epsilon: Annotated[float, typer.Option(help="Local epsilon of each report, nats.")],
    out: Annotated[Path, typer.Option(help="Parquet file for the reports.")],
    data: DataOptions,
    written: TableOptions,
    settings: RandomizerSettings,
    randomizer: RandomizerName = "krr",
    seed: Seed = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Turn a private column into locally private reports, one per row, in a fresh random order of the rows.

    Example: dovetail randomize survey.csv --private affair --categories no,yes --epsilon 2 --out y.parquet
    """
    asked = {"randomizer": randomizer, "epsilon": epsilon, **chosen(settings)}
    rng, source = entropy_of(seed), {"path": str(table), "private": private, **data.section(), **written.section()}
    tell("read the table")
    try:
        collection = build_collection(_config(source, asked, seed=seed), rng)
    except WrittenOtherwise as error:
        raise DataError(error.options) from None
    made, known = collection.randomizer, collection.categories
    tell(f"randomize {collection.n:,} values")
    reports = to_columns(made, made.randomize(collection.survey.values, rng), known)
    description = describe_reports(made, known, rng.provenance, columns=reports.columns)
    write_reports(pl.concat([collection.survey.public, reports], how="horizontal"), out, description, force=force)
    local = made.guarantee.drawn_from(rng.provenance)
    document = _document(collection.n, local, description, out)
    show(document, Facts("Randomized", _rows(collection.n, local, out)), as_json=as_json)


def _config(data: dict[str, Any], randomize: dict[str, Any], *, seed: int | None) -> RunConfig:
    """The configuration that the options describe: with a seed it is a rehearsal."""
    mode = {"mode": "release"} if seed is None else {"mode": "rehearsal", "seed": seed}
    return parse_config({"schema_version": 1, "data": data, "randomize": randomize, **mode}, name="options")


def _document(n: int, local: LocalDP, description: dict[str, Any], out: Path) -> dict[str, Any]:
    return {
        "n": n,
        "local": {"epsilon": local.epsilon, "delta": local.delta, "source": local.source, "caveats": local.caveats},
        **description,
        "files": {"reports": str(out)},
    }


def _rows(n: int, local: LocalDP, out: Path) -> dict[str, str]:
    caution = {"caution": "; ".join(local.caveats)} if local.caveats else {}
    return {"reports": f"{n:,} in {out}", "local epsilon": upward(local.epsilon), "source": local.source, **caution}


# `dovetail shuffle`: the stage in between on a file of reports.


MOVING = [kind.name for kind in SHUFFLERS if kind.moves_reports]


def _shuffle(
    reports: Annotated[Path, typer.Argument(help="Reports as `randomize` writes them, or any table with `report`.")],
    out: Annotated[Path, typer.Option(help="Parquet file for the shuffled reports.")],
    groups: GroupOptions,
    settings: ShufflerSettings,
    written: TableOptions = TableOptions(),
    shuffler: Annotated[
        str | None,
        typer.Option(help=f"Default: best where groups are given, otherwise uniform. One of {', '.join(MOVING)}."),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Order privacy, nats; rase: only with --refine.")] = None,
    seed: Seed = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Reorder a batch of reports; a uniform shuffle drops the public columns, the others keep them beside.

    Example: dovetail shuffle y.parquet --shuffler within_groups --labels age --out z.parquet
    """
    if shuffler is None and groups.section():
        shuffler = "best"
    section = _section(shuffle_section(shuffler, alpha, groups, settings))
    rng = entropy_of(seed)
    tell("read the reports")
    table = written.reader(reports)(str(reports))
    if table.height == 0:
        raise DataError(f"{reports}: the table has no rows.")
    columns = described_columns(table, description_of(reports))
    if not columns:
        raise DataError(f"{reports}: the table has no column 'report' (nor report_0, report_1, ..).")
    table = table[rng.permutation(table.height)]  # the order of a file may encode the secret
    public = table.drop(columns)
    tell(f"fit and shuffle {table.height:,} reports")
    fitted = fit_beside(section, public, n=table.height)
    moved = table.select(columns)[fitted.permutation(rng)]
    released = pl.concat([public, moved], how="horizontal") if fitted.keeps_places else moved
    description = {**description_of(reports), "shuffle": section.model_dump(mode="json")}
    simulated = "simulation" in (rng.provenance, description.get("entropy"))
    description["entropy"] = "simulation" if simulated else "device"
    write_reports(released, out, description, force=force)
    order = fitted.guarantee.drawn_from(description["entropy"])
    _tell(fitted, order, description, out, as_json=as_json)


def _section(raw: dict[str, Any]) -> ShuffleSection:
    kind = SHUFFLERS[raw["shuffler"]]
    if not kind.moves_reports:
        raise ParameterError(f"--shuffler {kind.name} leaves everybody's report in place; choose another one.")
    if not kind.needs_groups and not kind.settings() and ("groups" in raw or "alpha" in raw):
        raise ParameterError(
            f"--shuffler {kind.name} takes no groups and no alpha; choose another --shuffler, or drop them."
        )
    return parse_section(ShuffleSection, raw, name="options")


def _tell(fitted: Shuffler, order: OrderPrivacy, description: dict[str, Any], out: Path, *, as_json: bool) -> None:
    shown = {name: "inf" if value == math.inf else value for name, value in fitted.summary().items()}
    document = {
        "n": fitted.n,
        "shuffler": fitted.name,
        "alpha": "inf" if order.alpha == math.inf else order.alpha,
        "source": order.source,
        "caveats": order.caveats,
        "summary": shown,
        "entropy": description["entropy"],
        "files": {"reports": str(out)},
    }
    rows = {"reports": f"{fitted.n:,} in {out}", **{name: str(value) for name, value in shown.items()}}
    rows["source"] = order.source
    if order.caveats:
        rows["caution"] = "; ".join(order.caveats)
    show(document, Facts("Shuffled", rows), as_json=as_json)


# `dovetail estimate`: the analyst's stage on a file of reports.


@dataclass(frozen=True)
class MadeOptions:
    """How the reports were made, for tables that do not say so."""

    randomizer: Annotated[
        str | None,
        typer.Option(help=f"For tables that do not say how they were made: {', '.join(RANDOMIZERS.names())}."),
    ] = None
    epsilon: Annotated[float | None, typer.Option(help="With --randomizer.")] = None
    categories: Annotated[str | None, typer.Option(help="With --randomizer: separated by commas.")] = None
    lower: Annotated[float | None, typer.Option(help="With --randomizer: numbers.")] = None
    upper: Annotated[float | None, typer.Option(help="With --randomizer: numbers.")] = None
    grid: Annotated[float | None, typer.Option(help="With --randomizer: numbers.")] = None

    def told(self, settings: Any) -> dict[str, Any]:
        """Return what the options say; empty without --randomizer."""
        found = given(asdict(self) | {"categories": split_names(self.categories) or None}) | chosen(settings)
        if self.randomizer is None:
            if found:
                raise ParameterError(
                    f"--{next(iter(found))} goes with --randomizer, for tables that do not say how they were made."
                )
            return {}
        question = RANDOMIZERS[self.randomizer].question
        if question == "frequency" and not self.categories:
            raise ParameterError("--randomizer needs --categories, the declared categories in their order.")
        if question == "mean" and (self.lower is None or self.upper is None):
            raise ParameterError(f"--randomizer {self.randomizer} needs --lower and --upper.")
        return found


def _estimate(
    reports: Annotated[Path, typer.Argument(help="Parquet from `randomize`, `shuffle` or `run`; or any table.")],
    options: MadeOptions,
    settings: RandomizerSettings,
    written: TableOptions = TableOptions(),
    by: Annotated[str, typer.Option(help="Public columns to estimate by, separated by commas.")] = "",
    min_group_size: Annotated[int, typer.Option(min=2, help="Smaller groups are withheld.")] = 50,
    as_json: Json = False,
) -> None:
    """Unbiased frequencies or a mean with standard errors and 95 % intervals, overall and per public group.

    Example: dovetail estimate z.parquet --by age
    """
    tell("read the reports")
    table = written.reader(reports)(str(reports))
    if table.height == 0:
        raise DataError(f"{reports}: the table has no rows.")
    made = _made(reports, options.told(settings))
    if made.get("classes"):
        raise DataError(f"{reports}: holds reports of different epsilons; its estimates are in the report beside it.")
    question, noise, people = asked_in(made, table.height)
    public, wanted = table.drop(report_columns(table)), split_names(by)
    for name in wanted:
        if name not in public.columns:
            raise DataError(f"{reports}: column {name!r} does not stand beside the reports; there: {public.columns}.")
    shuffle = given(made.get("shuffle") or {})
    section = parse_section(ShuffleSection, shuffle, name=str(reports)) if shuffle and wanted else None
    beside: pl.DataFrame | Missing = public if wanted else Missing("no grouping column was asked for")
    tell(f"estimate from {table.height:,} reports")
    answer = estimates(
        question, noise, Identity(table.height) if section is None else fit_beside(section, public, n=table.height),
        people, from_columns(noise.randomizer, table, question.names), beside,
        wanted=EstimateSection(by=wanted, min_group_size=min_group_size), truth=None,
    )  # fmt: skip
    blocks = _blocks(answer.overall, answer.groups, answer.withheld)
    show(to_jsonable(answer), *blocks, as_json=as_json)


def _made(reports: Path, told: dict[str, Any]) -> dict[str, Any]:
    """How the reports were made: by the file, or by options that do not contradict it."""
    made = description_of(reports)
    if "questions" in made:
        raise DataError(
            f"{reports}: holds answers to several questions; their estimates are in the report beside it."
        )
    for name, value in told.items():
        if name in made and made[name] != value:
            raise ParameterError(
                f"{reports}: says that its reports were made with {name} {made[name]!r}, not {value!r}; drop "
                "--randomizer and what goes with it."
            )
    if not told and "randomizer" not in made:
        raise DataError(
            f"{reports}: does not say how its reports were made; give --randomizer, --epsilon and domain."
        )
    return {**told, "shuffle": made.get("shuffle")} if told else made


def asked_in(made: dict[str, Any], reports: int) -> tuple[Question, Noise, People]:
    """The question that released reports answer, the noise in them, and how many people sent them."""
    domain = given({key: made.get(key) for key in ("categories", "lower", "upper", "grid")})
    data = parse_section(DataSection, {"private": "report", **domain}, name="options")
    added = made.get("dummies") or made.get("user_dummies") or {}
    people = People(added.get("people", reports), pl.DataFrame(), added.get("honest"))
    question: Question = Number.of(data, None) if data.numeric else Shares.of(data, data.categories)
    if made.get("question"):
        settings = dict(made["question"])
        question = QUESTIONS[settings.pop("ask")](**settings)
    if made["randomizer"] == OpenAnswers.name:
        own: Any
        if data.numeric:
            digits = len(added.get("reaches", ()))
            points = 3**digits if digits else round((data.upper - data.lower) / data.grid) + 1  # type: ignore[operator]
            own = OpenNumbers(float(data.lower or 0.0), float(data.upper or 0.0), points)
        else:
            own = OpenAnswers(len(data.categories or ()))
    else:
        kept = [one.name for one in randomizer_kind(made["randomizer"]).settings()]
        asked = given({key: made.get(key) for key in ("randomizer", "epsilon", *kept)})
        own = build_randomizer(parse_section(RandomizeSection, asked, name="options", at="randomize"), question)
    if not added:
        return question, Local(own), people
    dummies = _added(added, own.points if data.numeric else own.k, question)
    return question, noise_of(own, dummies, symbols=question.symbols), people


def _added(added: dict[str, Any], symbols: int, question: Question) -> AnyDummies:
    """The dummies that a release says it holds."""
    if "rate" in added:
        return UserDummies(symbols, added["rate"])
    if added.get("sparse"):
        return SparseDummies(symbols, added["epsilon"])
    if "reaches" in added:
        reaches = tuple(added["reaches"])
        return Message(Fraction(added["variance"]), tuple(3**k for k in range(len(reaches))), reaches)
    if "each" in added:
        laws = tuple(TruncatedGaussian(Fraction(one), reach) for one, reach in added["each"])
        return SeveralDummies(laws, question.lists)
    if "variance" in added:
        return GaussianDummies(symbols, TruncatedGaussian(Fraction(added["variance"]), added["reach"]))
    return Dummies(symbols, added["epsilon"], added["delta"])


def _blocks(overall: IntervalEstimates, groups: Any, withheld: list[dict[str, Any]]) -> Iterator[Grid | str]:
    rows = [
        (
            "everybody" if entry.by is None else f"{entry.by} = {entry.group}",
            str(label),
            f"{value:.4g}",
            f"{error:.2g}",
            f"{low:.4g} to {high:.4g}",
            f"{entry.n:,}",
        )
        for entry in [overall, *(groups if isinstance(groups, list) else [])]
        for label, value, error, (low, high) in zip(
            entry.labels, entry.value, entry.standard_error, entry.interval, strict=True
        )
    ]
    columns = ("group", "label", "estimate", "standard error", "interval", "n")
    yield Grid("Estimates with 95 % intervals", columns, rows)
    for item in withheld:
        yield f"withheld: {item['groups']} small groups of {item['by']} ({item['people']} people)"


VERBS = {"randomize": _randomize, "shuffle": _shuffle, "estimate": _estimate}
