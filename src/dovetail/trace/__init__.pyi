"""The public names of `dovetail.trace`, once, with their home."""

from .adversary.rehearsal import rehearse_attack as rehearse_attack
from .fit.maximum_likelihood import fit_kernel as fit_kernel
from .guarantee import TraceGuarantee as TraceGuarantee
from .kernels.named import kernel_of as kernel_of
from .kernels.stationary import RBF as RBF, Matern32 as Matern32, Matern52 as Matern52, Periodic as Periodic
from .plan.release_design import design_release as design_release
from .plan.search import error_for as error_for
from .plan.trace_plan import TracePlan as TracePlan
from .prior import TracePrior as TracePrior
from .release import release_trace as release_trace
from .secrets import SecretTimes as SecretTimes
from .trace import Trace as Trace
from .utility import utility as utility

__all__: list[str]
