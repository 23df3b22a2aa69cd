# %% [markdown]
# # Certify a list of costs
#
# You ran two policies for 200 episodes each and wrote down what every episode cost. The limit is 25. Both
# cost about 11 on average. Are they equally safe? NumPy, SciPy and Matplotlib are all this needs.

# %%
import numpy as np

EPISODES = 200  # short: 200
rng = np.random.default_rng(7)
steady = 50 * rng.beta(2, 7, EPISODES)
gambling = 50 * rng.beta(2, 24, EPISODES)
gambling[::7] = rng.uniform(45, 60, len(gambling[::7]))  # every seventh ends badly
print(f"mean cost: steady {steady.mean():.1f}, gambling {gambling.mean():.1f}")

# %% [markdown]
# The mean cannot tell. A certificate bounds the *risk*, here the probability that an episode costs more
# than the limit, and opens its gate when the bound is within the budget. `confident` holds with probability
# 1 - delta, for independent episodes whose number was fixed beforehand.

# %%
from steingate import Certificate

certificate = Certificate.preset("confident", limit=25, budget=0.1, delta=0.05)
for name, costs in {"steady": steady, "gambling": gambling}.items():
    result = certificate.evaluate(costs)
    print(f"{name}: {'safe' if result.safe else 'not shown to be safe'}, risk at most {result.bound:.3f}")
    print(f"   {result.diagnosis}")

# %% [markdown]
# How many episodes would have been enough? With no violation at all, and with three:

# %%
from steingate.certificates.plan import episodes_needed

for violations in (0, 3):
    print(
        violations, "violations:", episodes_needed(budget=0.1, delta=0.05, violations=violations), "episodes"
    )

# %% [markdown]
# The limit 25 was given. What if it had been another? A certificate that holds for one limit says nothing
# about others, but the same episodes can be asked about each limit one cares about, with delta divided by
# their number. Below, the share of episodes over each cost, as seen, and its bound; the mean alone would
# put both policies at the same place.

# %%
from matplotlib.figure import Figure

limits = np.linspace(5, 60, 45)
figure = Figure(figsize=(9.5, 4.2), layout="constrained")
axes = figure.subplots()
for name, costs, color in (("steady", steady, "#1f8a7d"), ("gambling", gambling, "#d1495b")):
    seen = [np.mean(costs > limit) for limit in limits]
    bounds = [
        Certificate.preset("confident", limit=limit, delta=0.05 / len(limits)).evaluate(costs).bound
        for limit in limits
    ]
    axes.plot(limits, bounds, color=color, linewidth=2.2, label=f"{name}: at most")
    axes.fill_between(
        limits, seen, bounds, color=color, alpha=0.18, linewidth=0, label=f"{name}: seen to bound"
    )
    axes.axvline(costs.mean(), color=color, linewidth=1.2, linestyle=":")
axes.axhline(0.1, color="#22303c", linewidth=1.2, linestyle="--")
axes.text(34, 0.112, "budget 0.1", fontsize=9)
axes.text(12, 0.95, "mean costs", fontsize=9)
axes.set(xlabel="limit on the cost of an episode", ylabel="P(cost > limit)", xlim=(5, 60), ylim=(0, 1))
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
