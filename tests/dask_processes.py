"""Dask's own processes on loopback."""

import os
import re
import subprocess
import sys
import threading


class DaskProcesses:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, scratch, **settings):
        self.scratch = scratch
        self.environment = {**os.environ, **{f"DASK_{k}": v for k, v in settings.items()}}
        self.started = []
        where = ["--host", "127.0.0.1", "--no-dashboard"]
        scheduler = self._start(["scheduler", *where, "--port", "0"])
        self.address = self._wait_for(scheduler, r"Scheduler at:\s+(tcp://\S+)")

    def add_worker(self):
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        scratch = ["--local-directory", str(self.scratch)]
        return self._start(["worker", self.address, *options, *scratch])

    def _start(self, arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def _wait_for(self, process, pattern):
        seen = []
        for line in process.stderr:
            seen.append(line)
            if found := re.search(pattern, line):
                # What it says later must go somewhere, or it waits for a reader.
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return found[1]
        raise AssertionError("".join(seen))

    def end(self):
        for process in reversed(self.started):
            process.kill()
        for process in self.started:
            process.wait(timeout=30)
            process.stderr.close()
