"""Elementwise instructions and conversions on arrays of values, against exact arithmetic."""
