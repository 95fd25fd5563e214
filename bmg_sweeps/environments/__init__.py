"""Worlds that agents learn in, one a module.

May import `core` only. Begin at `two_colors`. `atari` runs on the host, where
`frame_ring` keeps what was seen and `action_log` what was acted.
"""
