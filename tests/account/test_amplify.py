"""The public accountant: amplify, amplify_groups and the inverse question."""

from pathlib import Path

import pytest
from tests.tiers import one_in

from dovetail.account.accountant import Accountant
from dovetail.account.amplify import SOURCES, amplify, list_bounds
from dovetail.account.attack_lower_bound import attack_lower
from dovetail.account.calibrate import max_epsilon
from dovetail.account.clones import ClonePair
from dovetail.account.mechanism_law import everybody_bound, mechanism_law
from dovetail.core.channel import DenseChannel
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.guarantee import SIMULATED, LocalDP
from dovetail.core.stages import Randomizer
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.unary import Unary

GRID = [(e0, n, d) for e0 in (0.01, 0.7, 3.0, 12.0) for n in (1, 7, 64, 3_000, 10**8) for d in (1e-12, 1e-6, 0.05)]

MECHANISMS = [
    KRR(k=3, epsilon=1.5),
    KRR(k=10, epsilon=1.5),
    Hadamard(k=50, epsilon=1.5),
    Laplace(0.0, 1.0, epsilon=1.5),
    Unary(k=5, epsilon=1.5),
]


class Fixed(Randomizer):
    """A randomizer that is nothing but its promise."""

    name = "fixed"
    report_bits = 0

    def __init__(self, promise: LocalDP) -> None:
        self.promise = promise

    @property
    def guarantee(self) -> LocalDP:
        return self.promise

    def _randomize(self, values, rng):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    @classmethod
    def examples(cls):  # type: ignore[no-untyped-def]
        return ()


def test_a_float_and_a_randomizer_without_a_law_get_one_promise() -> None:
    promises = [amplify(randomizer, n=500, delta=1e-6) for randomizer in (1.5, Fixed(LocalDP(1.5)))]
    assert promises[0].epsilon == promises[1].epsilon
    assert promises[0].colluding == promises[1].colluding == 1.5


@pytest.mark.exhaust
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("n", [1, 40, 5_000])
def test_a_mechanism_with_a_law_is_promised_no_more_than_any_randomizer(mechanism: Randomizer, n: int) -> None:
    promise, generic = (amplify(subject, n=n, delta=1e-6) for subject in (mechanism, mechanism.guarantee.epsilon))
    assert promise.attack_lower <= promise.epsilon <= generic.epsilon * (1 + 1e-12)
    same = (promise.method, promise.source) == (generic.method, generic.source)
    assert same == (promise.epsilon == generic.epsilon) or n == 1
    assert promise.colluding == generic.colluding


def test_a_randomizer_and_its_channel_get_one_promise() -> None:
    krr = KRR(k=4, epsilon=1.0)
    assert amplify(krr, n=500, delta=1e-6).epsilon == amplify(krr.channel(), n=500, delta=1e-6).epsilon


def test_a_channel_that_is_not_locally_private_is_refused_by_row_and_column() -> None:
    with pytest.raises(DataError, match=r"entry \(0, 1\) is 0 where row 1 has 0.5"):
        amplify(DenseChannel([[1.0, 0.0], [0.5, 0.5]]), n=10, delta=1e-6)


def test_the_three_lines_are_ordered_and_the_quoted_one_is_for_the_honest() -> None:
    promise = amplify(1.0, n=10_000, delta=1e-6, honest=2_500)
    assert promise.all < promise.honest < promise.colluding == 1.0
    assert promise.epsilon == promise.honest == amplify(1.0, n=2_500, delta=1e-6).all
    assert (promise.n, promise.honest_n, promise.delta) == (10_000, 2_500, 1e-6)
    assert promise.numeric.upper == promise.honest < 0.9 * ClonePair(1.0, 2_500).epsilon(1e-6).upper


def test_the_source_names_the_theorem_and_the_page_with_its_proof_exists() -> None:
    assert amplify(1.0, n=10, delta=1e-6).method == "stronger clones"
    adaptive = amplify(1.0, n=10, delta=1e-6, adaptive=True)
    assert (adaptive.method, adaptive.source) == ("clones", SOURCES["clones"])
    root = Path(__file__).parents[2]
    assert (root / "docs/theory/stronger-clones.md").is_file()
    assert "docs/theory/stronger-clones.md" in amplify(1.0, n=10, delta=1e-6).source


@pytest.mark.exhaust
def test_adaptive_use_costs_more() -> None:
    for epsilon0, n, delta in GRID:
        adaptive, fixed = (amplify(epsilon0, n=n, delta=delta, adaptive=a).epsilon for a in (True, False))
        assert adaptive >= fixed * (1 - 1e-4)


@pytest.mark.parametrize(("epsilon0", "n", "delta"), GRID)
def test_no_promise_is_below_what_a_real_randomizer_reaches(epsilon0: float, n: int, delta: float) -> None:
    ends = ClonePair(epsilon0, n).epsilon(delta)
    assert attack_lower(epsilon0, n, delta) <= ends.upper
    assert attack_lower(epsilon0, n, delta) <= ClonePair(epsilon0, n, "clones").epsilon(delta).upper
    assert amplify(epsilon0, n=n, delta=delta).epsilon <= epsilon0


