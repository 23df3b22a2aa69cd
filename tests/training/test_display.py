"""Terminal output: one line per epoch in a pipe, a live panel on a terminal."""

import io

import pytest
from rich.console import Console

from steingate.training.config import RunConfig
from steingate.training.logging.display import Display, _Console

ROW = {
    "Train/Epoch": 4,
    "TotalEnvSteps": 100_000,
    "Train/EpRet": 1.5,
    "Train/EpCost": 30.0,
    "Metrics/EpRet": 1.25,
    "Metrics/EpCost": 20.0,
    "Gate/Mode": 2,
    "Gate/Bound": 0.25,
    "Gate/Budget": 0.1,
    "Gate/Fallback": 0,
    "Loss/Case": 0,
    "Time/FPS": 10_000.0,
}
CFG = RunConfig(total_steps=200_000)


def shown(terminal, rows, cfg=CFG, quiet=False):
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100, highlight=False)
    with Display(cfg, console, quiet) as display:
        for row in rows:
            display.epoch(row)
        display.message("a word")
    return out.getvalue()


def test_without_a_terminal_each_epoch_is_one_plain_line():
    text = shown(False, [ROW, {**ROW, "Train/Epoch": 9, "Gate/Mode": 0}])
    first, second, message = text.splitlines()
    assert first == (
        "epoch 5/10  steps 100,000  return 1.50  cost 30.00/25  risk bound 25.0% (budget 10%)  minimize cost  "
        "10,000 steps/s  0:10 left"
    )
    assert "maximize reward" in second
    assert second.endswith("0:00 left")
    assert message == "a word"
    assert "\x1b" not in text


def test_unknown_numbers_are_dashes():
    row = {**ROW, "Train/EpRet": None, "Train/EpCost": None, "Gate/Bound": None, "Gate/Fallback": 1}
    line = shown(False, [row]).splitlines()[0]
    assert "return -  cost -/25  minimize cost (no episode finished" in line


def test_the_panel_shows_everything_and_vanishes():
    text = shown(True, [ROW])
    for part in (
        "return",
        "30.00/25",
        "100 episodes: 20.00",
        "risk bound 25.0% (budget 10%)",
        "minimize cost",
        "10,000 steps/s",
    ):
        assert part in text
    after = text[text.rindex("╯") :]
    assert after.count("\x1b[2K") == text[text.rindex("╭") :].count("\n")  # every line of the panel is wiped
    assert "\x1b[?25h" in after  # the cursor is back


def test_quiet_shows_only_the_result():
    out = io.StringIO()
    Display(CFG, Console(file=out), quiet=True).message("Certified", result=True)
    assert out.getvalue() == "Certified\n"
    assert shown(True, [ROW], quiet=True) == shown(False, [ROW], quiet=True) == ""


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("error", [BrokenPipeError, OSError(28, "No space left on device"), ValueError("closed file")])
def test_a_closed_or_full_output_is_silent(terminal, error):
    class Broken(io.StringIO):
        lines = 0

        def write(self, text):
            self.lines += text.count("\n")
            if self.lines > 1:
                raise error
            return len(text)

    console = _Console(file=Broken(), force_terminal=terminal, width=100, highlight=False)
    with Display(CFG, console) as display:
        for _ in range(3):
            display.epoch(ROW)
        display.message("a word", result=True)


def test_the_time_left_ignores_the_first_epoch_and_may_be_long():
    slow = {**ROW, "Train/Epoch": 0, "Time/FPS": 10.0}
    lines = shown(False, [slow, {**ROW, "Train/Epoch": 1}]).splitlines()
    assert lines[0].endswith("5:00:00 left")
    assert lines[1].endswith("0:16 left")
