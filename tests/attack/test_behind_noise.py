"""Behind dummies and classes of epsilons: the Bayes guess, enumerated by adding up all that can be sent."""

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from tests.tiers import one_in

from dovetail.attack.experiment import behind_noise
from dovetail.attack.experiment.behind_noise import BehindNoise
from dovetail.attack.experiment.report_law import AnswerLaw
from dovetail.attack.experiment.run_attack import run_attack
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.noise import Noise, People
from dovetail.noise.classes import EpsilonClasses
from dovetail.noise.shuffler import ShufflerNoise
from dovetail.noise.sparse import SparseNoise
from dovetail.noise.users import UserNoise
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.shuffle.sampling.dummies import Dummies, SparseDummies, UserDummies
from dovetail.shuffle.uniform import Uniform

Law = dict[tuple[int, ...], float]  # of histograms

TWO = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.45, 0.55]])
THREE = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.6, 0.2]])
MORE_GEOMETRIC = 30  # dummies beyond which sparse ones are left out: below 1e-21 at the epsilon here


def summed(one: Law, other: Law) -> Law:
    """The law of the sum of two independent histograms."""
    found: Law = defaultdict(float)
    for held, chance in one.items():
        for more, also in other.items():
            found[tuple(a + b for a, b in zip(held, more, strict=True))] += chance * also
    return dict(found)


def single(k: int, kind: int, count: int = 1) -> tuple[int, ...]:
    return tuple(count * (place == kind) for place in range(k))


def of_counts(k: int, masses: np.ndarray) -> Law:
    """Of each kind a number of dummies of its own with these probabilities."""
    found: Law = {(0,) * k: 1.0}
    for kind in range(k):
        found = summed(found, {single(k, kind, a): float(chance) for a, chance in enumerate(masses)})
    return found


def enumerated(
    laws: np.ndarray, sent: Callable[[int, int], Law], added: Law
) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """Probability (people, values, batches) of each batch with each value of each person, and the batches.

    `sent(person, value)` is the law of all messages of a person.
    """
    n, k = laws.shape
    found = []
    for person in range(n):
        others = added
        for one in set(range(n)) - {person}:
            mixed: Law = defaultdict(float)
            for value in range(k):
                for held, chance in sent(one, value).items():
                    mixed[held] += laws[one, value] * chance
            others = summed(others, mixed)
        rows = []
        for value in range(k):
            hers = {held: laws[person, value] * chance for held, chance in sent(person, value).items()}
            rows.append(summed(others, hers))
        found.append(rows)
    batches = sorted({held for rows in found for law in rows for held in law})
    return np.array([[[law.get(held, 0.0) for held in batches] for law in rows] for rows in found]), batches


def case(name: str, laws: np.ndarray) -> tuple[Noise, People, np.ndarray, list[tuple[int, ...]]]:
    """A noise, its people, and the enumeration."""
    n, k = laws.shape
    people, own = People(n), np.tile(np.eye(k), (n, 1, 1))
    nothing: Law = {(0,) * k: 1.0}
    kept, beside, added = 1.0, nothing, nothing
    noise: Noise
    if name in ("shuffler", "second layer"):
        dummies = Dummies(k=k, epsilon=3.0, delta=0.05)
        noise = ShufflerNoise(dummies, OpenAnswers(k) if name == "shuffler" else KRR(k, 2.0))
        s, t = dummies.noise.reach, float(dummies.noise.ratio)
        masses = t ** np.abs(np.arange(2 * s + 1) - s)
        added = of_counts(k, masses / masses.sum())
        if name == "second layer":
            own = np.tile(KRR(k, 2.0).channel().matrix(), (n, 1, 1))
    elif name == "sparse":
        sparse = SparseDummies(k=k, epsilon=4.0)
        noise, kept = SparseNoise(sparse, OpenAnswers(k)), float(sparse.kept)
        added = of_counts(
            k, (1 - float(sparse.more)) * float(sparse.more) ** np.arange(MORE_GEOMETRIC if k == 2 else 9)
        )
    elif name == "users":
        users = UserDummies(k=k, rate=0.4)
        noise = UserNoise(users, OpenAnswers(k))
        beside = {(0,) * k: 1.0 - users.rate, **{single(k, kind): users.rate / k for kind in range(k)}}
    else:
        texts = ["a", "b", "a", "b"][:n]
        noise = EpsilonClasses(k, "class", {"a": 1.0, "b": 3.0}, 1.0)
        people = People(n, public=pl.DataFrame({"class": texts}))
        own = np.array([KRR(k, {"a": 1.0, "b": 3.0}[text]).channel().matrix() for text in texts])

    def sent(person: int, value: int) -> Law:
        told: Law = defaultdict(float, {(0,) * k: 1.0 - kept})
        for kind in range(k):
            told[single(k, kind)] += kept * own[person, value, kind]
        return summed(told, beside)

    return noise, people, *enumerated(laws, sent, added)


