"""Train SteinGate on a small task, evaluate it, draw the run and write its page: what ``make train`` does.

A run that was stopped goes on where it was; a finished one is only evaluated again.
"""

import argparse
from pathlib import Path

import steingate.cli
from steingate.report.run_figure import save_run_figure

ENV = "SafetyPointCircle1-v0"


def main() -> int:
    """Return the exit status of the first command that fails, or 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="runs", help="folder for runs")
    parser.add_argument("--total-steps", type=int, default=1_000_000)
    parser.add_argument("--episodes", type=int, default=40, help="episodes of the evaluation")
    args = parser.parse_args()
    run = Path(args.out) / "steingate" / ENV / "seed-0"
    if (run / "config.json").exists():
        print(f"{run} is there already: going on with it (remove the folder to start anew).")
        commands = [["resume", str(run)]]
    else:
        commands = [["train", "--env", ENV, "--total-steps", str(args.total_steps), "--out", args.out]]
    commands.append(["evaluate", str(run), "--episodes", str(args.episodes)])
    commands.append(["report", str(run), "--out", str(run / "report.html")])
    for command in commands:
        status = steingate.cli.main(command)
        if status:
            return status
    figure = run / "run.png"
    save_run_figure(run, figure)
    print(f"return, cost, bound and mode over the run: {figure}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
