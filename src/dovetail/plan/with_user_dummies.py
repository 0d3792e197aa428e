"""The plan where people make the noise together: each sends her answer, and by chance a dummy."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

from dovetail.account.closed_form.user_dummies import (
    MOST_EPSILON,
    MOST_PEOPLE,
    UserDummiesLaw,
    user_dummies_for,
    user_dummies_guarantee,
)
from dovetail.core.checks import positive, privacy_budget, refuse, share, whole
from dovetail.core.errors import ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.plan.accuracy import Z95, Accuracy
from dovetail.plan.people import default_delta, honest_people
from dovetail.plan.with_dummies import DummiesPlan, TrustingPlan, plan_with_dummies
from dovetail.shuffle.dummies.user_dummies import UserDummies
from dovetail_protocol.symbols import size
from dovetail_protocol.wire.message import planned_bytes
from dovetail_protocol.wire.sent_dummies import CAP

NEEDS = {
    "shuffler": ("question", "n", "k", "delta", "error", "epsilon", "trust"),
    "users": ("question", "n", "k", "delta", "error", "epsilon", "trust", "honest"),
}


@dataclass(frozen=True)
class UserDummiesPlan(TrustingPlan):
    """How often people send dummies, what that promises against whom, and how accurate every share is.

    Parameters
    ----------
    n : int
    asked : float
        The epsilon that a configuration asks for.
    dummies : UserDummies
    central : CentralDP
        With `trust` "users".
    accuracy : Accuracy
        Of one share, the same for frequent and rare values.
    """

    n: int
    asked: float
    dummies: UserDummies
    central: CentralDP
    accuracy: Accuracy

    @property
    def messages(self) -> float:
        """Of one person, on average; the cap is two."""
        return 1.0 + self.dummies.rate

    @property
    def message_bytes(self) -> int:
        """Of what a person's device sends the shuffler, whatever it says: both entries, one of them perhaps blank."""
        return planned_bytes(size(self.dummies.k + 1), entries=CAP)

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "trust": self.central.trust,
            "trust_statement": list(self.trust_statement),
            "n": self.n,
            "honest": self.central.honest_n,
            "k": self.dummies.k,
            "epsilon0": self.central.colluding,
            "epsilon": self.central.epsilon,
            "epsilon_all_honest": self.central.all,
            "delta": self.central.delta,
            "standard_error": self.accuracy.standard_error,
            "error95": self.accuracy.error95,
            "population_error95": self.accuracy.population_error95,
            "count_standard_deviation": sqrt(self.dummies.variance(self.n)),
            "dummy_rate": self.dummies.rate,
            "dummies": self.n * self.dummies.rate,
            "messages_per_person": self.messages,
            "most_messages_per_person": CAP,
            "messages": self.n * self.messages,
            "message_bytes": self.message_bytes,
            "report_bits": max(1, (self.dummies.k - 1).bit_length()),
        }


def plan_with_user_dummies(
    *,
    n: int,
    k: int,
    delta: float | None = None,
    epsilon: float | None = None,
    error: float | None = None,
    honest: float | None = None,
) -> UserDummiesPlan:
    r"""Plan shares of k values with dummies of people, for a wanted epsilon or a wanted error.

    .. math:: \mathrm{se}^2 = \frac{1}{n}\, \frac{\mathrm{rate}}{k} \Bigl(1 - \frac{\mathrm{rate}}{k}\Bigr), \qquad
              \mathrm{error}_{95} = z_{0.975}\, \mathrm{se}

    Parameters
    ----------
    epsilon : float, above 0, at most 20, nats
        Against the analyst, as long as `honest` people send their answers and dummies.
    error : float, above 0, below 1
        What one share may be off with probability 95 %; then the least epsilon is sought. With `epsilon` as well that
        is its ceiling.
    honest : int, or float below 1
        People who are counted on, or their share; default all. Set it below the number that is expected.

    Raises
    ------
    ParameterError
        For parameters outside their ranges, for too few honest people, and for an error that no epsilon reaches.

    Examples
    --------
    >>> plan = plan_with_user_dummies(n=100_000, k=1000, epsilon=1.0, delta=1e-6)
    >>> round(plan.accuracy.standard_error * plan.n, 2), round(plan.messages, 2)
    (6.53, 1.43)
    """
    people, symbols = whole("n", n, least=1, most=MOST_PEOPLE), whole("k", k, least=2, most=1 << 24)
    slack = default_delta(people) if delta is None else share("delta", delta)
    trusted = honest_people(honest, people)

    def planned(wanted: float) -> UserDummiesPlan:
        dummies = user_dummies_for(k=symbols, epsilon=wanted, delta=slack, honest=trusted)
        central = user_dummies_guarantee(dummies, n=people, delta=slack, honest=trusted)
        off = sqrt(dummies.variance(people)) / people
        accuracy = Accuracy(off, Z95 * off, Z95 * sqrt(off**2 + 0.25 / people))
        return UserDummiesPlan(people, wanted, dummies, central, accuracy)

    if error is None:
        if epsilon is None:
            raise ParameterError("give `epsilon` or `error`: what the batch may tell, or what a share may be off.")
        return planned(privacy_budget("epsilon", epsilon, most=MOST_EPSILON))
    bound = positive("error", error)
    most = MOST_EPSILON if epsilon is None else privacy_budget("epsilon", epsilon, most=MOST_EPSILON)
    share_of_dummies = people * (bound / Z95) ** 2  # (rate / k) (1 - rate / k)
    rate = 1.0 if share_of_dummies >= 0.25 else symbols * 0.5 * (1.0 - sqrt(1.0 - 4.0 * share_of_dummies))
    least = UserDummiesLaw(symbols, trusted, max(min(rate, 1.0), 2.0**-32)).epsilon(slack) * (1.0 + 1e-4)
    if least > most or rate < 2.0**-32:
        best = planned(most).accuracy.error95
        raise refuse("error", f"at least {best:.3g} with epsilon {most:g} and these people", bound)
    return planned(least)


def plan_trusting(
    *, trust: Literal["shuffler", "users"], question: str = "frequency", **asked: Any
) -> DummiesPlan | UserDummiesPlan:
    """The plan of whoever is trusted with the noise; `asked` as `plan_with_dummies` or `plan_with_user_dummies` say.

    Raises
    ------
    ParameterError
        Also for a question about a mean, without `n` or `k`, and for what does not go with dummies.
    """
    if trust not in NEEDS:
        raise refuse("trust", '"local", "shuffler" or "users"', trust)
    if question != "frequency":
        raise ParameterError(f'`trust` = "{trust}" plans shares: the question must be frequency, got {question}.')
    for name, value in asked.items():
        if name not in NEEDS[trust] and value is not None:
            raise ParameterError(f'`{name}` does not go with `trust` = "{trust}".')
    for name in ("n", "k"):
        if asked.get(name) is None:
            raise ParameterError(f'`{name}` must be given with `trust` = "{trust}".')
    return plan_with_dummies(**asked) if trust == "shuffler" else plan_with_user_dummies(**asked)
