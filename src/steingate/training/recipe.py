"""From a configuration to its algorithm and its environments: the one place where the two meet."""

from typing import Any

from steingate.algos.base import Algorithm
from steingate.errors import InputError
from steingate.training.config import RunConfig

# Options of a recipe that are settings of the run, by which other parts of the run go too.
_OF_THE_RUN = {
    "limit": "cost_limit", "variant": "variant", "seed": "seed", "preset": "preset",
    "certificate": "certificate", "backbone": "algo", "controlled": "algo",
    "region": "max_kl, cg_iters, damping, search_steps or shrink",
    "cost_discount": "cost_discount", "cost_lam": "cost_lam",
}  # fmt: skip


def build_algorithm(cfg: RunConfig) -> Algorithm:
    """Return the algorithm a configuration asks for."""
    for name in cfg.algo_options:
        setting = _OF_THE_RUN.get(name.partition(".")[0])
        if setting is not None:
            raise InputError(f"{name} is not an option of the algorithm: set {setting} of the run instead.")
    from steingate.algos.descent import Clipped
    from steingate.algos.library import make_recipe
    from steingate.algos.trust_region import TrustRegion

    own = cfg.settled
    region = TrustRegion(
        cfg.max_kl, cfg.cg_iters, cfg.damping, own.search_steps, cfg.shrink, variant=cfg.variant
    )
    algo: Algorithm = make_recipe(
        cfg.algo,
        own.algo_options,
        limit=cfg.cost_limit,
        variant=cfg.variant,
        window=cfg.window,
        region=region,
        preset=cfg.preset,
        certificate=cfg.certificate,
        clipped=Clipped(epochs=cfg.epochs),
        cost_discount=cfg.cost_discount,
        cost_lam=cfg.cost_lam,
        seed=cfg.seed,
    ).build()
    return algo


def make_envs(
    cfg: RunConfig, algo: Algorithm, num_envs: int | None = None, budget: float = 1.0, **options: Any
) -> Any:
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
        Share of its budget that an episode starts with.
    **options
        Further options of the environment.
    """
    from steingate.envs.make import make_vec

    threads = {} if cfg.threads is None else {"threads": cfg.threads}
    envs = make_vec(
        cfg.env, num_envs or cfg.num_envs, **{"copy": False, **threads, **cfg.env_options, **options}
    )
    if algo.account is None:
        return envs
    from steingate.envs.budget import Augmented

    augmented = Augmented(envs, algo.account)
    augmented.set_budget(budget)
    return augmented


def check_carry(cfg: RunConfig, envs: Any) -> None:
    """Refuse episodes that outlive an epoch where the environments cannot be saved within one."""
    if not cfg.carry_episodes:
        return
    envs.reset(seed=0)
    try:
        envs.snapshot()
    except AttributeError as error:
        raise InputError(
            f"carry_episodes needs an environment that can be saved, and {cfg.env} has no snapshot()."
        ) from error
