"""Chat in the browser: `python examples/web_chat.py`, then open the address that it prints.

It needs `pydantic-ai-slim[web]` and works without the internet. Only programs on this machine can connect to it.
CHAT_PAGE names another page than the `chat.html` beside this file: a file or an address.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import uvicorn
from chat_prompts import PROMPTS, choose
from offline import model
from pydantic_ai import Agent, CustomEvent, RunContext
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pydantic_ai_skills import ScriptFinished, SkillError, SkillEvent, SkillsToolset, send_to_ui

HERE = Path(__file__).parent
skills = SkillsToolset(directories=[HERE / 'skills', HERE / 'forms'])
skills.on(SkillEvent)(send_to_ui)
made: set[tuple[str | None, str]] = set()  # each file that can be downloaded: its conversation and its name


@dataclass(kw_only=True)
class FilesMade(CustomEvent, name='files_made'):
    """Tells the page which files a script made, and their sizes."""

    files: dict[str, int]


@skills.on(ScriptFinished)
async def offer_files(ctx: RunContext[None], event: ScriptFinished) -> None:
    """Offer the files of a script in the chat it belongs to."""
    files = {file.name: file.size for file in event.result.files}
    made.update((ctx.conversation_id, name) for name in files)
    await ctx.emit(FilesMade(files=files))


def about(request: Request) -> Response:
    """What the page shows before the first message."""
    listed = [{'name': skill.name, 'description': skill.description} for skill in skills.skills.values()]
    return JSONResponse({'model': os.environ.get('MODEL', ''), 'prompts': PROMPTS, 'skills': listed})


def download(request: Request) -> Response:
    """A file that a script made in this conversation; it is saved, never shown as a page."""
    conversation, name = (request.query_params.get(key, '') for key in ('conversation', 'name'))
    saved_as = f"attachment; filename*=UTF-8''{quote(Path(name).name, safe='')}"
    headers = {'Content-Disposition': saved_as, 'X-Content-Type-Options': 'nosniff'}
    with suppress(SkillError):
        if (conversation, name) in made:  # `read_file` follows no links
            return Response(skills.read_file(conversation, name), 200, headers, 'application/octet-stream')
    return Response('There is no such file.', 404)


agent = Agent(model(choose), toolsets=[skills])
app = agent.to_web(html_source=os.environ.get('CHAT_PAGE', HERE / 'chat.html'))
app.add_route('/page/about', about)
app.add_route('/page/files', download)

if __name__ == '__main__':
    uvicorn.run(app, host='127.0.0.1', port=int(sys.argv[1]) if sys.argv[1:] else 7932)
