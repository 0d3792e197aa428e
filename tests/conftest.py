"""What every test can ask for."""

import pytest
from hypothesis import HealthCheck, settings
from tests.statistics import rng_of

from dovetail.core.entropy import Entropy

pytest_plugins = ["tests.plugins.selection", "tests.plugins.skips"]

# slow examples are no failures: the machine may be busy, or compile the first one
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Entropy:
    """Reproducible randomness, seeded by the test's own name."""
    return rng_of(request.node.nodeid)
