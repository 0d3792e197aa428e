"""Planted memorization is found exact to the count, whatever the order of images and of the public set."""

from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pytest

from dovetail.core.entropy import simulation
from dovetail.core.errors import ParameterError
from dovetail.memorize.dejavu.document import dejavu_document
from dovetail.memorize.dejavu.models import confidence_curve
from dovetail.memorize.dejavu.pairs import Pair, Planted, embed_pair
from dovetail.memorize.dejavu.score import Partition, gap, mcnemar_of, measure_score, paired_score, score

CASES = [(200, "1/4", "1/5"), (100, "0", "1/10"), (100, "1", "1/10"), (150, "1/3", "1/5"), (90, "1/2", "0")]
each_case = pytest.mark.parametrize(("images", "remembered", "accuracy"), CASES)


def planted(images: int, remembered: str, accuracy: str) -> Planted:
    return Planted(images, Fraction(remembered), Fraction(accuracy))


@each_case
def test_the_counts_are_those_that_were_planted(images: int, remembered: str, accuracy: str) -> None:
    made = planted(images, remembered, accuracy)
    rho, q = Fraction(remembered), Fraction(accuracy)
    attacked = made.pair().attack(neighbours=made.neighbours)
    for each in attacked:
        assert Partition.of([each]) == made.partition
        assert each.target.accuracy == pytest.approx(float(rho + (1 - rho) * q), abs=1e-12)
        assert each.reference.accuracy == pytest.approx(float(q), abs=1e-12)
    both = Partition.of(attacked)
    assert both.memorized == float(2 * images * (rho * (1 - q) + (1 - rho) * q * (1 - q)))
    assert both.misrepresented == float(2 * images * (1 - rho) * q * (1 - q))
    assert sum(asdict(both).values()) == 2 * images
    assert (both.memorized - both.misrepresented) / (2 * images) == pytest.approx(gap(attacked).value, abs=1e-12)
    assert score(attacked, 1.0) == pytest.approx(float(rho * (1 - q)), abs=1e-12)
    test = mcnemar_of(attacked)
    assert (test.memorized, test.misrepresented) == (both.memorized, both.misrepresented)


def test_the_confident_images_are_those_that_are_remembered() -> None:
    attacked = planted(200, "1/4", "1/5").pair().attack(neighbours=10)
    for share in (0.05, 0.2, 0.25):
        assert score(attacked, share) == pytest.approx(0.8, abs=1e-12)
        assert paired_score(attacked, share) == pytest.approx(0.8, abs=1e-12)
    # above rho the target's other guesses, right in a fifth, fill up
    assert score(attacked, 0.5) == pytest.approx(0.6 - 0.2, abs=1e-12)
    assert confidence_curve(attacked, [0.5]) == [(0.5, pytest.approx(0.6), pytest.approx(0.2))]


def test_without_memorization_every_score_lies_in_its_interval_at_0() -> None:
    attacked = planted(100, "0", "1/10").pair().attack(neighbours=10)
    for share in (0.05, 0.2, 1.0):
        found = measure_score(attacked, share, draws=300, rng=simulation(1))
        assert found.value == pytest.approx(0.0, abs=1e-12)
        assert found.interval[0] <= 0.0 <= found.interval[1] and found.p_value == 1.0
    assert gap(attacked).interval[0] < 0.0 < gap(attacked).interval[1] and mcnemar_of(attacked).p_value == 1.0


def test_everything_remembered_and_guessing_among_the_classes_scores_the_rest() -> None:
    attacked = planted(100, "1", "1/10").pair().attack(neighbours=10)
    assert score(attacked, 1.0) == pytest.approx(1 - 1 / 10, abs=1e-12)


def test_exchanging_the_models_exchanges_memorized_and_misrepresented() -> None:
    attacked = planted(200, "1/4", "1/5").pair().attack(neighbours=10)
    turned = [each.exchanged for each in attacked]
    one, two = Partition.of(attacked), Partition.of(turned)
    assert (one.memorized, one.misrepresented) == (two.misrepresented, two.memorized)
    assert (one.correlated, one.unassociated) == (two.correlated, two.unassociated)
    for share in (0.05, 0.2, 1.0):
        assert score(turned, share) == pytest.approx(-score(attacked, share), abs=1e-12)
    assert gap(turned).value == -gap(attacked).value and mcnemar_of(turned).p_value == mcnemar_of(attacked).p_value


def shuffled(pair: Pair, rng: np.random.Generator) -> Pair:
    """The same images and the same public set in another order, and another basis of each embedding."""
    orders = {name: rng.permutation(len(np.asarray(labels))) for name, labels in pair.labels.items()}
    basis = {model: np.linalg.qr(rng.normal(size=(20, 20)))[0] for model in "ab"}
    return Pair(
        {name: np.asarray(labels)[orders[name]] for name, labels in pair.labels.items()},
        {key: (np.asarray(rows) @ basis[key[1]] + 5.0)[orders[key[0]]] for key, rows in pair.embeddings.items()},
    )


@pytest.mark.exhaust
def test_the_order_of_images_and_the_basis_of_an_embedding_change_nothing() -> None:
    pair = planted(200, "1/4", "1/5").pair()
    rng = np.random.default_rng(1)
    for _ in range(3):
        for before, after in zip(pair.attack(neighbours=10), shuffled(pair, rng).attack(neighbours=10), strict=True):
            assert sorted(before.target.correct) == sorted(after.target.correct)
            assert sorted(before.reference.confidence) == pytest.approx(sorted(after.reference.confidence))
            assert Partition.of([before]) == Partition.of([after])
            assert score([before], 0.2) == pytest.approx(score([after], 0.2), abs=1e-12)


def test_counts_that_are_not_whole_are_refused() -> None:
    with pytest.raises(ParameterError, match="`images` must make every count whole"):
        planted(10, "1/4", "1/5")
    with pytest.raises(ParameterError, match="`remembered` must be from 0 to 1"):
        planted(10, "5/4", "1/5")


@pytest.mark.exhaust
def test_the_document_tells_the_planted_counts() -> None:
    document = dejavu_document([planted(200, "1/4", "1/5").pair()] * 3, neighbours=10, draws=100)
    assert document["partition"] == {
        "correlated": 96.0, "memorized": 384.0, "misrepresented": 144.0, "unassociated": 576.0,
    }  # fmt: skip
    assert document["target_accuracy"] == pytest.approx(0.4) and document["reference_accuracy"] == pytest.approx(0.2)
    assert document["score"] == pytest.approx(0.8) and document["interval"][0] < 0.8 < document["interval"][1]
    assert document["gap"]["value"] == pytest.approx(0.2) and document["mcnemar_p"] < 1e-20
    assert document["found"] == "memorization" and document["pairs"]["p"]["value"] is None  # three equal gaps
    assert document["verdict"].startswith("Memorization: 384 images")


def test_encoders_are_functions_of_images() -> None:
    made = planted(200, "1/4", "1/5")
    pair = made.pair()
    rows = {
        model: {name: np.asarray(pair.embeddings[name, model]) for name in ("a", "b", "public")} for model in "ab"
    }
    # an image of this toy is (set, number); an encoder looks its embedding up
    encoders = {
        model: (lambda images, model=model: [rows[model][name][number] for name, number in images]) for model in "ab"
    }
    images = {name: [(name, number) for number in range(len(rows["a"][name]))] for name in ("a", "b", "public")}
    attacked = embed_pair(encoders, images, pair.labels, batch=7).attack(neighbours=10)
    assert Partition.of(attacked[:1]) == made.partition == Partition.of(attacked[1:])
