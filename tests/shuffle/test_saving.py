"""A saved shuffler comes back as it was; foreign, damaged, dishonest and future files are refused in one line."""

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError, DovetailError, StorageError, UnsupportedError
from dovetail.shuffle.best import best_shuffler
from dovetail.shuffle.fitting.fitted_shuffler import FORMAT, FittedShuffler, load_shuffler
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.planar import PlanarLaplace
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

CHAIN = Groups.from_lists([[0, 1], [1, 2, 3]], 5)
POINTS = np.random.default_rng(1).random((30, 2))
SHUFFLERS: list[FittedShuffler] = [
    *Identity.examples(),
    *Uniform.examples(),
    *WithinGroups.examples(),
    *Mallows.examples(),
    *NoisySort.examples(),
    *PlanarLaplace.examples(),
    Mallows.fit(CHAIN, alpha=2.0).restrict(np.array([True, True, False, True, True])),
]


def comes_back(shuffler: FittedShuffler, tmp_path: Path) -> None:
    path = tmp_path / "fitted.npz"
    shuffler.save(path)
    again = load_shuffler(path)
    assert type(shuffler).load(path).summary() == again.summary()
    assert type(again) is type(shuffler) and again.summary() == shuffler.summary()
    assert again.guarantee == shuffler.guarantee
    np.testing.assert_array_equal(again.permutation(simulation(4)), shuffler.permutation(simulation(4)))


@pytest.mark.parametrize("shuffler", SHUFFLERS, ids=lambda s: f"{s!r:.60}")
def test_what_is_saved_comes_back(shuffler: FittedShuffler, tmp_path: Path) -> None:
    comes_back(shuffler, tmp_path)


def test_what_was_chosen_comes_back_with_its_reason(tmp_path: Path) -> None:
    comes_back(best_shuffler(Groups.from_labels([1, 2, 1, 2, 3]), alpha=1.0), tmp_path)
    comes_back(best_shuffler(Groups.within_radius(POINTS, 0.3), alpha=4.0, points=POINTS), tmp_path)


def parts(path: Path) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """Header and arrays of a file."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(bytes(arrays.pop("header"))), arrays


def write(path: Path, header: dict[str, object], arrays: dict[str, np.ndarray]) -> None:
    """A file with these parts."""
    np.savez(path, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A saved Mallows shuffler."""
    path = tmp_path / "fitted.npz"
    Mallows.fit(CHAIN, alpha=2.0).save(path)
    return path


def test_the_file_is_public_and_says_what_it_is(saved: Path) -> None:
    header, arrays = parts(saved)
    assert (header["format"], header["version"], header["shuffler"]) == (FORMAT, 2, "mallows")
    assert {name.split(".")[0] for name in arrays} == {"groups", "line", "thetas"}


@pytest.mark.parametrize("version", [1, 3])
def test_another_version_is_refused(saved: Path, version: int) -> None:
    header, arrays = parts(saved)
    write(saved, header | {"version": version}, arrays)
    with pytest.raises(UnsupportedError, match=f"version {version} of the format, this is version 2; fit and save"):
        load_shuffler(saved)


def test_an_unknown_kind_is_refused(saved: Path) -> None:
    header, arrays = parts(saved)
    write(saved, header | {"shuffler": "magic"}, arrays)
    with pytest.raises(UnsupportedError, match="unknown kind 'magic'"):
        load_shuffler(saved)


def test_a_shuffler_of_another_kind_is_refused_by_name(saved: Path) -> None:
    with pytest.raises(UnsupportedError, match="kind 'mallows', not 'noisy_sort'"):
        NoisySort.load(saved)


def test_a_dishonest_file_is_refused(saved: Path) -> None:
    header, arrays = parts(saved)
    for changed in ({"alpha": 1.0}, {"alpha": -1.0}):
        write(saved, header | changed, arrays)
        with pytest.raises(DovetailError, match="alpha"):
            load_shuffler(saved)
    write(saved, header, arrays | {"thetas": arrays["thetas"] * 2})
    with pytest.raises(DataError, match="must keep alpha"):
        load_shuffler(saved)


@pytest.mark.parametrize("name", ["thetas", "line.order", "groups.rows.people", "groups.owners.starts"])
def test_a_file_with_a_missing_part_is_damaged(name: str, saved: Path) -> None:
    header, arrays = parts(saved)
    arrays.pop(name)
    write(saved, header, arrays)
    with pytest.raises(DataError, match="damaged"):
        load_shuffler(saved)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 not a zip", pickle.dumps([1]), b"\x93NUMPY"])
def test_a_foreign_file_is_refused_in_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a saved shuffler") as refused:
        load_shuffler(path)
    assert "\n" not in str(refused.value)


def test_another_archive_is_refused(tmp_path: Path) -> None:
    for arrays in ({"x": np.arange(3)}, {"header": np.frombuffer(b"[1]", dtype=np.uint8)}):
        np.savez(tmp_path / "other.npz", **arrays)
        with pytest.raises(DataError, match="not a saved shuffler"):
            load_shuffler(tmp_path / "other.npz")
    with (tmp_path / "array.npz").open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(DataError, match="not a saved shuffler"):
        load_shuffler(tmp_path / "array.npz")


def test_a_missing_file_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.npz: No such file"):
        load_shuffler(tmp_path / "nowhere.npz")
    with pytest.raises(StorageError, match="No such file or directory"):
        Uniform(3).save(tmp_path / "missing" / "fitted.npz")


def test_alpha_infinity_survives(tmp_path: Path) -> None:
    Mallows.fit(CHAIN, alpha=math.inf).save(tmp_path / "x.npz")
    assert load_shuffler(tmp_path / "x.npz").guarantee.alpha == math.inf
