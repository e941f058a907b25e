"""Checkers: each kind of error, planted, is found with its exact text, and its clean twin is silent."""
