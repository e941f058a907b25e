"""Diagnostics: files that announce them where they occur, and how they are found, worded and shown."""
