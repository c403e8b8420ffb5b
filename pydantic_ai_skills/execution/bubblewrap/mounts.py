"""What of this machine a script in the sandbox gets to see."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

__all__ = ('WORK_DIR', 'is_system', 'network_mounts', 'program_mounts', 'read_only_mount', 'system_mounts')

WORK_DIR = '/sandbox'
"""Where the work folder is inside the sandbox. It is the home folder there, too."""

SYSTEM_FOLDERS = ('/usr', '/nix/store', '/gnu/store')
"""Folders with programs and libraries, which are the same for every user."""

_TOP_FOLDERS = ('/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32')

# Not all of /etc: when this process is root, so is the script in the eyes of the files there, and some hold keys.
_SETTINGS = ('alternatives', 'fonts', 'ld.so.cache', 'localtime', 'mime.types')
_NETWORK_SETTINGS = (
    'ca-certificates',
    'gai.conf',
    'host.conf',
    'hosts',
    'nsswitch.conf',
    'pki/ca-trust/extracted',
    'pki/tls/cert.pem',
    'pki/tls/certs',
    'protocols',
    'resolv.conf',
    'services',
    'ssl/cert.pem',
    'ssl/certs',
    'ssl/openssl.cnf',
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
    """What looking up a host name needs."""
    return _settings(_NETWORK_SETTINGS)


def program_mounts(program: str) -> list[str]:
    """What an interpreter needs that is not part of the system: the file, and for a Python its installation.

    Raises:
        SkillScriptExecutionError: That would show the home folder to the script.
    """
    # Both ends of a link: an environment for Python is a folder whose python is a link to the one it was made from.
    paths = [program, os.path.realpath(program)]
    if program == sys.executable:
        # That link may go through more folders than its two ends.
        paths += [os.path.join(prefix, 'bin', 'python') for prefix in (sys.prefix, sys.base_prefix)]
    mounts: dict[str, list[str]] = {}
    for path in paths:
        installation = Path(path).parent.parent
        if is_system(path):
            continue
        if installation == Path('~/.local').expanduser():
            # It has packages of Python too, and beside them the data of all programs of this user.
            real = os.path.realpath(path)
            mounts[path] = ['--ro-bind' if real == path else '--symlink', real, path]
            mounts |= {str(lib): ['--ro-bind', str(lib), str(lib)] for lib in installation.glob('lib')}
        elif (installation / 'pyvenv.cfg').exists() or any(installation.glob('lib/python3*')):
            why = 'Set `python_executable` to a Python with a folder of its own.'
            mounts[str(installation)] = read_only_mount(installation, why=why)
        elif os.path.exists(path):
            mounts[path] = ['--ro-bind', os.path.realpath(path), path]
    return [word for mount in mounts.values() for word in mount]


def read_only_mount(folder: Path, *, why: str) -> list[str]:
    """Show a folder to the script, unless it holds this user's home.

    Raises:
        SkillScriptExecutionError: It does.
    """
    real = Path(os.path.realpath(folder))
    home = Path(os.path.realpath(os.path.expanduser('~')))
    if real == home or real in home.parents or real in map(Path, ('/proc', '/dev', '/sys', '/etc', '/run', '/var')):
        raise SkillScriptExecutionError(
            f'{folder} cannot be shown to a script: it holds more than that script needs. {why}'
        )
    return ['--ro-bind', str(real), str(folder)]


def _settings(names: tuple[str, ...]) -> list[str]:
    mounts: list[str] = []
    for name in names:
        # A link such as resolv.conf's may lead to a place that is not in the sandbox, so its target takes its name.
        target = os.path.realpath(f'/etc/{name}')
        if is_system(target):
            mounts += ['--symlink', target, f'/etc/{name}']
        elif os.path.exists(target):
            mounts += ['--ro-bind', target, f'/etc/{name}']
    return mounts


def is_system(path: str) -> bool:
    """Whether a path is in one of the folders that every script sees."""
    return any(path == folder or path.startswith(f'{folder}/') for folder in (*SYSTEM_FOLDERS, *_TOP_FOLDERS))
