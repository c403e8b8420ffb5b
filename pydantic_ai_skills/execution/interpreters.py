"""Which program runs a script: its shebang, else its suffix, else the script itself if it is executable.

A Python script that declares dependencies in its head (PEP 723) is run by uv, which provides them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

from pydantic_ai_skills.exceptions import SkillScriptExecutionError

__all__ = ('INTERPRETERS', 'SCRIPT_SUFFIXES', 'Interpreter', 'find_interpreter', 'interpreters_for', 'needs')

INTERPRETERS: dict[str, tuple[tuple[str, ...], ...]] = {
    '.py': (('python3',), ('python',)),
    '.sh': (('bash',), ('sh',)),
    '.bash': (('bash',),),
    '.zsh': (('zsh',),),
    '.fish': (('fish',),),
    '.js': (('node',), ('bun',)),
    '.mjs': (('node',), ('bun',)),
    '.cjs': (('node',), ('bun',)),
    '.ts': (('tsx',), ('bun',), ('deno', 'run', '--allow-all'), ('node', '--experimental-strip-types')),
    '.mts': (('tsx',), ('bun',), ('deno', 'run', '--allow-all'), ('node', '--experimental-strip-types')),
    '.rb': (('ruby',),),
    '.pl': (('perl',),),
    '.php': (('php',),),
    '.lua': (('lua',),),
    '.r': (('Rscript',),),
    '.ps1': (
        ('pwsh', '-NoLogo', '-NoProfile', '-NonInteractive', '-File'),
        ('powershell', '-NoLogo', '-NoProfile', '-NonInteractive', '-File'),
    ),
}
"""For each suffix the programs that can run it, with their own arguments; the first one that is installed is used."""

SCRIPT_SUFFIXES = frozenset(INTERPRETERS)
"""Suffixes (lower case) of files that are scripts whether or not they are executable."""

MAX_SHEBANG_BYTES = 256
"""How much of the first line is looked at. The kernel looks at no more either."""

MAX_HEAD_BYTES = 64 * 1024
"""How much of a script is looked at. Inline dependencies of a Python script have to be in it."""

_PYTHON = re.compile(r'python(3(\.\d+)?)?')
_PROGRAMS = (b'\x7fELF', b'\xcf\xfa\xed\xfe', b'\xca\xfe\xba\xbe')
"""How a file begins that the kernel itself can start, on Linux and macOS."""

_SYSTEM_FOLDERS = ('/usr/bin', '/bin', '/usr/local/bin')


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A program that can run a script, as the script asks for it. Whether it is installed is another question."""

    program: str
    """Its name, or its path where the script insists on one."""

    arguments: tuple[str, ...] = ()
    """Its own arguments, before the script's path."""

    is_python: bool = False
    """Whether any Python will do, so that it is the executor's choice."""

    dependencies: tuple[str, ...] = ()
    """Packages it has to provide first, which is uv's work."""


