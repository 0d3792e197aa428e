"""The paper's propositions about full channels, by brute force in exact fractions.

Jurado, Gonze, Alvim, Palamidessi (2023), Analyzing the Shuffle Model Through the Lens of Quantitative Information
Flow, CSF.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb, factorial, prod

import numpy as np
import pytest
from studies.qif_tables.run import format_polynomials
from tests.leak.exact_examples import channel, weights

from dovetail.core.channel import KRRChannel
from dovetail.core.errors import ParameterError
from dovetail.leak.qif import shuffle_channels as small
from dovetail.leak.qif.channels import equivalent
from dovetail.leak.qif.inputs import normalize, point
from dovetail.leak.qif.inputs import product as product_prior
from dovetail.leak.qif.shuffle_channels import LabelledChannel
from dovetail.leak.qif.vulnerability import posterior_vulnerability, prior_vulnerability
from dovetail.leak.vulnerability import vulnerability

SMALL = [
    (2, 1),
    (2, 2),
    (2, 3),
    (2, 4),
    (2, 5),
    (3, 1),
    (3, 2),
    (3, 3),
    pytest.param(3, 4, marks=pytest.mark.exhaust),
]
KEEPS = [(1, 1), (3, 1), (7, 2)]  # masses of the truth and of each other value


@dataclass(frozen=True, eq=False)
class Model:
    """All channels of one setting: full and reduced noise and shuffle."""

    krr: KRRChannel
    n: int

    @property
    def N(self) -> LabelledChannel:
        return small.full_randomizer(self.krr, n=self.n)

    @property
    def S(self) -> LabelledChannel:
        return small.full_shuffle(self.krr.k, n=self.n)

    @property
    def Sr(self) -> LabelledChannel:
        return small.reduced_shuffle(self.krr.k, n=self.n)

    @property
    def Nr(self) -> LabelledChannel:
        return small.reduced_randomizer(self.krr, n=self.n)

    def guess(self, table: LabelledChannel) -> Fraction:
        """V of naming person 0's value, uniform prior on datasets."""
        value = posterior_vulnerability(normalize([1] * len(table.inputs)), table, gain=small.target_gain(table))
        assert isinstance(value, Fraction)
        return value


def histograms(n: int, k: int) -> list[tuple[int, ...]]:
    return [z for z in product(range(n + 1), repeat=k) if sum(z) == n]


def ways(z: tuple[int, ...]) -> int:
    return factorial(sum(z)) // prod(map(factorial, z))


@pytest.mark.parametrize(("k", "n"), SMALL)
def test_figures_1_8_and_9_full_and_reduced_channels_are_equal_or_equivalent_as_drawn(k: int, n: int) -> None:
    model = Model(KRRChannel(k, 3, 1), n)
    N, S, Sr, Nr = model.N, model.S, model.Sr, model.Nr
    NS, NSr = N.then(S), N.then(Sr)
    assert equivalent(S, Sr)  # Proposition 9
    assert (NS.cells == S.then(N).cells).all()  # Proposition 11, even as matrices
    assert equivalent(NS, NSr)  # Proposition 12
    assert (NSr.cells == Sr.then(Nr).cells).all()  # Proposition 26
    assert equivalent(S.then(N), Sr.then(Nr))  # Proposition 28
    if n > 1:
        assert not equivalent(N, NS)  # the comparison can fail
        with pytest.raises(ParameterError):  # S^r N and Proposition 25: the types do not fit
            Sr.then(N)
        with pytest.raises(ParameterError):
            equivalent(N, Nr)


@pytest.mark.parametrize(("k", "n"), SMALL)
def test_equivalence_shows_in_every_prior_and_gain(k: int, n: int) -> None:
    model, generator = Model(KRRChannel(k, 3, 1), n), np.random.default_rng([k, n])
    NS = model.N.then(model.S)
    NSr = model.N.then(model.Sr)
    for _ in range(3):
        prior, gain = normalize(weights(generator, k**n)), weights(generator, 4, k**n)
        assert posterior_vulnerability(prior, NS, gain=gain) == posterior_vulnerability(prior, NSr, gain=gain)


