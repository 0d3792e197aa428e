"""Means of people's vectors, such as gradients of federated learning: a section, a run, a plan."""
