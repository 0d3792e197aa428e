"""What every test can ask for."""

import pytest
from tests.statistics import rng_of

from dovetail.core.entropy import Entropy

pytest_plugins = ["tests.plugins.selection", "tests.plugins.skips"]


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Entropy:
    """Reproducible randomness, seeded by the test's own name."""
    return rng_of(request.node.nodeid)
