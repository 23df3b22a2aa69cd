"""Small mistakes that tests must notice, for ``tests/mutate.py``: one row each, by module."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One mistake: in ``file``, below ``src/steingate``, ``old`` stands exactly once and becomes ``new``."""

    file: str
    old: str
    new: str
    why: str


# The test files that should notice a mistake in a module, or in the modules of a folder; the first that fits.
TESTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("training/epoch.py", ("tests/training/test_epoch.py",)),
    ("training/batch.py", ("tests/training/test_epoch.py",)),
    ("training/fitting.py", ("tests/training/test_epoch.py",)),
    ("training/seeding.py", ("tests/training/test_epoch.py",)),
    ("training/config.py", ("tests/training/test_config.py",)),
    ("training/state.py", ("tests/training/test_state.py",)),
    ("training/assemble.py", ("tests/training/test_assemble.py",)),
    ("training/candidates.py", ("tests/training/test_candidates.py",)),
    ("training/trial.py", ("tests/training/test_trial.py",)),
    ("training/keeper.py", ("tests/training/test_keeper.py",)),
    ("training/verdict.py", ("tests/training/test_keeper.py",)),
    ("training/stored.py", ("tests/training/test_stored.py",)),
    ("training/", ("tests/training/test_runs_of_recipes.py",)),
    ("storage/", ("tests/storage", "tests/cli/test_damaged_files.py")),
    ("settings.py", ("tests/test_settings.py",)),
    ("algos/replay.py", ("tests/training/test_epoch.py", "tests/algorithms/test_recipe.py")),
    ("algos/advantages.py", ("tests/algorithms/test_advantages.py",)),
    ("algos/methods/allowance.py", ("tests/training/test_allowance.py",)),
    ("algos/", ("tests/algorithms/test_recipe.py",)),
    ("gates/allowance.py", ("tests/gates/test_allowance.py",)),
    ("gates/account.py", ("tests/gates/test_allowance.py", "tests/algorithms/test_recipe.py")),
    ("gates/", ("tests/algorithms/test_recipe.py",)),
    (
        "core/evaluation.py",
        (
            "tests/certificates/test_evaluation_formula.py",
            "tests/certificates/test_evaluation.py",
            "-k",
            "formula or certified_",
        ),
    ),
    (
        "core/bets.py",
        (
            "tests/certificates/test_bets.py",
            "tests/certificates/test_mean_bound.py",
            "-k",
            "bets or two_points",
        ),
    ),
    ("core/confidence.py", ("tests/certificates/test_evaluation_formula.py", "-k", "confident")),
    ("core/stein.py", ("tests/certificates/test_stein.py",)),
    ("core/risk.py", ("tests/certificates/test_risk.py",)),
    (
        "core/sums.py",
        ("tests/certificates/test_sums.py", "-k", "any_points or different_samples or distinct"),
    ),
    ("core/bounds.py", ("tests/certificates/test_bounds.py", "-k", "clopper or embedding")),
)

