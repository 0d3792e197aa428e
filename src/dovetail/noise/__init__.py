"""Who makes the noise, one file each: devices alike or by class, the shuffler, people. What is asked is not here."""
