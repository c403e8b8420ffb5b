"""The sandbox: a script that looks for secrets finds none, and the same script without a sandbox does."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

from offline import model
from pydantic_ai import Agent

from pydantic_ai_skills import (
    BubblewrapSkillScriptExecutor,
    LocalSkillScriptExecutor,
    ScriptLimits,
    SkillScriptExecutor,
    SkillsToolset,
)

SKILL_MD = (
    '---\nname: nosy\ndescription: Looks around. Use to see what a script can reach.\n---\n\nRun `look.py FILE PORT`.\n'
)
SCRIPT = """
import os, socket, sys
print('key in the environment:', 'yes' if 'API_KEY' in os.environ else 'no')
print('file of the user:', 'yes' if os.path.exists(sys.argv[1]) else 'no')
print('network:', 'no' if socket.socket().connect_ex(('127.0.0.1', int(sys.argv[2]))) else 'yes')
"""


def look(executor: SkillScriptExecutor, folder: Path) -> str:
    """What the script of the skill finds."""
    skills = SkillsToolset(directories=[folder / 'skills'], script_executor=executor)
    with socket.create_server(('127.0.0.1', 0)) as service:
        args = [str(folder / 'private.txt'), str(service.getsockname()[1])]
        call = 'run_skill_script', {'skill_name': 'nosy', 'script_name': 'look.py', 'args': args}
        return Agent(model([call]), toolsets=[skills]).run_sync('Look around.').output


def main(folder: Path) -> None:
    """Run the same script in two ways."""
    (folder / 'skills/nosy').mkdir(parents=True)
    (folder / 'skills/nosy/SKILL.md').write_text(SKILL_MD)
    (folder / 'skills/nosy/look.py').write_text(SCRIPT)
    (folder / 'private.txt').write_text('secret')
    os.environ['API_KEY'] = 'secret'

    limits = ScriptLimits(wall_time=10, memory=256 * 1024**2)
    print('As a process:', look(LocalSkillScriptExecutor(limits=limits), folder), sep='\n', end='\n\n')
    print('In the sandbox:', look(BubblewrapSkillScriptExecutor(limits=limits), folder), sep='\n')


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
