"""`chat`: talk to an agent that has the skills."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from .command import command
from .output import Output
from .run_files import OutputFolder, Write
from .skills import ChosenSkills


@command
def chat(
    out: Output,
    message: Annotated[
        list[str] | None, Argument(metavar='MESSAGE', help='What to say. Without it, you are prompted.')
    ] = None,
    model: Annotated[
        str | None, Option('--model', '-m', metavar='MODEL', help='A model, such as openai:gpt-5.2.')
    ] = None,
    write: Write = False,
    output: OutputFolder = None,
    yes: Annotated[bool, Option('--yes', '-y', help='Approve scripts, if the policy asks.')] = False,
    *,
    chosen: ChosenSkills,
) -> int:
    """It shows each tool call and its result. Fetched scripts run in the sandbox.

    A file that a message names is copied for the scripts. The files they write are copied to the current folder; files
    that already exist are not changed. Without --model nothing is sent anywhere: a simple offline stand-in answers.

    Leave with `exit`, an empty line or Ctrl-D. Ctrl-C stops what is running.
    """
    from .conversation import Conversation, model_named  # imports pydantic-ai, which `--help` does without

    with Conversation.open(model_named(model), chosen.open(), out, yes=yes, output=output, write=write) as conversation:
        if message:
            return conversation.say(' '.join(message))
        conversation.introduce(offline=model is None)
        return conversation.go_on()
