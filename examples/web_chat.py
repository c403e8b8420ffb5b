"""Chat in the browser through Pydantic AI's web interface: `python examples/web_chat.py`, then open the address.

Pydantic AI takes its page from a CDN when `html_source` is not given. The page beside this file is a small one that
works without the internet; CHAT_PAGE names another: a file or an address.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import uvicorn
from offline import Call, model
from pydantic_ai import Agent

from pydantic_ai_skills import SkillsToolset

HERE = Path(__file__).parent
SKILL = {'skill_name': 'unit-converter'}


def choose(question: str) -> list[Call]:
    """What the stand-in for a model does with `What are 10 yd in m?`."""
    asked = re.search(r'(-?[\d.]+) (\w+) (?:in|to) (\w+)', question)
    if asked is None:
        return []
    return [('load_skill', SKILL), ('run_skill_script', SKILL | {'script_name': 'convert', 'args': [*asked.groups()]})]


agent = Agent(model(choose), toolsets=[SkillsToolset(directories=[HERE / 'skills'])])
app = agent.to_web(html_source=os.environ.get('CHAT_PAGE', HERE / 'chat.html'))

if __name__ == '__main__':
    uvicorn.run(app, port=int(sys.argv[1]) if sys.argv[1:] else 7932)
