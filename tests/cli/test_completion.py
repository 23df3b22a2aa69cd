"""Shell completion: the generated script is run in bash; the other shells get all commands and options."""

import shutil
import subprocess

import pytest

from steingate.cli import COMMANDS, main
from steingate.cli.completion import SHELLS


@pytest.fixture(scope="module")
def scripts():
    from shtab import complete

    from steingate.cli.completion import root_parser

    return {shell: complete(root_parser(), shell) for shell in SHELLS}


@pytest.fixture(scope="module")
def bash(scripts, tmp_path_factory):
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    script = tmp_path_factory.mktemp("completion") / "steingate.bash"
    script.write_text(scripts["bash"])

    def complete(*words):
        code = (
            f"source {script}; COMP_WORDS=(steingate {' '.join(repr(word) for word in words)}); "
            f"COMP_CWORD={len(words)}; _shtab_steingate; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, timeout=60)
        return done.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["cert"], ["certify"]),
        (["train", "--algo", "trpo-s"], ["trpo-saute", "trpo-simmer"]),
        (["train", "--env", "SafetyPointCircle1"], ["SafetyPointCircle1-v0"]),
        (["train", "--seed", "1", "--total"], ["--total-steps"]),
        (["train", "--multiplier", ""], ["adam", "pid"]),
        (["bench", "tab"], ["table1"]),
        (["algos", "cp"], ["cpo"]),
    ],
)
def test_bash_completes(bash, words, expected):
    assert bash(*words) == expected


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_every_command_and_the_options_of_all_algorithms(scripts, shell):
    for word in (*COMMANDS, "until-certified", "total-steps", "multiplier", "max-kl"):
        assert word in scripts[shell], word


def test_the_command(capsys):
    assert main(["completion", "bash"]) == 0
    assert "steingate" in capsys.readouterr().out
    assert main(["completion", "cmd"]) == 2
    assert "invalid choice: 'cmd'" in capsys.readouterr().err
