"""`dovetail study`: reproduce a figure or a claim."""

from __future__ import annotations

import importlib
import os
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.output import Facts, Json, show
from dovetail.cli.progress import tell
from dovetail.core.errors import DataError, OutputError, ParameterError

if TYPE_CHECKING:
    import polars as pl

HOME = Path(__file__).parents[3] / "studies"


def _study(
    name: Annotated[
        str | None, typer.Argument(help="The study, or a panel such as fig4a; without a name, all are listed.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="The size of the claim instead of a toy.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of public data sets; default $DOVETAIL_DATA.")] = None,
    pudf: Annotated[
        Path | None,
        typer.Option(
            help="For fig4p: the Texas discharges; default $DOVETAIL_PUDF, and without it a made-up stand-in."
        ),
    ] = None,
    hospitals: Annotated[
        Path | None,
        typer.Option(help="With --pudf: a table hospital,latitude,longitude; default $DOVETAIL_HOSPITALS."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the table and the picture.")] = Path("study-out"),
    as_json: Json = False,
) -> None:
    """Reproduce a figure or a claim: a table, a picture, and whether it holds.

    Studies live beside the package in its source checkout. Each is a folder with a README that says what is claimed
    and what was measured.

    Example: dovetail study fig7 --out fig7
    """
    if name is None:
        titles = {study: claim_of(study) for study in studies()}
        show(titles, Facts("Studies", titles), as_json=as_json)
        return
    study = study_of(name)[0]
    if data is not None:
        if not data.is_dir():
            raise DataError(f"{data}: no such folder of data sets.")
        os.environ["DOVETAIL_DATA"] = str(data)
    for option, file, variable in (
        ("--pudf", pudf, "DOVETAIL_PUDF"), ("--hospitals", hospitals, "DOVETAIL_HOSPITALS")
    ):  # fmt: skip
        if file is not None:
            if name != "fig4p":
                raise ParameterError(f"{option} goes with fig4p, got {name}.")
            os.environ[variable] = str(file)
    tell(f"{name} in {'full' if full else 'toy'} size")
    with _folder(out):
        document = reproduce(name, full=full, out=out)
    rows = {claim: "holds" if held else "DOES NOT HOLD" for claim, held in document["verdict"].items()}
    rows |= {"table": f"{len(document['rows'])} rows", "files": str(out)}
    show(document, Facts(claim_of(study), rows), as_json=as_json)


@contextmanager
def _folder(out: Path) -> Iterator[None]:
    """A folder for results; one that was made for them goes again where nothing was written to it."""
    made = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written ({error.strerror}); name another place.") from None
    try:
        yield
    except BaseException:
        if made:
            with suppress(OSError):  # as it is where something lies in it
                out.rmdir()
        raise


def reproduce(name: str, *, full: bool, out: Path) -> dict[str, Any]:
    """Run one study, or one of its panels; its document."""
    study, panel = study_of(name)
    run = module(study)
    table: pl.DataFrame = run.main(full, out, panel) if panel else run.main(full, out)
    picture = next((str(path) for path in sorted(out.glob("*.png"))), None)
    expected = HOME / study / "expected.toml"
    return {
        "schema_version": 1,
        "study": name,
        "size": "full" if full else "toy",
        "figure": picture or {"value": None, "reason": "no picture: matplotlib is in the extra `studies`"},
        "rows": [{column: null_free(value) for column, value in row.items()} for row in table.to_dicts()],
        "expected": tomllib.loads(expected.read_text()) if expected.exists() else {},
        "verdict": {claim: bool(held) for claim, held in run.verdict(table).items()},
    }


def null_free(value: Any) -> Any:
    """JSON has no infinity and no not-a-number."""
    if isinstance(value, float) and value != value:
        return None
    return "inf" if value == float("inf") else value


def studies() -> list[str]:
    """The names of all studies."""
    if not HOME.is_dir():
        raise DataError("studies are part of the source checkout, not of the installed package; run this from there.")
    return sorted(path.parent.name for path in HOME.glob("*/run.py") if path.with_name("README.md").exists())


def study_of(name: str) -> tuple[str, str | None]:
    """The study of this name, and the panel of it that the last letter may name."""
    known = studies()
    if name in known:
        return name, None
    if name[:-1] in known and name[-1] in getattr(module(name[:-1]), "PANELS", {}):
        return name[:-1], name[-1]
    from dovetail.core.checks import nearest

    raise ParameterError(f"no study is called {name!r}{nearest(name, known)}")


def claim_of(name: str) -> str:
    """The claim that the study's README opens with."""
    return (HOME / name / "README.md").read_text().splitlines()[0].removeprefix("# Claim: ")


def module(name: str) -> ModuleType:
    """The study's code, from the checkout."""
    root = str(HOME.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    return importlib.import_module(f"studies.{name}.run")


VERBS = {"study": _study}
