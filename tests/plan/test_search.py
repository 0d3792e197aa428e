"""What the planner searches with in little time is what it promises, or a little more."""

import subprocess
import sys

import pytest

from dovetail.account.accountant import Accountant
from dovetail.account.mechanism_law import everybody_law
from dovetail.core.stages import Randomizer
from dovetail.plan.planner import plan_collection
from dovetail.plan.search import SEARCH_POINTS
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace

DELTA = 1e-6
CASES = [
    (KRR(k=2, epsilon=1.0), 300),
    (KRR(k=4, epsilon=2.0), 3_000),
    (KRR(k=3, epsilon=9.0), 1_000),  # the local promise is all there is
    (Hadamard(k=64, epsilon=5.0), 2_000),
    (Laplace(lower=0.0, upper=1.0, epsilon=1.0, grid=0.25), 5_000),
]


@pytest.mark.parametrize(("randomizer", "n"), CASES, ids=repr)
def test_a_search_promises_at_most_a_ten_thousandth_more_and_never_less(randomizer: Randomizer, n: int) -> None:
    exact = Accountant(randomizer, n=n).epsilon(DELTA)
    coarse = Accountant(randomizer, n=n).epsilon(DELTA, points=SEARCH_POINTS)
    assert exact * (1.0 - 2e-6) <= coarse <= exact * (1.0 + 1e-4)


@pytest.mark.parametrize(("randomizer", "n"), CASES, ids=repr)
def test_one_evaluation_tells_on_which_side_of_the_promise_an_epsilon_lies(randomizer: Randomizer, n: int) -> None:
    known = Accountant(randomizer, n=n)
    exact = known.epsilon(DELTA)
    assert known.log_ratio(1.001 * exact, delta=DELTA) <= 0.0
    assert known.log_ratio(0.999 * exact, delta=DELTA) > 0.0


def test_one_evaluation_asks_for_the_epsilon_where_shuffling_amplifies_nothing() -> None:
    known = Accountant(KRR(k=4, epsilon=1.0), n=100)
    assert known.log_ratio(1.001, delta=0.0) <= 0.0 < known.log_ratio(0.999, delta=0.0)


def test_every_pair_of_values_counts_in_what_one_evaluation_says() -> None:
    law = everybody_law(Hadamard(k=5, epsilon=1.0), n=5_000, delta=DELTA)
    assert len(law.exposures) > 1
    found = law.epsilon_upper(DELTA)
    assert law.upper(found, enough=DELTA) <= DELTA < law.upper(0.999 * found, enough=DELTA)


@pytest.mark.exhaust
@pytest.mark.parametrize(("k", "n"), [(2, 500), (3, 40)])
def test_no_randomizer_of_a_plan_exceeds_the_epsilon_that_was_asked_for(k: int, n: int) -> None:
    plan = plan_collection(question="frequency", k=k, n=n, epsilon=1.0)
    assert 0.999 < plan.epsilon <= 1.0
    assert all(row.epsilon is None or row.epsilon <= 1.0 for row in plan.alternatives)


@pytest.mark.exhaust
def test_a_plan_says_why_it_spends_less_than_was_asked_for() -> None:
    plan = plan_collection(question="frequency", k=4, n=8_000, epsilon=1e-9)
    assert plan.epsilon < 0.99e-9
    assert [note for note in plan.notes if "delta alone nearly suffices" in note]
    large = plan_collection(question="frequency", k=1 << 20, n=10**6, epsilon=1.0, randomizer="hadamard")
    told = [note for note in large.notes if "the error would not fall" in note]
    assert bool(told) == (large.epsilon < 0.99)


@pytest.mark.exhaust
def test_a_plan_tells_which_of_the_randomizers_it_is_at() -> None:
    told: list[tuple[str, int, int]] = []

    def tell(step: str, done: int, total: int) -> None:
        told.append((step, done, total))

    plan_collection(question="frequency", k=3, error=0.1, epsilon=1.0, progress=tell)
    people = [(done, total) for step, done, total in told if step == "how many people each randomizer needs"]
    assert people == [(done, 5) for done in range(5)]
    assert told[-1] == ("say what that promises and what it leaks", 0, 1)


@pytest.mark.exhaust
def test_planning_loads_no_compiler_no_data_frames_and_no_statistics() -> None:
    program = (
        "import sys; from dovetail.cli.main import invoke;"
        "invoke('plan --question frequency --k 3 --error 0.03 --epsilon 0.5 --json'.split());"
        "print([name for name in ('numba', 'polars', 'scipy.stats') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "[]"
