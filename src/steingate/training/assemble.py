"""From a configuration to its environments: the one place where methods and tasks meet."""

from typing import Any, cast

from steingate.algorithms.common.base import Algorithm
from steingate.errors import InputError
from steingate.training.config import RunConfig
from steingate.training.environment import Saved, TrainerEnv
from steingate.training.memory import require_memory


def build_algorithm(cfg: RunConfig) -> Algorithm:
    """Return the algorithm that a configuration's recipe makes for its run."""
    return cfg.recipe.build(cfg.setup)


def make_envs(
    cfg: RunConfig, algo: Algorithm, num_envs: int | None = None, budget: float = 1.0, **options: Any
) -> TrainerEnv:
    """Return the vector environment of a configuration, as the algorithm wants it.

    Parameters
    ----------
    cfg
        Gives the id, the number of environments and threads, and the environment's own options.
    algo
        May want to see what an episode has spent.
    num_envs
        Another number of environments.
    budget
        Share of its budget that an episode may spend.
    **options
        Further options of the environment.
    """
    from steingate.envs.make import make_vec

    require_memory(cfg, num_envs)
    threads = {} if cfg.threads is None else {"threads": cfg.threads}
    own = {"copy": False, "workers": cfg.workers, **threads, **cfg.env_options, **options}
    envs: Any = make_vec(cfg.env, num_envs or cfg.num_envs, **own)
    if cfg.algo.near or cfg.algo.places:
        from steingate.envs.lidar_features import Seeing

        envs = Seeing(envs, cfg.algo.near, cfg.algo.places)
    if algo.account is None:
        return cast(TrainerEnv, envs)
    from steingate.envs.safety_state import Augmented

    augmented = Augmented(envs, algo.account)
    augmented.set_budget(budget)
    return augmented


def check_carry(cfg: RunConfig, envs: TrainerEnv) -> None:
    """Refuse episodes that outlive an epoch where the environments cannot be saved within one."""
    if not cfg.carry_episodes:
        return
    envs.reset(seed=0)
    try:
        saved_env(envs).snapshot()
    except AttributeError as error:
        raise InputError(
            f"carry_episodes needs an environment that can be saved, and {cfg.env} has no snapshot()."
        ) from error


def saved_env(envs: TrainerEnv) -> Saved:
    """Return the environments as ones that can be saved; those that cannot raise an ``AttributeError``."""
    if not isinstance(envs, Saved):
        raise AttributeError("snapshot")
    return envs
