"""What the analyst does with the batch."""
