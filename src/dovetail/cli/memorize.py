"""`dovetail memorize`: tests of memorization; options and printing, no mathematics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.options import add_verbs, as_share, verb_group
from dovetail.cli.output import Facts, Force, Grid, Json, check_free, show, write_text
from dovetail.cli.progress import progress_bar, tell
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.settings import split_names

if TYPE_CHECKING:
    from dovetail.memorize.copying.data_copying import CopyingTest
    from dovetail.memorize.sample_files import Samples


app = verb_group(
    "memorize",
    """Does a model repeat its data: tests of generators and encoders that find memorization and promise nothing.

    copying: is a generated table, array or folder of images nearer to the training data than fresh data are. dejavu:
    does an encoder tell from the background what only its training images could have taught it. crop: the largest
    part of an image that meets no object. Verbs that print facts take --json. Passing a test is no privacy.
    """,
)


# `dovetail memorize copying`: is what a model generates nearer to its training data than fresh data are.


Sample = "CSV, Parquet, .npy, .npz or a folder of images."


def _copying(
    train: Annotated[Path, typer.Option(help=f"What the model was trained on: {Sample}")],
    generated: Annotated[list[Path], typer.Option(help="What it generated; repeat the option to compare models.")],
    fresh: Annotated[Path | None, typer.Option(help="The same kind of data, not used in training or tuning.")] = None,
    holdout: Annotated[
        Path | None, typer.Option(help="More fresh data for the controls. Default: FRESH serves them too.")
    ] = None,
    distance: Annotated[str, typer.Option(help="euclidean or cosine.")] = "euclidean",
    cells: Annotated[
        str | None, typer.Option(help="Number of k-means cells, or a table's column of categories. Default: by size.")
    ] = None,
    ignore: Annotated[
        str | None, typer.Option(help="Columns to leave out, such as row numbers; with commas.")
    ] = None,
    categories: Annotated[
        str | None, typer.Option(help="Columns of numbers that are names of things; with commas.")
    ] = None,
    array: Annotated[str | None, typer.Option(help="Name of the array in .npz files that hold several.")] = None,
    image_shape: Annotated[
        str | None, typer.Option(help="HEIGHTxWIDTH of flat rows that are pictures; x3 for colours.")
    ] = None,
    overlap: Annotated[
        str, typer.Option(help="Fresh rows that stand in TRAIN: refuse more than chance explains, drop or keep them.")
    ] = "refuse",
    search: Annotated[
        str, typer.Option(help="Of training rows near GENERATED: auto, exact or approximate (auto: from a million).")
    ] = "auto",
    deduplicate: Annotated[bool, typer.Option("--deduplicate", help="Compare distinct rows only.")] = False,
    level: Annotated[
        float, typer.Option(parser=as_share, help="Level of each of the verdict's two families of tests.")
    ] = 0.05,
    tail: Annotated[int, typer.Option(help="How many nearest points the tail tests look at.", min=1)] = 10,
    baselines: Annotated[bool, typer.Option(help="Also what other measures say.")] = True,
    reference: Annotated[
        bool, typer.Option("--reference", help="Statistics by the formulas of the paper's published code.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of k-means, random halves and ties.", min=0)] = 0,
    report: Annotated[Path | None, typer.Option(help="HTML page; several models: one page each, numbered.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Test whether generated data repeat the training data: nearer to it than fresh data are, overall or in a cell.

    Needs a fresh sample that the model has not seen. Controls tell copying from a model that only shrinks the data.
    Finding nothing is no proof of absence, and passing is no privacy guarantee.

    Example: dovetail memorize copying --train train.csv --fresh heldout.csv --generated synthetic.csv
    """
    from dovetail.memorize.copying.data_copying import CopyingTest
    from dovetail.memorize.sample_files import generated_key, read_samples

    pages = _pages(report, len(generated))
    for page in pages:
        check_free(page, force=force)
    samples = read_samples(
        train, fresh, generated, holdout=holdout, ignore=split_names(ignore), categories=split_names(categories),
        array=array, image_shape=_shape(image_shape),
    )  # fmt: skip
    documents = []
    with progress_bar(hidden=as_json) as progress:
        prepared = CopyingTest.prepare(
            samples.points["train"], samples.points["fresh"], holdout=samples.points.get("holdout"),
            distance=distance, cells=_cells(cells, samples), overlap=overlap, search=search,  # type: ignore[arg-type]
            widths=None if samples.mixed is None else samples.mixed.widths,
            deduplicate=deduplicate, level=level, tail=tail, seed=seed, progress=progress,
        )  # fmt: skip
        for place in generated:
            points = samples.points[generated_key(place)]
            result = prepared.test(points, baselines=baselines, progress=progress).document()
            document = {"generated": str(place), **result, "distances": samples.described}
            if reference:
                document |= prepared.reference(points).replacing(document)
            documents.append(document)
    for document, page in zip(documents, pages, strict=False):
        _write_page(document, prepared, samples, page, force=force)
        document["files"] = {"report": str(page)}
    show(
        documents[0] if len(documents) == 1 else {"results": documents},
        *(block for document in documents for block in _copying_blocks(document)),
        as_json=as_json,
    )


