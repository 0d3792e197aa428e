"""Streams: devices that report round after round under one budget, and what all rounds together guarantee."""
