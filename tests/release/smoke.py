"""Try an installed distribution in the environment of this Python, with nothing of the repository beside it.

`make test-release` runs it: `python -I smoke.py` for the package alone, with `--cli` where the extra `cli` is there.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

import pydantic_ai_skills
from pydantic_ai_skills import SkillsToolset

SKILL_MD = '---\nname: greeter\ndescription: Greets people. Use when somebody says hello.\n---\n\nSay hello.\n'
NAME = 'pydantic-ai-skills'


def check_metadata() -> str:
    """Look at what an index and a type checker look at; return the version."""
    package = Path(pydantic_ai_skills.__file__).parent
    assert package.is_relative_to(sys.prefix), f'{package} is not in the environment {sys.prefix}'
    assert (package / 'py.typed').is_file()
    metadata = importlib.metadata.metadata(NAME)
    links = [link.partition(', ')[0] for link in metadata.get_all('Project-URL', [])]
    assert links == ['Documentation', 'Changelog', 'Security'], links
    files = [str(file) for file in importlib.metadata.files(NAME) or ()]
    assert any(file.endswith('/licenses/LICENSE') for file in files), 'the licence is not in the distribution'
    return metadata['Version']


def check_toolset(skills: Path) -> None:
    """Let an agent load a skill."""
    toolset = SkillsToolset(directories=[skills])
    assert list(toolset.skills) == ['greeter'], toolset.problems
    agent = Agent(TestModel(call_tools=['list_skills']), toolsets=[toolset])
    assert 'Greets people.' in agent.run_sync('Hello!').output


def run(command: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment as a user would, with a home of its own."""
    env = {**os.environ, 'HOME': str(folder), 'NO_COLOR': '1'}
    path = Path(sys.executable).with_name(command)
    return subprocess.run([path, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def check_commands(folder: Path, version: str) -> None:
    """Ask each command for its version, and one for the skills in the folder."""
    commands = importlib.metadata.distribution(NAME).entry_points.select(group='console_scripts').names
    assert NAME in commands
    for command in sorted(commands):
        done = run(command, '--version', folder=folder)
        assert (done.returncode, done.stdout.split()[-1:]) == (0, [version]), (command, done)
    done = run(NAME, 'list', folder=folder)
    assert done.returncode == 0, done
    assert 'greeter' in done.stdout, done


def check_command_without_extra(folder: Path) -> None:
    """Without the extra `cli`, the command says what to install."""
    done = run(NAME, 'list', folder=folder)
    assert done.returncode == 2, done
    assert '[cli]' in done.stderr, done
    assert 'Traceback' not in done.stderr, done


def main() -> None:
    """Check everything, in a scratch folder."""
    version = check_metadata()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / 'skills/greeter').mkdir(parents=True)
        (folder / 'skills/greeter/SKILL.md').write_text(SKILL_MD)
        check_toolset(folder / 'skills')
        if '--cli' in sys.argv[1:]:
            check_commands(folder, version)
        else:
            check_command_without_extra(folder)


if __name__ == '__main__':
    main()
