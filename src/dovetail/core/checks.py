"""The range checks of `dovetail_protocol.checks` by this package's own name: both ends refuse in the same words."""

from dovetail_protocol.checks import nearest, positive, privacy_budget, probability, real, refuse, share, whole

__all__ = ["nearest", "positive", "privacy_budget", "probability", "real", "refuse", "share", "whole"]
