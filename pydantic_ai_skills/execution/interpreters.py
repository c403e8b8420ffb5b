"""Opens the file of a script and finds the program that runs it.

A script was a file of its skill when it was listed. Since then, whoever can write into the folder may have put a link
to any program in its place, or in place of a folder on the way to it. So it is opened again right before it is started,
step by step and without following links.

The program is the one in its shebang, else the one for its suffix, else the script itself if it is executable. A
Python script that declares dependencies in its head (PEP 723) is run by uv, which installs them, or else by Python,
which may have them. One with relative imports is started as a module, as `python -m scripts.z` in the skill's folder
does.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic_ai_skills.exceptions import SkillResourceLoadError, SkillScriptExecutionError
from pydantic_ai_skills.filesystem.safe_open import SkillFolder, reason, split_path

if TYPE_CHECKING:
    from pydantic_ai_skills.types.script import SkillScript

_JAVASCRIPT = (('node',), ('bun',))
_TYPESCRIPT = (('tsx',), ('bun',), ('deno', 'run', '--allow-all'), ('node', '--experimental-strip-types'))
_POWERSHELL = ('-NoLogo', '-NoProfile', '-NonInteractive', '-File')

INTERPRETERS: dict[str, tuple[tuple[str, ...], ...]] = {
    '.py': (('python3',), ('python',)),
    '.sh': (('bash',), ('sh',)),
    '.bash': (('bash',),),
    '.zsh': (('zsh',),),
    '.fish': (('fish',),),
    '.js': _JAVASCRIPT,
    '.mjs': _JAVASCRIPT,
    '.cjs': _JAVASCRIPT,
    '.ts': _TYPESCRIPT,
    '.mts': _TYPESCRIPT,
    '.rb': (('ruby',),),
    '.pl': (('perl',),),
    '.php': (('php',),),
    '.lua': (('lua',),),
    '.r': (('Rscript',),),
    '.ps1': (('pwsh', *_POWERSHELL), ('powershell', *_POWERSHELL)),
}
"""The programs that can run each suffix, with their own arguments. The first one installed is used."""

# `.*+` consumes the whole name first, so that only its end is compared.
_ENDS = '|'.join(rf'(?<=[^/]{re.escape(suffix)})' for suffix in INTERPRETERS)
SCRIPT_NAME = re.compile(rf'.*+(?:{_ENDS})(?<!\.d\.ts)(?<!\.d\.mts)', re.IGNORECASE | re.ASCII | re.DOTALL)
"""Matches the names of files that can be started whatever is in them. A `.d.ts` only declares types."""

MAX_HEAD_BYTES = 64 * 1024
"""How much of a script is read. Inline dependencies of a Python script have to be in it."""

MAX_SHEBANG_BYTES = 256
"""How much of the first line is read, as much as the kernel reads."""

MAX_METADATA_LINE = 1_000
"""How long a line of inline metadata may be: `tomllib` takes quadratic time for the parts of a dotted key."""

_PYTHON = re.compile(r'python(3(\.\d+)?)?')
PROGRAM_MAGIC = (b'\x7fELF', b'\xcf\xfa\xed\xfe', b'\xca\xfe\xba\xbe')
"""The first bytes of files that the kernel itself can start, on Linux and macOS."""

_RELATIVE_IMPORT = re.compile(rb'^[ \t]*from[ \t]+\.[\w.]*[ \t]+import[ \t(]', re.MULTILINE)
UV_CHECK = ('sync', '--quiet', '--script')
"""The arguments before a script's path with which uv succeeds only if it can provide the script's packages."""

_UV_RUN = ('run', *UV_CHECK[1:])
_KNOWN = {'uv', *(program for programs in INTERPRETERS.values() for program, *_ in programs)}
_SYSTEM_FOLDERS = ('/usr/bin', '/bin', '/usr/local/bin')


class ScriptHead(NamedTuple):
    """What determines how to run a script."""

    name: str
    """The name of its file."""

    head: bytes
    """Its first bytes."""

    executable: bool


def local_file(script: SkillScript) -> Path:
    """The file of a script."""
    path = script.path
    if path is None:
        raise SkillScriptExecutionError(f'The script {script.name!r} is not a file on this machine.')
    return path


def skill_folder(script: SkillScript, path: Path) -> Path:
    """The folder of a script's skill, or its own folder if it has no skill."""
    return (script.skill_dir or path.parent).absolute()


def read_script_head(script: SkillScript) -> ScriptHead:
    """Open the file of a script and read its beginning.

    Raises:
        SkillScriptExecutionError: It is not a regular file, or a link is in its way.
    """
    path = local_file(script).absolute()
    try:
        status, head = _head(path, script)
    except (OSError, SkillResourceLoadError) as error:
        raise SkillScriptExecutionError(f'The script {path.name!r} cannot be read: {reason(error)}.') from error
    if not stat.S_ISREG(status.st_mode):
        raise SkillScriptExecutionError(f'The script {path.name!r} is not a regular file.')
    return ScriptHead(path.name, head, os.access(path, os.X_OK))


