"""The compiled inner loop of a rollout: one call per vector step records, normalizes and acts.

Compiled without fast-math, so that results do not depend on the number of threads. Nothing is allocated here:
``rollout.collect`` makes every array. Rows are environments, t counts vector steps.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.compiled import compiled
from steingate.policies.normalizer import CLIP, STD_FLOOR

RUNNING, TERMINATED, TRUNCATED = 0, 1, 2
QUANTITIES = ("nothing", "an observation", "a reward", "a cost", "a final observation")
OFF, UPDATE, FROZEN = 0, 1, 2  # observation normalization: none, update and normalize, normalize


def flat_policy(policy: Mapping[str, Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return all layers as one vector, the layer sizes, and the standard deviations (none: a categorical policy)."""
    layers = list(zip(policy["w"], policy["b"], strict=True))
    flat = [np.ravel(np.asarray(array, np.float32)) for layer in layers for array in layer]
    sizes = [np.shape(layers[0][0])[0], *(np.shape(w)[1] for w, _ in layers)]
    std = np.exp(np.asarray(policy.get("log_std", ()), np.float32))
    return np.concatenate(flat), np.array(sizes, np.int64), std


@compiled
def tanh_rows(rows, width):
    """Replace the first ``width`` numbers of each float32 row by their hyperbolic tangent, exact to rounding.

    Lambert's continued fraction x/(1 + x²/(3 + x²/(5 + ...))), nine levels, at half the argument, then the
    double-angle formula (error below 1e-10). This is plain arithmetic, so the compiler vectorizes it.
    """
    for i in range(rows.shape[0]):
        for j in range(width):
            x = np.float64(rows[i, j])
            x = x if x < 9.5 else 9.5
            x = x if x > -9.5 else -9.5
            h = 0.5 * x
            s = h * h
            top = h * (34459425.0 + s * (4729725.0 + s * (135135.0 + s * (990.0 + s))))
            bottom = 34459425.0 + s * (16216200.0 + s * (945945.0 + s * (13860.0 + s * 45.0)))
            rows[i, j] = np.float32(2.0 * top * bottom / (bottom * bottom + top * top))


@compiled
def forward(weights, sizes, obs, scratch):
    """Evaluate the policy network; return the index of the half of ``scratch`` (2, E, width) with the output.

    ``weights`` is one flat vector, layer after layer: W (in, out) in C order, then the bias.
    """
    rows = obs.shape[0]
    layers = sizes.size - 1
    start = 0
    side = 0
    for layer in range(layers):
        fan_in, fan_out = sizes[layer], sizes[layer + 1]
        w = weights[start : start + fan_in * fan_out].reshape((fan_in, fan_out))
        out = scratch[side]
        for i in range(rows):
            line = out[i]
            source = obs[i] if layer == 0 else scratch[1 - side, i]
            for j in range(fan_out):
                line[j] = weights[start + fan_in * fan_out + j]
            whole = fan_in - fan_in % 4
            for k in range(0, whole, 4):  # four inputs at a time: fewer loads and stores
                a, b, c, d = source[k], source[k + 1], source[k + 2], source[k + 3]
                for j in range(fan_out):
                    line[j] += (a * w[k, j] + b * w[k + 1, j]) + (c * w[k + 2, j] + d * w[k + 3, j])
            for k in range(whole, fan_in):
                for j in range(fan_out):
                    line[j] += source[k] * w[k, j]
        if layer < layers - 1:
            tanh_rows(out, fan_out)
        start += (fan_in + 1) * fan_out
        side = 1 - side
    return 1 - side


@compiled
def push_rows(count, mean, m2, rows, selected, scratch):
    """Add the selected rows to the running statistics as one batch (Chan's update), in place.

    ``count`` has one entry; ``scratch`` is (2, d) float64.
    """
    n = 0
    for i in range(rows.shape[0]):
        n += selected[i]
    if n == 0:
        return
    scratch[:] = 0.0
    batch_mean, batch_m2 = scratch[0], scratch[1]
    for i in range(rows.shape[0]):
        if selected[i]:
            for j in range(mean.size):
                batch_mean[j] += rows[i, j]
    for j in range(mean.size):
        batch_mean[j] /= n
    for i in range(rows.shape[0]):
        if selected[i]:
            for j in range(mean.size):
                gap = rows[i, j] - batch_mean[j]
                batch_m2[j] += gap * gap
    total = count[0] + n
    shift, cross = n / total, count[0] * n / total
    for j in range(mean.size):
        gap = batch_mean[j] - mean[j]
        mean[j] += gap * shift
        m2[j] = (m2[j] + batch_m2[j]) + gap * gap * cross
    count[0] = total


