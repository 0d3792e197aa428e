"""The public names exist, are documented, are stated once and load lazily."""

import subprocess
import sys
from collections import Counter
from importlib import import_module
from types import ModuleType

import pytest

import dovetail

SUBMODULES = ["account", "attack", "datasets", "estimate", "leak", "job", "plan", "engine", "shuffle", "trace"]
TWICE = ["run"]  # the same job in memory and in files
PACKAGES: list[ModuleType] = [dovetail, *(import_module(f"dovetail.{name}") for name in SUBMODULES)]
NAMES = [(package, name) for package in PACKAGES for name in package.__all__]


def test_every_public_name_loads_and_is_documented() -> None:
    mute = [(one.__name__, name) for one, name in NAMES if not getattr(one, name).__doc__ or name not in dir(one)]
    assert mute == []


def test_every_name_is_stated_once() -> None:
    stated = Counter(name for _, name in NAMES if name not in SUBMODULES)
    assert [name for name, times in stated.items() if times > 1] == TWICE


@pytest.mark.parametrize("package", PACKAGES[1:], ids=lambda package: package.__name__)
def test_the_description_of_a_submodule_names_everything_in_it(package: ModuleType) -> None:
    assert [name for name in package.__all__ if f"`{name}`" not in (package.__doc__ or "")] == []


def test_a_name_is_the_function_even_after_its_module_was_imported() -> None:
    import_module("dovetail.datasets.nested_crescents")
    assert callable(dovetail.datasets.nested_crescents)
    assert callable(dovetail.estimate.best_mean)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_an_unknown_name_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="attribute shuffel"):
        _ = package.shuffel


def run(program: str) -> None:
    """A program in a process of its own, which must not fail."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_and_its_submodules_start_without_arrays() -> None:
    names = ", ".join(f"dovetail.{name}" for name in SUBMODULES)
    run(f"import sys, {names}; assert not {{'numpy', 'scipy', 'numba', 'polars'}} & set(sys.modules)")


def test_a_device_client_computes_its_thresholds_without_numpy() -> None:
    run(
        "import sys; from dovetail_protocol.exact_thresholds import krr_masses, unary_masses, GeometricLaw; "
        "print(krr_masses(16, 4.0)); assert 'numpy' not in sys.modules"
    )
