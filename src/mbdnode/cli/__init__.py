"""The command line: parse, call, print. Commands import what is heavy only when they run."""

from mbdnode.cli.app import main

__all__ = ["main"]