# What a reading of the wiring found to survive, before there were tests of it.
WIRING = (
    Mutant(
        "training/epoch.py",
        "envs.set_budget(state.budget, state.worth)",
        "envs.set_budget(1.0)",
        "the controlled budget never reaches the environments",
    ),
    Mutant(
        "training/epoch.py",
        "action_noise(cfg.seed, state.epoch,",
        "action_noise(cfg.seed, 0,",
        "the same action noise in every epoch",
    ),
    Mutant(
        "training/fitting.py",
        "stream(cfg.seed, epoch, Purpose.FIT)",
        "stream(cfg.seed, 0, Purpose.FIT)",
        "the critics see the same order in every epoch",
    ),
    Mutant(
        "algos/descent.py",
        "key = (epoch, 1000 + index)",
        "key = (0, 1000 + index)",
        "the same minibatches in every epoch",
    ),
    Mutant(
        "training/epoch.py",
        "state.carry.totals[:, 1]",
        "state.carry.totals[:, 0]",
        "carried return used as carried cost",
    ),
    Mutant(
        "training/epoch.py",
        "mode=UPDATE if cfg.algo.normalize_obs else OFF",
        "mode=UPDATE",
        "normalize_obs=False ignored in training",
    ),
    Mutant(
        "training/play.py",
        "mode = FROZEN if cfg.algo.normalize_obs else OFF",
        "mode = FROZEN",
        "normalize_obs=False ignored in evaluation",
    ),
    Mutant(
        "training/epoch.py",
        "rest = (batch.weight, passes, algo.uses_cost)",
        "rest = (None, passes, algo.uses_cost)",
        "the critics ignore how often transitions count",
    ),
    Mutant(
        "training/epoch.py",
        "rollout.finished_at, cfg.carry_episodes",
        "rollout.finished_at, False",
        "the memory is never told of carried episodes",
    ),
    Mutant(
        "training/config.py",
        "self.epochs, self.seed)",
        "self.epochs, 0)",
        "the seed of the step is always 0",
    ),
    Mutant(
        "training/config.py",
        "Setup(self.cost_limit, self.window,",
        "Setup(self.cost_limit, 100,",
        "the window of the gate is always 100",
    ),
    Mutant(
        "algos/methods/lagrangian.py",
        "lam = self.returns.cost_adv_lam",
        "lam = 0.95",
        "CUP ignores the lambda of its cost advantages",
    ),
    Mutant(
        "gates/stein.py",
        "slack = certificate.limit - float(np.mean(episodes.cost))",
        "slack = certificate.limit - float(np.mean(recent))",
        "the slack of the certificate's gate is of the window",
    ),
    Mutant(
        "algos/methods/stein.py",
        "certificate.scale, certificate.budget)",
        "certificate.scale, 1.0)",
        "a recovery of the tail with the budget 1",
    ),
    Mutant(
        "algos/methods/stein.py",
        "return Algorithm(self.in_step_units(gate, setup), step, account",
        "return Algorithm(gate, step, account",
        "a recovery of the tail with its slack per episode",
    ),
)

