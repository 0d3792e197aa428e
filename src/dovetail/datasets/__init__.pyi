"""The public names of `dovetail.datasets`, once, with their home."""

from .adult import adult as adult
from .arxiv import arxiv_abstracts as arxiv_abstracts
from .california import california_housing as california_housing
from .nested_crescents import nested_crescents as nested_crescents
from .redbook import redbook as redbook
from .refit import appliance_load as appliance_load, read_refit as read_refit
from .sml2010 import sml2010 as sml2010
from .synthetic_loads import synthetic_loads as synthetic_loads
from .texas import texas as texas
from .twitch import twitch as twitch, twitch_friendships as twitch_friendships

__all__: list[str]
