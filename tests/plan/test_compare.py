"""What mechanisms leak to three adversaries agrees with full channels, with Bayes leakage, and with the paper."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from studies.strong_or_uninformed import run as study

from dovetail.account.amplify import amplify
from dovetail.core.certified import Bracket
from dovetail.core.channel import DenseChannel
from dovetail.core.entropy import simulation
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.stages import FrequencyRandomizer
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.leak.qif.inputs import uniform
from dovetail.leak.qif.vulnerability import additive_leakage, posterior_vulnerability
from dovetail.leak.vulnerability import vulnerability
from dovetail.plan.compare import (
    ADVERSARIES,
    Adversary,
    AdversaryLeakage,
    ComparedMechanism,
    MechanismComparison,
    additive_leakage_bound,
    cap_leakage,
    central_leakage_bound,
    compare_mechanisms,
    linked_report_leakage,
    strong_adversary_leakage,
    uninformed_adversary_leakage,
)
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary

SMALL = [
    kind(k=k, epsilon=epsilon) for kind in (KRR, Hadamard, Unary) for k, epsilon in ((2, 0.7), (2, 4.0), (3, 1.5))
]


@pytest.fixture(scope="module")
def found() -> MechanismComparison:
    """Four values, several thousand people, every kind of row."""
    return compare_mechanisms(n=5000, k=4, error=0.05, delta=1e-6, honest=4000, rng=simulation(1))


def leak(mechanism: ComparedMechanism, adversary: Adversary) -> AdversaryLeakage:
    """Known to be a number."""
    value = mechanism.leak(adversary)
    assert isinstance(value, AdversaryLeakage), value
    return value


def batches(matrix: Any, others: list[Any]) -> Any:
    """Channel (values, histograms) of a target among others with these laws of one report, by convolution."""
    kinds = matrix.shape[1]
    law = {(0,) * kinds: 1.0}
    for report in others:
        grown: dict[tuple[int, ...], float] = {}
        for seen, y in product(law, range(kinds)):
            key = (*seen[:y], seen[y] + 1, *seen[y + 1 :])
            grown[key] = grown.get(key, 0.0) + law[seen] * report[y]
        law = grown
    rows = []
    for own in matrix:
        row: dict[tuple[int, ...], float] = {}
        for seen, y in product(law, range(kinds)):
            key = (*seen[:y], seen[y] + 1, *seen[y + 1 :])
            row[key] = row.get(key, 0.0) + law[seen] * own[y]
        rows.append(row)
    return np.array([[row[key] for key in rows[0]] for row in rows])


# --- adversaries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("randomizer", SMALL, ids=repr)
def test_full_channels_say_the_same_of_all_three_adversaries(randomizer: FrequencyRandomizer) -> None:
    matrix, prior, n = randomizer.channel().matrix(), uniform(randomizer.k), 3
    blind = additive_leakage(prior, batches(matrix, [prior @ matrix] * (n - 1)))
    known = [
        additive_leakage(prior, batches(matrix, [matrix[a], matrix[b]]))
        for a, b in product(range(randomizer.k), repeat=2)
    ]
    assert uninformed_adversary_leakage(randomizer, n=n, rng=None).additive == pytest.approx(blind, rel=1e-12)
    own = linked_report_leakage(randomizer).ends.upper
    told = strong_adversary_leakage(randomizer, n=n, lower=blind, own=own)
    assert told.ends.lower * (1 - 1e-12) <= max(known) <= told.ends.upper * (1 + 1e-12)
    if randomizer.name == "krr":  # every known histogram was tried
        assert told.additive == pytest.approx(max(known), rel=1e-12) and told.method != "bracket"
    assert linked_report_leakage(randomizer).additive == pytest.approx(additive_leakage(prior, matrix), rel=1e-12)


@pytest.mark.parametrize(("n", "epsilon"), [(300, 0.5), (300, 6.0), (2000, 2.0)])
def test_known_histograms_lie_within_the_bracket_of_the_strong_adversary(n: int, epsilon: float) -> None:
    randomizer = KRR(k=2, epsilon=epsilon)
    lower = uninformed_adversary_leakage(randomizer, n=n, rng=None).ends.lower
    told = strong_adversary_leakage(randomizer, n=n, lower=lower, own=linked_report_leakage(randomizer).ends.upper)
    assert told.method == "bracket" and told.additive == told.ends.upper
    for ones in (0, 1, n // 3, (n - 1) // 2):
        seen = vulnerability(randomizer, n=n, adversary="strong", known=(n - 1 - ones, ones))
        assert seen.randomized_shuffled_leakage <= told.ends.upper
    everything = vulnerability(randomizer, n=n, adversary="strong", known=(n - 1, 0))
    assert told.ends.lower >= everything.randomized_shuffled_leakage * (1 - 1e-9)


def test_a_crowd_of_one_is_its_report_to_everybody() -> None:
    for one in compare_mechanisms(n=1, k=3, error=0.95).mechanisms:
        if not isinstance(one.epsilon0, str):
            leaks = [leak(one, adversary) for adversary in ADVERSARIES]
            assert max(leaks, key=lambda told: told.additive).additive == pytest.approx(leaks[2].additive, rel=1e-12)
            assert leaks[0].additive == pytest.approx(leaks[2].additive, rel=1e-12)


@pytest.mark.exhaust
def test_a_sample_from_a_large_crowd_is_sharper_than_the_promise_and_a_cap_cuts_its_upper_end() -> None:
    randomizer, n = Hadamard(k=4, epsilon=0.3), 10**7
    rough = uninformed_adversary_leakage(randomizer, n=n, rng=simulation(4))
    assert rough.method == "sampled" and rough.ends.upper < central_leakage_bound(0.3, n=n, k=4)
    for top in (rough.ends.lower, rough.additive, 0.5 * (rough.additive + rough.ends.upper)):
        assert cap_leakage(rough, top).ends.upper == top >= cap_leakage(rough, top).additive
    assert cap_leakage(rough, 1.0) == rough
    with pytest.raises(UnsupportedError, match="beyond 10,000,000 people"):
        uninformed_adversary_leakage(randomizer, n=n + 1, rng=simulation(4))


@pytest.mark.exhaust
def test_a_public_hash_leaks_between_its_ends() -> None:
    rng = np.random.default_rng(5)
    for randomizer in (
        LocalHashing(k=3, epsilon=0.7),
        LocalHashing(k=9, epsilon=1.5),
        LocalHashing(k=5, epsilon=4.0),
    ):
        ends = linked_report_leakage(randomizer).ends
        seeds = rng.integers(0, 2**64, size=(4000, 2), dtype=np.uint64)
        leaks = [
            additive_leakage(uniform(randomizer.k), randomizer.seed_channel(int(a), int(b))) for a, b in seeds[:1500]
        ]
        slack = 6.2 * float(np.std(leaks)) / np.sqrt(len(leaks))  # false alarm below 1e-9
        assert ends.lower - slack <= np.mean(leaks) <= ends.upper + slack
        less = linked_report_leakage(replace(randomizer, epsilon=0.3 * randomizer.epsilon)).ends
        assert np.mean(leaks) > less.upper + slack, "the leakage of a stronger randomizer is caught"
        assert (
            ends.upper <= additive_leakage_bound(randomizer.epsilon, 0.0, k=randomizer.k) * (1 + 1e-12)
            or randomizer.g < randomizer.k
        )


def test_no_channel_leaks_more_than_its_epsilon_and_delta_allow() -> None:
    rng = np.random.default_rng(8)
    for k, _ in product((2, 3, 5), range(40)):
        rows = rng.dirichlet(np.full(6, rng.choice([0.3, 1.0, 5.0])), size=k)
        leaked = additive_leakage(uniform(k), rows)
        for epsilon in (0.0, 0.2, 1.0, 3.0):
            delta = max(float(np.maximum(p - np.exp(epsilon) * q, 0.0).sum()) for p, q in product(rows, rows))
            assert leaked <= additive_leakage_bound(epsilon, delta, k=k) + 1e-12


@pytest.mark.parametrize("k", [2, 4, 17])
def test_randomized_response_reaches_the_bound_of_its_promise(k: int) -> None:
    for epsilon in (0.1, 1.0, 8.0):
        response = KRR(k=k, epsilon=epsilon)
        assert linked_report_leakage(response).additive == pytest.approx(
            additive_leakage_bound(epsilon, 0.0, k=k), rel=1e-9
        )


@pytest.mark.parametrize("epsilon0", [0.5, 3.0])
def test_the_central_guarantee_bounds_the_strong_adversary(epsilon0: float) -> None:
    for n, k in ((1, 2), (2, 3), (50, 2), (4000, 2)):
        upper = central_leakage_bound(epsilon0, n=n, k=k)
        known = (n - 1,) + (0,) * (k - 1)
        seen = vulnerability(KRR(k=k, epsilon=epsilon0), n=n, adversary="strong", known=known)
        assert (
            seen.randomized_shuffled_leakage
            <= upper * (1 + 1e-9)
            <= (1 + 2e-9) * additive_leakage_bound(epsilon0, 0.0, k=k)
        )


# --- comparison ----------------------------------------------------------------------------------------------------


@pytest.mark.exhaust
def test_every_row_has_the_error_and_the_lenses_say_the_same(found: MechanismComparison) -> None:
    for kind in (KRR, Hadamard, Unary, LocalHashing):
        alone, both = (one for one in found.mechanisms if one.randomizer == kind.name)
        randomizer = kind(k=4, epsilon=float(both.epsilon0))
        promise = amplify(randomizer, n=5000, delta=1e-6, honest=4000)
        assert alone.epsilon0 == alone.epsilon == promise.colluding and both.epsilon == promise.epsilon
        assert alone.error95 == both.error95 == predict_accuracy(randomizer, n=5000).error95
        assert 0.05 * (1 - 1e-5) <= float(both.error95) <= 0.05
    krr = next(one for one in found.mechanisms if one.name == "krr and shuffle")
    seen = vulnerability(KRR(k=4, epsilon=float(krr.epsilon0)), n=4000)
    assert leak(krr, "uninformed").vulnerability == seen.randomized_shuffled
    assert leak(krr, "colluding").vulnerability == pytest.approx(seen.randomized, rel=1e-15)
    only = found.mechanisms[-1]
    assert only.name == "shuffle only" and leak(only, "uninformed").vulnerability == seen.shuffled


@pytest.mark.exhaust
def test_whoever_knows_more_learns_no_less(found: MechanismComparison) -> None:
    for one in found.mechanisms:
        told, all_of_it = leak(one, "strong"), leak(one, "colluding")
        assert told.ends.lower <= all_of_it.ends.upper and told.additive <= all_of_it.additive * (1 + 1e-12)
        blind = one.uninformed
        if isinstance(blind, AdversaryLeakage):
            assert blind.ends.lower <= told.ends.upper
            assert blind.vulnerability == blind.prior + blind.additive
            assert blind.multiplicative == pytest.approx(blind.vulnerability / blind.prior, rel=1e-12)


@pytest.mark.exhaust
def test_shuffling_alone_is_good_against_one_adversary_and_worst_against_the_others(
    found: MechanismComparison,
) -> None:
    only = found.mechanisms[-1]
    alone = [one for one in found.mechanisms if one.shuffler == "none"]
    worst = len(found.mechanisms)
    assert all(found.rank(only, "uninformed") < found.rank(one, "uninformed") for one in alone)  # type: ignore[operator]
    assert [found.rank(only, adversary) for adversary in ("strong", "colluding")] == [worst, worst]
    note = next(
        note for note in found.notes if note.startswith("shuffle only leaks less to the uninformed adversary")
    )
    assert "but more to the strong one than" in note and "krr only" in note


def test_randomizing_and_shuffling_leaks_less_than_either(found: MechanismComparison) -> None:
    """Propositions 15, 20 and 21: V_NS is below V_N and V_S."""
    krr = {one.shuffler: one for one in found.mechanisms if one.randomizer == "krr"}
    both = leak(krr["uniform"], "uninformed").additive
    assert both < leak(krr["none"], "uninformed").additive
    assert both < leak(found.mechanisms[-1], "uninformed").additive
    assert leak(krr["uniform"], "colluding") == leak(krr["none"], "colluding")
    assert found.rank(krr["uniform"], "colluding") == found.rank(krr["none"], "colluding")


def test_ranks_follow_the_upper_ends_and_skip_what_is_not_known(found: MechanismComparison) -> None:
    for adversary in ADVERSARIES:
        order = found.order(adversary)
        ranks = [found.rank(one, adversary) for one in order]
        assert ranks == sorted(ranks, key=int) and ranks[0] == 1  # type: ignore[arg-type]
        tops = [leak(one, adversary).ends.upper for one in order]
        assert tops == sorted(tops)
    hidden = [one for one in found.mechanisms if isinstance(one.uninformed, str)]
    assert [one.name for one in hidden] == ["local_hashing and shuffle"]
    assert found.rank(hidden[0], "uninformed") is None and "2^128" in str(hidden[0].uninformed)


def test_only_intervals_that_do_not_meet_decide_who_leaks_less() -> None:
    def told(lower: float, upper: float) -> AdversaryLeakage:
        return AdversaryLeakage(0.25, upper, Bracket(lower, upper), "bracket", "given")

    def row(kind: str, *leaks: AdversaryLeakage) -> ComparedMechanism:
        return ComparedMechanism(kind, "uniform", 1.0, 0.1, 0.05, *leaks)

    def notes(*rows: ComparedMechanism) -> tuple[str, ...]:
        return MechanismComparison(1000, 4, 0.05, 1e-6, 1000, rows).notes

    krr = row("krr", told(0.3, 0.4), told(0.1, 0.2), told(0.5, 0.6))
    apart = row("unary", told(0.1, 0.2), told(0.3, 0.4), told(0.3, 0.4))
    assert notes(krr, apart) == (
        "unary and shuffle leaks less to the uninformed adversary but more to the strong one than krr and shuffle",
        "krr and shuffle leaks less to the strong one but more to a colluding shuffler than unary and shuffle",
    )
    (found,) = notes(krr, replace(apart, strong=told(0.15, 0.4)))
    assert found.startswith("to the strong one the intervals of these overlap")


@pytest.mark.exhaust
def test_what_is_sampled_is_quoted_with_both_ends_of_its_interval() -> None:
    found = uninformed_adversary_leakage(Hadamard(k=4, epsilon=1.0), n=500, rng=simulation(1))
    assert found.method == "sampled" and found.ends.lower < found.additive < found.ends.upper


def test_the_document_is_the_comparison(found: MechanismComparison) -> None:
    told = found.document()
    assert told["question"] == {"n": 5000, "k": 4, "error": 0.05, "delta": 1e-6, "honest": 4000}
    rows = {row["name"]: row for row in told["mechanisms"]}
    assert rows["shuffle only"]["epsilon"] == "inf" and rows["shuffle only"]["error95"] == 0.0
    assert rows["local_hashing and shuffle"]["uninformed"]["value"] is None
    krr = next(one for one in found.mechanisms if one.name == "krr and shuffle")
    cell = rows["krr and shuffle"]["strong"]
    assert cell["additive"] == leak(krr, "strong").additive and cell["method"] == "bracket"
    assert cell["ends"]["lower"] < cell["ends"]["upper"] and "whatever is known" in cell["basis"]
    assert told["orders"]["strong"][-1] == "shuffle only" and list(found.notes) == told["notes"]


@pytest.mark.exhaust
def test_what_cannot_be_sampled_and_what_cannot_reach_the_error_says_so() -> None:
    few = compare_mechanisms(n=2000, k=2, error=0.03)
    unary = next(one for one in few.mechanisms if one.name == "unary only")
    assert "no epsilon0" in str(unary.epsilon0) and few.rank(unary, "strong") is None
    unseeded = compare_mechanisms(n=5000, k=4, error=0.05)
    hadamard = next(one for one in unseeded.mechanisms if one.name == "hadamard and shuffle")
    assert "Pass `rng`" in str(hadamard.uninformed) and unseeded.delta == 0.01 / 5000
    wide = compare_mechanisms(n=100_000, k=40, error=0.05, rng=simulation(2))
    rows = {one.name: one for one in wide.mechanisms}
    assert isinstance(rows["unary and shuffle"].uninformed, str)
    assert leak(rows["unary only"], "colluding").method == "bracket"
    assert leak(rows["krr and shuffle"], "uninformed").method == "exact sum"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": 0}, "`n` must be"),
        ({"n": True}, "`n` must be"),
        ({"n": "many"}, "`n` must be"),
        ({"k": 1}, "`k` must be"),
        ({"k": np.bool_(True)}, "`k` must be"),
        ({"error": 0.0}, "`error` must be"),
        ({"error": 1.0}, "`error` must be"),
        ({"error": float("nan")}, "`error` must be"),
        ({"error": None}, "give one of"),
        ({"delta": 1.0}, "`delta` must be"),
        ({"delta": float("nan")}, "`delta` must be"),
        ({"honest": 0}, "`honest` must be"),
        ({"honest": 2000}, "`honest` must be"),
    ],
)
def test_bad_questions_are_refused(change: dict[str, Any], words: str) -> None:
    asked: dict[str, Any] = {"n": 1000, "k": 3, "error": 0.1, **change}
    with pytest.raises(ParameterError, match=words) as caught:
        compare_mechanisms(**asked)
    assert "\n" not in str(caught.value)


# --- the introduction's two mechanisms -----------------------------------------------------------------------------


@pytest.mark.exhaust
def test_the_study_holds_and_leaves_its_table(tmp_path: Path) -> None:
    table = study.main(False, tmp_path)
    assert {"strong_or_uninformed.csv", "record.json"} <= {path.name for path in tmp_path.iterdir()}
    assert {claim: held for claim, held in study.verdict(table).items() if not held} == {}


@pytest.mark.exhaust
def test_the_study_would_notice_other_mechanisms(tmp_path: Path) -> None:
    table = study.main(False, tmp_path)
    names = pl.col("mechanism").replace({"M": "M'", "M'": "M", "shuffle": "table", "table": "shuffle"})
    held = study.verdict(table.with_columns(names))
    assert [claim for claim, yes in held.items() if yes] == [
        "to the strong adversary both are one, whatever the others hold",
        "the own channel says what the full channel says",
    ]


def test_both_mechanisms_are_exactly_as_private_as_each_other() -> None:
    """Each is ln 3-differentially private and no better: the worst ratio over datasets that differ in one record."""
    for channel in study.mechanisms(4, 3).values():
        people = study.datasets(4)
        ratios = [
            max(p / q for p, q in zip(channel[a], channel[b], strict=True))
            for a, b in product(range(16), repeat=2)
            if sum(x != y for x, y in zip(people[a], people[b], strict=True)) == 1
        ]
        assert max(ratios) == 3
    assert posterior_vulnerability(study.EVEN, study.last_person(study.SHARES[0], n=9, odds=3)["M'"]) * 2 == 1
    assert DenseChannel(study.mechanisms(3, 9)["M'"].astype(float)).epsilon == pytest.approx(np.log(9.0))


@pytest.mark.exhaust
def test_a_comparison_tells_how_many_randomizers_are_done() -> None:
    told: list[tuple[int, int]] = []
    compare_mechanisms(n=50, k=2, error=0.2, progress=lambda done, total: told.append((done, total)))
    assert told == [(done, len(told) - 1) for done in range(len(told))] and len(told) > 3