EPOCH = (
    Mutant(
        "training/epoch.py",
        "epoch_seeds(cfg.seed, state.epoch,",
        "epoch_seeds(cfg.seed, 0,",
        "the environments are reset with the same seeds in every epoch",
    ),
    Mutant(
        "training/epoch.py",
        "action_noise(cfg.seed, state.epoch,",
        "action_noise(0, state.epoch,",
        "the noise of actions does not depend on the seed",
    ),
    Mutant(
        "training/epoch.py",
        "steps_before=state.epoch * cfg.steps_per_epoch",
        "steps_before=0",
        "messages count steps from the start of the epoch",
    ),
    Mutant(
        "training/epoch.py",
        "rest = (batch.weight, passes, algo.uses_cost)",
        "rest = (batch.weight, passes, True)",
        "the cost critic is always fitted",
    ),
    Mutant(
        "training/epoch.py",
        "append_window(state.window, rollout.episodes, cfg.window)",
        "append_window(state.window, rollout.episodes, 100)",
        "the log's means are over 100 episodes whatever the window",
    ),
    Mutant(
        "training/epoch.py",
        "budget=decision.budget",
        "budget=state.budget",
        "the budget stays what it was",
    ),
    Mutant(
        "training/epoch.py",
        "start=state.carry",
        "start=None",
        "running episodes are reset at the end of an epoch",
    ),
    Mutant(
        "training/epoch.py",
        'f"Epoch {state.epoch + 1}: {note}"',
        'f"Epoch {state.epoch}: {note}"',
        "notes name the epoch before",
    ),
    Mutant(
        "training/epoch.py",
        "fit(repeated(step)",
        "fit(repeated(state.step)",
        "the critics repeat the passes of the epoch before",
    ),
    Mutant(
        "training/epoch.py",
        "repeated = algo.step.passes if cfg.algo.critic_passes is None else None",
        "repeated = algo.step.passes",
        "the given number of critic passes is ignored",
    ),
    Mutant("training/epoch.py", "        stop=stop,", "", "a request to stop does not reach the rollout"),
    Mutant("training/epoch.py", "gate=gate,", "gate=state.gate,", "the gate forgets every epoch"),
    Mutant("training/epoch.py", "step=step,", "step=state.step,", "the step forgets every epoch"),
    Mutant("training/epoch.py", "stats=stats,", "stats=state.stats,", "observation statistics never learn"),
    Mutant(
        "training/epoch.py",
        "finished=state.finished + len(",
        "finished=len(",
        "finished episodes are counted anew in every epoch",
    ),
    Mutant(
        "training/epoch.py",
        "(rollout.finished_at[:, 0] + 1) * cfg.num_envs",
        "rollout.finished_at[:, 0] * cfg.num_envs",
        "episodes end one step too early in the table",
    ),
    Mutant(
        "training/epoch.py",
        "rollout.episodes._replace(log_ratio=log_ratio), memory",
        "rollout.episodes, memory",
        "the gate never hears what the memory recalls",
    ),
    Mutant(
        "training/batch.py",
        "ended, spent, lambda running",
        "ended, None, lambda running",
        "the tail forgets the cost of carried episodes",
    ),
    Mutant(
        "training/batch.py",
        "error if same else advantages(returns.cost_adv_lam)[0]",
        "error",
        "the lambda of the cost advantages is ignored",
    ),
    Mutant(
        "training/batch.py",
        "error, target = advantages(returns.cost_lam)",
        "error, target = advantages(returns.cost_adv_lam)",
        "the critics' targets follow the lambda of the advantages",
    ),
    Mutant(
        "training/batch.py",
        "[returns.cost_discount]]",
        "[returns.discount]]",
        "costs are discounted as rewards are",
    ),
    Mutant(
        "training/batch.py", "center(cost_adv)", "standardize(cost_adv)", "cost advantages lose their scale"
    ),
    Mutant("training/batch.py", "scale=float(reward_adv.std())", "scale=1.0", "the reward's scale is lost"),
    Mutant(
        "training/batch.py",
        "(rollout.ends == TRUNCATED)",
        "(rollout.ends == TERMINATED)",
        "a time limit counts as the end of the world",
    ),
    Mutant(
        "training/fitting.py",
        "stream(cfg.seed, 0, Purpose.COST_CRITIC)",
        "stream(cfg.seed, 0, Purpose.REWARD_CRITIC)",
        "both critics begin alike",
    ),
    Mutant(
        "training/fitting.py",
        "cost_adam, obs, targets[1]",
        "cost_adam, obs, targets[0]",
        "the cost critic learns the rewards",
    ),
    Mutant(
        "training/fitting.py",
        "np.split(order, passes)",
        "[order]",
        "repeated passes are one call, whose shape changes from epoch to epoch",
    ),
    Mutant(
        "training/seeding.py",
        "spawn_key=(epoch, int(purpose))",
        "spawn_key=(epoch,)",
        "all purposes share a stream",
    ),
    Mutant(
        "training/seeding.py",
        "SeedSequence([seed, epoch, i])",
        "SeedSequence([seed, epoch])",
        "all environments are reset with one seed",
    ),
    Mutant("training/seeding.py", "FIT = 4", "FIT = 6", "a seed means something else than before"),
)

