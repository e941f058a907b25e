"""Texture fetches and the modules that make them."""
