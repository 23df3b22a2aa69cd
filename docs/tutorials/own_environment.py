# %% [markdown]
# # Bring your own environment
#
# Any Gymnasium environment will do that puts the cost of a step into `info["cost"]`. Here a point crosses a
# square to reach the far corner, and there is a puddle on the way: every step in it costs 1. An episode has
# 40 steps and may spend 2 of them in the puddle.

# %%
import gymnasium
import numpy as np

CENTER, RADIUS = np.array([0.2, -0.2]), 0.5


class Puddle(gymnasium.Env):
    """A square with a puddle in its middle; the goal is the upper right corner."""

    observation_space = gymnasium.spaces.Box(-2.0, 2.0, (4,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = np.array([-0.9, -0.9]) + 0.1 * self.np_random.standard_normal(2)
        return self._seen(), {}

    def step(self, action):
        before = np.linalg.norm(self.place - 0.9)
        noise = 0.02 * self.np_random.standard_normal(2)
        self.place = np.clip(self.place + 0.1 * np.clip(action, -1, 1) + noise, -1.2, 1.2)
        distance = np.linalg.norm(self.place - 0.9)
        cost = float(np.linalg.norm(self.place - CENTER) < RADIUS)
        return self._seen(), 10 * (before - distance) - 0.3 * distance, False, False, {"cost": cost}

    def _seen(self):
        return np.concatenate([self.place, self.place - CENTER]).astype(np.float32)


gymnasium.register("Puddle-v0", entry_point=Puddle, max_episode_steps=40)

# %% [markdown]
# The registered length is what tells the trainer how long an episode is. The limit is in the units of your
# cost, summed over an episode. Two methods, the same sizes: TRPO, which does not look at the cost, and
# SteinGate, which raises reward only while the epoch's hundred episodes show, with 95 % confidence, that at
# most one in ten goes over the limit.

# %%
import steingate

STEPS = 160_000  # short: 4_000
PER_EPOCH = 4_000  # short: 2_000
methods = {"trpo": {}, "steingate": {"preset": "confident"}}
runs = {
    algo: steingate.train(
        env="Puddle-v0",
        algo=algo,
        cost_limit=2.0,
        total_steps=STEPS,
        steps_per_epoch=PER_EPOCH,
        hidden=(32, 32),
        max_kl=0.02,
        out=f"runs/{algo}",
        quiet=True,
        **settings,
    )
    for algo, settings in methods.items()
}

# %% [markdown]
# What did they learn, and what can be promised about it? `load` would give the best policy that the run
# certified, where there is one; the last ones show what each method is after.

# %%
EPISODES = 400  # short: 4
policies = {algo: steingate.load(run.path, "last").policy for algo, run in runs.items()}
for algo, policy in policies.items():
    verdict = steingate.certify_policy(
        policy, gymnasium.make("Puddle-v0"), limit=2, budget=0.1, delta=0.05, max_episodes=EPISODES
    )
    print(f"{algo}: {verdict.sentence}")

# %% [markdown]
# TRPO is out after three episodes. SteinGate's policy goes over the limit in about one episode of twelve,
# which is within the budget, but four hundred episodes are not enough to show it. A smaller budget for the
# gate (`certificate={"budget": 0.05}`) or a longer run leaves more room. Thirty ways through the square for
# each, from fresh seeds, say why: the short way is along the edge.

# %%
from matplotlib.figure import Figure
from matplotlib.patches import Circle

figure = Figure(figsize=(9, 4.6), layout="constrained")
panels = figure.subplots(1, 2, sharex=True, sharey=True)
for axes, (algo, policy) in zip(panels, policies.items(), strict=True):
    axes.add_patch(Circle(CENTER, RADIUS, color="#9db2c7", alpha=0.5, linewidth=0))
    over = 0
    for seed in range(30):
        env = gymnasium.make("Puddle-v0").unwrapped
        obs, _ = env.reset(seed=1000 + seed)
        way, cost = [env.place.copy()], 0.0
        for _ in range(40):
            obs, *_, info = env.step(policy(obs))
            way.append(env.place.copy())
            cost += info["cost"]
        over += cost > 2
        color = "#d1495b" if cost > 2 else "#1f8a7d"
        axes.plot(*np.array(way).T, color=color, linewidth=1.1, alpha=0.6)
    axes.plot(0.9, 0.9, "*", color="#e0a030", markersize=16)
    axes.set_title(f"{algo}: {over} of 30 episodes over the limit", fontsize=11)
    axes.set_aspect("equal")
    axes.set_axis_off()
