"""The public names of `dovetail.estimate`, once, with their home."""

from .mean import (
    estimate_count_above as estimate_count_above,
    estimate_quantile as estimate_quantile,
    estimate_sum as estimate_sum,
    estimate_variance as estimate_variance,
)
from .robust_mean import best_mean as best_mean
from .robust_mean import bootstrap_mean as bootstrap_mean
from .classes import estimate_classes as estimate_classes
from .distribution import quantiles_of_window as quantiles_of_window
from .grouped import unmix as unmix
from .local import (
    CalibratedTrees as CalibratedTrees,
    DebiasedEstimator as DebiasedEstimator,
    GroupShares as GroupShares,
    LocalEstimator as LocalEstimator,
    hit_rate as hit_rate,
    local_error as local_error,
)
from .dummies import (
    mean_grid as mean_grid,
    mean_with_dummies as mean_with_dummies,
    mean_with_user_dummies as mean_with_user_dummies,
    round_to_grid as round_to_grid,
)
from .robust_mean import estimate_median as estimate_median
from .classes import estimate_mixture as estimate_mixture
from .frequency import project_to_simplex as project_to_simplex
from .dummies import (
    estimate_with_dummies as estimate_with_dummies,
    estimate_with_user_dummies as estimate_with_user_dummies,
)

__all__: list[str]
