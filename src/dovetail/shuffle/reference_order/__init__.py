"""The search for a reference order in which the members of each group stand close together; what the noise around it
costs is in `sensitivity`.
"""
