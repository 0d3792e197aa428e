"""A table against a configuration that is there already: everything that `run` would refuse, at once."""
