"""Glyphs: printed characters, a stand-in for Omniglot that needs no files.

It is rendered from the fonts that Matplotlib carries: 368 characters, mostly letters of
the Latin, Greek, Cyrillic, Armenian and Georgian scripts, in ten faces each, each face
twice, turned, scaled, sheared and shifted a little. Images are 28 × 28 pixels of one
channel, the ink 255. It shows that a learner learns; results on it are comparable with
no one's.

The characters are those that all ten faces have and that look like no other: centered
and made equally large, no two have a cosine similarity above 0.93 on average over the
faces. Of Latin A, Greek Α and Cyrillic А there is one.
"""

import pathlib

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from bmg_sweeps.tasks import sources

SIZE = 28  # Pixels along each side.
NUM_IMAGES = 20  # Each character has so many.
NUM_HELD_OUT = 60  # Characters in each of validation and test.
FACES = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-Oblique",
    "DejaVuSansMono",
    "DejaVuSansMono-Bold",
    "DejaVuSansMono-Oblique",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "DejaVuSerif-Italic",
    "DejaVuSerif-BoldItalic",
)
CHARACTERS = (
    "#$%&0123456789?@ABCDEFGHIJKLMNOPQRSTUVWXYZabdefgijkmnopqrtuv"
    "y¢£¤¥§¶ÆÞßæðþĸŊŋŒƄƅƆƎƏƐƔƕƖƜƢƣƦƧƩƪƱƷƸƼƽƿǂǝǶȜȷȸȹɁɄɐɑɒɘɜɞɢɣɤɥɩɪ"
    "ɮɯɷɸɹʁʃʅʇʉʌʍʎʏʔʕʖʗʚʜʞʣʤʦʧʩʪʫʬʭΓΔΞΠΦΨΩαβγδζλμνξπςστυφχψωϗϘϙϚϛ"
    "ϝϞϟϠϡϺϻЂЉЊЋЏДЖИЛУЧШЩЪЫЬЭЮЯвгджилмтфцчщъыьюяђљњћџѢѣҤҥҺӋԱԲԳԴԵԶ"
    "ԷԸԹԺԻԽԾԿՀՁՂՃՄՅՆՇՈՉՊՋՌՎՐՒՔՖբգդեէըթիլխծկհձճմնշչպջռվփքֆ฿აბგდეზთ"
    "იკლმნოპჟრსტუფქღყჩცძწჭჯჰჱჲჳჴჵჶჸჹჺᴉᴔᴖᴗᴝᴞᴟ₦€₯₱₴₸₹☿♀♁♂♃♄♅♆♇♩♪♫♬♭"
    "♮♯ⱭⱵⱷꜦꜧꞌ"
)

_SEED = 0  # Draws the split, and all images below.
_DETAIL = 2  # Pixels along each side of which one is made.
_GLYPH_SIZE = 20 * _DETAIL  # The longer side of a glyph that is not yet moved.
MAX_TURN = np.deg2rad(12)
MAX_SHEAR = 0.15
_SCALES = 0.8, 1.15
MAX_SHIFT = 2 * _DETAIL


def source(folder: pathlib.Path | None) -> sources.Source:
    """Returns what is to be rendered.

    Args:
        folder: given by the user; not used.

    Returns:
        The characters, and the fonts as the files that they are made of.

    Raises:
        UserError: a font is missing.
    """
    del folder
    root = pathlib.Path(matplotlib.get_data_path(), "fonts", "ttf")
    files = tuple(root / f"{face}.ttf" for face in FACES)
    for path in files:
        if not path.is_file():
            raise sources.refused(path, "missing; expected Matplotlib's own fonts")
    return sources.Source(root, files, lambda split: _contents(files, split))


def _contents(fonts: tuple[pathlib.Path, ...], split: str) -> sources.Contents:
    names = tuple(sorted(_characters()[split]))
    return sources.Contents(
        names,
        (len(names), NUM_IMAGES, SIZE, SIZE, 1),
        lambda index: _rendered(fonts, names[index]),
    )


def _characters() -> dict[str, list[str]]:
    """Assigns the characters to splits."""
    shuffled = list(np.random.default_rng(_SEED).permutation(list(CHARACTERS)))
    return {
        "validation": shuffled[:NUM_HELD_OUT],
        "test": shuffled[NUM_HELD_OUT : 2 * NUM_HELD_OUT],
        "train": shuffled[2 * NUM_HELD_OUT :],
    }


def _rendered(fonts: tuple[pathlib.Path, ...], character: str) -> np.ndarray:
    """Renders a character in each face in turn, each image moved at random."""
    rng = np.random.default_rng([_SEED, ord(character)])
    glyphs = [_glyph(path, character) for path in fonts]
    images = [_moved(glyphs[i % len(glyphs)], rng) for i in range(NUM_IMAGES)]
    return np.stack([np.asarray(image) for image in images])[..., None]


def _glyph(path: pathlib.Path, character: str) -> Image.Image:
    """Draws a character as large as all others, in the middle of an image."""
    font = ImageFont.truetype(str(path), _GLYPH_SIZE)
    canvas = Image.new("L", (4 * _GLYPH_SIZE, 4 * _GLYPH_SIZE))
    middle = (2 * _GLYPH_SIZE, 2 * _GLYPH_SIZE)
    ImageDraw.Draw(canvas).text(middle, character, font=font, fill=255, anchor="mm")
    ink = canvas.crop(canvas.getbbox())
    scale = _GLYPH_SIZE / max(ink.size)
    ink = ink.resize([max(1, round(side * scale)) for side in ink.size])
    side = SIZE * _DETAIL
    image = Image.new("L", (side, side))
    image.paste(ink, ((side - ink.width) // 2, (side - ink.height) // 2))
    return image


def _moved(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Turns, shears, scales and shifts an image, and makes it small."""
    turn = rng.uniform(-MAX_TURN, MAX_TURN)
    shear = rng.uniform(-MAX_SHEAR, MAX_SHEAR)
    scale = rng.uniform(*_SCALES)
    shift = rng.uniform(-MAX_SHIFT, MAX_SHIFT, 2)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    # Pillow wants the map from a place in the result to one in the image.
    matrix = np.linalg.inv(scale * rotation @ np.array([[1, shear], [0, 1]]))
    center = np.full(2, image.width / 2)
    offset = center - matrix @ (center + shift)
    moved = image.transform(
        image.size,
        Image.Transform.AFFINE,
        (*matrix[0], offset[0], *matrix[1], offset[1]),
        Image.Resampling.BILINEAR,
    )
    return moved.resize((SIZE, SIZE), Image.Resampling.BOX)
