"""Hostile programs: making them, running them in child processes, and judging what they did to the host.

``fuzz_hostile.py`` is the command.
"""
