"""What both ends of a collection must agree on: errors, thresholds, mechanisms, campaign and messages; no I/O."""
