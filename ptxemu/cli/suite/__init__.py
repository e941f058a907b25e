"""Regression suites: which cases run, in which processes, and what is told of them."""
