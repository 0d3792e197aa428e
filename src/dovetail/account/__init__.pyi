"""The public names of `dovetail.account`, once, with their home."""

from .amplify import list_bounds as list_bounds
from .closed_forms import closed_forms as closed_forms
from .dummies import (
    dummies_delta as dummies_delta,
    dummies_epsilon as dummies_epsilon,
    dummies_for_rounds as dummies_for_rounds,
    dummies_guarantee as dummies_guarantee,
    sparse_for_rounds as sparse_for_rounds,
    sparse_guarantee as sparse_guarantee,
)
from .gaussian_dummies import (
    Message as Message,
    message_delta as message_delta,
    message_epsilon as message_epsilon,
    message_for as message_for,
)
from .closed_forms import guess_bound as guess_bound
from .dummies import (
    user_dummies_for as user_dummies_for,
    user_dummies_guarantee as user_dummies_guarantee,
)
from .compose import memoized_guarantee as memoized_guarantee
from .compose import Composition as Composition, composed_delta as composed_delta
from .rounds import ShuffledRound as ShuffledRound
from .renyi import renyi_curve as renyi_curve, to_dp_accounting as to_dp_accounting
from .mixture import amplify_mixture as amplify_mixture
from .order_privacy import (
    posterior_interval as posterior_interval,
    reidentification_bound as reidentification_bound,
)

__all__: list[str]
