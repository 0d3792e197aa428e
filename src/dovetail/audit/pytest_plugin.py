"""A pytest plugin: the fixture `dovetail_audit` fails a test whose mechanism says more than its epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dovetail.audit.claim import AuditedClaim
    from dovetail.audit.game import AuditedMechanism

CALLS = 20_000


class Auditor:
    """The object that the fixture gives: call it with a mechanism, or judge a claim.

    A passed audit is no proof.
    """

    def __call__(
        self,
        mechanism: Any,
        inputs: Sequence[Any],
        *,
        epsilon: float,
        least: float = 0.0,
        calls: int = CALLS,
        **settings: Any,
    ) -> AuditedMechanism:
        """Fail the test if the mechanism raises an alarm, or if less than the share `least` of the claim shows.

        Where nothing shows, the audit is blind and says nothing: give outputs that can be compared, and a `least`.
        What else it takes is what `dovetail.audit_mechanism` takes.
        """
        __tracebackhide__ = True
        from dovetail.audit.game import audit_mechanism

        found = audit_mechanism(mechanism, inputs, epsilon=epsilon, calls=calls, **settings)
        if found.alarm:
            pytest.fail(found.sentence, pytrace=False)
        if found.lower < least * epsilon:
            pytest.fail(f"{found.sentence} At least {least:g} of the claim was to show.", pytrace=False)
        return found

    def claim(self, *, expect: str = "proved", **numbers: Any) -> AuditedClaim:
        """Fail the test unless the verdict on a claim is the expected one; numbers as of `dovetail.audit_claim`."""
        __tracebackhide__ = True
        from dovetail.audit.claim import audit_claim

        found = audit_claim(**numbers)
        if found.verdict != expect:
            pytest.fail(f"{expect} was expected. {found.sentence}", pytrace=False)
        return found


@pytest.fixture
def dovetail_audit() -> Auditor:
    """Audit a mechanism or a claim; a correct mechanism fails with probability below 1e-9."""
    return Auditor()
