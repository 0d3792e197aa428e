"""The public names of `dovetail.trace`, once, with their home."""

from .rehearsal import rehearse_attack as rehearse_attack
from .fit import fit_kernel as fit_kernel
from .guarantee import TraceGuarantee as TraceGuarantee
from .kernels import kernel_of as kernel_of
from .kernels import RBF as RBF, Matern32 as Matern32, Matern52 as Matern52, Periodic as Periodic
from .release_design import design_release as design_release
from .release_design import error_for as error_for
from .plan import TracePlan as TracePlan
from .prior import TracePrior as TracePrior
from .release import release_trace as release_trace
from .trace import SecretTimes as SecretTimes
from .trace import Trace as Trace
from .rehearsal import utility as utility

__all__: list[str]