@compiled
def record(t, reward, earned, cost, terminated, truncated, totals, rewards, ends, ended, episodes, counters):
    """Store step t, add it to the running episodes, and append those that ended to ``episodes``.

    ``reward`` is the learning signal, ``earned`` the task's own reward, which episode returns add up.
    Returns 0, or 1 + row + E * quantity for the first number that is not finite.
    """
    envs = reward.size
    for i in range(envs):
        if not (np.isfinite(reward[i]) and np.isfinite(earned[i])):
            return 1 + i + envs * 2
        if not np.isfinite(cost[i]):
            return 1 + i + envs * 3
        rewards[t, 0, i] = reward[i]
        rewards[t, 1, i] = cost[i]
        totals[i, 0] += earned[i]
        totals[i, 1] += cost[i]
        totals[i, 2] += 1.0
        ended[i] = terminated[i] or truncated[i]
        ends[t, i] = RUNNING
        if ended[i]:
            ends[t, i] = TERMINATED if terminated[i] else TRUNCATED
            n = counters[0]
            episodes[n, 0] = t
            episodes[n, 1] = i
            for k in range(3):
                episodes[n, 2 + k] = totals[i, k]
                totals[i, k] = 0.0
            counters[0] = n + 1
    return 0


@compiled
def choose(logits, noise):
    """Return the action with the largest logit plus noise, and the logarithm of its probability."""
    best, top = 0, logits[0]
    for j in range(1, noise.size):
        if logits[j] + noise[j] > logits[best] + noise[best]:
            best = j
        if logits[j] > top:
            top = logits[j]
    total = 0.0
    for j in range(noise.size):
        total += np.exp(np.float64(logits[j]) - top)
    return best, np.float64(logits[best]) - top - np.log(total)


@compiled
def act(t, obs, noise, weights, sizes, std, shift, scale, actions, logp, command, scratch):
    """Sample the actions of step t and map them from [-1, 1] to the environments' range.

    With an empty ``std`` the outputs are logits of a discrete action, whose log-probability is stored as well.
    """
    side = forward(weights, sizes, obs[t], scratch)
    if std.size == 0:
        for i in range(command.shape[0]):
            best, chance = choose(scratch[side, i], noise[t, i])
            actions[t, i, 0] = best
            logp[t, i] = chance
            command[i, 0] = best + np.int64(shift[0])
        return
    for i in range(command.shape[0]):
        for j in range(command.shape[1]):
            a = scratch[side, i, j] + std[j] * noise[t, i, j]
            actions[t, i, j] = a
            command[i, j] = shift[j] + scale[j] * np.float64(a)


@compiled
def observe(t, mode, raw, selected, count, mean, m2, obs, finals, final_at, counters, at, moments):
    """Normalize the selected rows of ``raw`` after adding them to the statistics; return a row with NaN or inf, or -1.

    Features beyond those of the statistics are copied unchanged. The rows go to ``obs[t]``; if ``at`` is not
    empty, only the rows that it marks as TRUNCATED are written, to the list ``finals``, with their index in
    the rollout.
    """
    for i in range(raw.shape[0]):
        if selected[i]:
            total = 0.0
            for j in range(raw.shape[1]):
                total += raw[i, j] * 0.0  # 0 unless the number is not finite
            if total != 0.0:
                return i
    if mode == UPDATE:
        push_rows(count, mean, m2, raw, selected, moments)
    known = mean.size if mode != OFF and count[0] > 1 else 0  # features to normalize
    scale = moments[0]
    for j in range(known):
        std = np.sqrt(m2[j] / (count[0] - 1))
        scale[j] = std if std > STD_FLOOR else STD_FLOOR
    for i in range(raw.shape[0]):
        if not selected[i]:
            continue
        if at.size == 0:
            out = obs[t, i]
        elif at[i] == TRUNCATED:
            n = counters[1]
            out = finals[n]
            final_at[n] = (t - 1) * raw.shape[0] + i
            counters[1] = n + 1
        else:
            continue
        for j in range(known):
            x = (raw[i, j] - mean[j]) / scale[j]
            x = x if x < CLIP else CLIP
            x = x if x > -CLIP else -CLIP
            out[j] = np.float32(x)
        for j in range(known, raw.shape[1]):
            out[j] = np.float32(raw[i, j])
    return -1


@compiled
def advance(
    t, mode, raw, reward, earned, cost, terminated, truncated, final_raw,  # what the environments returned
    count, mean, m2, weights, sizes, std, shift, scale, noise,  # statistics, policy, randomness
    obs, actions, rewards, ends, finals, final_at, episodes, totals, ended, everyone, counters,  # results
    logp, command, scratch, moments,
):  # fmt: skip
    """Record step t - 1, normalize the observations, and write the actions of step t to ``command``.

    At t = 0 there is nothing to record, at t = T (the last row of ``obs``) no action to choose. Returns 0, or
    1 + row + E * quantity for the first number that is not finite (names in ``QUANTITIES``).
    """
    envs = raw.shape[0]
    if t > 0:
        results = totals, rewards, ends, ended, episodes, counters
        bad = record(t - 1, reward, earned, cost, terminated, truncated, *results)
        if bad:
            return bad
        if np.any(ended):
            at = ends[t - 1]
            bad = observe(t, mode, final_raw, ended, count, mean, m2, obs, finals, final_at, counters, at, moments)
            if bad >= 0:
                return 1 + bad + envs * 4
    bad = observe(t, mode, raw, everyone, count, mean, m2, obs, finals, final_at, counters, ends[0, :0], moments)
    if bad >= 0:
        return 1 + bad + envs
    if t < noise.shape[0]:
        act(t, obs, noise, weights, sizes, std, shift, scale, actions, logp, command, scratch)
    return 0
