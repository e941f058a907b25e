"""Hostile programs: making them, running them in child processes, and judging what they did to the host.

``hunt.py`` is the command.
"""
