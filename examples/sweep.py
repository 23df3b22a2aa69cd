"""Search for settings with Optuna: the highest return with at most 10 % of episodes over the limit.

``pip install optuna``; then ``python examples/sweep.py``. Run it again, or several times at once, to add trials.
"""

import argparse
from pathlib import Path

import optuna

import steingate

RISK = 0.1  # accepted fraction of episodes over the cost limit


def train_trial(trial: optuna.Trial, args: argparse.Namespace) -> float:
    """Train with the settings of a trial and return the mean return of fresh episodes."""
    run = steingate.train(
        args.env,
        args.algo,
        total_steps=args.total_steps,
        out=f"{args.out}/trial-{trial.number}",
        quiet=True,
        max_kl=trial.suggest_float("max_kl", 1e-3, 3e-2, log=True),
        gae_lambda=trial.suggest_float("gae_lambda", 0.9, 0.99),
        **{"certify.enabled": False},
    )
    result = steingate.evaluate(run, args.episodes, policy="last")
    trial.set_constraint("violations", result.violation_rate - RISK)  # satisfied up to 0
    trial.set_user_attr("run", str(run.path))
    return float(result.episodes.ret.mean())


def main() -> None:
    """Run some trials and print the best one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="SafetyPointCircle1-v0")
    parser.add_argument("--algo", default="trpo-lag")
    parser.add_argument("--out", default="runs/sweep")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--total-steps", type=int, default=500_000)
    parser.add_argument("--episodes", type=int, default=50)
    args = parser.parse_args()
    Path(args.out).mkdir(parents=True, exist_ok=True)
    backend = optuna.storages.journal.JournalFileBackend(f"{args.out}/study.log")
    storage = optuna.storages.JournalStorage(backend)
    study = optuna.create_study(study_name="sweep", direction="maximize", storage=storage, load_if_exists=True)
    study.optimize(lambda trial: train_trial(trial, args), n_trials=args.trials)
    try:
        best = study.best_trial
    except ValueError:  # no trial satisfies the constraint
        print(f"No trial has at most {RISK:.0%} of its episodes over the limit.")
        return
    print(f"return {best.value:.2f} with {best.params}: {best.user_attrs['run']}")


if __name__ == "__main__":
    main()
