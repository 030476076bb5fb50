"""Kafka's command-line tools, one after another, in one JVM: starting a JVM costs a tool more than its work does.

`tests/java/Tools.java` is the other end. `apache_kafka.run_tool` has one such JVM in each process that runs tests.
"""

import json
import subprocess
from collections.abc import Sequence


class ToolsGoneError(Exception):
    """The JVM has ended, with a tool or because a tool took too long. The next tool needs a new one."""


class JavaTools:
    """The JVM. It ends when its stdin is closed, so it does not outlive the process that started it."""

    def __init__(self, command: Sequence[str]) -> None:
        self.has_ended = False  # after a tool that left a client behind; the next tool needs another JVM
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(
        self, main: str, arguments: Sequence[str], input: str | None, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"main": main, "arguments": list(arguments), "input": input or "", "seconds": timeout}
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BaseException:  # also an interrupt: what comes next would be the answer to this request
            self.close()
            raise
        if not line:
            self.close()
            raise ToolsGoneError("ended the JVM that all tools share")
        answer = json.loads(line)
        if answer["status"] is None:
            self.close()
            raise ToolsGoneError(f"took more than {timeout} s and had printed:\n{answer['stdout']}{answer['stderr']}")
        if answer["last"]:
            self.has_ended = True
            self.close()
        return subprocess.CompletedProcess([main, *arguments], answer["status"], answer["stdout"], answer["stderr"])

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
