"""The 57 Atari games, and what random play and a human score in each.

    human-normalized score = (score − random) / (human − random)

Scores are of an episode of at most 108,000 frames that begins with up to 30 no-ops.
Plain data, which both the environments and the reports read.
"""

from typing import NamedTuple


class Score(NamedTuple):
    """Mean episode returns on one game, in its points."""

    random: float
    human: float


# Source: google-deepmind/dqn_zoo, `dqn_zoo/atari_data.py`, Apache-2.0. Names are those
# of the ROMs. DiscoRL's table has 0 for random play of Video Pinball.
SCORES = {
    "alien": Score(227.8, 7127.7),
    "amidar": Score(5.8, 1719.5),
    "assault": Score(222.4, 742.0),
    "asterix": Score(210.0, 8503.3),
    "asteroids": Score(719.1, 47388.7),
    "atlantis": Score(12850.0, 29028.1),
    "bank_heist": Score(14.2, 753.1),
    "battle_zone": Score(2360.0, 37187.5),
    "beam_rider": Score(363.9, 16926.5),
    "berzerk": Score(123.7, 2630.4),
    "bowling": Score(23.1, 160.7),
    "boxing": Score(0.1, 12.1),
    "breakout": Score(1.7, 30.5),
    "centipede": Score(2090.9, 12017.0),
    "chopper_command": Score(811.0, 7387.8),
    "crazy_climber": Score(10780.5, 35829.4),
    "defender": Score(2874.5, 18688.9),
    "demon_attack": Score(152.1, 1971.0),
    "double_dunk": Score(-18.6, -16.4),
    "enduro": Score(0.0, 860.5),
    "fishing_derby": Score(-91.7, -38.7),
    "freeway": Score(0.0, 29.6),
    "frostbite": Score(65.2, 4334.7),
    "gopher": Score(257.6, 2412.5),
    "gravitar": Score(173.0, 3351.4),
    "hero": Score(1027.0, 30826.4),
    "ice_hockey": Score(-11.2, 0.9),
    "jamesbond": Score(29.0, 302.8),
    "kangaroo": Score(52.0, 3035.0),
    "krull": Score(1598.0, 2665.5),
    "kung_fu_master": Score(258.5, 22736.3),
    "montezuma_revenge": Score(0.0, 4753.3),
    "ms_pacman": Score(307.3, 6951.6),
    "name_this_game": Score(2292.3, 8049.0),
    "phoenix": Score(761.4, 7242.6),
    "pitfall": Score(-229.4, 6463.7),
    "pong": Score(-20.7, 14.6),
    "private_eye": Score(24.9, 69571.3),
    "qbert": Score(163.9, 13455.0),
    "riverraid": Score(1338.5, 17118.0),
    "road_runner": Score(11.5, 7845.0),
    "robotank": Score(2.2, 11.9),
    "seaquest": Score(68.4, 42054.7),
    "skiing": Score(-17098.1, -4336.9),
    "solaris": Score(1236.3, 12326.7),
    "space_invaders": Score(148.0, 1668.7),
    "star_gunner": Score(664.0, 10250.0),
    "surround": Score(-10.0, 6.5),
    "tennis": Score(-23.8, -8.3),
    "time_pilot": Score(3568.0, 5229.2),
    "tutankham": Score(11.4, 167.6),
    "up_n_down": Score(533.4, 11693.2),
    "venture": Score(0.0, 1187.5),
    "video_pinball": Score(16256.9, 17667.9),
    "wizard_of_wor": Score(563.5, 4756.5),
    "yars_revenge": Score(3092.9, 54576.9),
    "zaxxon": Score(32.5, 9173.3),
}


def normalized(game: str, score: float) -> float:
    """Writes a score so that random play is 0 and a human 1.

        (score − random) / (human − random)

    Args:
        game: key of `SCORES`.
        score: mean episode return, in the game's points.

    Returns:
        The human-normalized score.
    """
    random, human = SCORES[game]
    return (score - random) / (human - random)
