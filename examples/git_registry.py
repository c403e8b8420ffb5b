"""Skills from a git repository: locked to what was reviewed, under the team's prefix, scripts in the sandbox.

`python examples/git_registry.py https://github.com/acme/skills` uses a repository of yours. Without an address it makes
one on this machine, so that it works offline.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from offline import model
from pydantic_ai import Agent

from pydantic_ai_skills import BubblewrapSkillScriptExecutor, GitSkillsRegistry, SkillsToolset

SKILL = {'skill_name': 'team-unit-converter'}
CALLS = [('load_skill', SKILL), ('run_skill_script', SKILL | {'script_name': 'convert', 'args': ['10', 'yd', 'm']})]


def make_repository(folder: Path) -> str:
    """A repository with the skills of the examples."""
    shutil.copytree(Path(__file__).parent / 'skills', folder / 'skills')
    git = ['git', '-C', str(folder), '-c', 'user.name=Ada', '-c', 'user.email=ada@example.com']
    for command in (['init', '--quiet'], ['add', 'skills'], ['commit', '--quiet', '--message', 'Add skills']):
        subprocess.run([*git, *command], check=True)
    return folder.as_uri()


def main(url: str, work: Path) -> None:
    """Lock the skills of a repository, then give an agent what was locked."""
    source = partial(
        GitSkillsRegistry,
        url,
        lock_file=work / 'skills.lock',
        cache_dir=work / 'cache',
        allowed_protocols=['https', 'file'],
        script_executor=BubblewrapSkillScriptExecutor(),
    )
    source().lock()  # once, and again to accept a change; keep the file in git

    skills = SkillsToolset(registries=[source(locked=True).prefixed('team-')])
    for name, skill in skills.skills.items():
        assert skill.source is not None
        print(f'{name}: {skill.source.path}, {skill.source.content_hash}')
    agent = Agent(model(CALLS), toolsets=[skills])
    print(agent.run_sync('What are ten yards in metres?').output)


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as temporary:
        main(sys.argv[1] if sys.argv[1:] else make_repository(Path(temporary)), Path(temporary))
