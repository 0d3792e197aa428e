"""Populations with known truth, and loaders of public data.

Made: `nested_crescents` and `synthetic_loads`. Loaded, from a path, an environment variable or a download with a
checksum: `adult`, `arxiv_abstracts`, `california_housing`, `geolife`, `redbook`, `read_refit` (with
`appliance_load`), `sml2010`, `texas`, `twitch`, `twitch_friendships`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
