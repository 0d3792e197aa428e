"""The result of a deja vu test in words: the tables of the terminal and of the page, and the page itself."""

from __future__ import annotations

from typing import Any

from dovetail.report.charts.row_charts import ChangeRow, IntervalRow, change_chart, interval_chart
from dovetail.report.number_format import missing_reason
from dovetail.report.render.result_page import Number, Picture, ResultPage, Section
from dovetail.report.sections.tables import Table

Document = dict[str, Any]

SOURCE = (
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
        summary=_summary(document),
        numbers=_numbers(document),
        sections=sections,
        limits=(*document["warnings"], *document["limits"]),
        source=SOURCE,
    )


_PAIRED = (
    "Each model selects its own most confident images; paired: both are asked about those of the model that trained "
    "on them. Intervals are 95 %, from images drawn anew; p exchanges the two models image by image and selects anew."
)


def _summary(document: Document) -> tuple[str, ...]:
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


def _numbers(document: Document) -> tuple[Number, ...]:
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
