"""`trust`: allow a checkout to run its skills and fetch its sources, and a token to be sent to a host."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

import pydantic_ai_skills as api

from .command import command
from .output import Failure, Output
from .skills import find_project, hint_to_trust, trust_command


@command
def trust(
    out: Output,
    folder: Annotated[
        Path | None, Argument(metavar='FOLDER', help='A folder of the checkout; the current one by default.')
    ] = None,
    token: Annotated[
        list[str] | None,
        Option(
            '--token',
            metavar='NAME=HOST',
            help='Let the token in this environment variable be sent to this host. Can be repeated.',
        ),
    ] = None,
    revoke: Annotated[bool, Option('--revoke', help='Stop trusting it, or stop sending the token.')] = False,
    list_all: Annotated[bool, Option('--list', help='Show what you trust, and change nothing.')] = False,
) -> None:
    """Until you trust a checkout, its skills are only shown.

    The answer is kept in your configuration folder. It holds for what you pull into this folder later, but not for
    another folder put in its place. With --token alone, only the token is allowed.
    """
    remembered = api.UserTrust()
    if list_all:
        _show(out, remembered)
        return
    pairs = [_pair(each, is_needed=not revoke) for each in token or ()]
    change = remembered.unbind_token if revoke else remembered.bind_token
    for name, host in pairs:
        change(name, host)
        _say(out, f'{name} {"is not" if revoke else "may be"} sent to {host}.')
    checkout = None
    if folder is not None or not pairs:
        checkout = str((_revoke if revoke else _trust)(out, remembered, folder))
    if out.as_json:
        tokens = [{'variable': name, 'host': host} for name, host in pairs]
        out.data({'trusted': not revoke, 'checkout': checkout, 'tokens': tokens})


def _trust(out: Output, remembered: api.UserTrust, folder: Path | None) -> Path:
    if folder is not None and not folder.is_dir():
        raise Failure(f'There is no folder {str(folder)!r}.')
    checkout = remembered.trust(find_project(folder or '.').checkout)
    _say(out, f'Trusted {checkout}: its skills may run and its sources may be fetched.')
    _say(out, f'Undo it with: pydantic-ai-skills trust --revoke {shlex.quote(str(checkout))}')
    return checkout


def _revoke(out: Output, remembered: api.UserTrust, folder: Path | None) -> Path:
    """Forget a checkout, which may be gone."""
    checkout = find_project(folder or '.').checkout if folder is None or folder.is_dir() else folder.absolute()
    known = remembered.revoke(checkout)
    _say(out, f'{checkout} is {"no longer" if known else "not"} trusted.')
    return checkout


def _pair(text: str, *, is_needed: bool) -> tuple[str, str]:
    name, equals, host = text.partition('=')
    # Not repeated: `--token $TOKEN=github.com` gives the token itself, which must not be shown or written down.
    if not equals or not name or not host:
        raise Failure('--token takes NAME=HOST, such as GITHUB_TOKEN=github.com.')
    if is_needed and name not in os.environ:
        raise Failure('--token takes the name of an environment variable, and none of this name is set.')
    return name, host


def _show(out: Output, remembered: api.UserTrust) -> None:
    said, project = remembered.read(), find_project()
    checkouts = {path: _state(remembered, path) for path in sorted(said.checkouts)}
    if out.as_json:
        here = {'checkout': str(project.checkout), 'trusted': project.is_trusted, 'command': trust_command(project)}
        out.data({'checkouts': checkouts, 'tokens': said.tokens, 'problem': said.problem, 'here': here})
        return
    if said.problem is not None:
        out.line(f'{said.problem}.')
    for path, state in checkouts.items():
        out.line((f'{state:<9}', 'green' if state == 'trusted' else 'yellow'), path)
    for name, hosts in sorted(said.tokens.items()):
        out.line(('token    ', 'green'), f'{name} → {", ".join(hosts)}')
    if not project.is_trusted:
        out.line(f'{project.checkout} is not trusted. {hint_to_trust(project)}')


def _state(remembered: api.UserTrust, path: str) -> str:
    if remembered.is_trusted(path):
        return 'trusted'
    return 'replaced' if os.path.isdir(path) else 'gone'


def _say(out: Output, text: str) -> None:
    if not out.as_json:
        out.line(text)
