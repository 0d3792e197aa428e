"""The running service: devices report, a shuffler that cannot read mixes, an analyzer estimates; no device code."""
