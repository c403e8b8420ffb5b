"""An offline stand-in for a model: it chooses skills by their words and follows the simplest of their steps.

It shows that evals work, and which descriptions share too many words. It is no model: what it does says nothing about
what a model would do.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from html import unescape
from math import fsum

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pydantic_ai_skills.catalog.vocabulary import stem, words_of

__all__ = ('best_skill', 'files_of', 'instructions_of', 'say', 'skill_names', 'stand_in_model')

STAND_IN = 'stand-in'
"""The name that the stand-in has as a model."""

ENOUGH = 1.5
"""The score from which the stand-in loads a skill."""

MAX_WORDS = 500
"""How many words of a text it looks at."""

NAMED = 2
"""How much it adds to a skill's score to be named in the prompt."""

_ENTRY = re.compile(r'<skill name="([^"<]*+)"[^<>]*+>(?:([^<]*+)</skill>)?')
_FILES = re.compile(r'<(resource|script)s>\n(.*?)</\1s>', re.DOTALL)
_ITEM = re.compile(r'<(?:resource|script) name="([^"<]*+)">[^<]*+</(?:resource|script)>\n')
_SPAN = re.compile(r'`([^`\n]+)`')
_FENCED = re.compile(r'^```\w*\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_COMMON = frozenset(
    words_of(
        'and any are can does for from has have how into its many not one only our out please skill that the their '
        'them then there they this two use was what when which who why will with without would you your',
        MAX_WORDS,
    )
)
_VALUES = {
    'COLOUR': re.compile(r'#[0-9a-fA-F]{3,6}\b'),
    'DATE': re.compile(r'\b\d{4}-\d{2}-\d{2}\b'),
    'FILE': re.compile(r'[\w-]+(?:/[\w-]+)*\.[A-Za-z]\w+'),
    'NUMBER': re.compile(r'(?<![\w.#-])\d+(?:\.\d+)?(?![\w-]|\.\d)'),
    'TEXT': re.compile(r'(?<=")[^"]+(?=")'),
    'VERSION': re.compile(r'\b\d+\.\d+\.\d+\b'),
}
"""What the placeholders in a command of a skill stand for, to be found in the prompt."""


def stand_in_model(*, enough: float = ENOUGH) -> FunctionModel:
    """A model that needs no network, for a first look at evals and for tests of them.

    It loads the skill whose name and description share the most words with the prompt, or none if that is too little. A
    word counts the more the fewer skills have it. Then it runs the first command that the instructions of the skill
    show, such as `scripts/total.py FILE`, with what the prompt names; without a command, it answers with the first form
    that they show between fences. It always does the same, and it is no measure of what a real model does.

    ```python
    from pydantic_ai import Agent
    from pydantic_ai_skills import SkillsToolset
    from pydantic_ai_skills.evals import stand_in_model

    agent = Agent(stand_in_model(), toolsets=[SkillsToolset(directories=['examples/library'])])
    print(agent.run_sync('Is #767676 text on a #ffffff background readable?').output)
    #> 4.54:1 meets AA
    ```

    Args:
        enough: The score from which it loads a skill. With 0, one common word is enough.
    """

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        prompt, results = _so_far(messages)
        if not results:
            return _choose(prompt, info, enough)
        result = results[-1]
        text = result.model_response_str()
        if result.outcome == 'success' and result.tool_name == 'load_skill':
            return _follow(text, prompt)
        return say(text.strip() if result.outcome == 'success' else f'That did not work: {text}')

    return FunctionModel(respond, model_name=STAND_IN)


def _so_far(messages: list[ModelMessage]) -> tuple[str, list[ToolReturnPart]]:
    """The last prompt, and what tools have returned since."""
    prompt, results = '', list[ToolReturnPart]()
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, UserPromptPart):
            prompt, results = str(part.content), []
        elif isinstance(part, ToolReturnPart):
            results.append(part)
    return prompt, results


