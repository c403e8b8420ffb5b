"""Lists what a script in the sandbox sees of this machine, as options of bubblewrap."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

HOME = '/tmp/home'  # noqa: S108 - the sandbox has a /tmp of its own
"""The home folder inside the sandbox. Not the work folder: programs fill it with settings and caches."""

SYSTEM_FOLDERS = ('/usr', '/nix/store', '/gnu/store')
"""Folders with programs and libraries that are the same for every user."""

MAX_FILES = 100_000
"""How many files a skill's folder may hold to be shown to a script."""

_TOP_FOLDERS = ('/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32')

# Not all of /etc: when this process is root, the script could read all files there, and some hold keys.
_SETTINGS = ('alternatives', 'fonts', 'ld.so.cache', 'localtime', 'mime.types')
_NETWORK_SETTINGS = (
    *('ca-certificates', 'pki/ca-trust/extracted', 'pki/tls/cert.pem', 'pki/tls/certs'),
    *('ssl/cert.pem', 'ssl/certs', 'ssl/openssl.cnf'),
    *('gai.conf', 'host.conf', 'hosts', 'nsswitch.conf', 'protocols', 'resolv.conf', 'services'),
)


def system_mounts() -> list[str]:
    """Programs, libraries and harmless settings, read-only; `/proc`, `/dev` and nothing else of the host."""
    mounts: list[str] = []
    for folder in (*SYSTEM_FOLDERS, *_TOP_FOLDERS):
        # On most systems the top folders are links into /usr.
        if os.path.islink(folder):
            mounts += ['--symlink', os.readlink(folder), folder]
        elif os.path.isdir(folder):
            mounts += ['--ro-bind', folder, folder]
    return [*mounts, *_settings(_SETTINGS), '--proc', '/proc', '--dev', '/dev']


def network_mounts() -> list[str]:
    """What looking up host names and checking certificates needs."""
    return _settings(_NETWORK_SETTINGS)


def program_mounts(program: str) -> list[str]:
    """An interpreter outside the system folders: only its file, so that a script cannot choose what else it sees."""
    return [] if is_system(program) else ['--ro-bind', os.path.realpath(program), program]


def python_mounts(program: str) -> list[str]:
    """The Python of this executor and its installation, where it is outside the system folders."""
    # All steps of a link: in a virtual environment, python is a link to the one it was made from.
    paths = [*_link_steps(program), os.path.realpath(program)]
    if program == sys.executable:
        # That link may lead through more folders than its two ends.
        paths += [os.path.join(prefix, 'bin', 'python') for prefix in (sys.prefix, sys.base_prefix)]
    mounts: dict[str, list[str]] = {}
    for path in paths:
        if not is_system(path):
            mounts |= _installed_at(path)
    return [word for mount in mounts.values() for word in mount]


def _link_steps(path: str, most: int = 8) -> list[str]:
    """The path, and where it leads if it is a link, step by step."""
    steps = [path]
    while os.path.islink(steps[-1]) and len(steps) <= most:
        steps.append(os.path.normpath(os.path.join(os.path.dirname(steps[-1]), os.readlink(steps[-1]))))
    return steps


def _installed_at(path: str) -> dict[str, list[str]]:
    """The mounts for a program at this path, keyed by the path they show."""
    installation, real = Path(path).parent.parent, os.path.realpath(path)
    if installation == Path('~/.local').expanduser():
        # Python packages are there too, and beside them the data of all programs of this user.
        libs = {str(lib): ['--ro-bind', str(lib), str(lib)] for lib in installation.glob('lib')}
        return {path: ['--ro-bind' if real == path else '--symlink', real, path], **libs}
    if (installation / 'pyvenv.cfg').exists() or any(installation.glob('lib/python3*')):
        way_out = 'Set `python_executable` to a Python with a folder of its own.'
        return {str(installation): shown(installation, way_out=way_out)}
    return {path: ['--ro-bind', real, path]} if os.path.exists(path) else {}


def shown(folder: Path, *, way_out: str, writable: bool = False) -> list[str]:
    """Show a folder or a file to the script.

    Raises:
        SkillScriptExecutionError: It does not exist, holds this user's home or more of the system than a script needs,
            or is to be `writable` and belongs to the system.
    """
    real = Path(os.path.realpath(folder))
    if not real.exists():
        raise SkillScriptExecutionError(f'{folder} cannot be shown to a script: it does not exist.')
    home = Path(os.path.realpath(os.path.expanduser('~')))
    if real == home or real in home.parents or real in map(Path, ('/proc', '/dev', '/sys', '/etc', '/run', '/var')):
        message = f'{folder} cannot be shown to a script: it holds more than that script needs. {way_out}'
        raise SkillScriptExecutionError(message)
    if writable and is_system(str(real)):
        raise SkillScriptExecutionError(f'{folder} cannot be changed by a script: it belongs to the system. {way_out}')
    return ['--bind' if writable else '--ro-bind', str(real), str(folder)]


def outer_first(mounts: list[str]) -> list[str]:
    """The same mounts, each before those inside it, which it would hide. Of several at one place, the last counts."""
    by_place = {place: (option, source) for option, source, place in zip(*[iter(mounts)] * 3, strict=True)}
    places = sorted(by_place, key=lambda place: place.count('/'))
    return [word for place in places for word in (*by_place[place], place)]


def hidden_mounts(folder: Path, *, most: int = MAX_FILES) -> list[str]:
    """Hide sockets, pipes and devices in a folder: even read-only, they lead to programs of the host."""
    hidden: list[str] = []
    waiting, count = [os.fspath(folder)], 0
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:  # what cannot be read cannot be reached either
            for entry in entries:
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                    hidden += ['--ro-bind', os.devnull, entry.path]
        if count > most:
            raise SkillScriptExecutionError(f'{folder} cannot be shown to a script: it holds more than {most:,} files.')
    return hidden


def _settings(names: tuple[str, ...]) -> list[str]:
    mounts: list[str] = []
    for name in names:
        # A link such as resolv.conf may lead to a place outside the sandbox, so its target is mounted in its place.
        target = os.path.realpath(f'/etc/{name}')
        if is_system(target):
            mounts += ['--symlink', target, f'/etc/{name}']
        elif os.path.exists(target):
            mounts += ['--ro-bind', target, f'/etc/{name}']
    return mounts


def is_system(path: str) -> bool:
    """Whether a path is in a folder that every script sees."""
    return any(path == folder or path.startswith(f'{folder}/') for folder in (*SYSTEM_FOLDERS, *_TOP_FOLDERS))
