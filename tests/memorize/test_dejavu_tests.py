"""The tests of deja vu keep their level where nothing is memorized, and find what is; broken ones are caught."""

import numpy as np
import pytest
from scipy.stats import binom, fisher_exact, multinomial
from tests.statistics import expect_caught, expect_share
from tests.tiers import tiered

from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError
from dovetail.memorize.dejavu.inference import LabelInference
from dovetail.memorize.dejavu.models import OneModel, against_controls, between, compare_models, excess
from dovetail.memorize.dejavu.score import Attacked, gap, mcnemar, mcnemar_of, measure_score


def attacked(target: np.ndarray, reference: np.ndarray) -> Attacked:
    flat = np.zeros(len(target))
    return Attacked(LabelInference(target.astype(float), flat), LabelInference(reference.astype(float), flat))


def test_mcnemar_is_the_binomial_tail() -> None:
    assert mcnemar(27, 9).p_value == pytest.approx(0.00393, abs=1e-5)
    assert mcnemar(57, 19).p_value == pytest.approx(1.5e-5, rel=0.05)
    for b, c in ((0, 0), (3, 3), (0, 5), (7, 2), (40, 11)):
        tail = 2 * sum(binom.pmf(k, b + c, 0.5) for k in range(max(b, c), b + c + 1))
        assert mcnemar(b, c).p_value == mcnemar(c, b).p_value == pytest.approx(min(1.0, tail))
        assert mcnemar(b, c).mid_p == pytest.approx(min(1.0, tail - binom.pmf(max(b, c), b + c, 0.5)))


@pytest.mark.exhaust
def test_the_exact_p_is_never_too_small_and_the_mid_p_close_to_its_level() -> None:
    """By enumeration: 160 images, of which 30 % only one model guesses, each as likely."""
    tables = [(b, c) for b in range(60) for c in range(b + 1) if 20 <= b + c <= 80]
    tests = [mcnemar(b, c) for b, c in tables]
    b, c = np.array(tables).T
    chance = (1 + (b != c)) * multinomial.pmf(np.stack([b, c, 160 - b - c], axis=1), 160, [0.15, 0.15, 0.7])
    assert chance.sum() == pytest.approx(1.0, abs=1e-5)
    exact, middle = (np.array([getattr(test, name) for test in tests]) for name in ("p_value", "mid_p"))
    for level in (0.001, 0.01, 0.05, 0.2):
        assert chance[exact <= level].sum() <= level
    assert 0.030 < chance[exact <= 0.05].sum() < 0.038
    assert 0.045 < chance[middle <= 0.05].sum() < 0.055


def better_model(rng: np.random.Generator, sizes: tuple[int, int]) -> list[Attacked]:
    """Nothing is memorized; model A guesses 45 % of any images, model B 30 %."""
    rates = (0.45, 0.30)
    return [attacked(rng.random(n) < rates[place], rng.random(n) < rates[1 - place]) for place, n in enumerate(sizes)]


def naive_p(directions: list[Attacked]) -> float:
    """McNemar's test over both directions whatever their sizes."""
    return mcnemar_of(directions).p_value


@pytest.mark.exhaust
def test_the_pooled_gap_cancels_a_better_model_of_unequal_sets_and_pooled_counts_do_not() -> None:
    rng = np.random.default_rng(1)
    runs = [better_model(rng, (700, 300)) for _ in range(1500)]
    rejects = [gap(run).p_value < 0.05 for run in runs]
    # normal test: a twentieth, give or take what the normal law is off
    expect_share(rejects, 0.04, 0.06, against=[0.12])
    expect_caught(expect_share, [naive_p(run) < 0.05 for run in runs], 0.0, 0.06, [0.12])
    assert np.mean([naive_p(run) < 0.05 for run in runs]) > 0.3
    covered = [gap(run).interval[0] <= 0.0 <= gap(run).interval[1] for run in runs]
    expect_share(covered, 0.94, 0.97, against=[0.88])


