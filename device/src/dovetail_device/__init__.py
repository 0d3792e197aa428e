"""The device: it randomizes one value, keeps and sends one sealed report; formats are `dovetail_protocol`."""

__version__ = "0.1.0"
