"""Label inference of our own releases: does the release with a person tell their value, beyond one without them."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, MissingExtraError, UnsupportedError
from dovetail.core.missing import Missing
from dovetail.core.stages import FrequencyRandomizer, ReportSection
from dovetail.job.collection import Collection
from dovetail.memorize.dejavu.inference import LabelInference, infer_by_neighbours
from dovetail.memorize.dejavu.models import between
from dovetail.memorize.dejavu.score import Attacked, Partition
from dovetail.memorize.sample_files import MixedTypes
from dovetail.memorize.sections import LEAST, MOST, NO_PUBLIC, NO_VALUES, texts
from dovetail.report.number_format import percent

PAIRS = 10  # of releases
MOST_ATTACKED = 500  # people in each direction of a pair
_STEPS = 2e9  # differences of numbers in one pair
_LEVEL = 0.05
NO_CATEGORIES = "label inference guesses categories; the private column is a number"
NO_HOLDOUT = f"it compares with a release of half of the people, which needs at least {LEAST}"

Rows = NDArray[np.int64]  # (n,) places of people


@final
class LabelInferenceOfReleases(ReportSection):
    """Values that a release tells of its own people, beyond what it tells of their likes."""

    name = "label_inference"
    label = "label inference"

    @classmethod
    def measure(cls, collection: Collection, rng: Entropy) -> dict[str, Any] | Missing:
        """Guess each person's value from public columns: by a release that they are in, and by one without them.

        Deja vu with releases as the models. Ten times the people are cut into halves A and B, and each half is
        released by itself. The guess is the value that most of the released rows nearest to a person name (K = 1; all
        rows as near count), once in the release of the person's own half (target) and once in the other's
        (reference): what the reference guesses is correlation, what the target guesses beyond that is this release's
        doing.

        The p-value is Student's over the pairs of releases. People who share released rows are guessed alike, so a
        test that counts people would reject far too often.

        Source
        ------
        Meehan and others (2023), Do SSL Models Have Deja Vu?, section 1.3.1; on tables: infer_by_neighbours.
        """
        survey, randomizer = collection.survey, collection.randomizer
        if not isinstance(randomizer, FrequencyRandomizer):
            return Missing(NO_CATEGORIES)
        if not collection.shuffler.keeps_places or not survey.public.width:
            return Missing(NO_PUBLIC)
        if not randomizer.names_values:
            return Missing(NO_VALUES)
        if survey.n < LEAST:
            return Missing(f"{NO_HOLDOUT}, got {survey.n:,}")
        if survey.n > MOST:
            return Missing(f"label inference is measured for at most {MOST:,} people, got {survey.n:,}")
        try:
            points = _points(collection)
            pairs = [_pair(collection, points, rng) for _ in range(PAIRS)]
        except UnsupportedError as error:
            return Missing(f"no half of the people can be held out: {error}")
        except (DataError, MissingExtraError) as error:
            return Missing(str(error))
        return _document(pairs)

    @classmethod
    def notes(cls, found: dict[str, Any]) -> tuple[str, ...]:
        low, high = found["interval"]
        lead = (
            "Label inference: the release tells values of its own people that their likes do not tell."
            if found["verdict"] == "repeats people"
            else "Label inference: nothing was found that the release tells of its own people alone."
        )
        parts = found["partition"]
        return (
            f"{lead} The value in the released row nearest to a person's public columns is theirs in "
            f"{percent(found['target_accuracy'])} of the releases that they are in and in "
            f"{percent(found['reference_accuracy'])} of those without them; difference {found['score']:+.3f}, 95 % "
            f"interval {low:+.3f} to {high:+.3f}, p {found['p']:.2g} over {found['pairs']} pairs of halves. "
            f"Guessed by the release with them alone: {percent(parts['memorized'])}; by that without them alone: "
            f"{percent(parts['misrepresented'])}.",
        )


def _points(collection: Collection) -> NDArray[np.float64]:
    public = collection.survey.public
    constant = [name for name in public.columns if public[name].n_unique() == 1]
    mixed = MixedTypes.fit(public, public, ignore=constant, categories=texts(public, constant))
    return mixed.points(public, "public columns")


def _pair(collection: Collection, points: NDArray[np.float64], rng: Entropy) -> tuple[Attacked, Attacked]:
    """Both directions of one pair of releases, of equally many people each."""
    half = collection.n // 2
    order = rng.permutation(collection.n)
    halves = [np.sort(order[:half]), np.sort(order[half : 2 * half])]
    released = [_release(collection, people, rng) for people in halves]
    attacked = min(half, MOST_ATTACKED, max(LEAST // 2, int(_STEPS / (half * points.shape[1]))))
    directions = []
    for own, other in ((0, 1), (1, 0)):
        people = halves[own][rng.permutation(half)[:attacked]]
        guesses = [
            _guess(points, collection.survey.values, people, halves[side], released[side]) for side in (own, other)
        ]
        directions.append(Attacked(*guesses))
    return directions[0], directions[1]


def _release(collection: Collection, people: Rows, rng: Entropy) -> NDArray[np.int64]:
    """The reports (n,) of these people as they are released, row by row beside their public columns."""
    here = np.zeros(collection.n, dtype=np.bool_)
    here[people] = True
    reports = collection.randomizer.randomize(collection.survey.values[people], rng)
    return np.asarray(collection.shuffler.restrict(here).shuffle(reports, rng), dtype=np.int64)


def _guess(
    points: NDArray[np.float64], values: Rows, people: Rows, rows: Rows, released: NDArray[np.int64]
) -> LabelInference:
    """A value that no released row names is never guessed."""
    truth, known = values[people], np.unique(released)
    if len(known) < 2:
        return LabelInference((truth == known[0]).astype(np.float64), np.zeros(len(people)))
    named = np.isin(truth, known)
    asked = np.column_stack([points[people], np.where(named, truth, known[0])])
    different, place = np.unique(asked, axis=0, return_inverse=True)  # likes are guessed alike, so once
    found = infer_by_neighbours(
        different[:, :-1], different[:, -1], public=points[rows], public_labels=released, neighbours=1
    )
    return LabelInference(found.correct[place] * named, found.confidence[place])


def _document(pairs: list[tuple[Attacked, Attacked]]) -> dict[str, Any]:
    directions = [one for pair in pairs for one in pair]
    spread = between(tuple(float(np.mean([one.advantages.mean() for one in pair])) for pair in pairs))
    gap, deviation = float(np.mean(spread.gaps)), spread.deviation or 0.0
    reach = float(stdtrit(PAIRS - 1, 1.0 - _LEVEL / 2.0)) * deviation / math.sqrt(PAIRS)
    counts, attacked = Partition.of(directions), sum(one.n for one in directions)
    p_value = spread.p_value if spread.p_value is not None else float(gap == 0.0)  # without spread: by its value
    return {
        "pairs": PAIRS,
        "attacked": attacked,
        "target_accuracy": float(np.mean([one.target.accuracy for one in directions])),
        "reference_accuracy": float(np.mean([one.reference.accuracy for one in directions])),
        "score": gap,
        "interval": [max(-1.0, gap - reach), min(1.0, gap + reach)],
        "p": p_value,
        "partition": {name: value / attacked for name, value in vars(counts).items()},
        "verdict": "nothing found" if p_value > _LEVEL or gap <= 0.0 else "repeats people",
    }
