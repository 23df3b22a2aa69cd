"""Completion: bash is asked itself; what zsh and fish are told is read."""

import shutil
import subprocess

import pytest

from steingate.algorithms import METHODS
from steingate.cli import COMMANDS, main
from steingate.cli.completion import SCRIPTS, known_options
from steingate.tasks.catalog import TASKS


@pytest.fixture(scope="module")
def options():
    return known_options()


@pytest.fixture(scope="module")
def bash(options, tmp_path_factory):
    if shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    script = tmp_path_factory.mktemp("completion") / "steingate.bash"
    script.write_text(SCRIPTS["bash"](options))

    def complete(*words):
        code = (
            f"source {script}; COMP_WORDS=(steingate {' '.join(repr(word) for word in words)}); "
            f"COMP_CWORD={len(words)}; _steingate; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", code], capture_output=True, text=True, check=True, timeout=60
        )
        assert done.stderr == ""
        return done.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["cert"], ["certify"]),
        (["train", "--algo", "trpo-s"], ["trpo-saute", "trpo-simmer"]),
        (["train", "--env", "SafetyPointCircle1"], ["SafetyPointCircle1-v0"]),
        (["train", "--seed", "1", "--total"], ["--total-steps"]),
        (["train", "--multip"], ["--multiplier"]),
        (["train", "--multiplier", ""], ["adam", "pid"]),
        (["certify", "costs.csv", "--preset", "c"], ["certified", "confident"]),
        (["bench", "tab"], ["table1"]),
        (["bench", "quick", "--engine", "r"], ["ray"]),
        (["algos", "cp"], ["cpo"]),
        (["certify", "--plot", "x"], []),  # bash then completes file names
        (["certify", "cos"], []),
        (["nothing", "--x"], []),
    ],
)
def test_bash_completes(bash, words, expected):
    assert bash(*words) == expected


def test_bash_knows_all_commands_methods_and_tasks(bash):
    assert bash("") == list(COMMANDS)
    assert bash("train", "--algo", "") == list(METHODS)
    assert bash("train", "--env", "") == list(TASKS)


def test_every_option_is_in_every_script(options):
    for name in COMMANDS:
        assert options[name], name
    for shell, script in SCRIPTS.items():
        text = script(options)
        for names in (option.names for found in options.values() for option in found):
            for word in names:
                assert (f" -l {word[2:]} " if shell == "fish" and len(word) > 2 else word[1:]) in text, (
                    shell,
                    word,
                )


def test_signs_of_the_shell_are_quoted(options):
    assert "'\\''" in SCRIPTS["zsh"](options)
    for line in SCRIPTS["zsh"](options).splitlines():
        if line.startswith("      '--"):
            text = line.replace("'\\''", "").replace("\\[", "").replace("\\]", "").replace("\\:", "")
            assert (text.count("'"), text.count("["), text.count("]")) == (2, 1, 1), line
            assert text.count(":") in (0, 2), line


def test_the_command_prints_a_script_or_says_what_there_is(capsys):
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out.endswith("complete -o default -F _steingate steingate\n")
    assert main(["completion", "tcsh"]) == 2
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err