RUNS = (
    Mutant(
        "training/config.py",
        "digest(self.to_dict(), steps=self.algo.needs_epochs)",
        "digest(self.to_dict(), steps=not self.algo.needs_epochs)",
        "the identity depends on the steps where it must not",
    ),
    Mutant(
        "training/config.py",
        '"recipe": to_plain(self.recipe)}',
        '"recipe": to_plain(self.algo)}',
        "what follows from the variant is not part of the identity",
    ),
    Mutant(
        "training/config.py",
        "*stated, known and known.max_episode_steps",
        "*stated[1:], known and known.max_episode_steps",
        "the episode length that is given is ignored",
    ),
    Mutant(
        "training/config.py",
        'options["budget_discount"] = options.pop("discount")',
        "pass",
        "the budget's discount of earlier versions is taken for the reward's",
    ),
    Mutant(
        "training/config.py",
        'return {**own, "recipe": {**recipe, **options}}',
        'return {**own, "recipe": recipe}',
        "options of the method are lost from runs of earlier versions",
    ),
    Mutant(
        "training/config.py",
        'WITHOUT_EFFECT = ("overlap",',
        'WITHOUT_EFFECT = ("window", "overlap",',
        "the window is not part of the identity",
    ),
    Mutant(
        "training/state.py",
        "init_stats(obs_dim - (algo.account is not None))",
        "init_stats(obs_dim)",
        "what an account adds is normalized",
    ),
    Mutant("training/state.py", 'budget=tree["budget"]', "budget=1.0", "a resumed run forgets its budget"),
    Mutant(
        "training/state.py",
        "if fixed and array.shape",
        "if array.shape",
        "a gate that has seen episodes cannot be resumed",
    ),
    Mutant(
        "training/state.py",
        "if array.dtype != model.dtype:",
        "if False:",
        "arrays of another type are taken",
    ),
    Mutant(
        "training/state.py",
        'gate=_like(first.gate, tree["gate"], fixed=False)',
        "gate=first.gate",
        "a resumed run forgets its gate",
    ),
    Mutant(
        "training/assemble.py",
        "augmented.set_budget(budget)",
        "augmented.set_budget(1.0)",
        "evaluation starts with the whole budget",
    ),
    Mutant("training/assemble.py", "**cfg.env_options, ", "", "options of the environment are ignored"),
    Mutant(
        "training/assemble.py", "num_envs or cfg.num_envs", "cfg.num_envs", "the number asked for is ignored"
    ),
    Mutant(
        "training/evaluate.py",
        "build_algorithm(player.cfg), budget=player.budget)",
        "build_algorithm(player.cfg))",
        "evaluation starts with the whole budget",
    ),
    Mutant(
        "training/stored.py",
        "if identity in (cfg.identity, digest(stored, cfg.algo.needs_epochs)):",
        "if True:",
        "an edited configuration is carried on",
    ),
    Mutant(
        "storage/tables.py",
        "if mark is not None and not (same and self.mark() == dict(mark)):",
        "if mark is not None and not same:",
        "a changed table is carried on",
    ),
    Mutant(
        "storage/files.py",
        'getattr(os, "O_NONBLOCK", 0)',
        "0",
        "a pipe in place of a table hangs",
    ),
    Mutant(
        "training/candidates.py",
        "better = kept.best is None or trial.ret > kept.best[1].ret",
        "better = True",
        "a certified policy of less return takes the place of the best",
    ),
    Mutant(
        "training/candidates.py",
        "head.ret <= kept.best[0].ret + head.error",
        "head.ret <= kept.best[0].ret",
        "candidates are tried that are hardly better",
    ),
    Mutant(
        "training/trial.py",
        "return delta * 6.0 / (pi * number) ** 2",
        "return delta",
        "every test spends the whole of delta",
    ),
    Mutant(
        "training/trial.py",
        "return monitor.clean_episodes_needed > episodes - monitor.episodes",
        "return monitor.episodes >= episodes",
        "tests without hope go on",
    ),
    Mutant(
        "training/keeper.py",
        'ends = int(before.get("ends", 0))',
        "ends = 0",
        "a run that is made longer spends delta anew",
    ),
    Mutant(
        "training/loop.py",
        "if cfg.algo.needs_epochs and",
        "if False and",
        "a run whose rate falls is made longer all the same",
    ),
    Mutant(
        "training/loop.py",
        "if total_steps < cfg.total_steps:",
        "if False:",
        "a run can be made shorter",
    ),
    Mutant(
        "training/loop.py",
        '{**record["config"], "total_steps": cfg.total_steps}',
        'record["config"]',
        "a run that was made longer forgets it",
    ),
    Mutant(
        "training/loop.py",
        'if "recipe" not in read_config(path)["config"]:',
        "if False:",
        "runs of earlier versions are resumed",
    ),
    Mutant(
        "training/logs/wandb_log.py",
        'id=f"{name}-{identity[:8]}"',
        "id=name",
        "two presets share one W&B run",
    ),
    Mutant(
        "settings.py",
        "if isinstance(value, bool) or (isinstance(value, str) and not value.strip()):",
        "if isinstance(value, str) and not value.strip():",
        "true is a number",
    ),
    Mutant("settings.py", "number if number == value or", "number if True or", "numbers are rounded"),
    Mutant(
        "settings.py",
        "key=lambda kind: kind is not NoneType",
        "key=lambda kind: kind is NoneType",
        "the word none is taken for text",
    ),
    Mutant(
        "settings.py",
        "return str(value)\n    return value",
        "return None\n    return value",
        "infinities do not survive",
    ),
    Mutant(
        "settings.py",
        "part = values.get(name, getattr(record, name))",
        "part = getattr(record, name)",
        "a part given whole is lost when one of its fields is given too",
    ),
)

