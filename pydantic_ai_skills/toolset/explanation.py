"""What an explanation consists of: the skills, what a model sees of each, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic_ai_skills.catalog.fulltext import PromptWord
from pydantic_ai_skills.catalog.overlaps import SkillOverlap
from pydantic_ai_skills.problems import SkillProblem

SkillState = Literal[
    'listed',
    'shortened',
    'name-only',
    'not-listed',
    'on-demand',
    'person-only',
    'filtered',
    'shadowed',
    'invalid',
]
"""What a model sees of a skill."""

ReasonCode = SkillState | Literal['not-found', 'overlaps', 'scripts-denied', 'scripts-untrusted']
"""Why a skill is or is not likely to be chosen: its state, or something else that matters."""


class _Row(NamedTuple):
    message: str
    fix: str = ''


# fmt: off - one row for each reason
REASONS: dict[ReasonCode, _Row] = {
    'listed': _Row('The model sees its name and whole description.'),
    'shortened': _Row(
        'The list is longer than its budget, so the model sees only a part of the description.',
        'Begin the description with what matters, pin the skill, or raise `catalog_budget`.',
    ),
    'name-only': _Row(
        'The list is longer than its budget, so the model sees only the name.',
        'Pin the skill, raise `catalog_budget`, or offer fewer skills.',
    ),
    'not-listed': _Row(
        'The list is longer than its budget and was cut before this name, so only a search finds the skill.',
        'Pin the skill, raise `catalog_budget`, or offer fewer skills.',
    ),
    'on-demand': _Row('It is a deferred capability, which pydantic-ai lists and loads itself.'),
    'person-only': _Row(
        'Its file says `disable-model-invocation`, so only a person can load it.',
        'Remove the key from its SKILL.md, or load it with `toolset.invoke`.',
    ),
    'filtered': _Row(
        'The `skill_filter` says that it does not exist for this run.', 'Change the filter, or what it decides by.'
    ),
    'shadowed': _Row(
        'Another skill of the same name comes first: {}.', 'Rename one of them, or leave out one of the sources.'
    ),
    'invalid': _Row('It is left out [{}]: {}', '{}'),
    'not-found': _Row(
        'The model would have to search for it, and no word of the prompt finds it.',
        'Use words in the description that people ask with, or give the toolset an `EmbeddingRanker`.',
    ),
    'overlaps': _Row(
        'Its description is hard to tell from that of {}.',
        'Say in each description when to use the one and not the other.',
    ),
    'scripts-denied': _Row(
        'Its scripts may not run here, so it can help with its instructions only.',
        'Allow them with `script_policy`, and do not exclude `run_skill_script`.',
    ),
    'scripts-untrusted': _Row(
        'Its source is not trusted and its executor is no sandbox, so its scripts do not run.',
        'Run them in a sandbox, or mark the source as trusted.',
    ),
}
# fmt: on


@dataclass(frozen=True, kw_only=True)
class ChoiceReason:
    """Why a skill is or is not likely to be chosen."""

    code: ReasonCode
    """A stable identifier."""

    message: str
    """The reason, in a sentence."""

    fix: str = ''
    """What to do if it should be otherwise."""


def reason(code: ReasonCode, *told: str, fix: str = '') -> ChoiceReason:
    """The reason with this code, its message filled in from `REASONS`."""
    row = REASONS[code]
    return ChoiceReason(code=code, message=row.message.format(*told), fix=row.fix.format(fix))


@dataclass(frozen=True, kw_only=True)
class ExplainedSkill:
    """What a model sees of one skill, and why."""

    name: str
    """Its name; of an invalid skill, the name of its folder."""

    source: str
    """Where it comes from: its folder, its source, or `Python`."""

    state: SkillState
    """What the model sees of it."""

    reasons: tuple[ChoiceReason, ...]
    """Why it is in its state, then what else makes it more or less likely to be chosen."""

    shown: str | None = None
    """The description as the model sees it in the list; `None` if it sees none."""

    cut: tuple[str, ...] = ()
    """The parts of the description that the model does not see in the list."""

    rank: int | None = None
    """Its place in the search for the prompt, from 1; `None` if it is not found."""

    word_rank: int | None = None
    """Its place by words alone."""

    similarity: float | None = None
    """How similar in meaning it is to the prompt, from -1 to 1, if the ranker of the toolset compares meanings."""

    words: tuple[str, ...] = ()
    """The words of the prompt that find it."""

    @property
    def codes(self) -> tuple[ReasonCode, ...]:
        """The codes of its reasons."""
        return tuple(each.code for each in self.reasons)


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Which skills a model would see and find for a prompt, and why not the others."""

    prompt: str
    """The prompt."""

    skills: tuple[ExplainedSkill, ...]
    """All skills: those that the search finds, best first, then the others by name."""

    words: tuple[PromptWord, ...]
    """The words of the prompt that count, and the skills that have them."""

    overlaps: tuple[SkillOverlap, ...]
    """Skills that a model can hardly tell apart by what it sees of them."""

    characters: int
    """How many characters the instructions have."""

    budget: int | None
    """How many they may have."""

    offers_search: bool
    """Whether the model can search for skills that it does not see."""

    problems: tuple[SkillProblem, ...] = ()
    """Problems with sources, whose skills may be missing."""

    def about(self, name: str) -> list[ExplainedSkill]:
        """The skills that have this name, of which at most one is used."""
        return [skill for skill in self.skills if skill.name == name]