def test_the_attack_comes_close_where_theory_says_so() -> None:
    for epsilon0, gap in ((0.7, 1.18), (1.0, 1.15), (3.0, 1.035), (4.0, 1.015), (8.0, 1.005)):
        upper = ClonePair(epsilon0, 10**6).epsilon(1e-6).upper
        assert 1.0 <= upper / attack_lower(epsilon0, 10**6, 1e-6) <= gap


def test_without_delta_every_line_is_the_local_epsilon() -> None:
    promise = amplify(1.5, n=10**6, delta=0.0)
    assert promise.all == promise.honest == promise.colluding == promise.attack_lower == 1.5


def test_one_honest_person_keeps_the_curve_of_one_report() -> None:
    assert amplify(1.0, n=100, delta=0.0, honest=1).epsilon == 1.0
    assert amplify(1.0, n=100, delta=1e-9, honest=1).epsilon == pytest.approx(1.0, abs=1e-8)


def test_simulated_randomness_takes_the_central_promise_away_too() -> None:
    promise = amplify(Fixed(LocalDP(1.0).drawn_from("simulation")), n=100, delta=1e-6)
    assert promise.caveats == (SIMULATED,)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 2.0])
@pytest.mark.parametrize("n", [1, 30, 10**4, 10**9])
@pytest.mark.parametrize("delta", [1e-15, 1e-6, 0.2])
def test_the_answer_to_the_inverse_question_is_admissible(
    epsilon: float, n: int, delta: float, adaptive: bool
) -> None:
    epsilon0 = max_epsilon(epsilon=epsilon, n=n, delta=delta, adaptive=adaptive)
    assert epsilon0 >= epsilon
    assert amplify(epsilon0, n=n, delta=delta, adaptive=adaptive).epsilon <= epsilon


@pytest.mark.exhaust
@pytest.mark.parametrize("adaptive", [False, True])
def test_the_inverse_of_the_forward_answer_loses_almost_nothing(adaptive: bool) -> None:
    for epsilon0 in (0.05, 1.0, 5.0):
        for n in (1, 50, 10**4, 10**8):
            for delta in (1e-12, 1e-6):
                forward = amplify(epsilon0, n=n, delta=delta, adaptive=adaptive).epsilon
                back = max_epsilon(epsilon=forward, n=n, delta=delta, adaptive=adaptive)
                assert back >= epsilon0 * (1 - 5e-6)


def test_the_inverse_without_delta_is_the_identity() -> None:
    assert max_epsilon(epsilon=0.7, n=10**6, delta=0.0) == 0.7


def test_approximate_local_privacy_is_answered_with_clones_or_refused_with_the_reason() -> None:
    promise = amplify(Fixed(LocalDP(1.0, 1e-15)), n=1000, delta=1e-6)
    assert promise.method == "clones, approximate"
    assert promise.epsilon == amplify(1.0, n=1000, delta=1e-6, delta0=1e-15).epsilon
    assert promise.epsilon >= amplify(1.0, n=1000, delta=1e-6, adaptive=True).epsilon
    with pytest.raises(UnsupportedError, match="n \\* delta0 too large"):
        amplify(Fixed(LocalDP(1.0, 1e-6)), n=100, delta=1e-7)
    assert amplify(Fixed(LocalDP(1.0, 1e-6)), n=100, delta=1e-6).epsilon == 1.0


@pytest.mark.parametrize("subject", [0.4, 4.0, KRR(k=10, epsilon=2.0)], ids=repr)
def test_all_bounds_are_listed_and_the_tightest_decides(subject: Randomizer | float) -> None:
    listed = list_bounds(subject, n=10_000, delta=1e-6)
    assert len({bound.name for bound in listed}) == len(listed) >= 9
    assert all((bound.epsilon is None) == bool(bound.reason) and bound.source for bound in listed)
    assert (
        min(bound.epsilon for bound in listed if bound.epsilon is not None)
        == amplify(subject, n=10_000, delta=1e-6).epsilon
    )
    adaptive = {bound.name: bound for bound in list_bounds(subject, n=10_000, delta=1e-6, adaptive=True)}
    assert adaptive["stronger clones"].epsilon is None and adaptive["clones"].epsilon is not None


@pytest.mark.parametrize(
    ("mechanism", "n", "name"),
    [
        (KRR(10, 1.0), 1000, "hidden among everybody"),
        (KRR(10, 1.0), 10**6, "k-ary randomized response"),
        (KRR(2, 6.0), 3000, "stronger clones"),
        (Unary(5, 1.0), 3000, "hidden among everybody"),
        (Unary(5, 4.0), 100, "unary encoding"),
    ],
)
def test_the_smallest_of_all_certified_bounds_is_quoted(mechanism: Randomizer, n: int, name: str) -> None:
    found = amplify(mechanism, n=n, delta=1e-6)
    certified = (name, "stronger clones", "hidden among everybody", mechanism_name(mechanism, n))
    bounds = [one.epsilon for one in list_bounds(mechanism, n=n, delta=1e-6) if one.name in certified]
    assert found.epsilon == min(epsilon for epsilon in bounds if epsilon is not None)
    assert found.method == name