METHODS = (
    Mutant(
        "algos/recipe.py",
        "clipped_step(self.clipped, setup.seed,",
        "clipped_step(self.clipped, 0,",
        "PPO's order does not depend on the seed",
    ),
    Mutant(
        "algos/recipe.py",
        "clipped_step(self.clipped, setup.seed, setup.epochs)",
        "clipped_step(self.clipped, setup.seed)",
        "PPO's rate does not fall",
    ),
    Mutant(
        "algos/methods/lagrangian.py",
        "focops_step(self.clipped, *sizes, setup.seed,",
        "focops_step(self.clipped, *sizes, 0,",
        "the order of FOCOPS does not depend on the seed",
    ),
    Mutant(
        "algos/methods/lagrangian.py",
        "update_and_project_step(self.clipped, weight, setup.seed,",
        "update_and_project_step(self.clipped, weight, 0,",
        "CUP's order does not depend on the seed",
    ),
    Mutant(
        "algos/methods/penalty.py",
        "clips_cost, setup.seed,",
        "clips_cost, 0,",
        "P3O's order does not depend on the seed",
    ),
    Mutant(
        "algos/methods/lagrangian.py",
        "multiplier_gate(setup.limit, law, setup.window)",
        "multiplier_gate(setup.limit, law)",
        "the price's window is always 100",
    ),
    Mutant(
        "algos/recipe.py",
        "mean_gate(setup.limit, setup.window)",
        "mean_gate(setup.limit)",
        "CPO's window is always 100",
    ),
    Mutant(
        "algos/recipe.py",
        "slack_per_step(gate, setup.window)",
        "slack_per_step(gate)",
        "the window of the lengths is always 100",
    ),
    Mutant(
        "algos/methods/stein.py",
        "stein_gate(certificate, setup.window)",
        "stein_gate(certificate)",
        "the window of the certificate's gate is always 100",
    ),
    Mutant(
        "algos/methods/cpo.py",
        "cvar_gate(setup.limit, self.tail, setup.window)",
        "cvar_gate(setup.limit, 0.1, setup.window)",
        "the share of worst episodes is ignored",
    ),
    Mutant(
        "algos/methods/cpo.py",
        "crpo_gate(setup.limit, self.tolerance, setup.window)",
        "crpo_gate(setup.limit, 2.0, setup.window)",
        "CRPO's tolerance is ignored",
    ),
    Mutant(
        "algos/recipe.py",
        '"cost_lam": self.cost_lam, "cost_adv_lam": own',
        '"cost_lam": own, "cost_adv_lam": own',
        "the targets follow the lambda of the advantages",
    ),
    Mutant(
        "algos/advantages.py",
        "a = np.clip(centered, -end, end)",
        "a = np.clip(centered, -np.inf, end)",
        "bad outliers are not trimmed",
    ),
    Mutant(
        "training/batch.py",
        "standardize(reward_adv, returns.trim)",
        "standardize(reward_adv)",
        "advantages are not trimmed in training",
    ),
    Mutant(
        "training/epoch.py",
        "policy = eased(state.policy, policy, decision)",
        "policy = eased(state.policy, policy, decision._replace(noise=float('inf')))",
        "exploration does not fade",
    ),
    Mutant(
        "training/epoch.py",
        "policy = eased(state.policy, policy, decision)",
        "policy = eased(policy, policy, decision)",
        "steps do not shrink",
    ),
    Mutant(
        "training/state.py",
        'worth=tree.get("worth", 0.0)',
        "worth=0.0",
        "the first epoch after a resume has too low a price",
    ),
    Mutant("gates/account.py", "number > -share", "number > share", "the allowance is spent from the start"),
    Mutant(
        "gates/account.py",
        "max(price, least * worth)",
        "price",
        "the price does not follow the size of returns",
    ),
    Mutant("gates/account.py", "kept * reward - paid", "kept * reward - early * paid", "cost stays cheap"),
    Mutant(
        "algos/methods/allowance.py",
        "self.least / setup.limit",
        "self.least",
        "the least price is that of a unit, not of a limit",
    ),
    Mutant(
        "gates/allowance.py",
        "0.9 * state.worth + 0.1 * size",
        "size",
        "the worth of an episode is not smoothed",
    ),
    Mutant(
        "gates/allowance.py",
        "<= pace.patience * certificate.limit",
        "<= certificate.limit",
        "a growing policy may cost as much as the limit",
    ),
    Mutant(
        "training/epoch.py",
        "too_certain(batch.act, np.asarray(mean(state.policy, batch.obs)))",
        "np.zeros(len(batch.adv))",
        "choices may become certain",
    ),
    Mutant(
        "gates/allowance.py",
        "noise = seen.noise if grows else",
        "noise = seen.noise if not grows else",
        "exploration fades while returns grow",
    ),
    Mutant(
        "algos/recipe.py",
        "with_settings(with_settings(kind(), tuned, text), given, text)",
        "with_settings(with_settings(kind(), given, text), tuned, text)",
        "published settings win over the user's",
    ),
    Mutant(
        "algos/recipe.py",
        "return gate if self.is_published else slack_per_step",
        "return gate if not self.is_published else slack_per_step",
        "the units of the two variants are swapped",
    ),
    Mutant(
        "algos/methods/saute.py",
        "replace(self, length=1000 if self.is_published else length)",
        "replace(self, length=1000)",
        "budgets are discounted over 1000 steps whatever the task",
    ),
    Mutant(
        "algos/methods/saute.py",
        "self.controller, setup.window",
        "None, setup.window",
        "Simmer's gains are ignored",
    ),
    Mutant(
        "algos/methods/evo.py",
        "episode_memory(own.extreme.capacity)",
        "episode_memory(50)",
        "EVO's memory is always of 50 episodes",
    ),
    Mutant(
        "algos/methods/lagrangian.py",
        "same_unit=not self.is_published",
        "same_unit=self.is_published",
        "the units of RCPO's variants are swapped",
    ),
    Mutant(
        "algos/trust_region.py",
        "jnp.where(recovers, 0.0, jnp.maximum(-c, 0.0))",
        "jnp.maximum(-c, 0.0)",
        "a recovery may raise cost by the slack",
    ),
    Mutant(
        "algos/trust_region.py",
        '(mode == Mode.RECOVER) & (cfg.variant == "corrected")',
        "mode == Mode.RECOVER",
        "the published recovery is not as published",
    ),
    Mutant("algos/trust_region.py", "& (rise <= room)", "", "the line search lets cost rise"),
    Mutant(
        "algos/clipped.py",
        "return -batch.cost_adv if recovers",
        "return batch.cost_adv if recovers",
        "a recovery by PPO raises cost",
    ),
    Mutant(
        "algos/clipped.py",
        "decision.mode == Mode.BALANCE and decision.slack < 0.0",
        "decision.mode == Mode.BALANCE and decision.slack > 0.0",
        "a balanced step of PPO lowers cost while the limit is met",
    ),
    Mutant(
        "algos/first_order.py",
        "(cost_weight * decision.price,)",
        "(decision.price,)",
        "CUP's weight does not reach its loss",
    ),
    Mutant(
        "algos/first_order.py",
        "return batch.adv, (-decision.slack,)",
        "return batch.adv, (decision.slack,)",
        "P3O's violation has the wrong sign",
    ),
    Mutant(
        "algos/base.py",
        "reward = batch.adv * batch.scale if same_unit else batch.adv",
        "reward = batch.adv",
        "a price in the task's units meets a standardized reward",
    ),
    Mutant(
        "algos/replay.py",
        "path(env, steps) if carries else running[env]",
        "running[env]",
        "the memory loses the first part of carried episodes",
    ),
    Mutant(
        "algos/replay.py",
        "old = len(lengths) if carries else",
        "old =",
        "carried episodes count as the current policy's",
    ),
    Mutant(
        "algos/replay.py",
        "1.0 + cfg.copies * chosen",
        "1.0 + 4 * chosen",
        "the number of copies is ignored",
    ),
)

