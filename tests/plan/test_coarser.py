"""What ranges of a public column cost, against the accountant and the predicted error of each group."""

import json
from pathlib import Path

import polars as pl
import pytest

import dovetail as dt
from dovetail.cli.main import invoke
from dovetail.core.errors import DataError, ParameterError
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.plan.shuffle_frontier import coarser_groups

AGES = pl.Series("age", [20 + place % 40 for place in range(8000)] + [97])


def test_wider_ranges_leave_fewer_alone_and_protect_them_more() -> None:
    found = coarser_groups(AGES, [50, 5, 20.0], epsilon=1.0, delta=1e-6)
    assert [(one.width, one.groups, one.smallest, one.alone) for one in found] == [
        (0.0, 41, 1, 1), (5.0, 9, 1, 1), (20.0, 3, 1, 1), (50.0, 2, 2001, 0),
    ]  # fmt: skip
    krr = dt.KRR(k=2, epsilon=1.0)
    assert [one.epsilon for one in found[:3]] == [1.0] * 3  # somebody is alone
    assert found[3].epsilon == pytest.approx(dt.amplify(krr, n=2001, delta=1e-6).epsilon, rel=1e-6)
    for one, middle in zip(found, (200, 1000, 4000, 2001), strict=True):
        assert one.error95 == predict_accuracy(krr, n=middle).error95
        assert one.median_epsilon == pytest.approx(dt.amplify(krr, n=middle, delta=1e-6).epsilon, rel=1e-6)
    texts = coarser_groups(AGES.cast(pl.String), [5], epsilon=1.0, delta=1e-6)
    assert texts[1] == found[1]


def test_what_has_no_ranges_is_refused() -> None:
    with pytest.raises(DataError, match="it has none"):
        coarser_groups(pl.Series("city", ["a", "b"]), [5], epsilon=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="widths"):
        coarser_groups(AGES, [0], epsilon=1.0, delta=1e-6)


def test_a_configuration_says_how_its_table_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{18 + i % 60},5;{'ja' if i % 3 else 'nein'}\n" for i in range(300))
    Path("t.csv").write_text("Umfrage\nAlter;raucht\n" + rows)
    settings = ['path = "t.csv"', 'separator = ";"', 'decimal = ","', "skip_rows = 1", 'private = "raucht"']
    lines = ["[data]", *settings, 'public = ["Alter"]', "ranges = { Alter = 5 }"]
    Path("t.toml").write_text("\n".join(lines))
    command = ["plan-shuffle", "--labels", "t.toml", "--columns", "Alter", "--ranges", "10"]
    assert invoke([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["groups"], one["smallest"]) for one in told["ranges"]] == [(60, 5), (7, 10)]
    assert invoke([*command, "--alpha", "1"]) == 2
    assert "give one of --alpha, --frontier and --ranges" in capsys.readouterr().err
    assert invoke([*command[:-1], "ten"]) == 2 and "`--ranges` must be numbers" in capsys.readouterr().err


def test_ranges_whose_number_overflows_are_refused() -> None:
    with pytest.raises(DataError, match="too narrow for its numbers"):
        coarser_groups(pl.Series("age", [20, 30]), [1e-320], epsilon=1.0, delta=1e-6)
