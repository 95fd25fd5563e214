"""What the command line makes of words, without running them."""

import types

from bmg_sweeps.cli import app, options


def parsed(arguments):
    """The name of a command, and each of its options; `choice` is of its points."""
    with app.app.make_context(app.PROGRAM, [], obj={}) as context:
        name, command, rest = app.app.resolve_command(context, list(arguments))
        params = dict(command.make_context(name, rest, parent=context).params)
    if set(options.CHOICE) <= params.keys():
        params["choice"] = options.read_choice(**{k: params[k] for k in options.CHOICE})
    return types.SimpleNamespace(command=name, **params)
