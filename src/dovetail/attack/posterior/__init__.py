"""What whoever knows the shuffle's law knows: who sent the report at a place, and how values follow public data."""
