"""The running service: devices send sealed reports, a shuffler that cannot read them mixes, an analyzer estimates."""
