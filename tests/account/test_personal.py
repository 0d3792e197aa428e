"""What each person is promised where groups of different sizes are shuffled by themselves."""

import math
from collections import defaultdict
from itertools import permutations, product

import pytest

from dovetail.account.amplify import amplify
from dovetail.account.binary import BinaryExact
from dovetail.account.compose import ShuffledGroup, personal_guarantees
from dovetail.core.channel import KRRChannel
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.special import Reals
from dovetail.randomize.krr import KRR


def released_delta(rows: Reals, values: tuple[int, ...], atoms: list[list[int]], victim: int, e: float) -> float:
    """Exact, of an order that permutes each atom uniformly and tells which places are whose atom."""
    laws = []
    for own in (0, 1):
        law: dict[tuple[int, ...], float] = defaultdict(float)
        held = [own if person == victim else values[person] for person in range(len(values))]
        for y in product((0, 1), repeat=len(values)):
            chance = math.prod(rows[x, z] for x, z in zip(held, y, strict=True))
            orders = [list(permutations(atom)) for atom in atoms]
            for chosen in product(*orders):
                seen = tuple(y[person] for order in chosen for person in order)
                law[seen] += chance / math.prod(len(order) for order in orders)
        laws.append(law)
    return sum(max(0.0, laws[0][seen] - e * laws[1][seen]) for seen in laws[0])


def test_a_person_is_promised_what_a_shuffle_of_her_atom_promises_and_exactly_that() -> None:
    channel, atoms = KRRChannel(2, 3, 1), [[0, 1, 2], [3, 4]]
    for epsilon in (0.0, 0.3, 0.8):
        for victim, size in ((0, 3), (3, 2)):
            worst = max(
                released_delta(channel.matrix(), values, atoms, victim, math.exp(epsilon))
                for values in product((0, 1), repeat=5)
            )
            assert worst == pytest.approx(BinaryExact(channel.epsilon, size).delta(epsilon).upper, abs=1e-12)


def test_everybody_has_the_guarantee_of_her_group_and_all_have_the_weakest() -> None:
    krr = KRR(k=4, epsilon=1.0)
    groups = {
        "town": ShuffledGroup(krr, 20_000, 15_000),
        "village": ShuffledGroup(krr, 90),
        "hermit": ShuffledGroup(krr, 1),
    }
    found = personal_guarantees(groups, delta=1e-6)
    assert found.of("town") == amplify(krr, n=20_000, honest=15_000, delta=1e-6)
    assert found.of("town").epsilon < found.of("village").epsilon < found.of("hermit").epsilon
    assert found.of("hermit").epsilon == pytest.approx(1.0, rel=1e-5) and found.weakest == "hermit"
    assert found.worst == found.of("hermit")


def test_what_is_no_group_is_refused() -> None:
    with pytest.raises(ParameterError, match="`groups` must be a mapping"):
        personal_guarantees({}, delta=1e-6)
    found = personal_guarantees({"all": ShuffledGroup(1.0, 10)}, delta=1e-6)
    with pytest.raises(ParameterError, match="`group` must be one of all, got 'some'"):
        found.of("some")


def test_a_group_without_a_guarantee_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise UnsupportedError("nothing holds")

    monkeypatch.setattr("dovetail.account.compose.amplify", refuse)
    with pytest.raises(UnsupportedError, match="group 'all': nothing holds"):
        personal_guarantees({"all": ShuffledGroup(1.0, 10)}, delta=1e-6)