def refuse_links(script: SkillScript) -> None:
    """Raise `SkillScriptExecutionError` if the file of a script, or a folder on the way to it, is now a link.

    A file that is not on this machine is not checked.
    """
    with suppress(SkillResourceLoadError):
        if script.path is not None and os.path.lexists(script.path):
            read_script_head(script)


def _head(path: Path, script: SkillScript) -> tuple[os.stat_result, bytes]:
    skill_dir = script.skill_dir and script.skill_dir.absolute()
    inside = None if skill_dir is None else path_in(skill_dir, path)
    if skill_dir is None or inside is None:  # named by the developer, or shared by skills
        folder, inside = SkillFolder(str(path.parent)), path.name
    else:
        folder = SkillFolder(script.root or str(skill_dir.parent), str(skill_dir))
    *parents, last = split_path(inside)
    with folder.open(*parents) as opened:
        return opened.head(last, MAX_HEAD_BYTES)


def path_in(folder: Path, path: Path) -> str | None:
    """The way from a folder to a file below it, with `/` between the steps; `None` if the file is elsewhere."""
    # As text: this is done several times for each run, and `Path` takes ten times as long.
    text, start = str(path), os.path.join(folder, '')
    return text[len(start) :].replace(os.sep, '/') if text.startswith(start) else None


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A program that can run a script, installed or not."""

    program: str
    """Its name, or its path where the script insists on one."""

    arguments: tuple[str, ...] = ()
    """Its own arguments, before the script's path."""

    is_python: bool = False
    """Whether any Python will do, so that the executor chooses it."""

    dependencies: tuple[str, ...] = ()
    """Packages that uv has to provide first. `UV_CHECK` finds out whether it can."""


def interpreters_for(name: str, head: bytes, *, executable: bool, inline: bool = True) -> list[Interpreter]:
    """The programs that can run a script with this name and beginning, best first; none if it is a program itself.

    With `inline`, uv comes before Python for a script that declares its dependencies or asks for uv; otherwise such a
    script only gets Python.
    """
    suffix = os.path.splitext(name)[1].lower()
    if shebang := _shebang(head):
        return _with_uv(_from_shebang(shebang, name), head, inline=inline)
    if suffix == '.py':
        return _with_uv(_ANY_PYTHON, head, inline=inline)
    if suffix in INTERPRETERS:
        return [Interpreter(program=program, arguments=tuple(rest)) for program, *rest in INTERPRETERS[suffix]]
    return _without_suffix(name, head, executable=executable)


_ANY_PYTHON = Interpreter(program='python3', is_python=True)


def _with_uv(interpreter: Interpreter, head: bytes, *, inline: bool) -> list[Interpreter]:
    """Python, preceded by uv where that has to provide packages; any other interpreter stays as it is."""
    if not interpreter.is_python and not is_uv([interpreter.program]):
        return [interpreter]
    python, dependencies = interpreter if interpreter.is_python else _ANY_PYTHON, _inline_dependencies(head)
    if not inline or (interpreter.is_python and not dependencies):
        return [python]
    uv = Interpreter(program='uv', arguments=_UV_RUN) if interpreter.is_python else interpreter
    return [replace(uv, dependencies=dependencies), python]


def is_uv(command: Sequence[str]) -> bool:
    """Whether a command runs uv; an empty one does not."""
    return bool(command) and os.path.basename(command[0]) == 'uv'


def uv_check(interpreter: Sequence[str], head: ScriptHead) -> list[str]:
    """What to put before the script's path to find out whether uv can provide its packages; empty if there are none."""
    if not is_uv(interpreter) or not _inline_dependencies(head.head):
        return []
    start = interpreter.index('--python') if '--python' in interpreter else len(interpreter)
    return [interpreter[0], *UV_CHECK[:-1], *interpreter[start : start + 2], UV_CHECK[-1]]


def _without_suffix(name: str, head: bytes, *, executable: bool) -> list[Interpreter]:
    if executable and head.startswith(PROGRAM_MAGIC):
        return []
    if executable and b'\0' not in head:
        return [Interpreter(program='sh')]  # as a shell does with a file that the kernel cannot start
    raise SkillScriptExecutionError(
        f'There is no way to run {name!r}: it has no shebang line and no known suffix, and is not a program.'
    )


def needs(interpreters: list[Interpreter]) -> str:
    """What a script needs, to follow its name in a message."""
    if dependencies := interpreters[0].dependencies:
        return f"depends on {', '.join(dependencies[:5])[:200]} and needs 'uv' to provide it"
    return f'needs {" or ".join(repr(PurePosixPath(interpreter.program).name) for interpreter in interpreters)}'


