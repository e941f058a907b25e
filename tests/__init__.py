"""The tests, in rooms by subject."""
