"""The registries: what there is of each kind, by name."""

from dovetail.core.attack import Attack
from dovetail.core.registry import Registry
from dovetail.core.stages import Randomizer, ShufflerKind

RANDOMIZERS: Registry[Randomizer] = Registry(
    "randomizer", Randomizer, package="dovetail.randomize", group="dovetail.randomizers"
)
SHUFFLERS: Registry[ShufflerKind] = Registry(
    "shuffler", ShufflerKind, package="dovetail.shuffle", group="dovetail.shufflers"
)
ATTACKS: Registry[Attack] = Registry("attack", Attack, package="dovetail.attack", group="dovetail.attacks")
