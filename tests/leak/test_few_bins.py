"""Short sums by numpy are those of the compiled loop."""

import numpy as np
import pytest

from dovetail.leak import max_load
from dovetail.leak import max_load as few_bins
from dovetail.leak import max_load_unequal as top_t_load
from dovetail.leak.dft_inversion import ROUNDING


@pytest.mark.parametrize(("n", "k"), [(2, 3), (50, 3), (1_000, 4), (300, 7), (40, 20)])
@pytest.mark.parametrize("tries", [1, 2, 3])
def test_arrays_and_the_compiled_loop_agree(monkeypatch: pytest.MonkeyPatch, n: int, k: int, tries: int) -> None:
    def answer() -> float:
        return (max_load.max_load_gap(n, k) if tries == 1 else top_t_load.top_t_load_gap(n, k, tries)).value

    short = answer()
    monkeypatch.setattr(few_bins, "SHORT", 0)
    np.testing.assert_allclose(short, answer(), rtol=ROUNDING)


def test_pieces_add_up_where_there_is_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = max_load.max_load_gap(1_000, 4).value
    monkeypatch.setattr(few_bins, "COMPILED", False)
    monkeypatch.setattr(few_bins, "SHORT", 2_000)
    np.testing.assert_allclose(whole, max_load.max_load_gap(1_000, 4).value, rtol=ROUNDING)
