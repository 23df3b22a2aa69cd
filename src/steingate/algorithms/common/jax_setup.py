"""How JAX is set up here: one compute thread per call, float32, compiled code kept between runs."""

import os
from pathlib import Path

import jax

from steingate.errors import RunError

# The CPU client reads this once, when it is first used. With more threads XLA splits sums by the number of
# cores, so results would depend on the machine; parallel work comes from calling from several Python threads.
THREADS_VARIABLE = "PJRT_NPROC"


def configure() -> dict[str, str]:
    """Return the settings to record with a run, after setting JAX up; call it before JAX is used.

    A call runs on the thread that made it and gives the same bits on every run, whatever the number of cores. RunError
    if JAX was used before with other settings: the number of threads can no longer be set.
    """
    if os.environ.get(THREADS_VARIABLE) != "1":
        os.environ[THREADS_VARIABLE] = "1"
        try:
            # JAX refuses this once its clients exist: the one public way to see that it is too late.
            jax.config.update("jax_num_cpu_devices", 1)  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            del os.environ[THREADS_VARIABLE]
            raise RunError(
                f"JAX was already in use with several threads: set {THREADS_VARIABLE}=1 in the environment, "
                "or start training before other JAX code runs."
            ) from error
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steingate" / "jax"
    settings: dict[str, object] = {
        "jax_cpu_enable_async_dispatch": False, "jax_enable_x64": False, "jax_compilation_cache_dir": str(cache),
        "jax_persistent_cache_min_compile_time_secs": 0.1, "jax_persistent_cache_min_entry_size_bytes": -1,
    }  # fmt: skip
    for name, value in settings.items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]
    return {"jax": jax.__version__, "platform": jax.default_backend(), "threads": "1"}
