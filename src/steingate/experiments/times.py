"""Durations and times of day, as a grid says them."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from steingate.experiments.forecast import Forecast
from steingate.training.config import RunConfig

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def expectation(
    forecast: Forecast, todo: Sequence[RunConfig], slots: int | None, cores: int | None, now: datetime
) -> str:
    """Return how long runs should take and when they should be done, or what is not known about it.

    Parameters
    ----------
    forecast
        What is known about speeds.
    todo
        The runs, in their order.
    slots, cores
        Runs at a time and cores for them; None where nobody knows.
    now
        The time of day.
    """
    known = [cfg for cfg in todo if forecast.known(cfg)]
    strange = list(dict.fromkeys(cfg.env for cfg in todo if not forecast.known(cfg)))
    unknown = f"how long {', '.join(strange)} takes is not known yet"
    if not known:
        return unknown if todo else ""
    seconds = forecast.left([], known, slots or 1)
    assert seconds is not None
    some = f" for {len(known)} of them" if strange else ""
    if slots is None:
        said = f"about {duration(seconds)} of one core's time{some}"
    else:
        on = "" if cores is None else f" on {cores} core{'s' if cores > 1 else ''}"
        said = f"about {duration(seconds)}{some}{on}, {slots} at a time"
    if strange:
        return f"{said}; {unknown}"
    return said if slots is None else f"{said}, done at about {time_of_day(seconds, now)}"


def duration(seconds: float) -> str:
    """Return a rough duration, in the unit that fits.

    >>> [duration(seconds) for seconds in (8, 100, 3000, 8000, 200_000)]
    ['10 s', '2 min', '50 min', '2 h 10 min', '2 days 8 h']
    """
    if seconds < 55:
        return f"{max(10 * round(seconds / 10), 10)} s"
    minutes = max(round(seconds / _MINUTE), 1)
    if minutes < 60:
        return f"{minutes} min"
    tens = 10 * round(seconds / _MINUTE / 10)
    if tens < 24 * 60:
        return f"{tens // 60} h {tens % 60} min" if tens % 60 else f"{tens // 60} h"
    days, hours = divmod(round(seconds / _HOUR), 24)
    return f"{days} day{'s' if days > 1 else ''}" + (f" {hours} h" if hours else "")


def time_of_day(seconds: float, now: datetime) -> str:
    """Return the time in so many seconds, with the date when that is another day.

    >>> time_of_day(7200, datetime(2030, 5, 31, 21, 0)), time_of_day(7200, datetime(2030, 5, 31, 22, 30))
    ('23:00', '2030-06-01 00:30')
    """
    then = now + timedelta(seconds=seconds)
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M}"


def stopwatch(seconds: float | None) -> str:
    """Return hours, minutes and seconds; a question mark where nobody knows.

    >>> stopwatch(61), stopwatch(3661), stopwatch(None)
    ('1:01', '1:01:01', '?')
    """
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), _MINUTE)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
