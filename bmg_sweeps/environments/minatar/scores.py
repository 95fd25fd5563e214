"""What MinAtar's games pay: to random play, and to an agent of others.

A score is the undiscounted return of an episode, averaged over episodes. To compare
games we count random play as 0 and the published agent as 1.

**Random play** is ours: uniform over the minimal actions, which stick with probability
0.1. It is the mean over the first episodes of 20,000 worlds, 4,000 of Freeway; half the
width of its 95 % interval stands beside it. No episode was cut.

**The published agent** is the PPO whose returns the README of gymnax gives beside its
checkpoints (Lange, 2022, https://github.com/RobertTLange/gymnax, table "Implemented
Accelerated Environments"), one run a game, without intervals. Its configuration
(https://github.com/RobertTLange/gymnax-blines, agents/*/ppo.yaml) says 10 million steps
in 64 worlds, an MLP of two layers of 256, γ = 0.999, and a mean over 164 episodes with
sampled actions. We found no table of scores by the games' authors: theirs are plots.

That protocol is easier or different in places, so 1 is a mark to orient by and no
result to match:

- actions do not stick;
- episodes are cut after 1,000 steps, those of Freeway after 2,500;
- the first wave of its Space Invaders has 28 aliens, seven columns, and not 24.
"""

from typing import NamedTuple


class Score(NamedTuple):
    """The two returns that a game's returns are measured by."""

    random: float  # Mean return of random play.
    published: float  # Return of gymnax's PPO.


SCORES = {
    "asterix": Score(random=0.503, published=15.0),  # Random: ± 0.012.
    "breakout": Score(random=0.389, published=28.0),  # ± 0.009.
    "freeway": Score(random=0.394, published=58.0),  # ± 0.020.
    "space_invaders": Score(random=4.117, published=131.0),  # ± 0.045.
}
