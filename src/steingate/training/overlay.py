"""What a film says about each picture: step, running cost and return below it, costly steps in red."""

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

Picture = npt.NDArray[np.uint8]

RED = (214, 40, 40)
_DARK, _WHITE, _SOFT, _WARM = (28, 38, 48), (255, 255, 255), (160, 172, 184), (255, 150, 140)
_LEAST_WIDTH = 240  # smaller pictures are enlarged: nobody could read what is written below them


class Numbers(NamedTuple):
    """Where an episode stands after a step; ``costly`` says whether a step since the last picture cost."""

    step: int
    cost: float
    ret: float
    costly: bool = False


def annotate(picture: Picture, numbers: Numbers, limit: float) -> Picture:
    """Return a picture with a strip of numbers below it, framed in red where a step cost.

    Nothing of the picture is hidden but its rim. Sides are even, as video codes want them.

    Examples
    --------
    >>> annotate(np.zeros((120, 240, 3), np.uint8), Numbers(7, 2.0, 0.5), 25.0).shape
    (142, 240, 3)
    """
    picture = _enlarged(np.asarray(picture, np.uint8)[..., :3])
    height, width = (side // 2 * 2 for side in picture.shape[:2])
    size = max(width // 32, 10)
    tall = (2 * size + 3) // 2 * 2
    result = np.empty((height + tall, width, 3), np.uint8)
    result[:height] = picture[:height, :width]
    result[height:] = _strip(width, tall, size, numbers, limit)
    if numbers.costly:
        rim = max(width // 80, 3)
        for edge in (np.s_[:rim], np.s_[height - rim : height], np.s_[:height, :rim], np.s_[:height, -rim:]):
            result[edge] = RED
    return result


def _strip(width: int, tall: int, size: int, numbers: Numbers, limit: float) -> Picture:
    """Return the strip below a picture; cost is in a warm color once it is over the limit."""
    strip = Image.new("RGB", (width, tall), RED if numbers.costly else _DARK)
    draw, font = ImageDraw.Draw(strip), _font(size)
    over = _WHITE if numbers.costly else _WARM
    words = (
        ("step", f"{numbers.step}", _WHITE),
        ("cost", f"{numbers.cost:.4g} of {limit:.4g}", over if numbers.cost > limit else _WHITE),
        ("return", f"{numbers.ret:.1f}", _WHITE),
    )
    for place, (name, value, color) in zip((0.025, 0.29, 0.70), words, strict=True):
        x = place * width
        draw.text((x, tall / 2), name, font=font, fill=_WHITE if numbers.costly else _SOFT, anchor="lm")
        x += draw.textlength(f"{name} ", font=font)
        draw.text((x, tall / 2), value, font=font, fill=color, anchor="lm")
    return np.asarray(strip)


def _enlarged(picture: Picture) -> Picture:
    """Return a small picture with each of its points repeated, until it is wide enough."""
    factor = -(-_LEAST_WIDTH // picture.shape[1])
    return picture if factor <= 1 else picture.repeat(factor, axis=0).repeat(factor, axis=1)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
