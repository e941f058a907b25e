"""Programs over others' libraries, run by Pythons that have these; each checks its results and prints ``right``."""
