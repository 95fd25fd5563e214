"""Records → W&B runs: one for each point that has rows, and one for each sweep.

The record is the truth and the run a copy of it, made while a launch goes on
(`following`) or any time later (`export`). What has been copied is remembered in the
storage, so that a second export copies only what changed: offline, the run's folder is
written anew in place of the former one; online, a point's run is resumed and given the
rows that it lacks. Delete what is remembered to have everything copied again.

A run holds what the record holds and nothing of the machine: no code, requirements,
console output, command line, environment, host or user name, paths or git state. W&B's
own logs name some of them; they are deleted. W&B is imported only where it is used,
because that takes 2 s.

May import `reporting`, `launching` and what is below; nothing but `cli` imports it.

Begin at `exporting`, which does it all: `session` opens W&B, `runs` writes a run,
`points` and `sweeps` say what is in them, `memory` knows what was written before,
`follow` has it done beside a launch by the process of `__main__`, and `workspace`
shows it.
"""

from bmg_sweeps.tracking.exporting import export
from bmg_sweeps.tracking.follow import following
from bmg_sweeps.tracking.workspace import save_workspace

__all__ = ["export", "following", "save_workspace"]
