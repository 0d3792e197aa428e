"""The planner in a browser: a question in the address, an answer as `dovetail plan` gives it."""
