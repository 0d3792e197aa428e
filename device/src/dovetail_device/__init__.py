"""What only a device does: randomize one value, keep and send one sealed report; formats are `dovetail_protocol`."""

__version__ = "0.1.0"
