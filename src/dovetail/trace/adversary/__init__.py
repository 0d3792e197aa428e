"""Adversaries that read a released trace: smoothers that know a kernel, and one that knows nothing."""
