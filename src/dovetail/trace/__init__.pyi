"""The public names of `dovetail.trace`, once, with their home."""

from .fit import fit_kernel as fit_kernel
from .kernels import (
    Matern32 as Matern32,
    Matern52 as Matern52,
    Periodic as Periodic,
    RBF as RBF,
    kernel_of as kernel_of,
)
from .plan import TraceGuarantee as TraceGuarantee, TracePlan as TracePlan, TracePrior as TracePrior
from .rehearsal import rehearse_attack as rehearse_attack, utility as utility
from .release_design import design_release as design_release, error_for as error_for, release_trace as release_trace
from .trace import SecretTimes as SecretTimes, Trace as Trace

__all__: list[str]
