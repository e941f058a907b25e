"""Copies of tensors, and tensor maps."""
