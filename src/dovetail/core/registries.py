"""The registries: what there is of each kind, by name."""

from dovetail.core.registry import Registry
from dovetail.core.stages import Randomizer

RANDOMIZERS: Registry[Randomizer] = Registry(
    "randomizer", Randomizer, package="dovetail.randomize", group="dovetail.randomizers"
)
