"""Watch an agent use skills, in six short scenes. Offline, unless `--model` names a real model for the first one."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.models import Model, infer_model
from scenes import ask_first, count_tokens, fill_a_form, meet_a_stranger, mend
from stand_in import filling_in
from terminal import BOLD, heading, painted

NEXT = """\
make demo MODEL=openai:gpt-5.2              the first scene with a real model
.venv/bin/python examples/web_chat.py       a chat in the browser, offline
.venv/bin/pydantic-ai-skills new my-skill   begin a skill of your own
.venv/bin/pydantic-ai-skills validate       check it
docs/tutorial.md                            an agent with skills, step by step"""


def play(model: Model, name: str) -> None:
    """Show every scene, with a scratch folder that is gone afterwards."""
    print(painted('pydantic-ai-skills', BOLD) + f': an agent with skills. The model is {name}.')
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        count_tokens(asyncio.run(fill_a_form(model)))
        meet_a_stranger(scratch)
        ask_first(scratch)
        mend(scratch)
    heading('6. What to try next')
    print(NEXT)


def main(argv: list[str] | None = None) -> None:
    """Read the command line and show the demo."""
    os.environ.setdefault('PYDANTIC_AI_NO_BANNER', '1')
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--model', help='a real model, such as openai:gpt-5.2; a scripted stand-in without it')
    args = parser.parse_args(argv)
    try:
        model = infer_model(args.model) if args.model else filling_in()
    except (ImportError, UserError) as error:
        parser.error(str(error))
    try:
        play(model, args.model or 'a scripted stand-in')
    except AgentRunError as error:
        parser.exit(1, f'The model failed: {error}\n')


if __name__ == '__main__':
    main()
