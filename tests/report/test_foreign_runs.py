"""Reports of foreign runs: edits are shown and not archived, and texts are harmless in every output."""

import json
import lzma
import re
import shutil
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from tests.report.made_up import write_run
from tests.training.runs_of_probes import tiny

from steingate import load_policy
from steingate.cli import main
from steingate.errors import InputError, RunError
from steingate.escaping import for_csv, for_latex, for_markdown, for_terminal, printable
from steingate.report.archive import read_archive, write_archive
from steingate.report.load import load_runs
from steingate.report.plot_style import save_figure, styled
from steingate.report.summary import load_report
from steingate.runs import RunFolder, load_certification, write_certification
from steingate.storage.checkpoint import checkpoint_files, encode, read_checkpoint
from steingate.training.runner import resume, train


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train(tiny(tmp_path_factory.mktemp("trained"), total_steps=160), quiet=True)


def edit_json(file, **changes):
    content = json.loads(file.read_text())
    content.get("config", content).update(changes)
    file.write_text(json.dumps(content))


def edit_cell(file, column, text):
    lines = [line.split(",") for line in file.read_text().splitlines()]
    lines[1][lines[0].index(column)] = text
    file.write_text("\n".join(",".join(line) for line in lines) + "\n")


EDITS = {
    "cost_limit": ("config.json", lambda run: edit_json(run / "config.json", cost_limit=400.0)),
    "seed": ("config.json", lambda run: edit_json(run / "config.json", seed=7)),
    "identity": ("config.json, certification.json", lambda run: (run / "config.json").write_text(
        re.sub('"identity": "[0-9a-f]+"', '"identity": "0"', (run / "config.json").read_text()))),
    "verdict": ("certification.json", lambda run: edit_json(run / "certification.json", sentence="Certified.")),
    "costs": ("episodes.csv", lambda run: edit_cell(run / "episodes.csv", "cost", "0.0")),
    "returns": ("progress.csv", lambda run: edit_cell(run / "progress.csv", "Metrics/EpRet", "999.0")),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_run_is_shown_as_edited_and_refused_elsewhere(trained, tmp_path, capsys, name):
    run = shutil.copytree(trained, tmp_path / "run")
    file, edit = EDITS[name]
    edit(run)
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
    said = capsys.readouterr()
    assert f"{run} was edited after training: {file}." in said.err
    assert "(edited)" in said.out
    assert "(edited)" in (tmp_path / "page.html").read_text()
    runs, _ = load_runs([run])
    with pytest.raises(InputError, match=rf"cannot be archived: {file} was edited"):
        write_archive(runs, [run], tmp_path / "a.jsonl.xz")
    assert not (tmp_path / "a.jsonl.xz").exists()
    if file.startswith("config.json"):
        with pytest.raises(RunError, match=r"config\.json was changed"):
            load_policy(run, "last")
        assert main(["export", str(run), "--to", str(tmp_path / "p.npz")]) == 2


@pytest.mark.parametrize("fraction", ["x", float("nan"), None])
def test_a_crafted_budget_of_a_checkpoint_is_refused(trained, tmp_path, capsys, fraction):
    run = shutil.copytree(trained, tmp_path / "run")
    _, file = checkpoint_files(run / "checkpoints")[-1]
    checkpoint = read_checkpoint(file)
    file.write_bytes(encode({**checkpoint.tree, "cost_budget_fraction": fraction}, checkpoint.epoch))
    assert main(["evaluate", str(run), "--episodes", "1", "--policy", "last"]) == 2
    assert "is unusable: cost_budget_fraction is" in capsys.readouterr().err


@pytest.mark.parametrize("window", [float("nan"), "<b>", None, [1]])
def test_a_strange_window_does_not_end_a_report(tmp_path, window):
    run = write_run(tmp_path, epochs=3)
    edit_json(run / "config.json", window=window)
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0


def test_a_run_is_not_edited_by_training_resuming_and_archiving(trained, tmp_path):
    (run,), _ = load_runs([trained])
    assert run.edited == ()
    with open(trained / "progress.csv", "a") as file:
        file.write("1,2")  # a row that is being written
    assert load_runs([trained])[0][0].edited == ()
    write_archive([run], [trained], tmp_path / "a.jsonl.xz")
    assert load_runs([tmp_path / "a.jsonl.xz"])[0][0].edited == ()
    assert [data.record["identity"] for data in read_archive(tmp_path / "a.jsonl.xz")] == [run.record["identity"]]


def test_an_edited_copy_does_not_hide_the_original(trained, tmp_path):
    for name in ("a", "b"):
        shutil.copytree(trained, tmp_path / name)
    edit_cell(tmp_path / "a" / "episodes.csv", "cost", "0.0")
    assert [bool(run.edited) for run in load_runs([tmp_path])[0]] == [True, False]
    assert len(load_report([tmp_path]).summaries) == 2


def test_an_edited_archive_is_shown_as_edited(trained, tmp_path):
    write_archive(load_runs([trained])[0], [trained], tmp_path / "a.jsonl.xz")
    header, line = lzma.decompress((tmp_path / "a.jsonl.xz").read_bytes()).splitlines()
    entry = json.loads(line)
    for changes in ({"sentence": "Certified."}, {"certified": "yes"}):
        edited = {**entry, "certification": entry["certification"] | changes}
        (tmp_path / "b.jsonl.xz").write_bytes(lzma.compress(header + b"\n" + json.dumps(edited).encode() + b"\n"))
        assert load_runs([tmp_path / "b.jsonl.xz"])[0][0].edited == ("certification.json",)


def test_a_certification_of_another_run_does_not_count(trained, tmp_path):
    run, content = shutil.copytree(trained, tmp_path / "run"), load_certification(trained)
    write_certification(RunFolder(run), {**content, "identity": "another"})
    with pytest.raises(RunError, match="belongs to another run"):
        load_certification(run)
    assert load_runs([run])[0][0].edited == ("certification.json",)
    for changes in ({"ledger": None}, {"ledger": {"final_tests": "x"}}, {"epoch": None}, {"ledger": {}}):
        write_certification(RunFolder(run), content | changes)
        resume(run, quiet=True)  # writes it again from the checkpoint
        assert load_certification(run) == content


def test_links_are_not_archived(tmp_path):
    run = write_run(tmp_path / "runs", epochs=3)
    write_certification(RunFolder(tmp_path), {"certified": True, "sentence": "secret"})
    (run / "certification.json").symlink_to(tmp_path / "certification.json")
    with pytest.raises(InputError, match="is a symbolic link"):
        write_archive(load_runs([run])[0], [run], tmp_path / "a.jsonl.xz")


ESCAPE = "\x1b]52;c;cm0gLXJm\x07"


def test_texts_of_others_are_harmless_in_every_output(tmp_path, capsys):
    for seed, algo in enumerate((f"=cmd|{ESCAPE}", "x\n\\input{/etc/passwd}<script>[a](b)|")):
        run = write_run(tmp_path / str(seed), algo="cpo", seed=seed, epochs=3)
        record = json.loads((run / "config.json").read_text())
        record["config"] |= {"algo": algo, "env": f"{ESCAPE}\n\\input{{x}}"}
        (run / "config.json").write_text(json.dumps(record))
        write_certification(RunFolder(run), {"certified": False, "sentence": f"None{ESCAPE}\nis."})
    names = [str(tmp_path / f"t.{suffix}") for suffix in ("md", "csv", "tex")]
    tables = [word for name in names for word in ("--table", name)]
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page.html"), *tables]) == 0
    said = capsys.readouterr()
    markdown, csv, latex = (Path(name).read_text() for name in names)
    for text in (said.out, said.err, markdown, csv, latex, (tmp_path / "page.html").read_text()):
        assert "\x1b" not in text
        assert "\x07" not in text
    assert "<script>" not in markdown
    assert "](b)" not in markdown
    assert not any(line.startswith("\\input") for line in latex.splitlines())
    assert "\\input" not in re.sub("(?m)^%.*", "", latex)
    assert not re.search(r"(^|,)=cmd", csv, re.MULTILINE)
    assert load_certification(run)["sentence"] == "None?]52;c;cm0gLXJm??is."


def test_names_in_figures_are_no_formulas(tmp_path):
    @styled
    def draw():
        figure = Figure()
        figure.suptitle("$\\frac{$")
        return figure

    save_figure(draw(), tmp_path / "x.svg")


@pytest.mark.parametrize(
    ("escape", "text", "expected"),
    [
        (for_csv, "=1+1", "'=1+1"), (for_csv, "-1.5e-3", "-1.5e-3"), (for_csv, "+2", "+2"), (for_csv, "-x", "'-x"),
        (for_latex, "a_b\n%", r"a\_b?\%"), (for_markdown, "<b>|[x](y)", r"&lt;b>\|[x]\(y)"),
        (for_terminal, "a" * 3000 + "b\n\x1b", "a" * 1000 + " ... " + "a" * 499 + "b\n?"),
        (printable, "a\u202eb", "a?b"), (printable, "2 ≤ 3 – é", "2 ≤ 3 – é"),
    ],
)  # fmt: skip
def test_escaping(escape, text, expected):
    assert escape(text) == expected
