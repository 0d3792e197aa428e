"""Dovetail: randomize on the device, shuffle in between, estimate at the analyst."""

__version__ = "0.1.0"
