"""Every public name, once, with its home."""

from . import (
    account as account,
    attack as attack,
    datasets as datasets,
    engine as engine,
    estimate as estimate,
    leak as leak,
    plan as plan,
    shuffle as shuffle,
)
from .account.accountant import Accountant as Accountant
from .account.amplify import amplify as amplify
from .account.calibrate import max_epsilon as max_epsilon, min_people as min_people
from .account.compose import compose as compose
from .audit.claim import audit_claim as audit_claim
from .audit.game import audit_mechanism as audit_mechanism
from .core.stages import Attack as Attack
from .core.certified import Bracket as Bracket
from .core.channel import Channel as Channel
from .core.entropy import Entropy as Entropy, simulation as simulation, system_entropy as system_entropy
from .core.errors import DovetailError as DovetailError
from .core.estimate import Estimate as Estimate, Estimator as Estimator
from .core.guarantee import CentralDP as CentralDP, LocalDP as LocalDP, OrderPrivacy as OrderPrivacy
from .core.stages import (
    FrequencyRandomizer as FrequencyRandomizer,
    NumericRandomizer as NumericRandomizer,
    Randomizer as Randomizer,
    Shuffler as Shuffler,
)
from .estimate.frequency import estimate_frequencies as estimate_frequencies
from .estimate.grouped import estimate_group_means as estimate_group_means, estimate_groups as estimate_groups
from .estimate.mean import estimate_mean as estimate_mean
from .leak.vulnerability import vulnerability as vulnerability
from .job.collection import Collection as Collection
from .question.covariance import Covariance as Covariance
from .question.distribution import Distribution as Distribution
from .question.nonresponse import Nonresponse as Nonresponse
from .question.regression import Regression as Regression
from .question.tables import Tables as Tables
from .job.rehearse import rehearse as rehearse
from .job.rehearse import release as release
from .job.run import run as run
from .job.refine import refine as refine
from .job.synthesize import synthesize as synthesize
from .plan.planner import plan_collection as plan_collection
from .randomize.budget_laplace import BudgetLaplace as BudgetLaplace
from .randomize.hadamard import Hadamard as Hadamard
from .randomize.krr import KRR as KRR
from .randomize.laplace import Laplace as Laplace
from .randomize.sampling.domain import Domain as Domain
from .randomize.local_hashing import LocalHashing as LocalHashing
from .randomize.subset_selection import SubsetSelection as SubsetSelection
from .randomize.unary import Unary as Unary
from .randomize.window import Window as Window
from .report.document import PrivacyReport as PrivacyReport
from .shuffle.best import best_shuffler as best_shuffler
from .shuffle.fitting.groups import Groups as Groups
from .shuffle.mallows import Mallows as Mallows
from .shuffle.noisy_sort import NoisySort as NoisySort
from .shuffle.planar import PlanarLaplace as PlanarLaplace
from .shuffle.rase import RASE as RASE
from .shuffle.identity import Identity as Identity
from .shuffle.fitting.fitted_shuffler import load_shuffler as load_shuffler
from .shuffle.uniform import Uniform as Uniform
from .shuffle.within_groups import WithinGroups as WithinGroups

__version__: str
__all__: list[str]
