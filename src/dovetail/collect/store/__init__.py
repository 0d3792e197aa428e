"""What the two servers keep, behind one small protocol each."""
