"""A process that has imported the command line, and becomes a command as often as it is asked to.

Importing takes seconds and the commands do not. Each command is a process of its own, with the arguments, environment,
folder, and files or terminal that it is given; only its modules were imported before. Run with the descriptor of a
socket as its argument.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import signal
import socket
import sys
import termios
import traceback
from typing import Any

from pydantic_ai_skills.cli import main
from pydantic_ai_skills.cli.app import COMMANDS, load

for command in COMMANDS:
    load(command)
# What commands import when they are called.
for module in ('conversation', 'model_view', 'watched'):
    importlib.import_module(f'pydantic_ai_skills.cli.{module}')


def become(request: dict[str, Any], descriptors: list[int]) -> int:
    """Run a command in this process; return its exit status."""
    os.setsid()
    # A shell that runs the tests in the background has it ignored, for all that is started there.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request['cwd'])
    os.environ.clear()
    os.environ.update(request['env'])
    sys.argv = ['pydantic-ai-skills', *request['args']]
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, 'w'), os.fdopen(2, 'w')
    status = 1
    try:
        main()
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    except BaseException:  # noqa: BLE001 - what Python does with it at the end of a program
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def serve(connection: socket.socket) -> None:
    """Answer each request with an exit status."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 3)
        if not message:
            return
        child = os.fork()
        if child == 0:
            os._exit(become(json.loads(message), descriptors))
        for descriptor in descriptors:
            os.close(descriptor)
        _, status = os.waitpid(child, 0)
        connection.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())


if __name__ == '__main__':
    serve(socket.socket(fileno=int(sys.argv[1])))
