# %% [markdown]
# # Watch a deployed policy
#
# A policy is certified in the laboratory, sent out, and watched. Episodes come in one by one, and somebody
# looks after each of them. Only NumPy and SciPy are needed (and Matplotlib for the picture): what counts is
# the cost of each episode. Here the episodes are made up, so that the truth is known: at first 2 % of them
# go over the limit of 25.

# %%
import numpy as np

from steingate import Monitor

rng = np.random.default_rng(4)


def episode(risk: float) -> float:
    """Return the cost of an episode that goes over the limit of 25 with this chance."""
    return 25 + rng.exponential(20) if rng.random() < risk else rng.uniform(0, 20)


laboratory = Monitor(limit=25, budget=0.1, delta=0.05)
while not (
    laboratory.certified or laboratory.unsafe
):  # looking is free: the bound holds at all times at once
    laboratory.update(episode(risk=0.02))
print(laboratory.sentence)

# %% [markdown]
# Go on in the laboratory for a while: the better the usual share of violations is known, the quicker a
# change is noticed. `Monitor.watch` takes that share as the baseline of a new monitor for the field.

# %%
EPISODES = 400  # short: 400
for _ in range(EPISODES):
    laboratory.update(episode(risk=0.02))
field = Monitor.watch(laboratory)
print(f"usual: at most {field.baseline:.1%} of the episodes over the limit")

# %% [markdown]
# In the field all is well for 600 episodes. Then something wears out, and a tenth of the episodes goes over
# the limit: still within what was promised, but not what it used to be. The state is saved after every
# episode, as a robot would do, so that a restart forgets nothing.

# %%
WEAR = 600  # short: 600
while not field.drift and field.episodes < WEAR + 2000:
    field.update(episode(risk=0.02 if field.episodes < WEAR else 0.10))
    field.save("robot.monitor.json")
alarm = field.episodes
print(field.sentence)
print(f"the alarm came {alarm - WEAR} episodes after the change")

# %% [markdown]
# The alarm is evidence, not fate: the file still holds all that is known. Let it run on for a bit, and draw
# what the monitor knew at each time: the share seen, its bound, and the moment of the alarm, which has
# false ones only once in ten thousand episodes.

# %%
from steingate.report.monitor_figure import monitor_figure

field = Monitor.load("robot.monitor.json")
for _ in range(200):
    field.update(episode(risk=0.10))
figure = monitor_figure(field)
axes = figure.axes[0]
axes.axvspan(WEAR, field.episodes, color="#d1495b", alpha=0.07, linewidth=0)
axes.text(WEAR, axes.get_ylim()[1], "worn out from here ", ha="right", va="top", fontsize=9, color="#d1495b")
