"""What happens to rows: two passes over the table, and one over the released files; none knows an engine."""
