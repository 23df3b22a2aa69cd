"""Small problems that several files use."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from steingate.algorithms import make_algorithm
from steingate.algorithms.base import Batch, Episodes, RunContext
from steingate.algorithms.common.networks import ActionDistribution, action_distribution, forward, init_policy, log_prob
from steingate.algorithms.common.ppo_update import Minibatch


def problem(samples=300, obs_dim=3, act_dim=2, hidden=(5, 4), seed=0):
    """A policy and a batch it collected; action 0 pays where the observation is positive, action 1 costs."""
    rng = np.random.default_rng(seed)
    params = init_policy(rng, obs_dim, act_dim, hidden)
    params["log_std"] = np.linspace(-0.3, 0.2, act_dim).astype(np.float32)
    obs = rng.normal(size=(samples, obs_dim)).astype(np.float32)
    noise = rng.normal(size=(samples, act_dim))
    act = (np.asarray(forward(params, obs)) + np.exp(params["log_std"]) * noise).astype(np.float32)
    adv = act[:, 0] * obs[:, 0]
    cost_adv = 0.05 * act[:, 1] + 0.02 * act[:, 0] * obs[:, 0]
    adv, cost_adv = (adv - adv.mean()) / adv.std(), cost_adv - cost_adv.mean()
    logp = np.asarray(log_prob(params, obs, act))
    return params, Batch(obs, act, logp, adv.astype(np.float32), cost_adv.astype(np.float32))


def dense_problem(n, seed=0, cost_scale=1.0):
    """A positive definite matrix and two gradients, reward and cost."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    return root @ root.T / n + 0.1 * np.eye(n), rng.normal(size=n), cost_scale * rng.normal(size=n)


def mean_kl(old, new, obs):
    """KL(old || new), averaged over samples and action dimensions."""
    return jnp.mean(action_distribution(old, obs).kl(action_distribution(new, obs)))


def surrogates(params, batch):
    """Importance-sampled means of the reward and the cost advantage."""
    ratio = np.exp(np.asarray(log_prob(params, batch.obs, batch.act)) - batch.logp)
    return float((ratio * batch.adv).mean()), float((ratio * batch.cost_adv).mean())


def episodes(costs, length=1000, ret=0.0):
    costs = np.asarray(costs, np.float64)
    return Episodes(costs, np.full(len(costs), ret), np.full(len(costs), length, np.int64))


def run_gate(name, epochs, options=None, **context):
    """Return the state and the outputs of an algorithm's ``decide`` over epochs of episodes."""
    algorithm, context = make_algorithm(name, options=options), RunContext(**context)
    policy = init_policy(np.random.default_rng(0), 2, 1, (3,))
    state, outputs = algorithm.init(context, policy), []
    for finished in epochs:
        state, output = algorithm.decide(context, state, finished)
        outputs.append(output)
    return state, outputs


def update(name, objective, policy, batch, options=None, **context):
    """Return the updated policy and the metrics of one update of an algorithm."""
    algorithm, context = make_algorithm(name, options=options), RunContext(**context)
    _, updated, metrics = algorithm.update(context, algorithm.init(context, policy), policy, batch, objective)
    return updated, metrics


def minibatch():
    """Six rows, the last of which is padding, and a policy some way from the one that collected them."""
    rng = np.random.default_rng(0)
    old, now = init_policy(rng, 3, 2, (4,)), init_policy(rng, 3, 2, (4,))
    now = jax.tree.map(lambda a, b: (0.75 * a + 0.25 * b).astype(np.float32), old, now)
    now["log_std"] = np.array([0.05, -0.1], np.float32)
    obs = rng.normal(size=(6, 3)).astype(np.float32)
    mu = np.asarray(forward(old, obs))
    act = (mu + rng.normal(size=(6, 2))).astype(np.float32)
    weight = np.array([0.2] * 5 + [0.0], np.float32)
    adv, cost_adv = rng.normal(size=(2, 6)).astype(np.float32)
    logp = np.asarray(log_prob(old, obs, act))
    return now, Minibatch(obs, act, logp, adv, cost_adv, weight, ActionDistribution(mu, old["log_std"]))


def kl_and_ratio(now, rows):
    """KL(now || old) and likelihood ratio of the five rows of :func:`minibatch`, number by number."""
    kls, ratios = [], []
    for i in range(5):
        mu, log_std = np.asarray(forward(now, rows.obs[i : i + 1]))[0], now["log_std"]
        kl, log_ratio = 0.0, 0.0
        for d in range(2):
            s, s0 = np.exp(log_std[d]), np.exp(rows.old.log_std[d])
            kl += np.log(s0 / s) + (s**2 + (mu[d] - rows.old.out[i, d]) ** 2) / (2 * s0**2) - 0.5
            log_ratio += -np.log(s) - 0.5 * ((rows.act[i, d] - mu[d]) / s) ** 2
            log_ratio -= -np.log(s0) - 0.5 * ((rows.act[i, d] - rows.old.out[i, d]) / s0) ** 2
        kls.append(kl)
        ratios.append(np.exp(log_ratio))
    return np.array(kls), np.array(ratios)


def bandit(reward_slope, cost_slope, nodes=40):
    """Actions of N(0.3, 0.7^2) with advantages linear in the action; quadrature nodes stand for samples."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    act = (0.3 + 0.7 * z)[:, None]
    logp = -0.5 * z**2 - np.log(0.7) - 0.5 * np.log(2 * np.pi)
    old = ActionDistribution(np.full((nodes, 1), 0.3), np.array([np.log(0.7)]))
    shift = act[:, 0] - 0.3
    return Minibatch(np.ones((nodes, 1)), act, logp, reward_slope * shift, cost_slope * shift, w / w.sum(), old)


def loss_of_gaussian(loss, rows, numbers):
    """Return a loss of :func:`bandit` as a jitted function of (mean, log std), with its gradient."""

    def value(theta):
        return loss({"w": (jnp.zeros((1, 1)),), "b": (theta[:1],), "log_std": theta[1:]}, rows, numbers)

    return jax.jit(jax.value_and_grad(value))


def minimizer(loss, rows, numbers=()):
    """Return mean and deviation of the Gaussian that minimizes a loss of :func:`bandit`, by SciPy."""
    with jax.enable_x64(True):
        function = loss_of_gaussian(loss, rows, numbers)
        found = minimize(lambda theta: float(function(theta)[0]), [0.35, -0.3], method="Nelder-Mead", tol=1e-9)
    return found.x[0], np.exp(found.x[1])


def adam_loop(leaves, gradient, order, batch_size, lr, max_grad_norm):
    """Adam as a plain loop over minibatches; return the leaves."""
    first, second, t = [np.zeros_like(x) for x in leaves], [np.zeros_like(x) for x in leaves], 0
    for permutation in order:
        for start in range(0, len(permutation), batch_size):
            g, t = gradient(leaves, permutation[start : start + batch_size]), t + 1
            norm = np.sqrt(sum((x**2).sum() for x in g))
            g = [x * min(1.0, max_grad_norm / (norm + 1e-6)) for x in g]
            first = [0.9 * m + 0.1 * x for m, x in zip(first, g, strict=True)]
            second = [0.999 * v + 0.001 * x**2 for v, x in zip(second, g, strict=True)]
            leaves = [
                x - lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
                for x, m, v in zip(leaves, first, second, strict=True)
            ]
    return leaves