GATES = (
    Mutant(
        "gates/mean.py", "Decision(mode, limit - mean)", "Decision(mode, mean - limit)", "the slack's sign"
    ),
    Mutant(
        "gates/mean.py",
        "PerStep(found.state, lengths), found.log, found.notes)",
        "PerStep(found.state, lengths), found.log)",
        "notes are lost on the way",
    ),
    Mutant(
        "gates/mean.py",
        "slack / float(lengths.mean()) if len(lengths)",
        "slack / float(lengths[-1]) if len(lengths)",
        "the slack is divided by the last length alone",
    ),
    Mutant(
        "gates/mean.py",
        "found.decision.slack >= -tolerance",
        "found.decision.slack >= tolerance",
        "CRPO's tolerance has the wrong sign",
    ),
    Mutant(
        "gates/multiplier.py",
        "law.move(state.law, mean, limit)",
        "law.move(state.law, limit, mean)",
        "the price falls while the limit is violated",
    ),
    Mutant("gates/base.py", "[-window:]", "[:window]", "the oldest episodes are kept"),
    Mutant(
        "gates/schedule.py",
        "budget=after.budget / upper",
        "budget=after.budget / limit",
        "the share is not of the upper budget",
    ),
    Mutant(
        "gates/schedule.py",
        "(state.budget - mean * share)",
        "(mean * share - state.budget)",
        "the budget rises while the cost is above it",
    ),
    Mutant(
        "gates/tail.py",
        "slack = budget - float(np.mean(risk(",
        "slack = -budget + float(np.mean(risk(",
        "the slack of the risk has the wrong sign",
    ),
    Mutant(
        "gates/tail.py",
        "Decision(mode, limit - value, level=level)",
        "Decision(mode, limit - value)",
        "the step never hears where the tail begins",
    ),
    Mutant(
        "gates/account.py",
        "return number + cost / self.limit",
        "return number + cost",
        "the running cost is not a share of the limit",
    ),
    Mutant(
        "gates/account.py",
        "np.where(number > 0.0, reward, value)",
        "np.where(number > 0.0, value, reward)",
        "the reward is paid once the budget is spent",
    ),
    Mutant(
        "gates/account.py",
        "kept * reward - paid",
        "kept * reward - early * paid",
        "cost beyond the allowance is as cheap as within",
    ),
    Mutant(
        "gates/stein.py",
        "opened, log = result.safe, _log(certificate, result)",
        "opened, log = slack >= 0.0, _log(certificate, result)",
        "the mean decides instead of the certificate",
    ),
    Mutant(
        "gates/stein.py",
        "state.shut_epochs + 1, causes)",
        "1, causes)",
        "the gate forgets for how long it has been shut",
    ),
)

