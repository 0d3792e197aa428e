"""The main job: configuration, the run, the private release ledger."""
