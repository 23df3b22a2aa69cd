"""Colors: the limit's is far from those of all methods, and those of methods differ."""

import re

import numpy as np
from steingate.report.evidence import gather
from steingate.report.style import LIMIT, free_colors
from tests.report.made_up import write_run

from steingate.algorithms import METHODS


def lightness_and_hue(color):
    """CIELAB coordinates of an sRGB color, by their definition."""
    parts = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    white = np.array([0.9505, 1.0, 1.089])
    t = matrix @ linear / white
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(a, b):
    return float(np.linalg.norm(lightness_and_hue(a) - lightness_and_hue(b)))


def test_the_limit_has_a_color_that_no_method_has():
    colors = {name: kind.about.color for name, kind in METHODS.items() if kind.about.color}
    assert len(set(colors.values())) == len(colors)
    for color in [*colors.values(), *free_colors(40)]:
        assert re.fullmatch("#[0-9a-f]{6}", color)
        assert distance(color, LIMIT) > 30.0


def test_a_method_that_asks_for_the_limits_color_gets_another(tmp_path):
    write_run(tmp_path, "cpo", look={"order": 1.0, "color": LIMIT})
    assert LIMIT not in gather([tmp_path]).colors.values()
