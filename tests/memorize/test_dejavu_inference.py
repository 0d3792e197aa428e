"""Label inference: votes equal a naive count with ties as fractions, and what ties is decided by no order."""

import numpy as np
import pytest

from dovetail.core.errors import DataError, ParameterError
from dovetail.memorize.dejavu.inference import LabelInference, infer_by_logits, infer_by_neighbours, votes
from dovetail.memorize.dejavu.score import Attacked, confident_accuracy, images_at, score


def naive(query: np.ndarray, public: np.ndarray, codes: np.ndarray, classes: int, neighbours: int) -> np.ndarray:
    """Votes of one query, from directly computed distances of whole numbers, which are exact."""
    far = ((public - query) ** 2).sum(axis=1)
    kth = np.sort(far)[neighbours - 1]
    counts = np.bincount(codes[far < kth], minlength=classes).astype(float)
    left = neighbours - counts.sum()
    tied = np.bincount(codes[far == kth], minlength=classes)
    return counts + left * tied / tied.sum()


def test_votes_equal_a_naive_count_where_many_distances_tie() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        d, n, classes = rng.integers(1, 4), rng.integers(5, 60), rng.integers(2, 5)
        public, queries = (
            rng.integers(-2, 3, size=(n, d)).astype(float),
            rng.integers(-2, 3, size=(8, d)).astype(float),
        )
        codes, neighbours = rng.integers(classes, size=n), int(rng.integers(1, n + 1))
        (found,) = votes(queries, public, codes, classes=classes, neighbours=neighbours)
        for row, query in enumerate(queries):
            assert found.counts[row] == pytest.approx(naive(query, public, codes, classes, neighbours), abs=1e-9)
        assert found.counts.sum(axis=1) == pytest.approx(neighbours)


def test_exact_copies_are_seen_in_many_dimensions() -> None:
    rng = np.random.default_rng(2)
    public = rng.normal(size=(300, 50)) + 100.0
    (found,) = votes(public[:40], public, np.arange(300) % 3, classes=3, neighbours=5)
    assert (found.copies.sum(axis=1) == 1.0).all() and np.isfinite(found.nearness).all()


def test_a_tied_vote_goes_to_exact_copies_then_to_the_nearer_class_then_to_a_fair_draw() -> None:
    def chances(public: list[list[float]], labels: list[str], neighbours: int) -> list[float]:
        return [
            float(infer_by_neighbours([[0.0, 0.0]], [guess], public=public, public_labels=labels,
                                      neighbours=neighbours).correct[0])
            for guess in ("x", "y")
        ]  # fmt: skip

    assert chances([[0, 0], [3, 0], [1, 0], [1, 0]], ["x", "x", "y", "y"], 4) == [1.0, 0.0]
    assert chances([[2, 0], [2, 0], [1, 0], [2, 0]], ["x", "x", "y", "y"], 4) == [0.0, 1.0]
    assert chances([[1, 0], [0, 1], [-1, 0], [0, -1]], ["x", "x", "y", "y"], 4) == [0.5, 0.5]
    assert chances([[1, 0], [0, 1], [-1, 0], [0, -1]], ["x", "x", "x", "y"], 1) == [1.0, 0.0]
    assert chances([[1, 0], [0, 1], [-1, 0], [0, -1]], ["x", "x", "y", "y"], 3) == [0.5, 0.5]


def test_confidence_is_minus_the_entropy_of_the_votes() -> None:
    public, labels = [[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]], [1, 1, 2, 2, 2, 2]
    found = infer_by_neighbours([[0.0], [9.0]], [1, 2], public=public, public_labels=labels, neighbours=3)
    assert found.correct.tolist() == [1.0, 1.0]
    assert found.confidence == pytest.approx([2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3), 0.0])


def test_cosine_distance_forgets_lengths() -> None:
    rng = np.random.default_rng(3)
    public, crops = rng.normal(size=(50, 4)), rng.normal(size=(20, 4))
    labels, guesses = np.arange(50) % 4, np.arange(20) % 4
    one = infer_by_neighbours(crops, guesses, public=public, public_labels=labels, neighbours=9, distance="cosine")
    scaled = public * rng.uniform(1, 9, size=(50, 1))
    two = infer_by_neighbours(
        crops * 5, guesses, public=scaled, public_labels=labels, neighbours=9, distance="cosine"
    )
    assert one.correct.tolist() == two.correct.tolist()
    with pytest.raises(DataError, match="`distance` must be euclidean where an embedding is zero"):
        infer_by_neighbours(0 * crops, guesses, public=public, public_labels=labels, neighbours=9, distance="cosine")


