"""The protocol of both ends of a collection: errors, thresholds, mechanisms, campaign and messages; no I/O."""