def find_interpreter(
    script: ScriptHead, *, python: str | None, search_path: str | None, anywhere: bool = True, inline: bool = True
) -> list[str]:
    """The program on this machine, with its own arguments, to put before the script's path; empty if that is a program.

    Python scripts run on `python`, by default the one of this process. With `anywhere`, a script may name any program;
    otherwise only those of the system and the interpreters that are known here. `inline` is as for `interpreters_for`.
    """
    candidates = interpreters_for(script.name, script.head, executable=script.executable, inline=inline)
    for candidate in candidates:
        if found := _installed(candidate, python=python, search_path=search_path, anywhere=anywhere):
            extra = ['--python', python] if candidate.arguments == _UV_RUN and python else []
            program = str(Path(found).absolute())  # the script starts in another folder
            return [program, *candidate.arguments[:-1], *extra, *candidate.arguments[-1:]]
    if candidates:
        raise _missing(script.name, candidates, python=python)
    return []


def module_name(file: str, head: bytes) -> str | None:
    """The module to run for the Python script at a path in its skill, if it is in a folder and has relative imports."""
    if not file.endswith('.py') or '/' not in file or not _RELATIVE_IMPORT.search(head):
        return None
    names = file.removesuffix('.py').split('/')
    return '.'.join(names) if all(name.isidentifier() for name in names) else None


def module_words(name: str) -> list[str]:
    """What follows the interpreter to run a module. `-P` keeps the folder it starts in out of its imports."""
    return ['-P', '-m', name]


def start_words(path: Path, skill_dir: Path, head: ScriptHead, interpreter: Sequence[str]) -> list[str]:
    """What follows the interpreter to run a script: its path, or its module where it has to be run as one."""
    inside = None if is_uv(interpreter) else path_in(skill_dir, path)
    module = None if inside is None else module_name(inside, head.head)
    return [str(path)] if module is None or not _runs_on_python(head) else module_words(module)


def _runs_on_python(head: ScriptHead) -> bool:
    interpreters = interpreters_for(head.name, head.head, executable=head.executable, inline=False)
    return bool(interpreters) and interpreters[0].is_python


def _shebang(head: bytes) -> list[str]:
    line = head[:MAX_SHEBANG_BYTES].split(b'\n', 1)[0]
    if not line.startswith(b'#!'):
        return []
    text = line[2:].decode('utf-8', 'replace').strip()
    try:
        return shlex.split(text)
    except ValueError:  # an unmatched quote, which the kernel would pass on
        return text.split()


def _from_shebang(words: list[str], name: str) -> Interpreter:
    program, *arguments = words
    if by_name := PurePosixPath(program).name == 'env':
        program, *arguments = _env_command(arguments, name)
    common = by_name or _is_common(program)
    is_python = common and _PYTHON.fullmatch(PurePosixPath(program).name) is not None
    return Interpreter(program=program, arguments=tuple(arguments), is_python=is_python)


def _env_command(arguments: list[str], name: str) -> list[str]:
    """What `env` would start. `-S` only asks for the splitting that was done already."""
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
    program, name = interpreter.program, PurePosixPath(interpreter.program).name
    if interpreter.is_python or (not anywhere and _PYTHON.fullmatch(name)):
        return shutil.which(python or sys.executable, path=search_path)
    names = (program, name) if anywhere or _is_common(program) else (name,)
    # The `PATH` may lead into environments of other projects, so a script must not choose from everything on it.
    search_path = search_path if anywhere or name in _KNOWN else os.pathsep.join(_SYSTEM_FOLDERS)
    found = next((found for word in names if (found := shutil.which(word, path=search_path))), None)
    if found is None and name == 'uv':
        # uv is often installed beside Python, in an environment that is not on the PATH.
        return shutil.which(str(Path(sys.executable).with_name(name)))
    return found


def _missing(name: str, candidates: list[Interpreter], *, python: str | None) -> SkillScriptExecutionError:
    if candidates[0].is_python:
        return SkillScriptExecutionError(
            f'The Python {python or sys.executable!r} does not exist. Set `python_executable` to one that does.'
        )
    where = ' See https://docs.astral.sh/uv/getting-started/installation/.' if candidates[0].dependencies else ''
    return SkillScriptExecutionError(
        f'{name!r} {needs(candidates)}, which is not installed here or not on the PATH.{where}'
    )


def _inline_dependencies(head: bytes) -> tuple[str, ...]:
    """The packages in the `# /// script` block of a Python script (PEP 723); none if it is broken."""
    if b'# /// script' not in head:
        return ()
    import tomllib  # rarely needed

    lines = iter(head.decode('utf-8', 'replace').splitlines())
    if not any(line.rstrip() == '# /// script' for line in lines):
        return ()
    block: list[str] = []
    for line in lines:  # continues after the opening line
        if not line.startswith('#') or line.rstrip() == '# ///':
            break
        if len(line) > MAX_METADATA_LINE:
            return ()
        block.append(line.removeprefix('#').removeprefix(' '))
    try:
        dependencies = cast('list[Any] | None', tomllib.loads('\n'.join(block)).get('dependencies'))
    except (tomllib.TOMLDecodeError, RecursionError):
        return ()
    return tuple(str(item) for item in dependencies) if isinstance(dependencies, list) else ()
