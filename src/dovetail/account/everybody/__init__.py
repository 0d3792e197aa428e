"""A victim hidden among everybody's reports, not only among those that say nothing: one Fourier integral for all
collections of the others' values.
"""
