"""What came out: rows read from records, estimates and their intervals, selection."""
