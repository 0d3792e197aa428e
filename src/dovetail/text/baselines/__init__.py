"""What others do, for comparison at a stated unit; their noise is floating point and protects nobody."""
