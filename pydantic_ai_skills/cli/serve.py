"""`serve`: offer skills to other programs, as an MCP server."""

from __future__ import annotations

import logging
from contextlib import suppress
from ipaddress import ip_address
from typing import Annotated

from typer import Option

from .command import OPERATION_FAILED, SUCCESS, command
from .output import Failure, Output
from .skills import ChosenSkills


@command
def serve(
    out: Output,
    http: Annotated[
        str | None,
        Option(
            '--http', metavar='[HOST:]PORT', help='Serve HTTP there, at /mcp, instead of standard input and output.'
        ),
    ] = None,
    name: Annotated[str, Option('--name', help='What the server calls itself.')] = 'pydantic-ai-skills',
    *,
    chosen: ChosenSkills,
) -> int:
    """It serves standard input and output, or HTTP with --http. It never runs a script."""
    from pydantic_ai_skills import serve_skills  # needs an extra

    # What fastmcp finds odd about frontmatter is reported by `validate`.
    logging.getLogger('fastmcp').setLevel(logging.ERROR)
    place = None if http is None else _place(http)
    server = serve_skills(chosen.look(out), name=name)
    if place is None:
        server.run()
        return SUCCESS
    host, port = place
    if not _is_loopback(host):
        out.note(('open: ', 'yellow'), f'whoever can reach {host}:{port} can read these skills.')
    shown = f'[{host}]' if ':' in host else host
    out.note(f'Serving skills on http://{shown}:{port}/mcp')
    status = SUCCESS
    try:
        with suppress(KeyboardInterrupt):
            server.run('streamable-http', host=host, port=port)
    except SystemExit:  # it has said why
        status = OPERATION_FAILED
    return status


def _place(text: str) -> tuple[str, int]:
    """The host and the port that an option names."""
    host, _, port = text.rpartition(':')
    host = host.strip('[]') or '127.0.0.1'
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise Failure(f'{text!r} is not a port, or a host and a port, such as 127.0.0.1:8000.')
    return host, int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == 'localhost'