def test_counts_of_unequal_sets_are_not_tested_together() -> None:
    found = compare_models([better_model(np.random.default_rng(2), (70, 30))], draws=100, rng=simulation(1))
    assert not found.balanced and found.p_value == found.gap.p_value
    same = compare_models([better_model(np.random.default_rng(2), (50, 50))], draws=100, rng=simulation(1))
    assert same.balanced and same.p_value == same.mcnemar.p_value


@pytest.mark.exhaust
def test_equal_sets_cancel_a_better_model_in_the_exact_test() -> None:
    rng = np.random.default_rng(3)
    rejects = [naive_p(better_model(rng, (100, 100))) < 0.05 for _ in range(1500)]
    expect_share(rejects, 0.0, 0.05, against=[0.1])


@pytest.mark.exhaust
def test_the_permutation_test_of_a_score_keeps_its_level_and_finds_what_is_planted() -> None:
    rng = np.random.default_rng(4)

    def run(remembered: float) -> float:
        known = rng.random(60) < remembered
        t, r = rng.random(60) < 0.2, rng.random(60) < 0.2
        sure = rng.integers(3, size=60) + 3 * known
        one = LabelInference((t | known).astype(float), sure.astype(float))
        two = LabelInference(r.astype(float), rng.integers(3, size=60).astype(float))
        return measure_score([Attacked(one, two)], 0.2, draws=199, rng=simulation(int(rng.integers(1 << 30)))).p_value

    null = [run(0.0) <= 0.05 for _ in range(500)]
    expect_share(null, 0.0, 0.05, against=[0.15])
    assert np.mean([run(0.25) <= 0.05 for _ in range(40)]) > 0.9


def one_model_run(
    rng: np.random.Generator, *, remembered: float, strength: float, harder: float = 0.0, n: int = 500
) -> tuple[np.ndarray, ...]:
    """Target and classifier on A and on C: a share of images whose crop tells, of which both see a part.

    The encoder sees all of it, the classifier the share `strength`; the others are guessed among ten.
    """

    def group(shown: float, known: float) -> tuple[np.ndarray, np.ndarray]:
        tells = rng.random(n) < shown
        target = tells | (rng.random(n) < 0.1) | (rng.random(n) < known)
        seen = tells & (rng.random(n) < strength)
        return target.astype(float), (seen | (rng.random(n) < 0.1)).astype(float)

    t_a, r_a = group(0.4, remembered)
    t_c, r_c = group(0.4 * (1.0 - harder), 0.0)
    return t_a, t_c, r_a, r_c


@pytest.mark.exhaust
@pytest.mark.parametrize("strength", tiered([0.0, 0.7, 1.0], lambda strength: strength == 0.7))
def test_one_model_against_controls_keeps_its_level_however_weak_the_classifier(strength: float) -> None:
    rng = np.random.default_rng(int(10 * strength))
    rejects = []
    for _ in range(1500):
        t_a, t_c, r_a, r_c = one_model_run(rng, remembered=0.0, strength=strength)
        rejects.append(against_controls(t_a, t_c, classifier=(r_a, r_c)).p_value <= 0.05)
    expect_share(rejects, 0.0, 0.05, against=[0.12])


def bits(hits: int, n: int) -> np.ndarray:
    return np.arange(n) < hits


def test_one_stratum_is_fishers_exact_test() -> None:
    for hits_a, n_a, hits_c, n_c in (
        (9, 40, 3, 25),
        (0, 20, 0, 20),
        (3, 400, 0, 25),
        (20, 20, 19, 20),
        (1, 30, 9, 60),
    ):
        table = [[hits_a, n_a - hits_a], [hits_c, n_c - hits_c]]
        p = fisher_exact(table, alternative="greater").pvalue
        assert against_controls(bits(hits_a, n_a), bits(hits_c, n_c)).p_value == pytest.approx(p, rel=1e-9)