def interpreters_for(name: str, head: bytes, *, executable: bool) -> list[Interpreter]:
    """The programs that can run a script, best first; none when the script is the program.

    Args:
        name: The script's file name.
        head: The beginning of its content.
        executable: Whether the file may be executed.

    Raises:
        SkillScriptExecutionError: Nothing tells how to run it.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if shebang := _shebang(head):
        found = [_from_shebang(shebang, name)]
    elif suffix == '.py':
        found = [Interpreter(program='python3', is_python=True)]
    elif suffix in INTERPRETERS:
        found = [Interpreter(program=program, arguments=tuple(rest)) for program, *rest in INTERPRETERS[suffix]]
    elif executable and head.startswith(_PROGRAMS):
        found = []
    elif executable and b'\0' not in head:
        found = [Interpreter(program='sh')]  # as a shell does with a file that the kernel cannot start
    else:
        raise SkillScriptExecutionError(
            f'There is no way to run {name!r}: it has no shebang line and no known suffix, and is not a program.'
        )
    if found and found[0].is_python and (dependencies := _inline_dependencies(head)):
        return [Interpreter(program='uv', arguments=('run', '--quiet', '--script'), dependencies=dependencies)]
    return found


def needs(interpreters: list[Interpreter]) -> str:
    """What a script needs to be run, for a message that begins with its name."""
    if dependencies := interpreters[0].dependencies:
        return f"depends on {', '.join(dependencies[:5])[:200]} and needs 'uv' to provide it"
    return f'needs {" or ".join(repr(PurePosixPath(interpreter.program).name) for interpreter in interpreters)}'


def find_interpreter(path: Path, *, python: str | None, search_path: str | None, anywhere: bool = True) -> list[str]:
    """The program on this machine, with its own arguments, to put before the script's path; empty when there is none.

    Args:
        path: The script's file.
        python: The Python to run Python scripts with; `None` is the one this process runs on.
        search_path: The `PATH` in which programs are looked up.
        anywhere: Whether the script may name a program by any path, or outside the system's folders by name only.

    Raises:
        SkillScriptExecutionError: The file cannot be run, or no program that can is installed.
    """
    candidates = interpreters_for(path.name, _read_head(path), executable=os.access(path, os.X_OK))
    for candidate in candidates:
        if found := _installed(candidate, python=python, search_path=search_path, anywhere=anywhere):
            extra = ['--python', python] if candidate.dependencies and python else []
            program = str(Path(found).absolute())  # a script does not start in the folder a path is relative to
            return [program, *candidate.arguments[:-1], *extra, *candidate.arguments[-1:]]
    if candidates:
        raise _missing(path, candidates, python=python)
    return []


def _read_head(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise SkillScriptExecutionError(f'The script {path.name!r} is not a regular file.')
        with path.open('rb') as file:
            return file.read(MAX_HEAD_BYTES)
    except OSError as error:
        raise SkillScriptExecutionError(f'The script {path.name!r} cannot be read: {error.strerror}.') from error


def _shebang(head: bytes) -> list[str]:
    line = head[:MAX_SHEBANG_BYTES].split(b'\n', 1)[0]
    if not line.startswith(b'#!'):
        return []
    text = line[2:].decode('utf-8', 'replace').strip()
    try:
        return shlex.split(text)
    except ValueError:  # an odd quote, which the kernel would pass on as it stands
        return text.split()


def _from_shebang(words: list[str], name: str) -> Interpreter:
    program, *arguments = words
    if by_name := PurePosixPath(program).name == 'env':
        program, *arguments = _env_command(arguments, name)
    common = by_name or _is_common(program)
    is_python = common and _PYTHON.fullmatch(PurePosixPath(program).name) is not None
    return Interpreter(program=program, arguments=tuple(arguments), is_python=is_python)


def _env_command(arguments: list[str], name: str) -> list[str]:
    """What `env` would start; `-S` only asks for the splitting that has been done already."""
    command = arguments[1:] if arguments[:1] in (['-S'], ['--split-string']) else arguments
    if not command or command[0].startswith('-') or '=' in command[0]:
        raise SkillScriptExecutionError(
            f'The first line of {name!r} calls env with {" ".join(arguments)!r}, which is not supported. '
            'Use "#!/usr/bin/env program" or "#!/usr/bin/env -S program arguments".'
        )
    return command


def _is_common(program: str) -> bool:
    return str(PurePosixPath(program).parent) in _SYSTEM_FOLDERS


def _installed(interpreter: Interpreter, *, python: str | None, search_path: str | None, anywhere: bool) -> str | None:
    if interpreter.is_python:
        return shutil.which(python or sys.executable, path=search_path)
    program, name = interpreter.program, PurePosixPath(interpreter.program).name
    names = (program, name) if anywhere or _is_common(program) else (name,)
    found = next((found for word in names if (found := shutil.which(word, path=search_path))), None)
    if found is None and name == 'uv':
        # uv is often installed beside the Python it works for, in an environment that is not on the PATH.
        return shutil.which(str(Path(sys.executable).with_name(name)))
    return found


def _missing(path: Path, candidates: list[Interpreter], *, python: str | None) -> SkillScriptExecutionError:
    if candidates[0].is_python:
        return SkillScriptExecutionError(
            f'The Python {python or sys.executable!r} is not there. Set `python_executable` to one that is.'
        )
    where = ' See https://docs.astral.sh/uv/getting-started/installation/.' if candidates[0].dependencies else ''
    return SkillScriptExecutionError(
        f'{path.name!r} {needs(candidates)}, which is not installed here or not on the PATH.{where}'
    )


def _inline_dependencies(head: bytes) -> tuple[str, ...]:
    """The packages a Python script asks for in a `# /// script` block (PEP 723). A broken block asks for none."""
    import tomllib  # rarely needed, so not at import of the package

    lines = iter(head.decode('utf-8', 'replace').splitlines())
    if not any(line.rstrip() == '# /// script' for line in lines):
        return ()
    block: list[str] = []
    for line in lines:  # the iterator goes on behind the opening line
        if not line.startswith('#') or line.rstrip() == '# ///':
            break
        block.append(line.removeprefix('#').removeprefix(' '))
    try:
        dependencies = cast('list[Any] | None', tomllib.loads('\n'.join(block)).get('dependencies'))
    except (tomllib.TOMLDecodeError, RecursionError):
        return ()
    return tuple(str(item) for item in dependencies) if isinstance(dependencies, list) else ()
