"""Surfaces: formats, geometry, rules of access, and typed atomic updates."""