def _write_page(
    document: dict[str, Any], prepared: CopyingTest, samples: Samples, page: Path, *, force: bool
) -> None:
    from dovetail.memorize.sample_files import generated_key
    from dovetail.report.html import render_result
    from dovetail.report.memorization import copying_page

    generated = generated_key(Path(document["generated"]))
    points = {"train": prepared.train, "fresh": prepared.fresh, "generated": samples.points[generated]}
    shown = {"train": samples.shown["train"], "generated": samples.shown[generated]}
    labels = prepared.cells_of(points["generated"])
    text = render_result(copying_page(document, document["nearest"], points, labels, shown))
    write_text(page, text, force=force)


def _pages(report: Path | None, count: int) -> list[Path]:
    if report is None:
        return []
    return [report] if count == 1 else [report.with_stem(f"{report.stem}-{i}") for i in range(1, count + 1)]


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) not in (2, 3) or not all(part.isdigit() and int(part) > 0 for part in parts) or parts[2:] not in (
        [], ["1"], ["3"],
    ):  # fmt: skip
        raise ParameterError(f"--image-shape must be HEIGHTxWIDTH or HEIGHTxWIDTHx3, got {text!r}.")
    return tuple(int(part) for part in parts)


def _cells(text: str | None, samples: Samples) -> Any:
    if text is None or text.isdigit():
        return None if text is None else int(text)
    if samples.mixed is None:
        raise ParameterError(f"--cells must be a whole number, at least 1 (a column: for tables), got {text!r}.")
    return samples.mixed.cells_of(text)


def _copying_blocks(document: dict[str, Any]) -> Iterator[Facts | Grid]:
    low, high = document["delta"]["interval"]
    standard = document["c_t_standardized"]
    ratio, member = document["controls"]["holdout_ratio"], document["controls"]["membership"]
    rows = {
        "verdict": document["sentence"],
        "samples": f"{document['l']:,} training, {document['n']:,} fresh, {document['m']:,} generated rows",
        "Delta": f"{document['delta']['value']:.3f} ({low:.3f} to {high:.3f}); below 1/2 is nearer than fresh data",
        "all points": f"Z {document['z']:+.2f}, p {document['p_copying']:.2g} for copying, "
        f"{document['p_underfitting']:.2g} for under-fitting",
        "average of cells": "no cell is large enough"
        if isinstance(standard, dict)
        else f"C_T {document['c_t']:+.2f}, standardized {standard:+.2f}",
        "exact copies": f"{document['duplicates']:,} generated rows, {document['duplicate_test']['fresh']:,} fresh",
        "nearest points": f"{document['tail']['generated']} of {document['tail']['k']} are generated "
        f"({document['tail']['expected']:.1f} expected), p {document['tail']['p']:.2g}",
        "holdout ratio": f"{ratio['training']} training against {ratio['holdout']} held-out points, "
        f"p {ratio['p']:.2g}",
        "membership": f"AUC {member['auc']:.3f}, p {member['p']:.2g}; {member['hits_at_one_percent']:.1%} found at "
        "1 % false alarms",
        "copied at least": f"{document['copied_fraction']['at_least']:.2%}, if the rest follows the truth",
    }
    rows |= {f"warning {place}": line for place, line in enumerate(document["warnings"], 1)}
    if "files" in document:
        rows["report"] = document["files"]["report"]
    yield Facts(f"Does {document['generated']} repeat the training data", rows)
    cells = []
    for cell in document["cells"]:
        low, high = cell["interval"]
        cells.append((
            str(cell["cell"]), f"{cell['n']:,}", f"{cell['m']:,}", f"{cell['delta']:.3f}", f"{low:.3f} to {high:.3f}",
            f"{cell['z']:+.2f}", f"{cell['p_holm']:.2g}", f"{cell['minimum_detectable_share']:.1%}",
        ))  # fmt: skip
    heads = ("cell", "fresh", "generated", "Delta", "interval", "Z", "p (Holm)", "copies seen from")
    yield Grid("Cells", heads, cells)
    if "frechet" in document["baselines"]:
        yield Facts("What other measures say", {
            name: found.get("reason") or ", ".join(f"{key} {value:.4g}" for key, value in found.items())
            for name, found in document["baselines"].items()
        })  # fmt: skip


# `dovetail memorize crop`: the largest part of an image that meets no object, and its free corners.


