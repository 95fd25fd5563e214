"""Worlds that agents learn in, one a module.

May import `core` only. Begin at `two_colors`.
"""