def mechanism_name(mechanism: Randomizer, n: int) -> str:
    try:
        return mechanism_law(mechanism, n=n)[0]
    except UnsupportedError:
        return ""


def test_whatever_lies_outside_the_range_is_refused_by_name() -> None:
    for wrong in (0.0, -1.0, float("nan"), float("inf"), 1e6, True, "1"):
        with pytest.raises(ParameterError, match="`epsilon0` must be"):
            amplify(wrong, n=10, delta=1e-6)  # type: ignore[arg-type]
    for delta in (-1e-9, 1.0, float("nan"), "0"):
        with pytest.raises(ParameterError, match="`delta` must be"):
            amplify(1.0, n=10, delta=delta)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="`delta` must be"):
            max_epsilon(epsilon=1.0, n=10, delta=delta)  # type: ignore[arg-type]
    for people in (0, 1.5, 10**13):
        with pytest.raises(ParameterError, match="`n` must be"):
            amplify(1.0, n=people, delta=1e-6)  # type: ignore[arg-type]
    for honest in (0, 11, 2.5):
        with pytest.raises(ParameterError, match="`honest` must be"):
            amplify(1.0, n=10, delta=1e-6, honest=honest)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="`epsilon` must be"):
        max_epsilon(epsilon=0.0, n=10, delta=1e-6)


@pytest.mark.parametrize("delta", [1e-100, 1e-290, 1e-305, 1e-320, 1 - 1e-9])
def test_absurd_deltas_still_get_a_sound_answer(delta: float) -> None:
    promise = amplify(1.0, n=10**6, delta=delta)
    assert promise.attack_lower <= promise.epsilon <= 1.0
    assert amplify(1e-300, n=10, delta=delta).epsilon <= 1e-300
    assert max_epsilon(epsilon=0.1, n=10**6, delta=delta) >= 0.1


@pytest.mark.exhaust
@pytest.mark.parametrize("epsilon0", one_in(4, [0.5, 1.0, 2.0, 4.0]))
@pytest.mark.parametrize("kind", ["krr", "laplace"])
def test_a_mechanism_s_numerical_bound_is_15_percent_below_the_best_closed_form(kind: str, epsilon0: float) -> None:
    mechanism = KRR(k=10, epsilon=epsilon0) if kind == "krr" else Laplace(0.0, 1.0, epsilon=epsilon0)
    bounds = {bound.name: bound.epsilon for bound in list_bounds(mechanism, n=10_000, delta=1e-6)}
    bennett = bounds["Bennett (law)"]
    assert bennett is not None and amplify(mechanism, n=10_000, delta=1e-6).epsilon <= 0.85 * bennett


@pytest.mark.parametrize("k", [3, 10, 1000])
@pytest.mark.parametrize("n", [10_000, 1_000_000])
def test_k_ary_response_is_known_to_a_ten_thousandth(k: int, n: int) -> None:
    promise = amplify(KRR(k=k, epsilon=2.0), n=n, delta=1e-6)
    assert promise.attack_lower <= promise.epsilon <= 1.0001 * promise.attack_lower


@pytest.mark.parametrize("mechanism", [*MECHANISMS, KRR(k=2, epsilon=1.5), Fixed(LocalDP(1.5))], ids=lambda m: m.name)
@pytest.mark.parametrize("n", [1, 40, 5_000])
def test_searches_see_the_epsilon_that_is_promised(mechanism: Randomizer, n: int) -> None:
    assert Accountant(mechanism, n=n).epsilon(1e-6) == amplify(mechanism, n=n, delta=1e-6).epsilon


def test_searches_see_what_an_approximate_randomizer_is_promised() -> None:
    approximate, pure = Fixed(LocalDP(1.0, 1e-12)), Fixed(LocalDP(1.0))
    seen = Accountant(approximate, n=1000).epsilon(1e-6)
    assert seen == amplify(approximate, n=1000, delta=1e-6).epsilon > Accountant(pure, n=1000).epsilon(1e-6)
    with pytest.raises(UnsupportedError, match="too large"):
        Accountant(Fixed(LocalDP(1.0, 1e-6)), n=100).epsilon(1e-7)


def test_every_line_and_every_bracket_is_quoted_at_its_upper_end() -> None:
    promise = amplify(1.0, n=30, delta=1e-6)
    ends = ClonePair(1.0, 30).epsilon(1e-6)
    assert ends.lower < ends.upper == promise.epsilon == promise.numeric.upper
    krr = KRR(k=4, epsilon=1.0)
    law = mechanism_law(krr, n=40)[1].epsilon(1e-6)
    assert law.lower < law.upper == amplify(krr, n=40, delta=1e-6).epsilon == Accountant(krr, n=40).epsilon(1e-6)
    everybody = everybody_bound(krr, n=1000, delta=1e-6)
    assert amplify(krr, n=1000, delta=1e-6).epsilon == Accountant(krr, n=1000).epsilon(1e-6) == everybody.epsilon
