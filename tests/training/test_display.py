"""Terminal output: one line per epoch, also if the output is closed or full."""

import io

import pytest

from steingate.training.config import RunConfig
from steingate.training.logging.display import Display

ROW = {
    "Train/Epoch": 4,
    "TotalEnvSteps": 100_000,
    "Train/EpRet": 1.5,
    "Train/EpCost": 30.0,
    "Gate/Mode": 2,
    "Gate/Bound": 0.25,
    "Gate/Budget": 0.1,
    "Gate/Fallback": 0,
    "Loss/Case": 0,
    "Time/FPS": 10_000.0,
}
CFG = RunConfig(total_steps=200_000)


def shown(rows, quiet=False):
    out = io.StringIO()
    display = Display(CFG, quiet, out)
    for row in rows:
        display.epoch(row)
    display.message("a word\x1b[2J")
    return out.getvalue()


def test_each_epoch_is_one_plain_line():
    first, second, message = shown([ROW, {**ROW, "Train/Epoch": 9, "Gate/Mode": 0}]).splitlines()
    assert first == (
        "epoch 5/10  steps 100,000  return 1.50  cost 30.00/25  risk bound 25.0 % (accepted 10 %)  minimize cost  "
        "10,000 steps/s"
    )
    assert "maximize reward" in second
    assert second.endswith("0:00:00 left")
    assert message.startswith("a word")
    assert "\x1b" not in message


def test_unknown_numbers_are_dashes():
    row = {**ROW, "Train/EpRet": None, "Train/EpCost": None, "Gate/Bound": None, "Gate/Fallback": 1}
    line = shown([row]).splitlines()[0]
    assert "return -  cost -/25  minimize cost (no episode finished" in line


def test_quiet_shows_only_the_result():
    out = io.StringIO()
    Display(CFG, True, out).message("Certified", result=True)
    assert out.getvalue() == "Certified\n"
    assert shown([ROW], quiet=True) == ""


@pytest.mark.parametrize("error", [BrokenPipeError, OSError(28, "No space left on device"), ValueError("closed file")])
def test_a_closed_or_full_output_is_silent(error):
    class Broken(io.StringIO):
        lines = 0

        def write(self, text):
            self.lines += text.count("\n")
            if self.lines > 1:
                raise error
            return len(text)

    display = Display(CFG, False, Broken())
    for _ in range(3):
        display.epoch(ROW)
    display.message("a word", result=True)


def test_the_time_left_ignores_the_first_epoch_which_compiles():
    slow = {**ROW, "Train/Epoch": 0, "Time/FPS": 10.0}
    lines = shown([slow, {**ROW, "Train/Epoch": 1}]).splitlines()
    assert lines[0].endswith("10 steps/s")
    assert lines[1].endswith("0:00:16 left")
