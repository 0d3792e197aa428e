"""The public names exist, are documented and load lazily."""

import subprocess
import sys

import pytest

import dovetail


@pytest.mark.parametrize("name", dovetail.__all__)
def test_every_public_name_loads_and_is_documented(name: str) -> None:
    assert getattr(dovetail, name).__doc__


def test_the_list_of_names_and_their_homes_agree() -> None:
    assert sorted(dovetail.__all__) == sorted(dovetail._MODULE_OF)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'shuffel'"):
        _ = dovetail.shuffel


def test_a_device_client_computes_its_thresholds_without_numpy() -> None:
    program = (
        "import sys; from dovetail_protocol.exact_thresholds import krr_masses, unary_masses, GeometricLaw; "
        "print(krr_masses(16, 4.0)); assert 'numpy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
