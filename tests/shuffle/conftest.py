"""The first example of a test may compile its kernels, so examples have no deadline."""

from hypothesis import settings

settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")
