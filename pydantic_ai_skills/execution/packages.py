"""Installs the Python packages that skills need, with uv: an environment for each skill and set of requirements.

Environments are made outside of any sandbox, before a script starts, so the script itself needs no network. They live
in the user's cache, never in a skill's folder. Beside each is the list of exact versions and hashes it was made from;
it is compiled once, and an environment that is made again has the same packages.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

from pydantic_ai_skills.exceptions import SkillScriptExecutionError
from pydantic_ai_skills.filesystem.locks import LockFile
from pydantic_ai_skills.filesystem.ownership import make_folder, strangers_in
from pydantic_ai_skills.filesystem.remove import remove_tree
from pydantic_ai_skills.filesystem.user_dirs import default_cache_dir

from .environment import inherited_variables

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript

logger = logging.getLogger('pydantic_ai_skills')

FOLDER = 'environments'
"""Where environments are in the cache."""

MAX_PACKAGES = 100
"""How many packages a skill may name."""

MAX_MESSAGE = 500
"""How much of uv's message is shown."""

_TICK = 0.02
_PYTHON = ('Scripts', 'python.exe') if os.name == 'nt' else ('bin', 'python')
_NETWORK_VARIABLES = ('ALL_PROXY', 'HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY', 'REQUESTS_CA_BUNDLE')
_ADDRESS = re.compile(r'\b[a-z][a-z0-9+.-]{1,20}://\S+')


class UvEnvironments:
    """Makes environments with the packages that scripts need, and keeps them in the cache.

    ```python
    from pydantic_ai_skills import LocalSkillScriptExecutor, UvEnvironments

    packages = UvEnvironments(index_options=['--index-url', 'https://packages.example.com/simple'])
    executor = LocalSkillScriptExecutor(dependencies=packages)
    ```

    Args:
        index_options: Options of `uv pip` that say where packages come from, such as `--index-url` or `--find-links`. A
            skill cannot change them. The variables `UV_*` of this process count too.
        builds: Whether to build packages that have no wheel, which runs their code on this machine. By default only
            for `LocalSkillScriptExecutor`, which runs the code of its skills on this machine anyway.
        timeout: Seconds to wait until an environment is made.
        cache_dir: Where environments are kept; by default in this package's cache.
        uv: The uv program; by default that on the `PATH` or beside this Python.
    """

    def __init__(
        self,
        *,
        index_options: Sequence[str] = (),
        builds: bool | None = None,
        timeout: float = 300.0,
        cache_dir: str | Path | None = None,
        uv: str | None = None,
    ) -> None:
        self.index_options = tuple(index_options)
        self.builds = builds
        self.timeout = timeout
        self.cache_dir = None if cache_dir is None else Path(cache_dir).absolute()
        self._uv = uv

    def provide_for(
        self, script: SkillScript, *, python: str, builds: bool, cancelled: Callable[[], bool]
    ) -> Path | None:
        """The Python of the environment with the packages that a script's skill needs; `None` if it needs none."""
        requirements = script.required_packages
        if not requirements:
            return None
        name = script.skill_name or script.name
        return self.provide(name, requirements, python=python, builds=builds, cancelled=cancelled)

    def provide(
        self,
        skill_name: str,
        requirements: Sequence[str],
        *,
        python: str,
        builds: bool,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Path:
        """Make the environment of a skill, unless it exists, and return its Python. It blocks.

        Args:
            skill_name: The skill.
            requirements: The packages, such as `pypdf>=5`.
            python: The Python that the environment is for.
            builds: Whether packages without a wheel may be built, unless `builds` of the constructor decides that.
            cancelled: Asked from time to time whether to give up.

        Raises:
            SkillScriptExecutionError: There is no uv, or the packages cannot be installed.
        """
        builds = builds if self.builds is None else self.builds
        if len(requirements) > MAX_PACKAGES:
            raise SkillScriptExecutionError(f'The skill needs more than {MAX_PACKAGES} packages, which is too many.')
        root = self._root()
        work = _Work(
            uv=self._find_uv(),
            python=python,
            requirements=tuple(requirements),
            options=(*(() if builds else ('--only-binary', ':all:')), *self.index_options),
            # Scripts write no bytecode, so it is made now. That starts the environment's Python, which runs code of
            # packages (`.pth` files), so it is only made where they may run code on this machine.
            compiles=builds,
            deadline=time.monotonic() + self.timeout,
            cancelled=cancelled,
        )
        name = f'{skill_name[:64]}-{work.digest()}'
        program = root.joinpath(name, *_PYTHON)
        if not program.exists():
            with _alone(root / f'.{name}.busy', work):
                if not program.exists():
                    _make(root, name, work)
        return program

    def _root(self) -> Path:
        root = (self.cache_dir or default_cache_dir()) / FOLDER
        try:
            make_folder(root)
        except OSError as error:
            message = f'Packages cannot be installed: the folder for them cannot be made: {error.strerror}.'
            raise SkillScriptExecutionError(message) from error
        if strangers := strangers_in(root):
            raise SkillScriptExecutionError(f'Packages cannot be installed: {strangers}.')
        return root

    def _find_uv(self) -> str:
        found = find_uv() if self._uv is None else shutil.which(self._uv)
        if found is None:
            raise SkillScriptExecutionError(
                "The packages that this skill needs cannot be installed: uv is not here. For the developer: run 'pip "
                "install uv', or see https://docs.astral.sh/uv/getting-started/installation/."
            )
        return found


def as_environments(dependencies: Literal['uv'] | UvEnvironments | None) -> UvEnvironments | None:
    """What installs packages, for the value of `dependencies` that the developer gave."""
    if dependencies is None or isinstance(dependencies, UvEnvironments):
        return dependencies
    if dependencies != 'uv':
        raise ValueError(f"`dependencies` is None, 'uv' or UvEnvironments(…), not {dependencies!r}.")
    return UvEnvironments()


def with_packages(env: Mapping[str, str], python: Path) -> dict[str, str]:
    """The variables of a script, with the programs of its environment first on the `PATH`."""
    search_path = os.pathsep.join(filter(None, (str(python.parent), env.get('PATH'))))
    return {**env, 'PATH': search_path, 'VIRTUAL_ENV': str(python.parent.parent)}


def find_uv() -> str | None:
    """The uv program: on the `PATH`, or beside this Python, in an environment that is not on the `PATH`."""
    return shutil.which('uv') or shutil.which(str(Path(sys.executable).with_name('uv')))


class _Work:
    """The making of one environment: its settings, its deadline and the runs of uv."""

    def __init__(
        self,
        *,
        uv: str,
        python: str,
        requirements: tuple[str, ...],
        options: tuple[str, ...],
        compiles: bool,
        deadline: float,
        cancelled: Callable[[], bool],
    ) -> None:
        self.uv = uv
        self.python = python
        self.requirements = requirements
        self.options = options
        self.compiles = compiles
        self.deadline = deadline
        self.cancelled = cancelled

    def digest(self) -> str:
        """A short name that differs if anything that the environment depends on differs."""
        facts = [self.requirements, self.options, os.path.realpath(self.python), platform.machine()]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]

    def check_time(self) -> None:
        """Raise an error if the run was cancelled or the time is up."""
        if self.cancelled():
            raise SkillScriptExecutionError('The run was cancelled before the script started.')
        if time.monotonic() > self.deadline:
            raise self.failure('it took too long')

    def failure(self, why: str) -> SkillScriptExecutionError:
        """The error for packages that cannot be installed."""
        names = ', '.join(self.requirements[:10])[:200]
        return SkillScriptExecutionError(f'The packages that this skill needs ({names}) cannot be installed: {why}')

    def run(self, *arguments: str, cwd: Path) -> None:
        """Run uv to its end. The folder must hold no settings, which uv would read."""
        command = [self.uv, *arguments, '--quiet', '--no-progress']
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                command, cwd=cwd, env=_variables(), stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                start_new_session=os.name == 'posix',
            )  # fmt: skip
            try:
                while process.poll() is None:
                    self.check_time()
                    time.sleep(_TICK)
            finally:
                _kill(process)
            if process.returncode:
                errors.seek(0)
                said = errors.read(64 * 1024).decode('utf-8', 'replace')
                logger.warning('uv could not install packages (%s):\n%s', ' '.join(self.requirements), said)
                # Addresses may hold credentials and name hosts of a private network.
                raise self.failure(' '.join(_ADDRESS.sub('…', said).split())[:MAX_MESSAGE])


