"""What attackers really get: measured success."""
