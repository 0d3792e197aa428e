"""The public names of `dovetail.datasets`, once, with their home."""

from .houses import (
    appliance_load as appliance_load,
    read_refit as read_refit,
    sml2010 as sml2010,
    synthetic_loads as synthetic_loads,
)
from .nested_crescents import nested_crescents as nested_crescents
from .people import (
    adult as adult,
    arxiv_abstracts as arxiv_abstracts,
    california_housing as california_housing,
    geolife as geolife,
    redbook as redbook,
    texas as texas,
    twitch as twitch,
    twitch_friendships as twitch_friendships,
)

__all__: list[str]