@pytest.mark.parametrize(("k", "n"), SMALL)
@pytest.mark.parametrize(("keep", "lie"), KEEPS)
def test_propositions_14_to_21_and_theorems_17_and_19(k: int, n: int, keep: int, lie: int) -> None:
    model = Model(KRRChannel(k, keep, lie), n)
    p, s = Fraction(keep, model.krr.total), Fraction(lie, model.krr.total)
    N, Sr = model.N, model.Sr
    prior = prior_vulnerability(normalize([1] * k**n), gain=small.target_gain(N))
    assert prior == Fraction(1, k)  # 14
    assert model.guess(N) == p  # 15
    top = sum(Fraction(ways(z) * max(z), k**n * n) for z in histograms(n, k))
    assert model.guess(Sr) == top  # 16 and 20
    mixed = sum(Fraction(ways(z), k**n * n) * (max(z) * p + (n - max(z)) * s) for z in histograms(n, k))
    assert model.guess(N.then(Sr)) == mixed == s + (p - s) * top  # 18, 21 and equation 17
    if k == 2:
        excess = Fraction(comb(n - 1, (n - 1) // 2), 2**n)
        assert top == Fraction(1, 2) + excess  # 17
        assert mixed == Fraction(1, 2) + excess * (2 * p - 1)  # 19
    fast = vulnerability(model.krr, n=n)
    for name, exact in (("randomized", p), ("shuffled", top), ("randomized_shuffled", mixed)):
        assert abs(Fraction(getattr(fast, name)) - exact) <= fast.error_bound


def test_below_1_over_k_the_smallest_count_decides_and_equation_17_understates() -> None:
    for k, n in ((2, 1), (2, 4), (3, 3)):
        model = Model(KRRChannel(k, 1, 5), n)
        p, s = Fraction(1, model.krr.total), Fraction(5, model.krr.total)
        assert model.guess(model.N) == s  # Proposition 15 outside its range
        low = sum(Fraction(ways(z) * min(z), k**n * n) for z in histograms(n, k))
        truth = model.guess(model.N.then(model.Sr))
        assert truth == s - (s - p) * low > s + (p - s) * model.guess(model.Sr)


@pytest.mark.parametrize(("k", "n"), [(2, 4), (3, 3)])
def test_noise_alone_leaks_the_targets_own_report_whatever_the_others_hold(k: int, n: int) -> None:
    person, mine = channel(1, k, k), normalize(weights(np.random.default_rng(k), k))
    prior = product_prior([mine, *(normalize(weights(np.random.default_rng(i), k)) for i in range(n - 1))])
    table = small.full_randomizer(person, n=n)
    alone = posterior_vulnerability(mine, person)
    assert posterior_vulnerability(prior, table, gain=small.target_gain(table)) == alone


@pytest.mark.parametrize(("k", "n"), [(2, 3), (2, 5), (3, 3)])
def test_equation_10_holds_with_the_maximum_of_each_column(k: int, n: int) -> None:
    model = Model(KRRChannel(k, 4, 1), n)
    table = model.N.then(model.Sr)
    known = [point(k, secret=i % k) for i in range(n - 1)]
    prior = product_prior([normalize([1] * k), *known])
    rows = table.cells[prior > 0]
    strong = posterior_vulnerability(prior, table, gain=small.target_gain(table))
    assert strong == sum(rows.max(axis=0)) / k
    assert strong != sum(rows.max(axis=1)) / k  # as printed
    assert (
        posterior_vulnerability(prior, model.Sr, gain=small.target_gain(table)) == 1
    )  # shuffling alone hides nothing


def test_table_2_as_printed() -> None:
    text = format_polynomials(lambda krr: Model(krr, 3).N.then(Model(krr, 3).S), k=2, n=3).splitlines()
    same, other = "(p^3 + 2 pq^2)/3", "(2 p^2q + q^3)/3"
    assert " ".join(text[1].split()) == "aaa p^3 p^2q p^2q pq^2 p^2q pq^2 pq^2 q^3"
    assert " ".join(text[2].split()) == f"aab p^2q {same} {same} {other} {same} {other} {other} pq^2"


def test_tables_3_4_and_5_corrected() -> None:
    full = format_polynomials(lambda krr: Model(krr, 3).N.then(Model(krr, 3).Sr), k=2, n=3).splitlines()
    reduced = format_polynomials(lambda krr: Model(krr, 3).Nr, k=2, n=3).splitlines()
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in [*full[1:], *reduced[1:]]}
    assert rows["aaa"] == rows["a:3,b:0"] == "p^3 3 p^2q 3 pq^2 q^3"
    assert rows["aab"] == rows["aba"] == rows["baa"] == rows["a:2,b:1"] == "p^2q p^3 + 2 pq^2 2 p^2q + q^3 pq^2"
    assert rows["abb"] == rows["bab"] == rows["bba"] == rows["a:1,b:2"] == "pq^2 2 p^2q + q^3 p^3 + 2 pq^2 p^2q"
    assert rows["bbb"] == rows["a:0,b:3"] == "q^3 3 pq^2 3 p^2q p^3"  # Table III prints the middle swapped


def test_table_4_as_printed_is_no_channel() -> None:
    p, q = Fraction(3, 4), Fraction(1, 4)
    printed = [p * p * q, (p**3 + 2 * p * q * q) / 3, (2 * p * p * q + q**3) / 3, p * q * q]
    assert sum(printed) == Fraction(11, 24)
    right = small.reduced_randomizer(KRRChannel(2, 3, 1), n=3).cells[1]
    assert right.tolist() == [printed[0], 3 * printed[1], 3 * printed[2], printed[3]] and right.sum() == 1


def test_every_dataset_of_one_histogram_gives_the_same_row_so_definition_23_needs_no_prior() -> None:
    person = channel(3, 3, 3)
    table = small.full_randomizer(person, n=3).then(small.reduced_shuffle(3, n=3))
    rows: dict[str, set[tuple[Fraction, ...]]] = {}
    for dataset, row in zip(table.inputs, table.cells, strict=True):
        rows.setdefault("".join(sorted(dataset)), set()).add(tuple(row))
    assert all(len(group) == 1 for group in rows.values())


def test_the_shuffle_keeps_the_values_of_aab_among_eight_datasets_of_three() -> None:
    table = small.full_shuffle(2, n=3)
    assert len(table.inputs) == 2**3  # and not 2^8
    row = dict(zip(table.outputs, table.cells[table.inputs.index("aab")], strict=True))
    assert {word for word, cell in row.items() if cell > 0} == {"aab", "aba", "baa"}  # printed: abb, aba, baa