def test_names_dealt_anew_within_classes_and_guesses_of_the_classifier_give_the_p_value() -> None:
    """A permutation of names, drawn: 6 standard errors, two false alarms in 1e9."""
    rng = np.random.default_rng(12)
    labels, right = rng.integers(3, size=90), rng.random(90) < 0.4
    guessed, names = rng.random(90) < 0.3 + 0.3 * right, np.arange(90) < 40
    groups = [np.flatnonzero((labels == one) & (right == two)) for one in range(3) for two in (False, True)]
    draws, most = 20_000, int(guessed[names].sum())
    sums = sum((rng.permuted(np.tile(guessed[g], (draws, 1)), axis=1)[:, : names[g].sum()].sum(1) for g in groups), 0)
    share = float((sums >= most).mean())
    pairs = [(each[names], each[~names]) for each in (guessed, right, labels)]
    found = against_controls(*pairs[0], classifier=pairs[1], labels=pairs[2])
    assert found.p_value == pytest.approx(share, abs=6 * np.sqrt(share * (1 - share) / draws))
    assert abs(found.p_value - against_controls(*pairs[0]).p_value) > 6 / np.sqrt(draws)  # the strata matter


def test_ties_are_judged_by_a_threshold_that_does_not_know_the_groups() -> None:
    t_a, t_c = np.full(40, 0.5), np.full(30, 0.25)
    found = against_controls(t_a, t_c)
    assert found.difference == 0.25 and found.p_value == against_controls(bits(40, 40), bits(0, 30)).p_value
    assert against_controls(t_a, np.full(30, 0.5)).p_value == 1.0


SIZES = [(20, 20), (25, 400), (400, 25), (60, 60), (100, 640), (640, 100), (1000, 20), (20, 1000), (200, 200)]
RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 0.5, 0.9)
PLANTED = (0.0, 0.05, 0.3)


@pytest.mark.exhaust
@pytest.mark.parametrize(("images", "controls"), tiered(SIZES, lambda sizes: sizes in ((20, 20), (400, 25))))
def test_one_model_keeps_its_level_and_its_interval_covers_at_every_size_and_accuracy(
    images: int, controls: int
) -> None:
    """By enumeration of both counts; what is too rare to be looked at counts as an error: no false alarms."""
    first = (images, controls) == (400, 25)
    rates = (0.005, 0.02) if first else RATES
    tables: dict[tuple[int, int], OneModel] = {}
    for rate in rates:
        for planted in (each for each in PLANTED if rate + each <= 1.0):
            mass = [binom.pmf(np.arange(n + 1), n, p) for n, p in ((images, rate + planted), (controls, rate))]
            seen = [np.flatnonzero(each > 1e-7) for each in mass]
            if len(seen[0]) * len(seen[1]) > 6000:
                continue
            covered, accepted = 0.0, 0.0
            for a in seen[0].tolist():
                for c in seen[1].tolist():
                    if (a, c) not in tables:
                        tables[a, c] = against_controls(bits(a, images), bits(c, controls))
                    found, weight = tables[a, c], mass[0][a] * mass[1][c]
                    accepted += weight * (found.p_value > 0.05)
                    covered += weight * (found.interval[0] <= planted <= found.interval[1])
            assert covered >= 0.95, (rate, planted)
            assert planted > 0.0 or accepted >= 0.95, (rate, accepted)
    assert tables


def test_the_gap_without_controls_takes_a_weak_classifier_for_memorization() -> None:
    rng = np.random.default_rng(6)
    wrong = []
    for _ in range(400):
        t_a, _, r_a, _ = one_model_run(rng, remembered=0.0, strength=0.7)
        found = excess(t_a, r_a)
        off = t_a - r_a
        wrong.append(found.value / (off.std(ddof=1) / np.sqrt(len(off))) > 1.645)
    assert np.mean(wrong) > 0.9
    expect_caught(expect_share, wrong, 0.0, 0.06, [0.15])


