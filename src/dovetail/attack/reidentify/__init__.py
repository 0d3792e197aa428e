"""Who sent which report: attacks on the link between people and reports; attacks on values stand one folder up."""
