"""The C runtime: launches, barriers, faults, progress, printf, and what observers are told."""