CORE = (
    Mutant(
        "core/evaluation.py",
        "weight = interior_mass if certificate.interior_weighted else 1.0",
        "weight = 1.0",
        "the interior counts as if there were no atoms",
    ),
    Mutant(
        "core/evaluation.py",
        "excess_mass = max(one_mass - certificate.one_mass, 0.0)",
        "excess_mass = one_mass",
        "the mass that the reference allows is not taken off",
    ),
    Mutant(
        "core/evaluation.py",
        "excess = max(found_ksd - quantile, 0.0)",
        "excess = found_ksd",
        "the noise is not taken off",
    ),
    Mutant(
        "core/evaluation.py",
        "safe=value <= certificate.budget",
        "safe=bound <= certificate.budget",
        "the bound decides where the excess should",
    ),
    Mutant(
        "core/evaluation.py",
        'watched = one_mass if certificate.guard == "paper" else excess_mass',
        "watched = excess_mass",
        "the paper's guard is the released one",
    ),
    Mutant(
        "core/evaluation.py",
        "x if m == n else x[inside]",
        "np.clip(x, 1e-6, 1.0 - 1e-6)",
        "the atoms enter the interior discrepancy",
    ),
    Mutant(
        "core/stein.py",
        "(total - same) / (n * (n - 1))",
        "(total - same) / n**2",
        "the U-statistic is biased",
    ),
    Mutant("core/stein.py", "2.0 * (k1 @ b)", "(k1 @ b)", "one of the two mixed terms is lost"),
    Mutant(
        "core/stein.py",
        "return x * (1.0 - x), interior.logit_score(x)",
        "return x * (1.0 - x), x * (1.0 - x) * interior.score(x)",
        "the weighted operator forgets the slope of its weight",
    ),
    Mutant(
        "core/risk.py",
        "np.asarray(x) > self.threshold",
        "np.asarray(x) >= self.threshold",
        "a cost at the threshold exceeds it",
    ),
    Mutant("core/risk.py", "/ (1.0 - self.threshold)", "", "the hinge does not end at 1"),
    Mutant(
        "core/sums.py",
        "m1 = decay * e1 + 2.0 * gap * m2",
        "m1 = decay * e1 + gap * m2",
        "a field is moved wrongly",
    ),
    Mutant("core/sums.py", "a * a / 3.0))", "a * a))", "the diagonal of the Matern sum"),
    Mutant(
        "core/bounds.py",
        "betainccinv(float(k + 1), float(n - k), delta)",
        "betainccinv(float(k), float(n - k), delta)",
        "Clopper-Pearson forgets one hit",
    ),
    Mutant(
        "core/bounds.py",
        "(1.0 + sqrt(-2.0 * log(delta)))",
        "sqrt(-2.0 * log(delta))",
        "the mean of the deviation",
    ),
    Mutant(
        "core/evaluation.py",
        "if value < empirical_risk:",
        "if False:",
        "what noise is taken off does not stop at the mean risk",
    ),
    Mutant(
        "core/confidence.py",
        "risks.size, self.delta)",
        "risks.size, 2.0 * self.delta)",
        "the exact bound spends twice its error probability",
    ),
    Mutant(
        "core/bets.py",
        "spare = (1.0 - STEP_SHARE) * (delta - _clean(n, m))",
        "spare = delta - _clean(n, m)",
        "the union bound is dropped: step and bets each spend all that is left",
    ),
    Mutant(
        "core/confidence.py",
        "mean_upper(risks, self.delta)",
        "mean_upper(risks, 2.0 * self.delta)",
        "the bound on a mean spends twice its error probability",
    ),
    Mutant(
        "core/confidence.py",
        "int(np.count_nonzero(risks)), risks.size",
        "max(int(np.count_nonzero(risks)) - 1, 0), risks.size",
        "one violation is forgotten",
    ),
)

MUTANTS = (*WIRING, *EPOCH, *RUNS, *METHODS, *GATES, *CORE)
