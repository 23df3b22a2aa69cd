import subprocess
import sys


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment, check=False
    )


def test_compiled_code_is_stored_and_loaded(tmp_path):
    code = (
        "from steingate.algorithms.common.jax_setup import configure; configure()\n"
        "import jax, jax.numpy as jnp\n"
        "loop = lambda x: jax.lax.fori_loop(0, 9, lambda i, y: jnp.tanh(y @ y), x)\n"
        "f = jax.jit(loop)\n"
        "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)\n"
        "print(f(jnp.eye(8)).tobytes().hex())"
    )
    first, second = (run(code, XDG_CACHE_HOME=str(tmp_path)) for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr
    assert list((tmp_path / "steingate" / "jax").iterdir())
    assert first.stdout == second.stdout
    assert second.stderr == ""


def test_configuring_after_jax_was_used():
    code = (
        "import jax.numpy as jnp; jnp.ones(3).sum()\n"
        "from steingate.algorithms.common.jax_setup import configure\n"
        "from steingate.errors import RunError\n"
        "try:\n    configure()\n"
        "except RunError as error:\n    print(error)"
    )
    late = run(code)
    assert late.stdout.startswith("JAX was already in use with several threads: set PJRT_NPROC=1")
    fine = run(code, PJRT_NPROC="1")
    assert (fine.stdout, fine.returncode) == ("", 0)
