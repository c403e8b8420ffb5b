"""Explains which skills a model would see and find for a prompt, and why not the others. Nothing is executed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio.to_thread

from pydantic_ai_skills.catalog.merge import MAX_SKILLS_LISTED, losers
from pydantic_ai_skills.catalog.overlaps import SkillOverlap, find_overlaps
from pydantic_ai_skills.catalog.search import Ranking, wait_here
from pydantic_ai_skills.exceptions import SkillError
from pydantic_ai_skills.problems import SkillProblem
from pydantic_ai_skills.types.skill import Skill

from .explanation import ChoiceReason, ExplainedSkill, Explanation, SkillState, reason
from .library import SkillLibrary, is_context
from .prompt import SEARCH, View
from .results import one_line, text_in
from .toolset import SkillsToolset

MAX_FOUND = 20
"""How many skills the search is asked for."""

_UNSEEN = frozenset(('name-only', 'not-listed'))


async def explain_skills(toolset: SkillsToolset[Any], prompt: str, ctx: Any = None) -> Explanation:
    """Explain which skills a model would see and find for a prompt, and why not the others.

    ```python
    import asyncio

    from pydantic_ai_skills import Skill, SkillsToolset, explain_skills

    skills = [Skill('pdf-forms', 'Fill in PDF forms.', ''), Skill('haiku', 'Write short poems.', '')]
    explanation = asyncio.run(explain_skills(SkillsToolset(skills=skills), 'Help me with this form'))
    print([(skill.name, skill.state, skill.words) for skill in explanation.skills])
    #> [('pdf-forms', 'listed', ('form',)), ('haiku', 'listed', ())]
    ```

    Args:
        toolset: The toolset, or that of a `SkillsCapability`.
        prompt: What a person would ask.
        ctx: The context of a run, or whatever `skill_filter` accepts in its place.

    Raises:
        ValueError: The prompt is empty.
        SkillError: The ranker failed.
    """
    library = toolset.library
    visible = await library.visible(ctx)
    listed = library.listed(visible, ctx if is_context(ctx) else None)
    skills = library.look().catalog.skills
    rank = toolset.skill_search.explain
    ranking = await anyio.to_thread.run_sync(rank, prompt, skills, listed.catalog.skills, MAX_FOUND, wait_here)
    return await anyio.to_thread.run_sync(_explain, prompt, _Seen(library, visible, listed, ranking))


@dataclass(frozen=True)
class _Seen:
    """What is known before the explanation is written."""

    library: SkillLibrary[Any]
    visible: View
    """With the skills that exist for the run and that a model may load."""
    listed: View
    """Without those that are deferred capabilities."""
    ranking: Ranking


def _explain(prompt: str, seen: _Seen) -> Explanation:
    settings, listed = seen.library.settings, seen.listed
    entries = settings.render(listed.catalog, listed.tools).entries
    shown = {name: text_in(entry) for name, entry in entries.items()}
    texts = {name: shown.get(name) or skill.description for name, skill in listed.catalog.skills.items()}
    overlaps = find_overlaps(texts)
    catalog = seen.library.look().catalog
    used = [_used(skill, shown, seen) for skill in catalog.skills.values()]
    skills = [*_with_more(used, overlaps, seen), *_left_out(seen)]
    size = len(listed.instructions.content) if listed.instructions else 0
    return Explanation(
        prompt=prompt,
        skills=tuple(sorted(skills, key=lambda skill: (skill.rank or len(skills), skill.name))),
        words=seen.ranking.words,
        overlaps=tuple(overlaps),
        characters=size,
        budget=settings.budget,
        offers_search=SEARCH in listed.tools,
        problems=tuple(problem for problem in catalog.problems if _is_of_source(problem)),
    )


# --- Skills that are in the catalog -------------------------------------------------------------------------------


def _used(skill: Skill[Any], shown: Mapping[str, str | None], seen: _Seen) -> ExplainedSkill:
    """What the model sees of a skill that is in the catalog."""
    name, ranking = skill.name, seen.ranking
    state = _state(skill, shown, seen)
    text = shown.get(name)
    return ExplainedSkill(
        name=name,
        source=_source_of(skill),
        state=state,
        reasons=(reason(state),),
        shown=text,
        cut=tuple(_cut(one_line(skill.description), text)) if state == 'shortened' and text else (),
        rank=_place(name, ranking.names),
        word_rank=_place(name, ranking.by_words),
        similarity=ranking.similarities.get(name),
        words=tuple(word.word for word in ranking.words if name in word.found_in),
    )


def _state(skill: Skill[Any], shown: Mapping[str, str | None], seen: _Seen) -> SkillState:
    name = skill.name
    if name not in seen.visible.catalog.skills:
        return 'person-only' if skill.disable_model_invocation else 'filtered'
    if name not in seen.listed.catalog.skills:
        return 'on-demand'
    if name not in shown:
        return 'not-listed'
    text = shown[name]
    if text is None:
        return 'name-only'
    return 'listed' if text == one_line(skill.description) else 'shortened'


def _cut(whole: str, shown: str) -> Iterator[str]:
    """The parts of `whole` that `shown` lacks, where an ellipsis stands for some of them."""
    start = 0
    for piece in filter(None, map(str.strip, shown.split('…'))):
        at = max(whole.find(piece, start), start)
        if gap := whole[start:at].strip():
            yield gap
        start = at + len(piece)
    if rest := whole[start:].strip():
        yield rest


def _place(name: str, names: Sequence[str]) -> int | None:
    return names.index(name) + 1 if name in names else None


def _source_of(skill: Skill[Any]) -> str:
    return skill.path or (skill.source.name if skill.source else 'Python')


# --- What else matters --------------------------------------------------------------------------------------------


def _with_more(
    skills: Sequence[ExplainedSkill], overlaps: Sequence[SkillOverlap], seen: _Seen
) -> Iterator[ExplainedSkill]:
    """The skills, with further reasons why each is or is not likely to be chosen."""
    rivals: dict[str, set[str]] = {}
    for overlap in overlaps:
        for name in overlap.names:
            rivals.setdefault(name, set()).update(overlap.names)
    for skill in skills:
        more = [*_missed(skill), *_rivalry(skill.name, rivals.get(skill.name, ())), *_scripts(skill, seen)]
        yield replace(skill, reasons=(*skill.reasons, *more)) if more else skill


def _missed(skill: ExplainedSkill) -> Iterator[ChoiceReason]:
    if skill.state in _UNSEEN and skill.rank is None and not skill.words:
        yield reason('not-found')


def _rivalry(name: str, rivals: Collection[str]) -> Iterator[ChoiceReason]:
    others = sorted({*rivals} - {name})
    if others:
        more = f' and {len(others) - 3} more' if len(others) > 3 else ''
        yield reason('overlaps', f'{", ".join(map(repr, others[:3]))}{more}')


def _scripts(explained: ExplainedSkill, seen: _Seen) -> Iterator[ChoiceReason]:
    """Why its scripts are refused in every run, if they are. In a large catalog, only skills that rank are checked."""
    skills = seen.visible.catalog.skills
    skill = skills.get(explained.name)
    if skill is None or skill.is_late or (len(skills) > MAX_SKILLS_LISTED and explained.rank is None):
        return
    gate = seen.library.owner_of(skill).gate
    try:
        scripts = list(skill.scripts)
    except (SkillError, OSError):  # reported when the skill is used
        return
    if scripts and (gate.closed or gate.policy == 'deny'):
        yield reason('scripts-denied')
    elif any(gate.refusal(skill, script) for script in scripts):
        yield reason('scripts-untrusted')


# --- Skills that are not in the catalog ---------------------------------------------------------------------------


def _left_out(seen: _Seen) -> Iterator[ExplainedSkill]:
    """The skills that lost their name to another, and those that break a rule."""
    catalog = seen.library.look().catalog
    for loser, winner in losers(catalog):
        why = reason('shadowed', _source_of(winner))
        yield ExplainedSkill(name=loser.name, source=_source_of(loser), state='shadowed', reasons=(why,))
    for problem in catalog.problems:
        folder = _folder_of(problem)
        if problem.code == 'duplicate-name':
            why = ChoiceReason(code='shadowed', message=problem.message, fix=problem.fix or '')
            yield ExplainedSkill(name=folder, source=problem.path, state='shadowed', reasons=(why,))
        elif problem.severity == 'error' and not _is_of_source(problem):
            why = reason('invalid', problem.code, problem.message, fix=problem.fix or '')
            yield ExplainedSkill(name=folder, source=problem.path, state='invalid', reasons=(why,))


def _folder_of(problem: SkillProblem) -> str:
    path, last = os.path.split(problem.path)
    return os.path.basename(path) if last.lower().endswith('.md') else last


def _is_of_source(problem: SkillProblem) -> bool:
    """Whether an error is about a source, not about one skill."""
    return problem.severity == 'error' and not problem.path.lower().endswith('.md')
