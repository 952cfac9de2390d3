"""`make bench`: every benchmark, one after the other."""

import platform

import jax
from rich.console import Console

from benchmarks import slider_crank_speed

if __name__ == "__main__":
    console = Console(width=110)
    console.print(
        f"Python {platform.python_version()}, JAX {jax.__version__}, {platform.machine()}"
    )
    slider_crank_speed.main(console)
