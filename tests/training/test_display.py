import io

from rich.console import Console

from steingate.algorithms import METHODS
from steingate.training.config import RunConfig, make_config
from steingate.training.logging.display import Display, _bar

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
    "Gate/ReferenceRisk": 0.113,
    "Gate/DiscreteTerm": 0.1,
    "Gate/InteriorTerm": 0.037,
    "Gate/Guarded": 0,
    "Gate/Fallback": 0,
    "Step/Case": 0,
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
    lines = text.splitlines()
    assert len(lines) == 3
    assert lines[0] == (
        "epoch 5/10  steps 100000  return 1.50  cost 30.00/25  bound 0.250/0.1  recover  "
        "10000 steps/s  0:10 left"
    )
    assert "improve" in lines[1]
    assert lines[1].endswith("0:00 left")
    assert lines[2] == "a word"
    assert "\x1b" not in text


def test_missing_numbers_are_dashes_and_fallbacks_are_said():
    row = {**ROW, "Train/EpRet": None, "Train/EpCost": None, "Gate/Bound": None, "Gate/Fallback": 1}
    (line, _) = shown(False, [row]).splitlines()
    assert "return -  cost -/25  bound -/0.1  recover (fallback)" in line


def test_the_panel_shows_everything_and_vanishes():
    text = shown(True, [ROW])
    for part in (
        "return",
        "30.00",
        "of 25",
        "0.250",
        "reference",
        "atoms",
        "interior",
        "recover",
        "10,000 steps/s",
    ):
        assert part in text
    after = text[text.rindex("╯") :]
    assert after.count("\x1b[2K") == text[text.rindex("╭") :].count("\n")  # every line of the panel is wiped
    assert "\x1b[?25h" in after  # the cursor is back


def test_gates_without_a_bound_and_balanced_steps():
    row = {k: v for k, v in ROW.items() if k not in ("Gate/Bound", "Gate/Budget")} | {"Gate/Mode": 1}
    assert "bound" not in shown(False, [row])
    for case, name in ((0, "recover"), (1, "balance"), (2, "balance"), (3, "improve"), (4, "improve")):
        assert name in shown(False, [{**row, "Step/Case": case}])


def test_quiet_is_quiet():
    assert shown(True, [ROW], quiet=True) == ""
    assert shown(False, [ROW], quiet=True) == ""


def test_time_left_ignores_the_first_epoch_and_may_be_long():
    slow = {**ROW, "Train/Epoch": 0, "Time/FPS": 10.0}
    lines = shown(False, [slow, {**ROW, "Train/Epoch": 1}]).splitlines()
    assert lines[0].endswith("5:00:00 left")
    assert lines[1].endswith("0:16 left")


def test_the_words_are_true_for_every_method():
    """No method that ignores cost, prices it or spends a budget just reads "improve"."""
    row = {"Gate/Price": None, "Gate/Mode": 0, "Train/ViolationRate": 0.925}
    told = {}
    for name in METHODS:
        own = {"ppo-lag": {"Gate/Price": 3.2}, "trpo-simmer": {"Gate/CostBudget": 9.0}}.get(name, {})
        told[name] = shown(False, [{**ROW, **row, **own}], cfg=make_config({"algo": name})).splitlines()[0]
    assert all("cost 30.00/25 (92% violations)" in line for line in told.values())
    assert "penalize, price 3.2" in told["ppo-lag"]
    assert "improve within budget 9.00" in told["trpo-simmer"]
    assert "improve within the budget" in told["ppo-saute"]
    for name in ("ppo", "trpo"):
        assert "reward only" in told[name]
        assert "improve" not in told[name]


def test_a_limit_of_0_fills_the_bar_when_it_is_exceeded():
    cfg = RunConfig(total_steps=200_000, cost_limit=0.0)
    full, empty = _bar(1.0, 1.0, "red"), _bar(0.0, 1.0, "red")
    assert full.spans != empty.spans
    assert _bar(30.0, 0.0, "red").spans == full.spans
    assert _bar(0.0, 0.0, "red").spans == empty.spans
    assert " 30.00" in shown(True, [ROW], cfg=cfg)
    assert "cost 30.00/0" in shown(False, [ROW], cfg=cfg)
