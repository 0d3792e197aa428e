"""Randomize one value on a device and send one encrypted report: the standard library and `cryptography` only."""

__version__ = "0.1.0"
