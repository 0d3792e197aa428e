# ruff: noqa: E501
"""Claim: 200 random questions to the accountant are answered or refused, most within a second of processor time;
what takes longer is listed.

Run: python benchmarks/account_questions.py     (--seed, --count)

Every public function of `dovetail.account` in turn, with sizes drawn over many orders of magnitude. The memory of
laws is not emptied between questions, as in a session of a user. Prints what took longer, and the slowest of each.
"""

import argparse
import platform
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import dovetail as dt
from dovetail.account import Message, ShuffledRound
from dovetail.core.channel import DenseChannel
from dovetail.core.errors import DovetailError
from dovetail.shuffle.sampling.dummies import Dummies, SparseDummies, UserDummies

CLAIMED, SEED, COUNT = 1.0, 1, 200
MECHANISMS = (dt.KRR, dt.Unary, dt.Hadamard, dt.LocalHashing, dt.SubsetSelection, dt.Laplace, dt.Window)

Question = tuple[Callable[..., Any], dict[str, Any]]


def mechanism(rng: random.Random, epsilon: float) -> Any:
    """A randomizer, a channel, or the promise alone."""
    kind: Any = rng.choice((*MECHANISMS, DenseChannel, float))
    if kind is float:
        return epsilon
    if kind is DenseChannel:
        return DenseChannel([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
    if kind in (dt.Laplace, dt.Window):
        return kind(0.0, 1.0, epsilon)
    return kind(rng.choice((2, 3, 10, 1000)), epsilon)


def ask(rng: random.Random) -> Iterator[Question]:
    """One question to each function; what cannot be made is left out."""
    sizes: dict[str, Callable[[], Any]] = {
        "epsilon": lambda: 10 ** rng.uniform(-3.0, 1.2),
        "delta": lambda: 10 ** rng.choice((rng.uniform(-12.0, -2.0), rng.uniform(-100.0, -2.0))),
        "n": lambda: int(10 ** rng.uniform(0.0, 12.0)),
        "rounds": lambda: int(10 ** rng.uniform(0.0, 5.0)),
        "k": lambda: rng.choice((2, 3, 10, 1000, 10**6)),
        "honest": lambda: int(10 ** rng.uniform(0.0, 9.0)),
    }

    def drawn(*names: str, **more: Any) -> dict[str, Any]:
        return {name: sizes[name]() for name in names} | more

    def one() -> Any:
        return mechanism(rng, sizes["epsilon"]())

    def pure() -> dict[str, Any]:
        return {"randomizer": None if rng.random() < 0.5 else rng.choice(MECHANISMS).examples()[0]}

    def part() -> ShuffledRound:
        who, n, times = one(), sizes["n"](), sizes["rounds"]()
        return ShuffledRound(who, n, times=times) if isinstance(who, float) else ShuffledRound.of(who, n, times=times)

    makers: list[Callable[[], Question]] = [
        lambda: (dt.amplify, drawn("n", "delta", randomizer=one())),
        lambda: (dt.account.list_bounds, drawn("n", "delta", randomizer=one())),
        lambda: (dt.compose, drawn("delta", rounds=[part() for _ in range(rng.choice((1, 1, 2, 3)))])),
        lambda: (dt.account.composed_delta, drawn("epsilon", rounds=[part()])),
        lambda: (dt.max_epsilon, drawn("epsilon", "n", "delta", rounds=rng.choice((1, sizes["rounds"]())), **pure())),
        lambda: (
            dt.min_people,
            drawn("epsilon", "delta", epsilon0=sizes["epsilon"](), rounds=rng.choice((1, sizes["rounds"]())), **pure()),
        ),
        lambda: (dt.account.dummies_for_rounds, drawn("k", "epsilon", "delta", "rounds")),
        lambda: (dt.account.dummies_delta, drawn("epsilon", "rounds", noise=noise(sizes["epsilon"](), rng))),
        lambda: (dt.account.dummies_epsilon, drawn("delta", "rounds", noise=noise(sizes["epsilon"](), rng))),
        lambda: (
            dt.account.dummies_guarantee,
            drawn("n", "delta", "rounds", dummies=Dummies(10, sizes["epsilon"](), 10 ** rng.uniform(-12.0, -2.0))),
        ),
        lambda: (
            dt.account.message_for,
            drawn("epsilon", "delta", "rounds", weights=[rng.choice((1, 3, 10)) for _ in range(rng.choice((1, 5, 50)))]),
        ),
        lambda: (dt.account.message_delta, drawn("epsilon", "rounds", message=message(rng))),
        lambda: (dt.account.message_epsilon, drawn("delta", "rounds", message=message(rng))),
        lambda: (dt.account.sparse_guarantee, drawn("n", dummies=SparseDummies(sizes["k"](), sizes["epsilon"]()))),
        lambda: (dt.account.user_dummies_for, drawn("k", "epsilon", "delta", "honest")),
        lambda: (dt.account.user_dummies_guarantee, user_guarantee(rng, drawn("delta", "n"))),
        lambda: (
            dt.account.amplify_mixture,
            drawn("delta", "k", mixture=[(sizes["honest"](), sizes["epsilon"]()) for _ in range(rng.choice((2, 3)))]),
        ),
        lambda: (dt.account.closed_forms, drawn("n", "delta", "k", epsilon0=sizes["epsilon"]())),
        lambda: (dt.account.guess_bound, {"prior": [0.5, 0.3, 0.2], "epsilon": sizes["epsilon"](), "delta": 1e-6}),
        lambda: (
            dt.account.memoized_guarantee,
            drawn("n", "delta", permanent=rng.choice(MECHANISMS[:5])(10, sizes["epsilon"]()), constant_values=True),
        ),
        lambda: (dt.account.posterior_interval, {"prior": rng.random(), "alpha": sizes["epsilon"]()}),
        lambda: (dt.account.reidentification_bound, {"epsilon": 1.0, "alpha": sizes["epsilon"](), "r": 100, "k": 2}),
        lambda: (dt.account.renyi_curve, {"part": part(), "orders": [1.5, 2.0, 32.0]}),
        lambda: (accountant, drawn("epsilon", "delta", "n", subject=one(), rounds=rng.choice((1, sizes["rounds"]())))),
    ]  # fmt: skip
    for make in makers:
        try:
            yield make()
        except DovetailError:
            continue


def noise(epsilon: float, rng: random.Random) -> Any:
    """The law of one round's dummies, of either kind."""
    if rng.random() < 0.5:
        return Dummies(10, epsilon, 10 ** rng.uniform(-12.0, -2.0)).noise
    return message(rng).laws[0]


def message(rng: random.Random) -> Message:
    """Gaussian dummies of a few questions."""
    weights = tuple(rng.choice((1, 3, 10)) for _ in range(rng.choice((1, 5))))
    scale = 10 ** rng.uniform(0.0, 5.0)
    reach = int(scale**0.5 * rng.uniform(3.0, 15.0)) + 1
    return Message(Fraction(round(scale) + 1), weights, tuple(reach for _ in weights))


def user_guarantee(rng: random.Random, given: dict[str, Any]) -> dict[str, Any]:
    """A batch of at most a billion people, some of them honest."""
    n = min(given["n"], 10**9)
    return {
        **given,
        "n": n,
        "honest": rng.choice((None, n // 2 + 1)),
        "dummies": UserDummies(10, rng.uniform(0.001, 1.0)),
    }


def accountant(*, subject: Any, n: int, rounds: int, epsilon: float, delta: float) -> object:
    """All that an accountant tells."""
    asked = dt.Accountant(subject, n=n, rounds=rounds)
    return asked.epsilon(delta), asked.delta(epsilon), asked.attack(delta)


def main() -> None:
    """Ask, and print what was slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=COUNT)
    given = parser.parse_args()
    rng, asked, slow, worst = random.Random(given.seed), 0, 0, defaultdict[str, float](float)
    print(f"seed {given.seed}, {given.count} questions, {platform.machine()}, Python {platform.python_version()}")
    while asked < given.count:
        for call, values in ask(rng):
            if asked == given.count:
                break
            begun = time.process_time()
            try:
                answer = str(call(**values))
            except DovetailError as refusal:
                answer = str(refusal)
            took, asked = time.process_time() - begun, asked + 1
            worst[call.__name__] = max(worst[call.__name__], took)
            if took > CLAIMED:
                slow += 1
                print(f"{took:.2f} s  {call.__name__}({values}): {answer[:70]}", flush=True)
    print(f"{slow} of {asked} above {CLAIMED:g} s; slowest of each function:")
    print(", ".join(f"{name} {took:.2f}" for name, took in sorted(worst.items(), key=lambda one: -one[1])))


if __name__ == "__main__":
    main()
