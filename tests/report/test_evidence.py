import steingate.report.evidence as evidence_module
from steingate.report.evidence import compare, gather, weigh
from steingate.report.report_tables import report_tables
from tests.report.made_up import write_run

from steingate.report.page import fitting_data


def test_comparisons_use_shared_tasks_only(tmp_path):
    for seed in range(3):
        write_run(tmp_path, seed=seed)
        write_run(tmp_path, algo="cpo", seed=seed)
    write_run(tmp_path, algo="cpo", env="Home-made")
    found = gather([tmp_path])
    (pair,) = found.comparisons
    assert (pair.better.label, pair.than.label, pair.tasks) == ("steingate", "cpo", 1)
    assert 0.0 <= pair.ret.low <= pair.ret.value <= pair.ret.high <= 1.0
    assert compare(found.groups[:1]) == []


def test_no_group_vanishes_from_the_comparisons(tmp_path):
    sizes = (0.0123456, 0.01234561, 0.01234562)  # alike in six digits
    for size in sizes:
        write_run(tmp_path / repr(size), algo="cpo", max_kl=size)
    write_run(tmp_path, algo="evo")
    found = gather([tmp_path])
    assert len(found.groups) == len(found.colors) == 4
    assert len(found.comparisons) == 6
    pairs = {(item.better.method, item.than.method) for item in found.comparisons}
    assert len(pairs) == 6
    table = report_tables(found)[-1]
    assert len({tuple(row[:2]) for row in table.rows}) == 6


def test_a_method_is_compared_over_all_tasks_it_shares(tmp_path):
    for env in ("A", "B"):
        write_run(tmp_path / "one", algo="cpo", env=env, max_kl=0.1)
        write_run(tmp_path / "one", algo="evo", env=env)
    write_run(tmp_path / "two", algo="cpo", env="A", max_kl=0.2)
    tasks = {(item.better.label, item.than.label): item.tasks for item in gather([tmp_path]).comparisons}
    assert tasks[("evo", "cpo (max_kl 0.1)")] == 2
    assert tasks[("evo", "cpo (max_kl 0.2)")] == 1


def test_everything_is_worked_out_once(tmp_path, monkeypatch):
    calls = []
    for name in ("group_runs", "summarize", "compare"):
        real = getattr(evidence_module, name)
        monkeypatch.setattr(
            evidence_module, name, lambda *args, real=real, name=name: calls.append(name) or real(*args)
        )
    write_run(tmp_path, algo="cpo")
    write_run(tmp_path, algo="evo")
    found = gather([tmp_path])
    fitting_data(found)
    report_tables(found)
    assert sorted(calls) == ["compare", "group_runs", "summarize", "summarize"]


def test_without_runs_there_is_nothing():
    found = weigh([])
    assert (list(found.groups), list(found.summaries), list(found.comparisons)) == ([], [], [])
    assert found.by_task() == {}
