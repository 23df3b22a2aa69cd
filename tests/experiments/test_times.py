from dataclasses import replace
from datetime import datetime

import pytest
from tests.experiments.test_forecast import CIRCLE, GOAL, config, forecast

from steingate.experiments.times import duration, expectation, stopwatch, time_of_day

EVENING = datetime(2030, 12, 31, 23, 50)


def test_a_grid_tells_how_long_and_until_when(tmp_path):
    runs = [config(tmp_path, seed, env, total_steps=20_000) for seed in (0, 1) for env in (CIRCLE, GOAL)]
    known = forecast(runs)
    # 208, 408, 208, 408 seconds: the second slot is free after 408 and 208 seconds of the first are over.
    assert known.left([], runs, 2) == pytest.approx(816.0)
    said = expectation(known, runs, 2, 2, EVENING)
    assert said == "about 14 min on 2 cores, 2 at a time, done at about 2031-01-01 00:03"
    said = expectation(known, runs[:1], 1, 1, EVENING)
    assert said == "about 3 min on 1 core, 1 at a time, done at about 23:53"
    assert expectation(known, runs, 4, None, EVENING) == "about 7 min, 4 at a time, done at about 23:56"
    assert expectation(known, runs, None, None, EVENING) == "about 21 min of one core's time"
    assert expectation(known, [], 2, 2, EVENING) == ""


def test_what_is_not_known_is_said(tmp_path):
    known, strange = config(tmp_path, total_steps=20_000), config(tmp_path, env="my.module:Task")
    again = replace(strange, seed=1)
    new = forecast([known, strange, again])
    said = expectation(new, [strange, again], 2, 2, EVENING)
    assert said == "how long my.module:Task takes is not known yet"
    said = expectation(new, [known, strange, again], 2, 2, EVENING)
    assert said == (
        "about 3 min for 1 of them on 2 cores, 2 at a time; how long my.module:Task takes is not known yet"
    )


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "10 s"), (44, "40 s"), (54, "50 s"), (56, "1 min"), (89, "1 min"), (3569, "59 min"),
        (3571, "1 h"), (4000, "1 h 10 min"), (7100, "2 h"), (86_000, "23 h 50 min"), (86_300, "1 day"),
        (90_000, "1 day 1 h"), (172_000, "2 days"), (172_900, "2 days"), (1e6, "11 days 14 h"),
    ],
)  # fmt: skip
def test_durations_are_rough(seconds, told):
    assert duration(seconds) == told


def test_another_day_has_its_date():
    assert time_of_day(9 * 60 + 59, EVENING) == "23:59"
    assert time_of_day(10 * 60, EVENING) == "2031-01-01 00:00"
    assert time_of_day(60 * 86_400, EVENING) == "2031-03-01 23:50"


def test_time_left_on_the_screen():
    assert [stopwatch(seconds) for seconds in (None, 0.0, 59.6, 3599.4, 3600)] == [
        "?", "0:00", "1:00", "59:59", "1:00:00",
    ]  # fmt: skip
