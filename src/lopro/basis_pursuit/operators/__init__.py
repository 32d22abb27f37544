"""Basis pursuit from products alone: for operators, complex data and matrices without cheap columns."""
