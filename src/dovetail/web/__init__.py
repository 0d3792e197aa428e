"""The planner and the reader in a browser: `dovetail web`, for one person on one machine."""
