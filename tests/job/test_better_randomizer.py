"""A table with many values is told which randomizer would serve it better."""

import dovetail as dt
from dovetail.core.missing import Missing
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.job.evaluate import WORTH_SAYING, better_randomizer
from dovetail.report.document import BetterRandomizer


def test_many_values_are_better_served_by_another_randomizer() -> None:
    found = better_randomizer(dt.KRR(k=200, epsilon=2.0), n=5000, delta=1e-6)
    assert isinstance(found, BetterRandomizer) and found.name != "krr"
    assert found.standard_error < 0.4 * found.here  # k-ary response of 200 values at epsilon 2 is far behind
    assert found.here == predict_accuracy(dt.KRR(k=200, epsilon=2.0), n=5000, shares="flat").standard_error


def test_nothing_is_recommended_where_little_would_be_gained() -> None:
    for randomizer in (dt.KRR(k=2, epsilon=2.0), dt.KRR(k=8, epsilon=8.0), dt.Laplace(0.0, 1.0, epsilon=1.0)):
        assert isinstance(better_randomizer(randomizer, n=5000, delta=1e-6), Missing), randomizer
    for k in (3, 30, 300):
        found = better_randomizer(dt.Unary(k=k, epsilon=2.0), n=5000, delta=1e-6)
        assert isinstance(found, Missing) or found.standard_error <= WORTH_SAYING * found.here
