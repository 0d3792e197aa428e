"""The result of a deja vu test as plain values, with a verdict in words and what it does not show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.progress import Progress, silent
from dovetail.memorize.dejavu.inference import Distance
from dovetail.memorize.dejavu.models import SHARES, Excess, OneModel, TwoModels, compare_models, confidence_curve
from dovetail.memorize.dejavu.pairs import MODELS, Pair
from dovetail.memorize.dejavu.score import Attacked

Document = dict[str, Any]

MOST_SHARED = 0.5  # of the rows of another set that may stand in A
CURVE = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
UNBALANCED = (
    "the directions have different numbers of images, so it does not cancel a model that is better; see `gap`"
)
ALIKE = (
    "Training images and controls must have been drawn and cropped alike: controls that are harder look like "
    "memorization."
)
ACROSS = (
    "Some class has fewer than two images or controls, so classes are not compared each by itself: classes that are "
    "commoner among training images, and easier, look like memorization."
)
SEVERAL = (
    "An image that was attacked in several pairs counts as several in the exact test and in the intervals; the test "
    "over pairs does not take images as independent."
)
LIMITS = (
    "Nothing found is no proof that nothing is memorized, and no privacy: other attacks may find what this one does "
    "not, in other parts of the images and with other knowledge.",
    "The two models are taken as given: intervals and p-values speak of other images, not of another training run. "
    "Several pairs of models show how much training itself varies.",
    "A gap means memorization only if the images of A and of B were drawn and cropped alike, and the crops show "
    "nothing of the object.",
)


def dejavu_document(
    pairs: Sequence[Pair],
    *,
    share: float = 0.2,
    neighbours: int = 100,
    distance: Distance = "euclidean",
    draws: int = 2000,
    seed: int = 1,
    progress: Progress = silent,
) -> Document:
    """The whole test: two models where every pair has a reference, one model otherwise.

    Parameters
    ----------
    pairs : list of Pair
    share : float
        p of the headline score(p); 5 %, 20 % and 100 % are there besides.
    neighbours, distance
        Of the attack.
    draws, seed : int
        Of bootstrap and permutation: a simulation, which protects nobody.

    Raises
    ------
    DataError
        For pairs of different kinds, or several pairs without a reference.
    """
    settings: dict[str, Any] = {"neighbours": neighbours, "distance": distance}
    if not pairs:
        raise DataError("`pairs` must hold at least one pair of models.")
    warnings = list(dict.fromkeys(line for pair in pairs for line in pair.warnings(neighbours)))
    if not all(pair.has_reference for pair in pairs):
        if len(pairs) > 1:
            raise DataError("`pairs` must all have a reference model where there are several; test one model alone.")
        _refuse_repeated(pairs)
        return {**settings, **_alone(pairs[0], settings), "warnings": warnings}
    _refuse_repeated(pairs)
    attacked: list[list[Attacked]] = []
    for number, pair in enumerate(pairs):
        progress("pairs of models attacked", number, len(pairs))
        attacked.append(pair.attack(**settings))
    progress("pairs of models attacked", len(pairs), len(pairs))
    least = min(each.n for pair in attacked for each in pair)
    shares = sorted({share, *(p for p in SHARES if p * least >= 1)})
    found = compare_models(attacked, shares=shares, draws=draws, rng=simulation(seed), progress=progress)
    if len(attacked[0]) == 1:
        warnings.append("one direction only: memorization and a better model look alike; attack the images of B too.")
    document = {**settings, "draws": draws, "seed": seed, **_together(found, share)}
    document["memorized_images"] = memorized_images(pairs, attacked)
    document["directions"] = len(attacked[0])
    document["limits"] = [*LIMITS, *([] if len(pairs) == 1 else [SEVERAL])]
    document["curve"] = [
        {"share": p, "target_accuracy": one, "reference_accuracy": two}
        for p, one, two in confidence_curve(
            [each for pair in attacked for each in pair], [p for p in CURVE if p * least >= 1]
        )
    ]
    if len(pairs) == 1 and "controls" in pairs[0].labels:
        document["one_model"] = _alone(pairs[0], settings)
    return {**document, "warnings": warnings}


def memorized_images(pairs: Sequence[Pair], attacked: Sequence[Sequence[Attacked]]) -> list[Document]:
    """Images that their own model guesses and the other does not, the most confident first.

    About as many as are `misrepresented` are among them by chance; the more confident, the fewer. Guesses that tie to
    the end name no image.
    """
    found = []
    for number, (pair, directions) in enumerate(zip(pairs, attacked, strict=True), 1):
        for name, each in zip(MODELS, directions, strict=False):
            labels, names = np.asarray(pair.labels[name]), pair.names.get(name)
            for row in np.flatnonzero(each.advantages == 1.0).tolist():
                called = {} if names is None else {"image": str(np.asarray(names)[row])}
                found.append(
                    {"pair": number, "set": name, "row": row, **called, "label": str(labels[row]),
                     "confidence": float(each.target.confidence[row])}
                )  # fmt: skip
    return sorted(found, key=lambda one: -one["confidence"])


def _refuse_repeated(pairs: Sequence[Pair]) -> None:
    """Pairs of models count as independent ones, and so do the sets of one pair."""
    known: dict[frozenset[bytes], int] = {}
    for number, pair in enumerate(pairs, 1):
        mine = pair.distinct_rows("a")
        if mine in known:
            raise DataError(
                f"`pairs` {known[mine]} and {number} hold the same embeddings of A by model A; each must be a pair "
                "of its own."
            )
        if not mine:
            continue
        known[mine] = number
        for name in ("b", "controls"):
            theirs = pair.distinct_rows(name)
            if theirs and (share := len(theirs & mine) / len(theirs)) > MOST_SHARED:
                raise DataError(
                    f"`pairs`: {share:.0%} of the embeddings of set {name} stand in set a of pair {number} too; they "
                    "must be other images."
                )


def _together(found: TwoModels, share: float) -> Document:
    headline = next(one for one in found.scores if one.share == share)
    exact: Any = found.mcnemar.p_value if found.balanced else {"value": None, "reason": UNBALANCED}
    return {
        "method": "two models",
        "images": found.images,
        "target_accuracy": found.target_accuracy,
        "reference_accuracy": found.reference_accuracy,
        "share": share,
        "score": headline.value,
        "interval": list(headline.interval),
        "score_p": headline.p_value,
        "scores": [
            {
                "share": one.share,
                "images": one.images,
                "value": one.value,
                "interval": list(one.interval),
                "paired": one.paired,
                "paired_interval": list(one.paired_interval),
                "p": one.p_value,
            }
            for one in found.scores
        ],
        "partition": asdict(found.partition),
        "mcnemar_p": exact,
        "mcnemar_mid_p": found.mcnemar.mid_p if found.balanced else {"value": None, "reason": UNBALANCED},
        "gap": {
            "value": found.gap.value,
            "standard_error": found.gap.standard_error,
            "interval": list(found.gap.interval),
            "p": found.gap.p_value,
            "detectable": found.gap.detectable,
        },
        "pairs": {
            "gaps": list(found.pairs.gaps),
            "deviation": _given(found.pairs.deviation, "needs two pairs"),
            "p": _given(found.pairs.p_value, "needs three pairs whose gaps differ"),
        },
        "found": found.found,
        "verdict": _verdict(found),
    }


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f} %"


def _given(value: float | None, reason: str) -> Any:
    return {"value": None, "reason": reason} if value is None else value


def _verdict(found: TwoModels) -> str:
    counts = found.partition
    seen = (
        f"{counts.memorized:g} images are guessed by the model that trained on them alone, "
        f"{counts.misrepresented:g} by the other alone (p = {found.p_value:.2g})"
    )
    if found.found == "memorization":
        return f"Memorization: {seen}."
    if found.found == "unclear":
        return f"Unclear: {seen}; training images are guessed worse, so the sets or the crops differ in another way."
    return (
        f"No memorization found: {seen}; a gap of {_percent(found.gap.detectable)} would be found in 8 of 10 tests."
    )


def _alone(pair: Pair, settings: dict[str, Any]) -> Document:
    found = pair.attack_alone(**settings)
    if isinstance(found, OneModel):
        share = found.memorized_share
        return {
            "method": "one model with controls",
            "images": found.images,
            "controls": found.controls,
            "target_accuracy": found.accuracy,
            "control_accuracy": found.control_accuracy,
            "within_classes": found.stratified,
            "difference": found.difference,
            "interval": list(found.interval),
            "p": found.p_value,
            "memorized_share": _given(share, "every control is right"),
            "detectable": found.detectable,
            "found": found.found,
            "verdict": _against_controls(found),
            "limits": [LIMITS[0], ALIKE, *([] if found.stratified else [ACROSS])],
        }
    if isinstance(found, Excess):
        return {
            "method": "one model without controls",
            "target_accuracy": found.accuracy,
            "classifier_accuracy": found.classifier_accuracy,
            "excess": found.value,
            "found": "unclear",
            "verdict": f"Excess over the classifier: {100.0 * found.value:+.1f} points. Not memorization: an encoder "
            "that is better than the classifier shows it too. Give control images.",
            "limits": list(LIMITS[:1]),
        }
    raise ParameterError(
        "`pairs` must have a reference model (a_by_model_b), control images (labels_controls, controls_by_model_a) "
        "or a classifier (a_by_classifier), got one model alone."
    )


def _against_controls(found: OneModel) -> str:
    seen = (
        f"training images are guessed in {_percent(found.accuracy)}, controls in "
        f"{_percent(found.control_accuracy)} of cases"
    )
    if found.found == "memorization":
        return f"Memorization: {seen} (p = {found.p_value:.2g})."
    return (
        f"No memorization found: {seen} (p = {found.p_value:.2g}); a difference of {_percent(found.detectable)} "
        "would be found in 8 of 10 tests."
    )
