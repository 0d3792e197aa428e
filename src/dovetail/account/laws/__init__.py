"""What the reports of each mechanism reveal, as laws that the blanket sums."""
