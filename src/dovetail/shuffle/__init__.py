"""What happens in between: groups, reference orders and shufflers."""
