"""A randomizer in the wrong function is refused in one sentence that names the right one."""

from collections.abc import Callable
from typing import Any

import pytest

import dovetail as dt
from dovetail import estimate

KRR, LAPLACE = dt.KRR(k=2, epsilon=1.0), dt.Laplace(lower=0.0, upper=1.0, epsilon=1.0)
SYMBOLS, NUMBERS, PLACES = [0, 1, 1, 0], [100, 200, 300, 0], [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (lambda: dt.estimate_mean(KRR, SYMBOLS), "use estimate_frequencies"),
        (lambda: dt.estimate_mean(dt.KRR, SYMBOLS), "use estimate_frequencies"),
        (lambda: dt.estimate_frequencies(LAPLACE, NUMBERS), "use estimate_mean"),
        (lambda: dt.estimate_groups(LAPLACE, NUMBERS, PLACES), "use estimate_group_means"),
        (lambda: dt.estimate_group_means(KRR, SYMBOLS, PLACES), "use estimate_groups"),
        (lambda: estimate.estimate_sum(KRR, SYMBOLS), "use estimate_frequencies"),
        (lambda: estimate.estimate_variance(KRR, SYMBOLS), "use estimate_frequencies"),
        (lambda: estimate.estimate_median(KRR, SYMBOLS), "use estimate_frequencies"),
        (lambda: estimate.estimate_quantile(KRR, SYMBOLS, share=0.5), "use estimate_frequencies"),
        (lambda: estimate.estimate_count_above(KRR, SYMBOLS, 0.5), "use estimate_frequencies"),
        (lambda: estimate.best_mean(KRR, SYMBOLS), "use estimate_frequencies"),
        (lambda: dt.estimate_frequencies(dt.KRR, SYMBOLS), "the class KRR itself"),
        (lambda: dt.estimate_frequencies(2, SYMBOLS), "such as dt.KRR(k=2, epsilon=1.0), got a value of type int"),
        (lambda: dt.estimate_frequencies(SYMBOLS, KRR), "got a value of type list"),
        (lambda: estimate.project_to_simplex(dt.estimate_mean(LAPLACE, NUMBERS)), "an Estimate of shares"),
        (lambda: dt.vulnerability(LAPLACE, n=10), "a channel or a randomizer of symbols"),
        (lambda: dt.WithinGroups(PLACES), "dt.Groups.from_labels"),
        (lambda: dt.Mallows.fit(PLACES, alpha=1.0), "dt.Groups.from_labels"),
        (lambda: dt.best_shuffler(PLACES, alpha=1.0), "dt.Groups.from_labels"),
        (lambda: dt.rehearse(SYMBOLS), "dt.Collection.of"),
        (lambda: dt.release(SYMBOLS), "dt.Collection.of"),
        (lambda: dt.run(5), "path of a TOML file or a dictionary"),
        (lambda: dt.Collection.of({}, private="x", randomizer=dt.KRR), "dt.KRR(k=2, epsilon=1.0)"),
    ],
)  # fmt: skip
def test_a_wrong_pair_is_refused_in_one_sentence_that_names_the_right_one(
    wrong: Callable[[], Any], right: str
) -> None:
    with pytest.raises(dt.DovetailError) as refused:
        wrong()
    told = str(refused.value)
    assert right in told and told.count("\n") == 0 and told.endswith(".")
