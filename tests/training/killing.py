"""Train in child processes that are killed at random moments, then let the last one finish.

usage: python -m tests.training.killing RUN_CONFIG_JSON KILLS SEED [SIGNALS ...]

Each kill takes one of the signals, or -9 if none are given; "INT TERM" sends two in quick succession.
Children are forked before JAX starts, with everything else loaded, so that each begins soon. Prints the
number of rows of progress at each kill.
"""

import json
import os
import random
import signal
import sys
import time
import warnings
from contextlib import suppress

import jax  # noqa: F401  (imported here once, so that the children need not)
import numpy as np

from steingate.algorithms.common.networks import init_policy
from steingate.policies.normalizer import init_stats
from steingate.training.config import read_stored
from steingate.training.environment import make_envs
from steingate.training.rollout import collect
from steingate.training.runner import resume, train
from steingate.training.stop import stop_on_signals


def start_child(cfg):
    """Train or resume in a forked process; return its id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # this process has no threads that a fork could lose
        pid = os.fork()
    if pid:
        return pid
    try:
        with stop_on_signals(process=True) as stop:
            if (cfg.path / "config.json").exists():
                resume(cfg.path, quiet=True, stop=stop)
            else:
                train(cfg, quiet=True, stop=stop)
        os._exit(0)
    except (KeyboardInterrupt, SystemExit):
        os._exit(130)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)


def warm_up(cfg):
    """Load the compiled kernels and the environments, which need no JAX."""
    envs = make_envs(cfg)
    dims = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
    policy = init_policy(np.random.default_rng(0), *dims, cfg.algo.networks.hidden)
    noise = np.zeros((2, cfg.num_envs, dims[1]), np.float32)
    collect(envs, policy, init_stats(dims[0]), noise, seeds=range(cfg.num_envs))
    envs.close()


def rows(path):
    """Return the number of complete rows of progress."""
    try:
        return max(path.joinpath("progress.csv").read_bytes().count(b"\n") - 1, 0)
    except OSError:
        return 0


def main():
    """Kill, resume, and finally let the run finish."""
    settings, kills, seed = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    cfg, rng = read_stored(settings, "the command line"), random.Random(seed)
    signals = sys.argv[4:] or ["KILL"]
    warm_up(cfg)
    print("kills at rows", end="")
    for left in range(kills, 0, -1):
        pid = start_child(cfg)
        # Some are killed while they start, most after a few further epochs, all at an arbitrary instant.
        begun, patience = time.monotonic(), rng.uniform(0.0, 1.5) if rng.random() < 0.2 else 60.0
        epochs = (cfg.epochs - rows(cfg.path)) // (left + 3)  # so that there is always something left to kill
        target = rows(cfg.path) + rng.randint(1, max(epochs, 1))
        while rows(cfg.path) < target and time.monotonic() < begun + patience:
            if os.waitpid(pid, os.WNOHANG)[0]:
                raise SystemExit(" a child ended by itself")
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.01))
        for name in rng.choice(signals).split():
            with suppress(ProcessLookupError):
                os.kill(pid, getattr(signal, f"SIG{name}"))
            time.sleep(rng.choice([0.0, 0.001, 0.02]))
        os.waitpid(pid, 0)
        print(f" {rows(cfg.path)}", end="", flush=True)
    print()
    _, status = os.waitpid(start_child(cfg), 0)
    raise SystemExit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
