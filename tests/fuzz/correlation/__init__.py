"""Nearest correlation matrices with a known answer."""
