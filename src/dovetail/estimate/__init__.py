"""Estimates that an analyst makes of the batch.

`estimate_frequencies`, `estimate_mean`, `estimate_groups` and `estimate_group_means` are names of `dovetail` itself.
Here: `estimate_sum`, `estimate_variance`, `estimate_count_above`, `estimate_quantile`,
`quantiles_of_window`, `estimate_median`,
`estimate_classes` (devices of different budgets), `best_mean`, `bootstrap_mean`, `unmix` (invert the known mixing of
a shuffle), `estimate_with_dummies`, `estimate_with_user_dummies`, `mean_with_dummies` and `mean_with_user_dummies`
(on a grid of `mean_grid` points, by `round_to_grid`), `estimate_mixture`, `project_to_simplex`, and estimators that
read the order:
`GroupShares`, `CalibratedTrees` and `DebiasedEstimator` (each a `LocalEstimator`), measured by `local_error` and
`hit_rate`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
