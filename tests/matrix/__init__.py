"""Matrix instructions beyond tests/isa."""
