"""How a release in files is ordered: what travels beside a report, to which partition, and who ends up where."""