def test_a_classifier_guesses_its_largest_logit() -> None:
    logits = [[0.1, 2.0, 0.0], [3.0, 1.0, 3.0], [0.0, 0.0, 9.0]]
    found = infer_by_logits(logits, ["b", "c", "a"], classes=["a", "b", "c"])
    assert found.correct.tolist() == [1.0, 0.5, 0.0] and found.confidence.tolist() == [2.0, 3.0, 9.0]
    turned = infer_by_logits(np.asarray(logits)[:, ::-1], ["b", "c", "a"], classes=["c", "b", "a"])
    assert turned.correct.tolist() == found.correct.tolist()
    with pytest.raises(DataError, match="`classes` must name each class once"):
        infer_by_logits(logits, ["b", "c", "a"], classes=["a", "b", "b"])


def test_confidence_ties_at_the_threshold_enter_in_expectation() -> None:
    correct, confidence = np.array([1.0, 0.0, 1.0, 0.0, 0.0]), np.array([5.0, 1.0, 1.0, 1.0, 0.0])
    one = np.ones((1, 5))
    assert confident_accuracy(correct, confidence, 1, one)[0] == 1.0
    assert confident_accuracy(correct, confidence, 2, one)[0] == pytest.approx((1 + 1 / 3) / 2)
    assert confident_accuracy(correct, confidence, 3, one)[0] == pytest.approx((1 + 2 / 3) / 3)
    assert confident_accuracy(correct, confidence, 5, one)[0] == pytest.approx(2 / 5)


def test_the_expectation_equals_the_average_over_orders() -> None:
    rng = np.random.default_rng(4)
    correct, confidence = rng.integers(2, size=30).astype(float), rng.integers(4, size=30).astype(float)
    expected = confident_accuracy(correct, confidence, 11, np.ones((1, 30)))[0]
    drawn = []
    for _ in range(4000):
        order = rng.permutation(30)
        drawn.append(correct[order][np.argsort(-confidence[order], kind="stable")][:11].mean())
    # the spread of one draw is below .5 / sqrt(11): six standard errors
    assert np.mean(drawn) == pytest.approx(expected, abs=6 * 0.5 / np.sqrt(11 * 4000))


def test_the_number_of_confident_images_is_rounded_down() -> None:
    assert [images_at(p, n) for p, n in ((0.2, 80), (0.29, 100), (0.07, 100), (1.0, 7), (0.05, 39))] == [
        16,
        29,
        7,
        7,
        1,
    ]
    with pytest.raises(ParameterError, match="`share` must be at least 1/19"):
        images_at(0.05, 19)
    for wrong in (0.0, 1.1, -0.2):
        with pytest.raises(ParameterError, match="`share` must be above 0 and at most 1"):
            images_at(wrong, 100)


def test_a_score_turns_its_sign_when_models_are_exchanged() -> None:
    rng = np.random.default_rng(5)
    one, two = (LabelInference(rng.random(50), rng.integers(5, size=50).astype(float)) for _ in range(2))
    for share in (0.1, 0.33, 1.0):
        assert score([Attacked(one, two)], share) == pytest.approx(-score([Attacked(two, one)], share), abs=1e-12)


GOOD = {"public": np.eye(6), "public_labels": [0, 0, 0, 1, 1, 1], "neighbours": 3}


@pytest.mark.parametrize(
    ("crops", "labels", "change", "line"),
    [
        (np.ones((2, 6)), [0], {}, r"`labels` must be one label for each of 2 rows, got 1"),
        (np.ones((1, 6)), [None], {}, r"`labels` must be given for every row; 1 of 1 are missing"),
        (np.ones((1, 6)), [float("nan")], {}, r"`labels` must be given for every row"),
        (np.ones((1, 6)), [""], {}, r"`labels` must be given for every row"),
        (np.ones((1, 6)), [0.5], {}, r"`labels` must be whole numbers or texts"),
        (np.ones((1, 6)), [7], {}, r"`labels` must occur in the public labels, got 7"),
        (np.ones((1, 6)), ["0"], {}, r"must both be texts or both be numbers"),
        (np.ones((1, 6)), [0], {"public_labels": [0] * 6}, r"must hold at least two classes, got 0 alone"),
        (np.ones((1, 6)), [0], {"public_labels": [0] * 5}, r"`public_labels` must be one label for each of 6 rows"),
        (np.ones((1, 6)), [0], {"neighbours": 7}, r"`neighbours` must be at most the public set's 6 rows, got 7"),
        (np.ones((1, 6)), [0], {"neighbours": 0}, r"`neighbours` must be a whole number, at least 1"),
        (np.ones((1, 5)), [0], {}, r"`public` must have 5 columns like `crops`, got 6"),
        (np.full((1, 6), np.nan), [0], {}, r"`crops` must be finite numbers; 6 of 6 are not"),
        (np.ones(6), [0], {}, r"`crops` must be a table of embeddings"),
        (np.ones((1, 6)), [0], {"distance": "taxi"}, r"`distance` must be euclidean or cosine"),
    ],
)
def test_bad_input_is_refused_in_one_line(crops: object, labels: list[object], change: dict, line: str) -> None:
    with pytest.raises((DataError, ParameterError), match=line) as caught:
        infer_by_neighbours(crops, labels, **{**GOOD, **change})
    assert "\n" not in str(caught.value)
