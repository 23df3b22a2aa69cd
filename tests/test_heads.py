"""From outputs of a network to actions, with NumPy alone."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from scipy.special import softmax
from scipy.stats import chisquare

from steingate.policies.action_distribution import Choice, action_map, choice_of, outputs, stored_action


def test_the_likeliest_choice_in_the_numbers_of_the_task():
    choice = Choice(3, start=-1)
    assert choice.likeliest(np.array([0.0, 3.0, 1.0])) == 0
    assert choice.likeliest(np.array([[0.0, 3.0, 1.0], [5.0, 3.0, 1.0]])).tolist() == [0, -1]


def test_choices_are_drawn_with_their_probabilities():
    logits = np.array([0.3, -1.0, 1.2, 0.0])
    drawn = Choice(4, start=2).sample(np.tile(logits, (20_000, 1)), np.random.default_rng(5))
    counts = np.bincount(drawn - 2, minlength=4)
    assert chisquare(counts, 20_000 * softmax(logits)).pvalue > 1e-3


@pytest.mark.parametrize(
    ("space", "choice", "many"),
    [
        (Discrete(5, start=2), Choice(5, 2), 5),
        (Box(-1.0, 1.0, (3,)), None, 3),
    ],
)
def test_what_a_space_asks_of_a_policy(space, choice, many):
    assert choice_of(space) == choice
    assert outputs(space) == many


def test_what_a_checkpoint_says_about_actions():
    assert stored_action(Discrete(5, start=2)) == {"choices": 5, "start": 2}
    stored = stored_action(Box(0.0, 4.0, (1,)))
    assert (stored["shift"].item(), stored["scale"].item()) == (2.0, 2.0)
    assert [part.item() for part in action_map(Discrete(5, start=2))] == [2.0, 1.0]
