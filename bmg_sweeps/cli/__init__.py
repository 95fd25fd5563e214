"""The words a user types: commands, their options, and what they print."""
