"""Fitting a kernel to public traces: likelihood with gradients, bounds that fits end at, goodness of fit."""
