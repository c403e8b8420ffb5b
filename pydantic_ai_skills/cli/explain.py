"""`explain`: why a skill would be chosen for a prompt, or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from typer import Argument, Option

import pydantic_ai_skills as api

from .command import PROBLEMS_FOUND, SUCCESS, command
from .event_loop import run
from .output import Failure, Output, counted, place
from .skills import ChosenSkills, complete_skill_names, find_project, find_skill

MAX_SHOWN = 20
"""How many skills or overlaps each list shows."""

_SEEN = {
    'listed': 'in full',
    'shortened': 'shortened',
    'name-only': 'name only',
    'not-listed': 'not listed',
    'on-demand': 'on demand',
    'person-only': 'people only',
    'filtered': 'filtered out',
    'shadowed': 'shadowed',
    'invalid': 'invalid',
}
_LEFT_OUT = ('shadowed', 'invalid')
_SCRIPTS = ('scripts-denied', 'scripts-untrusted')


@command
def explain(
    out: Output,
    prompt: Annotated[str | None, Argument(metavar='PROMPT', help='What a person would ask.')] = None,
    skill: Annotated[
        str | None,
        Option('--skill', metavar='NAME', help='Explain this skill only.', autocompletion=complete_skill_names),
    ] = None,
    overlaps: Annotated[
        bool, Option('--overlaps', help='Show which descriptions are hard to tell apart, of all skills.')
    ] = False,
    *,
    chosen: ChosenSkills,
) -> int:
    """No model is asked and nothing is run.

    It shows what the model sees of each skill, what was cut, how the search ranks them and by which words, and which
    skills are left out and why. The exit status is 1 if there are overlaps with --overlaps, or if no skill fits the
    prompt.
    """
    if overlaps == (prompt is not None) or (overlaps and skill):
        raise Failure('Give either a PROMPT or --overlaps.')
    toolset = chosen.look(out)
    if prompt is None:
        return _explain_overlaps(out, toolset)
    if not prompt.strip():
        raise Failure('The prompt is empty.')
    with out.progress('Explaining'):
        explanation = run(api.explain_skills(toolset, prompt))
    wanted = explanation.skills if skill is None else _about(toolset, explanation, skill)
    if out.as_json:
        out.data(_data(explanation, wanted))
    elif skill is None:
        _show(out, explanation)
    else:
        for each in wanted:
            _show_one(out, explanation, each)
    return SUCCESS if any(each.rank for each in wanted) else PROBLEMS_FOUND


def _about(toolset: api.SkillsToolset[Any], explanation: api.Explanation, name: str) -> Sequence[api.ExplainedSkill]:
    return explanation.about(name) or explanation.about(find_skill(toolset, name).name)


# --- A prompt -----------------------------------------------------------------------------------------------------


def _show(out: Output, explanation: api.Explanation) -> None:
    used = [skill for skill in explanation.skills if skill.state not in _LEFT_OUT]
    found = [skill for skill in used if skill.rank]
    seen = sum(skill.state in ('listed', 'shortened') for skill in used)
    room = '' if explanation.budget is None else f' of {explanation.budget:,}'
    described = f'The model sees {seen:,} of {counted(len(used), "skill")} with a description'
    out.line(f'{described}, in {explanation.characters:,}{room} characters.')
    if seen < len(used):
        out.line('It can search for others.' if explanation.offers_search else 'It has no tool to search for others.')
    if find_project().settings.policy == 'deny':
        out.line("Scripts may not run: the project's policy is 'deny'.")
    if found:
        out.heading('What fits the prompt, by words')
        rows = ((str(skill.rank), skill.name, _SEEN[skill.state], ', '.join(skill.words)) for skill in found)
        out.table(('>rank', 'skill', 'the model sees', 'found by'), rows, wide='found by')
    else:
        out.heading('No skill has a word of the prompt.')
    if unknown := [word.word for word in explanation.words if not word.skills]:
        out.line(('In no skill: ', 'dim'), ', '.join(unknown))
    _show_unseen(out, [skill for skill in explanation.skills if skill.state != 'listed'])
    names = {skill.name for skill in found}
    close = [overlap for overlap in explanation.overlaps if names.intersection(overlap.names)]
    if close:
        out.heading('Hard to tell apart')
        _list_overlaps(out, close)


def _show_unseen(out: Output, skills: Sequence[api.ExplainedSkill]) -> None:
    if not skills:
        return
    out.heading('Not seen in full')
    for skill in skills[:MAX_SHOWN]:
        why = skill.reasons[0]
        out.line((skill.name, 'bold'), (f'  {_SEEN[skill.state]}', 'yellow'))
        out.paragraph(why.message)
    _rest(out, skills)


def _show_one(out: Output, explanation: api.Explanation, skill: api.ExplainedSkill) -> None:
    out.line((skill.name, 'bold'), (f'  {_SEEN[skill.state]}', 'green' if skill.state == 'listed' else 'yellow'))
    for why in _told(skill):
        out.paragraph(why.message, why.fix and f'fix: {why.fix}')
    found = {word.word: word for word in explanation.words}
    words = [_found(found[word].means, word, found[word].found_in[skill.name]) for word in skill.words]
    out.fields(
        {
            'source': place(skill.source),
            'rank': _rank(skill),
            'found by': '; '.join(words),
            'shown': skill.shown,
            'cut': ' […] '.join(skill.cut),
        }
    )
    _list_overlaps(out, [overlap for overlap in explanation.overlaps if skill.name in overlap.names])


def _rank(skill: api.ExplainedSkill) -> str | None:
    if skill.state in _LEFT_OUT:
        return None
    return f'{skill.rank} by words' if skill.rank else 'not found by the words of the prompt'


def _found(means: Sequence[str], word: str, fields: Iterable[str]) -> str:
    forms = '' if means[0] == word else f' (as {means[0]})'
    return f'{word}{forms} in {", ".join(fields)}'


def _told(skill: api.ExplainedSkill) -> Iterable[Any]:
    # Commands that only show something open all sources without a sandbox, so reasons about scripts would mislead.
    return (why for why in skill.reasons if why.code not in _SCRIPTS)


def _data(explanation: api.Explanation, skills: Iterable[api.ExplainedSkill]) -> dict[str, Any]:
    return {
        'prompt': explanation.prompt,
        'characters': explanation.characters,
        'budget': explanation.budget,
        'offers_search': explanation.offers_search,
        'words': [{'word': word.word, 'means': word.means, 'skills': word.skills} for word in explanation.words],
        'skills': [{**asdict(skill), 'reasons': [asdict(why) for why in _told(skill)]} for skill in skills],
        'overlaps': [asdict(overlap) for overlap in explanation.overlaps],
        'problems': [str(problem) for problem in explanation.problems],
    }


# --- Overlaps -----------------------------------------------------------------------------------------------------


def _explain_overlaps(out: Output, toolset: api.SkillsToolset[Any]) -> int:
    skills = toolset.skills
    with out.progress('Comparing'):
        found = api.find_overlaps({name: skill.description for name, skill in skills.items()})
    if out.as_json:
        out.data({'skills': len(skills), 'overlaps': [asdict(overlap) for overlap in found]})
    elif found:
        out.line(f'{counted(len(found), "overlap")} among {counted(len(skills), "skill")}.')
        _list_overlaps(out, found)
    else:
        out.line(f'No descriptions overlap among {counted(len(skills), "skill")}.')
    return PROBLEMS_FOUND if found else SUCCESS


def _list_overlaps(out: Output, overlaps: Sequence[api.SkillOverlap]) -> None:
    for overlap in overlaps[:MAX_SHOWN]:
        out.line((' and '.join(overlap.names), 'bold'), f'  {overlap.similarity:.0%} the same')
        own = [f'only {name}: {", ".join(words) or "nothing"}' for name, words in overlap.apart.items()]
        out.paragraph(f'shared: {", ".join(overlap.shared)}')
        out.paragraph(*(own if any(overlap.apart.values()) else ['No word tells them apart.']))
    _rest(out, overlaps)


def _rest(out: Output, shown: Sequence[object]) -> None:
    if len(shown) > MAX_SHOWN:
        out.line(f'… and {len(shown) - MAX_SHOWN:,} more; see all with --json.')