NAMES = ["shuffler", "second layer", "sparse", "users", "classes"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("laws", one_in(2, [TWO, THREE]), ids=["two values", "three values"])
@pytest.mark.parametrize("whole", one_in(2, [True, False]), ids=["exactly", "by rates"])
def test_nobody_guesses_better_than_the_bayes_guess_and_the_attack_comes_close(
    name: str, laws: np.ndarray, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every value, report, dummy: within 1e-6 (sparse dummies are cut off), by rates within .01 and .03 at worst."""
    noise, people, joint, batches = case(name, laws)
    if not whole:
        monkeypatch.setattr(behind_noise, "WORK", 0)
    attacker = BehindNoise(AnswerLaw(OpenAnswers(laws.shape[1])), noise, people, np.arange(len(laws)), laws)
    ours = np.zeros(len(laws))
    for place, held in enumerate(batches):
        if joint[:, :, place].sum() > 1e-9:
            told = attacker.posterior(np.repeat(np.arange(laws.shape[1]), held))
            ours += joint[np.arange(len(laws)), told.argmax(axis=1), place]
    best, blind = joint.max(axis=1).sum(axis=1), joint.sum(axis=2).max(axis=1)
    assert (ours <= best + 1e-12).all()
    assert (best - ours).max() <= (1e-6 if whole else 0.03) and (best - ours).mean() <= 0.01
    if whole and name != "second layer":
        assert (best > blind + 0.005).any(), "there must be something to learn"


def test_shares_are_learned_behind_dummies_of_people() -> None:
    """Nine of ten hold the first value: everybody's posterior is the share, to four standard errors of a count."""
    n, dummies = 4000, UserDummies(k=2, rate=0.2)
    noise, people = UserNoise(dummies, OpenAnswers(2)), People(4000)
    batch = np.repeat([0, 1], [3600 + 400, 400 + 400])  # dummies as many as they are on average
    told = BehindNoise(AnswerLaw(OpenAnswers(2)), noise, people, np.arange(3)).posterior(batch)
    assert np.ptp(told[:, 0]) == 0.0
    assert abs(told[0, 0] - 0.9) < 4.0 * (0.1 * n) ** 0.5 / n


def test_too_many_kinds_are_refused() -> None:
    noise = SparseNoise(SparseDummies(k=100_000, epsilon=1.0), OpenAnswers(100_000))
    with pytest.raises(UnsupportedError, match="behind sparse noise of the shuffler at most 5,000,000"):
        BehindNoise(AnswerLaw(OpenAnswers(100_000)), noise, People(100), np.arange(3))


def test_a_release_that_is_attacked_holds_dummies(rng: Entropy) -> None:
    """An attacker that counts messages sees 100 people and, of each symbol, as many dummies as its law allows."""
    dummies, seen = Dummies(k=2, epsilon=1.0, delta=1e-6), []
    noise, people = ShufflerNoise(dummies, OpenAnswers(2)), People(100)

    class Counts:
        label, targets = "counts messages", np.arange(3)

        def guess(self, reports: np.ndarray, rng: Entropy) -> np.ndarray:
            seen.append(len(reports))
            return np.zeros(3, dtype=np.int64)

    run_attack(
        Counts(),
        noise.own,
        [0, 1] * 50,
        Uniform(100),
        noise=noise,
        crowd=people,
        shuffles=2,
        randomizations=1,
        rng=rng,
    )
    assert all(100 < size <= 100 + 2 * dummies.total for size in seen) and len(seen) == 2
