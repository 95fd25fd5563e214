"""The one kind of error that a user is meant to read."""


class UserError(ValueError):
    """What the user can mend: one line naming the field, the value, what was expected.

    The command line prints it without a traceback and exits with status 2.
    """
