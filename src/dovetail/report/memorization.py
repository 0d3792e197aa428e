"""The result of a test for memorization as a page: data-copying of a generator, deja vu of an encoder."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dovetail.report.charts import ChangeRow, IntervalRow, ReferenceLine, change_chart, interval_chart
from dovetail.report.html import Number, Picture, ResultPage, Section
from dovetail.report.number_format import ABSENT, Document, missing_reason
from dovetail.report.pictures import as_pixels, image_strip, point_map
from dovetail.report.tables import Table

# The result of the test for data-copying as a page: the verdict, the cells, the nearest copies, the limits.


MOST_DRAWN = 400  # points of each sample
MOST_CELLS_DRAWN = 16
MOST_COLUMNS = 12
MOST_PAIRS = 12

LIMITS = (
    "Finding nothing is no proof of absence: the sentence above says which share of copies would have been found.",
    "Passing is no privacy. Distances to the closest record miss leaks that membership attacks find: The DCR "
    "Delusion (2025), arXiv 2505.01524. A guarantee needs differential privacy in training.",
    "Closeness is measured by this distance alone: what it does not tell apart looks copied, and a copy that an "
    "embedding moves far away goes unseen.",
    "Being nearer than fresh data is copying by definition 2.2.1 of the paper; a model that shrinks the data or "
    "drops parts of them is nearer too. The controls tell these apart; they say nothing about why.",
    "The test takes the fresh rows for independent draws of the truth that the model has not seen.",
)
SOURCE = (
    "Meehan, Chaudhuri, Dasgupta (2020), A non-parametric test to detect data-copying in generative models, AISTATS, "
    "with the corrections in docs/errata.md."
)
MEASURES = {
    "frechet": "Frechet distance: means and covariances; blind to copying",
    "ndb": "cells over- and under-represented (NDB): blind to copying",
    "two_sample_nn": "two-sample nearest neighbour: 1/2 is ideal; misses copies where T is large",
    "precision_recall": "precision and recall by clusters: blind to copying",
    "mmd": "three-sample kernel MMD: global, blind to local copying",
    "authenticity": "authenticity: read beside that of fresh data",
    "dcr_share": "share nearer to training than to held-out data: 1/2 is ideal",
    "generalization_gap": "generalization gap",
    "fld": "feature likelihood divergence: a gap above that of fresh data is over-fitting",
}


def copying_page(
    document: Document,
    pairs: Any,
    points: dict[str, NDArray[np.float64]],
    labels: NDArray[np.int64],
    shown: dict[str, Any],
) -> ResultPage:
    """The page of one generated sample.

    Parameters
    ----------
    document : as `dovetail memorize copying --json` prints it
    pairs : the nearest copies, as the document lists them
    points : "train", "fresh" and "generated" as points (.., d)
    labels : cell of each generated point (m,)
    shown : the same samples as data frames or pictures, or None
    """
    found: Literal["memorization", "nothing", "unclear"] = (
        "memorization"
        if document["verdict"] == "copying"
        else "nothing"
        if document["verdict"] == "nothing found"
        else "unclear"
    )
    return ResultPage(
        kicker="Does a model repeat its data: data-copying",
        title=f"{document['generated']}: {document['verdict']}",
        verdict=document["sentence"],
        found=found,
        summary=_summary(document),
        numbers=_numbers(document),
        sections=(
            _cells(document, points, labels),
            _nearest(pairs, shown),
            Section(
                "Every test and what its p-value means",
                tables=(("Tests", _tests(document)),),
                words=("what is tested",),
            ),
            Section(
                "What other measures say",
                tables=(("Measures", _baselines(document["baselines"])),),
                words=("numbers",),
            ),
        ),
        limits=LIMITS,
        source=SOURCE,
    )


def _distance(document: dict[str, Any]) -> str:
    over = document["distances"].removeprefix("Euclidean ")
    return f"{document['distance']}{' ' if over.startswith('over') else ', '}{over}"


def _summary(document: Document) -> tuple[str, ...]:
    share = document["minimum_detectable_share"]["in_verdict"]
    said = [
        f"{document['l']:,} training rows, {document['n']:,} fresh ones and {document['m']:,} generated ones; "
        f"distance: {_distance(document)}.",
        f"Exact copies of a share of {share['all_points']:.2%} are found with a chance of 80 % over all points, of "
        f"{share['nearest_points']:.2%} among the nearest.",
        *document["warnings"],
    ]
    if document["p_underfitting"] < document["level"]:
        said.insert(1, "Over all points the model is farther from the training data than fresh data: it under-fits.")
    return tuple(said)


def _numbers(document: Document) -> tuple[Number, ...]:
    low, high = document["delta"]["interval"]
    standard, copied = document["c_t_standardized"], document["copied_fraction"]
    worst = min(document["cells"], key=lambda cell: float(cell["p_holm"]), default=None)
    cards = [
        Number(
            "Delta over all points",
            f"{document['delta']['value']:.3f}",
            "Chance that a generated point is farther from the training data than a fresh one; below 1/2 is nearer.",
            (
                f"{1.0 - document['level']:.0%} interval {low:.3f} to {high:.3f}",
                f"Z {document['z']:+.2f}, {_p(document['p_copying'])} one-sided",
            ),
        ),
        Number(
            "Worst cell",
            "none" if worst is None else f"{worst['delta']:.3f}",
            "No cell has 20 fresh and 20 generated points."
            if worst is None
            else f"Delta in cell {worst['cell']}, {_p(worst['p_holm'])} after Holm.",
            (
                "cells are too small to be averaged"
                if isinstance(standard, dict)
                else f"average C_T {document['c_t']:+.2f}, standardized {standard:+.2f}",
                f"cells cover {document['covered']:.0%} of the fresh points",
            ),
        ),
        Number(
            "Exact copies",
            f"{document['duplicates']:,}",
            f"Generated rows that stand in the training data; {document['duplicate_test']['fresh']:,} fresh rows do.",
            (f"{_p(document['duplicate_test']['p'])}, Fisher, one-sided",),
        ),
        Number(
            "Copied at least",
            f"{copied['at_least']:.2%}",
            "Lower end of the copied share, if the rest follows the law of the fresh data.",
            (
                f"{copied['generated_within']:,} generated and {copied['fresh_within']:,} fresh points within "
                f"{copied['threshold']:.3g}",
            ),
        ),
    ]
    return tuple(cards)


def _cells(document: Document, points: dict[str, NDArray[np.float64]], labels: NDArray[np.int64]) -> Section:
    cells = document["cells"]
    columns = (
        "cell",
        "fresh",
        "generated",
        "Delta",
        "interval",
        "Z",
        "p",
        "p (Holm)",
        "share, z",
        "seen from",
    )
    rows = tuple(
        (
            str(cell["cell"]), f"{cell['n']:,}", f"{cell['m']:,}", f"{cell['delta']:.3f}",
            f"{cell['interval'][0]:.3f} to {cell['interval'][1]:.3f}", f"{cell['z']:+.2f}", f"{cell['p']:.2g}",
            f"{cell['p_holm']:.2g}", f"{cell['representation_z']:+.2f}", f"{cell['minimum_detectable_share']:.1%}",
        )
        for cell in cells
    )  # fmt: skip
    notes = (
        "p: chance of so many small distances if fresh and generated points had one law in the cell. Holm: adjusted "
        "for looking at all cells. Share, z: is the cell's share of Q that "
        "of P. Seen from: share of exact copies in the cell that is found with a chance of 80 %.",
    )
    pictures = []
    if len(cells) > 1:
        drawn = sorted(cells, key=lambda cell: float(cell["p"]))[:MOST_CELLS_DRAWN]
        pictures.append(
            Picture(
                "Delta in each cell with its interval"
                + ("" if len(drawn) == len(cells) else ": the lowest p-values"),
                interval_chart(
                    [
                        IntervalRow(f"cell {cell['cell']}", f"{cell['delta']:.2f}", cell["delta"], *cell["interval"])
                        for cell in drawn
                    ],
                    title="Delta in each cell",
                    description="Below 1/2 the generated points are nearer to the training data than fresh ones.",
                    tick=lambda value: f"{value:g}",
                    reference=ReferenceLine("as far as fresh data", "level-main", 0.5),
                ),
            )
        )
    pictures.append(Picture("The samples and the Z of each cell", _map(document, points, labels)))
    return Section("Where it happens", tables=(("Cells", Table(columns, rows, notes)),), pictures=tuple(pictures))


def _map(document: Document, points: dict[str, NDArray[np.float64]], labels: NDArray[np.int64]) -> Markup:
    train, fresh, generated = (points[name] for name in ("train", "fresh", "generated"))
    centre = train.mean(axis=0)
    if train.shape[1] > 2:  # the two directions in which the training data vary most
        part = train[:: max(1, len(train) // 2_000)] - centre
        axes = np.linalg.svd(part, full_matrices=False)[2][:2].T
    else:
        axes = np.eye(train.shape[1], 2)
    plane = [(part - centre) @ axes for part in (train, fresh, generated)]
    named = [
        (
            generated_plane.mean(axis=0),
            f"{cell['cell']}: {cell['z']:+.1f}",
        )
        for cell in document["cells"]
        if not document["cross_fitted"] and (labels == cell["cell"]).any()
        for generated_plane in [plane[2][labels == cell["cell"]]]
    ]
    kinds = (("map-train", "training"), ("map-fresh", "fresh"), ("map-generated", "generated"))
    samples = [
        (kind, name, part[:: max(1, len(part) // MOST_DRAWN)][:MOST_DRAWN].tolist())
        for (kind, name), part in zip(kinds, plane, strict=True)
    ]
    places = [(place.tolist(), words) for place, words in named[:MOST_CELLS_DRAWN]]
    return point_map(samples, places)


def _nearest(pairs: Any, shown: dict[str, Any]) -> Section:
    title = "The nearest copies"
    columns: tuple[str, ...] = ("generated row", "training row", "distance", "fresh points as near")
    rows = tuple(
        (
            f"{one['generated'] + 1:,}",
            f"{one['train'] + 1:,}",
            f"{one['distance']:.4g}",
            f"{one['fresh_as_near']:.2%}",
        )
        for one in pairs
    )
    note = "Fresh points as near: share of fresh points at most as far from their nearest training point."
    table = ("Generated rows nearest to a training row", Table(columns, rows, (note,)))
    train, generated = shown["train"], shown["generated"]
    if train is None:
        return Section(title, tables=(table,))
    if isinstance(train, np.ndarray):
        low, high = float(train.min()), float(train.max())
        strips = [
            [as_pixels(sample[one[key]], low=low, high=high) for one in pairs]
            for sample, key in ((generated, "generated"), (train, "train"))
        ]
        caption = "Generated pictures (above) and the training picture nearest to each (below)"
        return Section(
            title, tables=(table,), pictures=(Picture(caption, image_strip(strips, title=caption), wide=True),)
        )
    return Section(
        title, tables=(table, ("Side by side", _side_by_side(pairs, train, generated))), words=tuple(train.columns)
    )


def _side_by_side(pairs: Any, train: Any, generated: Any) -> Table:
    names = train.columns[:MOST_COLUMNS]
    rows = []
    for one in pairs[:MOST_PAIRS]:
        for who, frame, row in (("generated", generated, one["generated"]), ("training", train, one["train"])):
            rows.append((f"{who} {row + 1:,}", *(str(value) for value in frame[names].row(row))))
    more = len(train.columns) - len(names)
    return Table(("row", *names), tuple(rows), (f"{more} further columns are not shown.",) if more else ())


def _tests(document: Document) -> Table:
    controls, adjusted, tail = document["controls"], document["adjusted"], document["tail"]
    ratio, single, member = controls["holdout_ratio"], controls["points_singled_out"], controls["membership"]
    local = min(controls["holdout_ratio_by_cell"].values(), key=lambda one: float(one["p"]))
    worst = min(document["cells"], key=lambda cell: float(cell["p_holm"]), default=None)
    rows = [
        ("all points", document["p_copying"], "fresh and generated distances have one law; shrinking trips it"),
        ("worst cell", 1.0 if worst is None else worst["p_holm"], "the same in every cell; shrinking trips it"),
        ("nearest points", tail["p"], f"{tail['generated']} of the {tail['k']} nearest are generated, "
         f"{tail['expected']:.1f} expected; a collapsed model trips it"),
        ("exact copies", document["duplicate_test"]["p"], "generated rows stand in T as often as fresh ones"),
        ("holdout ratio", ratio["p"], f"control: {ratio['training']} training against {ratio['holdout']} held-out "
         "points have a generated point twice as near as the other sample"),
        ("holdout ratio of a cell", local["p"], f"control: {local['training']} against {local['holdout']} in the "
         "cell with the lowest p"),
        ("points singled out", single["p"], f"control: {single['training']} of the {single['size']} points that are "
         "singled out most are training points, half expected"),
        ("membership", member["p"], f"control: training points are no nearer to Q than fresh ones; AUC "
         f"{member['auc']:.3f}, {member['hits_at_one_percent']:.1%} found at 1 % false alarms"),
    ]  # fmt: skip
    body = tuple(
        (name, _p(p).removeprefix("p "), _p(adjusted[name]).removeprefix("p "), null) for name, p, null in rows
    )
    notes = (
        f"A p-value is the chance of a result at least as extreme if the sentence beside it were true. Adjusted: for "
        f"the tests of its family; at most {document['level']:g} counts as found. The first four ask whether Q is "
        "nearer to T than P is, the controls whether Q tells T from held-out data.",
    )
    return Table(("test", "p", "adjusted", "what is tested"), body, notes)


def _baselines(baselines: Document) -> Table:
    if missing_reason(baselines) is not None:
        return Table(("measure", "numbers"), ((ABSENT, missing_reason(baselines) or ""),), ())
    rows = []
    for name, found in baselines.items():
        reason = missing_reason(found)
        words = reason or ", ".join(f"{key.replace('_', ' ')} {value:.4g}" for key, value in found.items())
        rows.append((MEASURES[name], words))
    return Table(("measure", "numbers"), tuple(rows), ())


def _p(value: float) -> str:
    return f"p {value:.2g}" if value >= 1e-300 else "p below 1e-300"


# The result of a deja vu test in words: the tables of the terminal and of the page, and the page itself.


DEJAVU_SOURCE = (
    "Meehan, Bordes, Vincent, Chaudhuri, Guo (2023), Do SSL Models Have Déjà Vu? A Case of Unintended Memorization "
    "in Self-Supervised Learning; exact tests, ties and controls are ours (docs/memorize.md)."
)
MEANS = {
    "correlated": "both models guess it: the crop tells",
    "memorized": "only the model that trained on it guesses it",
    "misrepresented": "only the other model guesses it: chance, the measure of memorized",
    "unassociated": "neither guesses it",
}


def percent(value: float) -> str:
    """A share in percent with one decimal."""
    return f"{100.0 * value:.1f} %"


def part(value: float) -> str:
    """A share of images that was asked for."""
    return f"{100.0 * value:g} %"


def points(value: float) -> str:
    """A difference of shares, in points of percent."""
    return f"{100.0 * value:+.1f}"


def interval(ends: list[float]) -> str:
    """Both ends of an interval of differences."""
    return f"{points(ends[0])} to {points(ends[1])}"


def chance(value: Any) -> str:
    """A p-value, or why there is none."""
    return missing_reason(value) or f"{value:.2g}"


def dejavu_tables(document: Document) -> list[tuple[str, Table]]:
    """Captions and tables, in the order of reading."""
    if document["method"] != "two models":
        return [("One model", _alone(document))]
    tables = [
        ("Guessed from crops without the object", _accuracies(document)),
        ("Images by who guesses them", _counts(document)),
        ("Score at a share of the most confident images, in points", _scores(document)),
    ]
    if document["memorized_images"]:
        expected = f"about {document['partition']['misrepresented']:g} are among them by chance"
        tables.append((f"Memorized images, the surest first; {expected}", _images(document)))
    if len(document["pairs"]["gaps"]) > 1:
        tables.append(("Pairs of models", _pairs(document)))
    if "one_model" in document:
        tables.append(("Model A alone", _alone(document["one_model"])))
    return tables


def dejavu_page(document: Document) -> ResultPage:
    """The page of a test.

    Parameters
    ----------
    document : dict
        As `dovetail memorize dejavu --json` prints it.
    """
    together = document["method"] == "two models"
    captioned = tuple(dejavu_tables(document))
    sections = (
        (
            Section("Who guesses what", tables=captioned[:2], pictures=(_curve(document), _intervals(document))),
            Section("Scores", tables=captioned[2:], notes=(_PAIRED,)),
        )
        if together
        else (Section("Training images and controls", tables=captioned),)
    )
    return ResultPage(
        kicker=f"Does an encoder repeat its data: déjà vu, {document['method']}",
        title="What a crop tells that only training can have taught",
        verdict=document["verdict"],
        found=document["found"],
        summary=_dejavu_summary(document),
        numbers=_dejavu_numbers(document),
        sections=sections,
        limits=(*document["warnings"], *document["limits"]),
        source=DEJAVU_SOURCE,
    )


_PAIRED = (
    "Each model selects its own most confident images; paired: both are asked about those of the model that trained "
    "on them. Intervals are 95 %, from images drawn anew; p exchanges the two models image by image and selects anew."
)


def _dejavu_summary(document: Document) -> tuple[str, ...]:
    neighbours = f"{document['neighbours']} nearest public images"
    if document["method"] != "two models":
        return (f"Each class is guessed by the {neighbours} in the model's own embedding.",)
    pairs = len(document["pairs"]["gaps"])
    return (
        f"{document['images']} attacked images, {pairs} {'pair' if pairs == 1 else 'pairs'} of models, "
        f"{'both directions' if document['directions'] == 2 else 'one direction'}.",
        f"Each class is guessed by the {neighbours} in the model's own embedding.",
        "What both models guess is correlation; what only the model guesses that trained on the image is "
        "memorization, as far as it is more than the reverse.",
    )


def _dejavu_numbers(document: Document) -> tuple[Number, ...]:
    if document["method"] == "two models":
        gap, shared = document["gap"], part(document["share"])
        return (
            Number("Guessed", percent(document["target_accuracy"]), "by the model that trained on the image",
                   (f"{percent(document['reference_accuracy'])} by the other",)),
            Number("Gap", points(gap["value"]) + " points", "memorized less misrepresented images",
                   (f"95 %: {interval(gap['interval'])}", f"exact McNemar p: {chance(document['mcnemar_p'])}",
                    f"found in 8 of 10 tests: {points(gap['detectable'])}")),
            Number(f"Score at {shared}", points(document["score"]) + " points", "on the most confident images",
                   (f"95 %: {interval(document['interval'])}", f"permutation p: {chance(document['score_p'])}")),
        )  # fmt: skip
    if "excess" in document:
        return (Number("Excess", points(document["excess"]) + " points", "over the classifier: not memorization"),)
    share = document["memorized_share"]
    return (
        Number("Difference", points(document["difference"]) + " points", "training images less controls",
               (f"95 %: {interval(document['interval'])}", f"p, one-sided: {chance(document['p'])}",
                f"found in 8 of 10 tests: {points(document['detectable'])}")),
        Number("Memorized share", missing_reason(share) or percent(share), "of the training images, estimated",
               (f"guessed: {percent(document['target_accuracy'])}",
                f"controls: {percent(document['control_accuracy'])}")),
    )  # fmt: skip


def _accuracies(document: Document) -> Table:
    rows = (
        ("the model that trained on them", percent(document["target_accuracy"])),
        ("the other model", percent(document["reference_accuracy"])),
        ("gap, points", points(document["gap"]["value"])),
        ("95 % interval of the gap", interval(document["gap"]["interval"])),
        ("exact McNemar p", chance(document["mcnemar_p"])),
        ("p of the gap (normal)", chance(document["gap"]["p"])),
    )
    return Table(("images guessed by", "share"), rows)


def _counts(document: Document) -> Table:
    total = document["images"]
    rows = tuple(
        (name, f"{document['partition'][name]:g}", percent(document["partition"][name] / total), words)
        for name, words in MEANS.items()
    )
    return Table(("group", "images", "share", "meaning"), rows)


def _scores(document: Document) -> Table:
    rows = tuple(
        (part(one["share"]), str(one["images"]), points(one["value"]), interval(one["interval"]), chance(one["p"]),
         points(one["paired"]), interval(one["paired_interval"]))
        for one in document["scores"]
    )  # fmt: skip
    return Table(("share", "images", "score", "95 %", "p", "paired", "95 %"), rows)


NAMED = 10  # memorized images in a table; the JSON has all


def _images(document: Document) -> Table:
    named = document["memorized_images"]
    rows = tuple(
        (f"set {one['set']} of pair {one['pair']}", one.get("image", f"row {one['row']}"), one["label"],
         f"{one['confidence']:.3g}")
        for one in named[:NAMED]
    )  # fmt: skip
    more = (f"{len(named) - NAMED} more are in the JSON.",) if len(named) > NAMED else ()
    return Table(("images", "which", "class", "confidence"), rows, more)


def _pairs(document: Document) -> Table:
    pairs = document["pairs"]
    rows = tuple((f"pair {number}", points(value)) for number, value in enumerate(pairs["gaps"], 1))
    spread = ("standard deviation between pairs", points(pairs["deviation"]).lstrip("+"))
    tested = ("p over pairs (Student)", chance(pairs["p"]))
    return Table(("pair of models", "gap, points"), (*rows, spread, tested))


def _alone(document: Document) -> Table:
    if "excess" in document:
        rows: tuple[tuple[str, ...], ...] = (
            ("the model, on its training images", percent(document["target_accuracy"])),
            ("the classifier, on the same", percent(document["classifier_accuracy"])),
            ("excess over the classifier, points; not memorization", points(document["excess"])),
        )
        return Table(("what", "share"), rows)
    share = document["memorized_share"]
    rows = (
        (f"{document['images']} training images", percent(document["target_accuracy"])),
        (f"{document['controls']} controls", percent(document["control_accuracy"])),
        ("difference, points", points(document["difference"])),
        ("95 % interval", interval(document["interval"])),
        ("p, one-sided", chance(document["p"])),
        ("memorized share", missing_reason(share) or percent(share)),
    )
    return Table(("guessed right", "share"), rows)


def _curve(document: Document) -> Picture:
    rows = [
        ChangeRow(
            f"{part(one['share'])} most confident",
            f"{percent(one['reference_accuracy'])} → {percent(one['target_accuracy'])}",
            one["reference_accuracy"],
            one["target_accuracy"],
        )
        for one in document["curve"]
    ]
    names = ("the other model", "the model that trained on the images")
    text = "Accuracy of both models on their most confident images"
    return Picture(
        f"{text}; the distance is the score.",
        change_chart(rows, title=text, description=f"{names[0]} and {names[1]}", tick=percent, names=names),
    )


def _intervals(document: Document) -> Picture:
    rows = [
        IntervalRow(
            part(one["share"]),
            f"{points(one['value'])} ({interval(one['interval'])})",
            one["value"],
            *one["interval"],
        )
        for one in document["scores"]
    ]
    text = "Score with its 95 % interval, in points of percent"
    return Picture(text, interval_chart(rows, title=text, description="one row for each share", tick=points))
