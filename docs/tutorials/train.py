# %% [markdown]
# # Train, and look
#
# A point robot earns reward for running fast along a circle, and cost for every step beyond two walls.
# Needs `pip install 'steingate[train]'`; on two idle cores it takes about a minute.

# %%
import steingate

STEPS = 1_000_000  # short: 16_000
PER_EPOCH = 20_000  # short: 8_000
run = steingate.train(
    env="SafetyPointCircle1-v0",
    algo="steingate",
    total_steps=STEPS,
    steps_per_epoch=PER_EPOCH,
    seed=0,
    quiet=True,
)
print(run)

# %% [markdown]
# The run is a folder, and a verdict: which policy of the run passed a test on fresh episodes. In the folder,
# tables are plain CSV files, one row per epoch and one per episode:

# %%
from steingate.report.loading import load_run

data = load_run(run.path)
cost, limit = data.progress["Metrics/EpCost"], 25.0
print(f"{len(cost)} epochs, {len(data.episodes['cost'])} episodes")
print(f"mean cost of a hundred episodes: {cost[0]:.0f} after the first epoch, {cost[-1]:.0f} after the last")

# %% [markdown]
# `load` gives the certified policy, or the last one with a warning where there is none. It is a function of
# NumPy arrays now. Does it keep to the limit? Do not take the verdict's word for it: `certify_policy` plays
# as few further episodes as a certificate needs, and says what they show.

# %%
import gymnasium

EPISODES = 300  # short: 3
policy = steingate.load(run.path).policy
env = gymnasium.make("steingate/SafetyPointCircle1-v0", render_mode="rgb_array", width=360, height=360)
verdict = steingate.certify_policy(policy, env, limit=limit, budget=0.1, delta=0.05, max_episodes=EPISODES)
print(verdict.sentence)

# %% [markdown]
# And what does it *do*? The picture has the robot's way through one episode, drawn into one frame, and the
# run: return above, cost below with its limit, and red marks at epochs in which the gate was shut and the
# step lowered cost.

# %%
import numpy as np
from matplotlib.figure import Figure

SHOWN = 200  # short: 20
obs, _ = env.reset(seed=5)
first = env.render().astype(float)
way = first.copy()
for step in range(SHOWN):
    obs, *_ = env.step(policy(obs))
    if step % 4 == 0:
        frame = env.render().astype(float)
        moved = np.abs(frame - first).max(axis=2, keepdims=True) > 40
        way = np.where(moved, 0.5 * way + 0.5 * frame, way)

steps, shut = data.progress["TotalEnvSteps"] / 1e6, data.progress["Gate/Mode"] == 2
figure = Figure(figsize=(10, 4.4), layout="constrained")
panels = figure.subplot_mosaic([["way", "return"], ["way", "cost"]], width_ratios=[1, 1.4])
panels["way"].imshow(way.astype(np.uint8))
panels["way"].set_axis_off()
panels["return"].plot(steps, data.progress["Metrics/EpRet"], color="#1f8a7d", linewidth=2)
panels["return"].set(ylabel="return", xticklabels=[])
panels["cost"].plot(steps, cost, color="#2f6f9f", linewidth=2)
panels["cost"].plot(steps[shut], 0 * steps[shut], "|", color="#d1495b", markersize=9)
panels["cost"].axhline(limit, color="#d1495b", linestyle="--", linewidth=1.2)
panels["cost"].set(xlabel="million steps", ylabel="cost", ylim=(-3, None))
for name in ("return", "cost"):
    panels[name].spines[["top", "right"]].set_visible(False)
env.close()
