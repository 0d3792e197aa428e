"""The configuration file: its sections, the run that they describe, and the collection that is built from it."""
