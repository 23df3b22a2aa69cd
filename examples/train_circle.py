"""Train the allowance on a small task, evaluate it and write its report: ``make train``.

An interrupted run is continued; a finished run is only evaluated again.
"""

import argparse
from pathlib import Path

import steingate.cli
from steingate.report.figures import save_run_figure

ALGO, ENV = "allowance", "SafetyPointCircle1-v0"


def main() -> int:
    """Return the exit status of the first command that fails, or 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="runs", help="folder for runs")
    parser.add_argument("--total-steps", type=int, default=1_000_000)
    parser.add_argument("--episodes", type=int, default=40, help="episodes of the evaluation")
    args = parser.parse_args()
    run = Path(args.out) / ALGO / ENV / "seed-0"
    if (run / "config.json").exists():
        print(f"{run} exists; continuing it (remove the folder to start again).")
        commands = [["resume", str(run)]]
    else:
        steps = str(args.total_steps)
        commands = [["train", "--algo", ALGO, "--env", ENV, "--total-steps", steps, "--out", args.out]]
    commands.append(["evaluate", str(run), "--episodes", str(args.episodes)])
    commands.append(["report", str(run), "--out", str(run / "report.html")])
    for command in commands:
        status = steingate.cli.main(command)
        if status:
            return status
    save_run_figure(run, run / "run.png")
    print(f"curves of the run: {run / 'run.png'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
