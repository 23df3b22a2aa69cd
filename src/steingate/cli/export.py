"""``steingate export``: a trained policy for a machine that has NumPy alone, or ONNX."""

import argparse
import sys

from steingate.cli.evaluate import add_policy_option


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument(
        "--to",
        required=True,
        metavar="FILE",
        help="NAME.npz, with NAME.py beside it that reads it with NumPy alone, or NAME.onnx",
    )
    add_policy_option(parser)


def run(args: argparse.Namespace) -> int:
    """Write the policy, print the names of the files, and return the exit status."""
    from steingate.policies.export import export_policy
    from steingate.policies.policy import load

    def tell(text: str) -> None:
        print(text, file=sys.stderr)

    loaded = load(args.run, args.policy, tell)
    settings = loaded.config.get("config") or {}
    about = {
        "env": settings.get("env"),
        "algo": settings.get("algo"),
        "seed": settings.get("seed"),
        "epoch": loaded.epoch,
        "policy": loaded.which,
        "verdict": None if loaded.certification is None else loaded.certification["sentence"],
    }
    tell(f"the {loaded.which} policy, after epoch {loaded.epoch}: {loaded.policy}")
    for file in export_policy(loaded.policy, args.to, about):
        print(file)
    return 0
