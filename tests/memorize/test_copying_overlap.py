"""Fresh rows that stand in the training sample: a leak where coincidence does not explain them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dovetail.core.errors import DataError
from dovetail.memorize.copying.data_copying import CopyingTest
from dovetail.memorize.copying.result import apart
from dovetail.memorize.copying.search import first_rows, rows_in

Draw = Callable[[Any, int], Any]


def one_column(draw: Any, count: int) -> Any:
    return draw.normal(size=(count, 1)).round(2)


def three_columns(draw: Any, count: int) -> Any:
    return np.column_stack(
        [draw.normal(40, 10, count).round(), draw.integers(0, 3, count), draw.lognormal(3, 0.5, count).round()]
    )


def refused(train: Any, fresh: Any) -> bool:
    try:
        apart(train, fresh, overlap="refuse")
    except DataError:
        return True
    return False


@pytest.mark.parametrize("table", [one_column, three_columns])
@pytest.mark.parametrize("distinct", [False, True], ids=["as drawn", "training rows made distinct"])
def test_rounded_values_that_coincide_by_chance_are_no_overlap(table: Draw, distinct: bool) -> None:
    shares = []
    for seed in range(10):
        draw = np.random.default_rng(seed)
        train, fresh = table(draw, 600), table(draw, 400)
        train = train[first_rows(train)] if distinct else train
        shares.append(rows_in(fresh, train).mean())
        assert not refused(train, fresh)
        with pytest.raises(DataError, match="would make honest data look like copies"):
            apart(train, fresh, overlap="drop")
    assert np.mean(shares) > 0.1


@pytest.mark.exhaust
def test_few_coincidences_of_small_tables_are_refused_in_at_most_one_of_a_hundred() -> None:
    """300 tables of 100 rows, in which 3 % coincide; more than 10 refusals at a rate of 1 % have a chance of 3e-4."""
    draws = [np.random.default_rng(seed) for seed in range(300)]
    assert sum(refused(three_columns(draw, 100), three_columns(draw, 100)) for draw in draws) <= 10


@pytest.mark.parametrize(("table", "share"), [(three_columns, 0.3), (lambda draw, n: draw.normal(size=(n, 1)), 0.05)])
def test_a_leak_is_refused_with_what_chance_explains(table: Draw, share: float) -> None:
    for seed in range(5):
        draw = np.random.default_rng(seed)
        train, fresh = table(draw, 300), table(draw, 300)
        leaked = int(share * 300)
        fresh[:leaked] = train[draw.permutation(300)[:leaked]]
        with pytest.raises(DataError, match=r"where chance explains \d"):
            apart(train, fresh, overlap="refuse")


@pytest.mark.exhaust
def test_an_honest_table_of_rounded_values_is_tested_without_a_flag() -> None:
    draw = np.random.default_rng(1)
    train, fresh, made = (three_columns(draw, count) for count in (600, 400, 400))
    assert CopyingTest.prepare(train, fresh).test(made, baselines=False).verdict == "nothing found"