@pytest.mark.exhaust
def test_one_model_finds_a_tenth_remembered_and_takes_harder_controls_for_memorization() -> None:
    rng = np.random.default_rng(7)
    found, fooled, share, sharper = [], [], [], []
    for _ in range(300):
        t_a, t_c, r_a, r_c = one_model_run(rng, remembered=0.1, strength=0.7)
        test = against_controls(t_a, t_c, classifier=(r_a, r_c))
        found.append(test.p_value < 0.05)
        share.append(test.memorized_share)
        sharper.append(test.p_value < against_controls(t_a, t_c).p_value)
        t_a, t_c, r_a, r_c = one_model_run(rng, remembered=0.0, strength=0.7, harder=0.2)
        fooled.append(against_controls(t_a, t_c, classifier=(r_a, r_c)).p_value < 0.05)
    assert 0.45 < np.mean(found) < 0.8  # about .6, give or take five standard errors
    assert np.mean(fooled) > 0.3  # said among the limits
    assert np.mean(share) == pytest.approx(0.1, abs=6 * np.std(share) / np.sqrt(300))
    assert np.mean(sharper) > 0.5


@pytest.mark.exhaust
def test_classes_in_other_shares_do_not_mislead_a_comparison_within_classes() -> None:
    rng = np.random.default_rng(8)
    plain, stratified, covered = [], [], []
    rates = np.array([0.1, 0.8])
    for _ in range(700):
        labels_a, labels_c = rng.random(300) < 0.5, rng.random(300) < 0.3
        t_a, t_c = (rng.random(300) < rates[each.astype(int)] for each in (labels_a, labels_c))
        plain.append(against_controls(t_a, t_c).p_value <= 0.05)
        found = against_controls(t_a, t_c, labels=(labels_a, labels_c))
        stratified.append(found.p_value <= 0.05)
        covered.append(found.interval[0] <= 0.0 <= found.interval[1])
    expect_share(stratified, 0.0, 0.05, against=[0.17])
    expect_share(covered, 0.95, 1.0, against=[0.85])
    expect_caught(expect_share, plain, 0.0, 0.05, [0.17])


def test_one_model_refuses_what_cannot_be_compared() -> None:
    few, enough = bits(1, 19), bits(9, 20)
    with pytest.raises(DataError, match="`target` must be at least 20 images, got 2"):
        against_controls([1.0, 1.0], [0.0, 0.0])
    with pytest.raises(DataError, match="`controls` must be at least 20 images, got 19"):
        against_controls(enough, few)
    with pytest.raises(DataError, match="`controls` must be chances of being right"):
        against_controls(enough, 2.0 * enough)
    with pytest.raises(DataError, match="`classifier` must guess the 20 images and 20 controls"):
        against_controls(enough, enough, classifier=(enough, few))
    labels = (np.where(bits(2, 20), "x", "y"), np.where(bits(1, 20), "x", "y"))
    with pytest.raises(DataError, match="at least two images and two controls, got 2 and 1 of x"):
        against_controls(enough, enough, labels=labels)
    with pytest.raises(DataError, match="`classifier` must guess the 2 images of `target`, got 3"):
        excess([1.0, 0.0], [1.0, 0.0, 1.0])


def test_pairs_of_models_are_compared_by_student() -> None:
    assert between((0.1, 0.12)).p_value is None and between((0.1,)).deviation is None
    assert between((0.1, 0.12, 0.11)).p_value == pytest.approx(0.00274, abs=1e-5)
    with pytest.raises(DataError, match="all be attacked in one direction or all in both"):
        one = attacked(np.ones(4), np.zeros(4))
        compare_models([[one], [one, one]], draws=100, rng=simulation(1))


def test_the_verdict_is_unclear_where_the_reference_is_better() -> None:
    one = attacked(np.zeros(60), np.arange(60) % 2)
    assert compare_models([[one, one]], draws=100, rng=simulation(1)).found == "unclear"
    assert compare_models([[one.exchanged] * 2], draws=100, rng=simulation(1)).found == "memorization"
