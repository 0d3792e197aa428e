"""Tables as people have them: read, checked with a remedy for each problem, encoded; no noise and no guarantee."""
