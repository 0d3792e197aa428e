"""Location traces: noise for a whole trace that hides secret times although the times around them tell much.

The guarantee is conditional inferential privacy (Meehan, Chaudhuri 2021): for a stated kernel, secret and radius,
over the prior draw of the other locations and the noise. It is no worst-case differential privacy.

A `TracePrior` (a kernel such as `RBF`, `Matern32`, `Matern52` or `Periodic`, by `kernel_of`; from public `Trace`
objects by `fit_kernel`), `SecretTimes` and a budget make a `TracePlan`; `error_for` solves for the budget.
`design_release` gives the noise of any time stamps and its `TraceGuarantee`, `release_trace` one release.
`rehearse_attack` attacks known traces, `utility` compares releases with them. Files: `dovetail trace`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
