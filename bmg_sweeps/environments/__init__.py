"""Worlds that agents learn in, one a module."""