def _make(root: Path, name: str, work: _Work) -> None:
    """Make an environment beside its final place, and move it there when it is complete."""
    stage = root / f'.{name}.{uuid4().hex}'
    stage.mkdir(mode=0o700)
    try:
        versions = root / f'{name}.txt'
        if not versions.exists():
            wanted, compiled = stage / 'requirements.in', stage / 'requirements.txt'
            wanted.write_text('\n'.join(work.requirements))
            work.run(
                *('pip', 'compile', str(wanted), '--output-file', str(compiled), '--python', work.python),
                *('--generate-hashes', '--no-header', '--no-annotate', *work.options),
                cwd=stage,
            )
            os.replace(compiled, versions)
        made = stage / name
        work.run('venv', str(made), '--python', work.python, '--relocatable', '--no-project', cwd=stage)
        work.run(
            *('pip', 'sync', str(versions), '--python', str(made.joinpath(*_PYTHON))),
            *('--require-hashes', '--compile-bytecode' if work.compiles else '--no-compile-bytecode', *work.options),
            cwd=stage,
        )
        remove_tree(root / name)  # its Python is gone, or somebody has begun to remove it
        with suppress(OSError):  # where there are no locks, somebody else may have been faster
            os.rename(made, root / name)
    except OSError as error:
        raise work.failure(str(error.strerror)) from error
    finally:
        remove_tree(stage)


@contextmanager
def _alone(path: Path, work: _Work) -> Generator[None]:
    """Wait until no other process makes the same environment."""
    lock = LockFile(path)
    while not lock.acquire():
        work.check_time()
        time.sleep(_TICK)
    try:
        yield
    finally:
        lock.release()


def _variables() -> dict[str, str]:
    """The environment of uv: its own settings and what the network needs, but none of the application's secrets."""
    own = {name: value for name, value in os.environ.items() if name.startswith('UV_') or name in _NETWORK_VARIABLES}
    own |= {name: value for name, value in os.environ.items() if name.upper() in _NETWORK_VARIABLES}
    return {**inherited_variables(), **own, 'UV_PYTHON_DOWNLOADS': 'never'}


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL) if os.name == 'posix' else process.kill()
    process.wait()
