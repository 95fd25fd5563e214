"""The words a user types: commands, their options, and what they print.

A command only puts together what the other rooms do; it may import all of them but
`core`, `environments` and `tasks`. Begin at `app`, which lists the commands.
"""