def _choose(prompt: str, info: AgentInfo, enough: float) -> ModelResponse:
    name = best_skill(prompt, info.instructions or '', enough=enough)
    if name is None or 'load_skill' not in [tool.name for tool in info.function_tools]:
        return say('No skill fits, and a stand-in knows nothing by itself.')
    return ModelResponse(parts=[ToolCallPart('load_skill', {'skill_name': name})])


# --- Choosing a skill ---------------------------------------------------------------------------------------------


def best_skill(prompt: str, instructions: str, *, enough: float = 0) -> str | None:
    """The skill listed in the instructions that has most in common with a prompt; `None` if no score is enough.

    Each word that they share counts 1, divided by the number of skills that have it; a name in the prompt adds `NAMED`.
    """
    skills = {
        unescape(name): _words(unescape(f'{name} {description}')) for name, description in _ENTRY.findall(instructions)
    }
    having = Counter(word for words in skills.values() for word in words)
    asked, lower = _words(prompt), prompt.lower()
    scores = {
        name: fsum(1 / having[word] for word in asked & words) + NAMED * (name in lower)
        for name, words in skills.items()
    }
    best = max(scores, key=lambda name: scores[name], default=None)
    return best if best is not None and scores[best] > 0 and scores[best] >= enough else None


def skill_names(instructions: str) -> set[str]:
    """The names of the skills that instructions list."""
    return {unescape(name) for name, _ in _ENTRY.findall(instructions)}


def _words(text: str) -> set[str]:
    """The words of a text, without their endings."""
    return {stem(word) for word in words_of(text, MAX_WORDS) if len(word) > 2 and word not in _COMMON}


# --- Following its instructions -----------------------------------------------------------------------------------


def _follow(loaded: str, prompt: str) -> ModelResponse:
    """Do what the instructions of a skill show first: a command, or a form to answer in."""
    instructions = instructions_of(loaded)
    scripts = [name for kind, name in files_of(loaded) if kind == 'script']
    for script, *words in map(_split, _SPAN.findall(instructions)):
        if script in scripts:
            arguments = _filled(words, prompt)
            if arguments is None:
                return say(f'The prompt does not have all that `{script}` needs.')
            name = _ENTRY.findall(loaded)[0][0]
            call = {'skill_name': unescape(name), 'script_name': script, 'args': arguments}
            return ModelResponse(parts=[ToolCallPart('run_skill_script', call)])
    form = _FENCED.search(instructions)
    return say(form[1].strip() if form else instructions.partition('\n\n')[0])


def _filled(words: list[str], prompt: str) -> list[str] | None:
    """The arguments of a command, its placeholders filled from the prompt; `None` if the prompt does not name one."""
    found = {name: iter(pattern.findall(prompt)) for name, pattern in _VALUES.items()}
    filled = [next(found[word], None) if word in found else word for word in words]
    return None if None in filled else [word for word in filled if word is not None]


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command) or ['']
    except ValueError:  # an odd quote
        return command.split()


# --- What the tools of a toolset say ------------------------------------------------------------------------------


def instructions_of(loaded: str) -> str:
    """The instructions in the result of `load_skill`."""
    return loaded.rpartition('<skill_instructions>')[2].partition('</skill_instructions>')[0].strip()


def files_of(loaded: str) -> Iterator[tuple[str, str]]:
    """The kind and name of the files that a loaded skill lists: with details, and in one line for each folder."""
    for kind, listed in _FILES.findall(loaded):
        yield from ((kind, unescape(name)) for name in _ITEM.findall(listed))
        for line in _ITEM.sub('', listed).splitlines():
            folder, found, names = line.rpartition('/: ')
            yield from ((kind, unescape(f'{folder}/{name}' if found else name)) for name in names.split(', '))


def say(text: str) -> ModelResponse:
    """An answer in words."""
    return ModelResponse(parts=[TextPart(text)])
