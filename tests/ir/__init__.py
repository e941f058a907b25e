"""The typed IR: what passes make and analyses find, its text, and its verifier."""