def _crop(
    height: Annotated[int, typer.Option(help="Of the image, pixels.", min=1)],
    width: Annotated[int, typer.Option(help="Of the image, pixels.", min=1)],
    boxes: Annotated[
        str, typer.Option(help="Objects, as x0,y0,x1,y1;x0,y0,x1,y1;.. with the origin at the upper left.")
    ] = "",
    objective: Annotated[
        str, typer.Option(help="side: the larger smaller side, then area. area: the other way round.")
    ] = "side",
    part: Annotated[float, typer.Option(help="Of each side, for the crops of the corners.")] = 0.3,
    as_json: Json = False,
) -> None:
    """The largest rectangle of an image that meets no box, exactly, and the corners that touch none.

    Boxes are half-open and may stick out of the image; what lies outside hides nothing, and is named.

    Example: dovetail memorize crop --height 300 --width 300 --boxes "100,200,120,300;200,200,220,300"
    """
    from dovetail.memorize.crops import CORNERS, boxes_of, clip_boxes, corner_crop, largest_crop

    objects = boxes_of(_rows(boxes))
    tell("look for the largest crop")
    found = largest_crop(objects, height=height, width=width, objective=objective)  # type: ignore[arg-type]
    corners: dict[str, list[float] | None] = {}
    for name in CORNERS:
        try:
            corners[name] = list(corner_crop(objects, height=height, width=width, share=part, corner=name).corners)
        except DataError:
            corners[name] = None
    outside = [n for n, box in enumerate(objects, 1) if not clip_boxes([box], height=height, width=width)]
    if outside:
        names = ", ".join(map(str, outside))
        typer.echo(
            f"warning: no part of box {names} lies in the image of {width} x {height}; it hides nothing.", err=True
        )
    document = {
        "crop": list(found.corners),
        "smaller_side": found.smaller_side,
        "area": found.area,
        "objective": objective,
        "corners": corners,
        "outside": outside,
    }
    shown = {name: _text(corner) if corner else "touches an object" for name, corner in corners.items()}
    rows = {"largest": _text(found.corners), "smaller side": f"{found.smaller_side:g}", **shown}
    show(document, Facts("Crops without an object (x0, y0, x1, y1)", rows), as_json=as_json)


def _rows(text: str) -> list[list[float]]:
    return [[_number(one, row) for one in row.split(",")] for row in text.split(";") if row.strip()]


def _number(text: str, row: str) -> float:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            raise DataError(f"`boxes` must be x0,y0,x1,y1;.. with numbers, got {row.strip()!r}.") from None


def _text(corners: list[float] | tuple[float, ...]) -> str:
    return ", ".join(f"{one:g}" for one in corners)


# `dovetail memorize dejavu`: does an encoder tell from a crop what only its training images could have taught it.


def _dejavu(
    pairs: Annotated[
        list[Path], typer.Argument(help="One file for each pair of models: .npz, .parquet, or a folder of .npy.")
    ],
    neighbours: Annotated[int, typer.Option(help="K of the attack.", min=1)] = 100,
    share: Annotated[
        float, typer.Option(parser=as_share, help="p of the headline score(p): of the images, the most confident.")
    ] = 0.2,
    distance: Annotated[str, typer.Option(help="euclidean (as published) or cosine.")] = "euclidean",
    draws: Annotated[int, typer.Option(help="Of the bootstrap and of the permutation.", min=100)] = 2000,
    seed: Annotated[int, typer.Option(help="A test is a simulation: reproducible draws.", min=0)] = 1,
    report: Annotated[Path | None, typer.Option(help="HTML file with the result as a page.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Guess the class of training images from crops without the object, with their own model and with another.

    A file holds embeddings, row by row: labels_a and a_by_model_a, a_by_model_b (crops of A by model A, which trained
    on A, and by model B, which did not); labels_public and public_by_model_a, public_by_model_b (a public set with
    labels); for the other direction labels_b, b_by_model_a, b_by_model_b. Instead of a public set `classes`: the
    arrays are then a classifier's logits. One model alone: labels_controls and controls_by_model_a, crops of images
    that nobody trained on, and, to sharpen it, a_by_classifier and controls_by_classifier (guessed labels). Parquet:
    a row for each image with set (a, b, controls, public), label, model_a, model_b (lists), classifier, image.

    Images that their own model alone guesses are named, by names_a and names_b or by their rows, from 0.

    `interval` is that of `score`; `gap` is the difference of both accuracies with its own.

    Example: dovetail memorize dejavu pair1.npz pair2.npz --neighbours 30 --report dejavu.html
    """
    from dovetail.memorize.dejavu.document import dejavu_document
    from dovetail.memorize.dejavu.pairs import read_pair

    check_free(report, force=force)
    with progress_bar(hidden=as_json) as progress:
        document = dejavu_document(
            [read_pair(place) for place in pairs], share=share, neighbours=neighbours, draws=draws, seed=seed,
            distance=distance, progress=progress,  # type: ignore[arg-type]
        )  # fmt: skip
    if report is not None:
        from dovetail.report.html import render_result
        from dovetail.report.memorization import dejavu_page

        text = render_result(dejavu_page(document))
        write_text(report, text, force=force)
        document["files"] = {"report": str(report)}
    show(document, *_dejavu_blocks(document), as_json=as_json)


def _dejavu_blocks(document: dict[str, Any]) -> Iterator[str | Grid]:
    from dovetail.report.memorization import dejavu_tables

    yield document["verdict"]
    for caption, table in dejavu_tables(document):
        yield Grid(caption, tuple(table.columns), [tuple(row) for row in table.rows])
    yield from (f"- {line}" for line in (*document["warnings"], *document["limits"]))


add_verbs(app, {"copying": _copying, "crop": _crop, "dejavu": _dejavu})

VERBS = {"memorize": app}
