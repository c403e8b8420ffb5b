"""Approvals: a person sees the exact command of each script before it runs."""

from __future__ import annotations

import sys
from pathlib import Path

from offline import model
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults

from pydantic_ai_skills import SkillsToolset

SKILL = {'skill_name': 'csv-report'}
ARGS = {'_': ['assets/sales.csv'], 'value': 'revenue', 'group-by': 'region'}
CALLS = [('load_skill', SKILL), ('run_skill_script', SKILL | {'script_name': 'summarize', 'args': ARGS})]

skills = SkillsToolset(directories=[Path(__file__).parent / 'skills'], script_policy='ask')
agent = Agent(model(CALLS), toolsets=[skills], output_type=[str, DeferredToolRequests])


def ask(requests: DeferredToolRequests) -> DeferredToolResults:
    """Show each command and ask in the terminal. The answer holds for these bytes of the skill only."""
    answers: dict[str, bool] = {}
    for call in requests.approvals:
        asked = requests.metadata[call.tool_call_id]
        print(f'{asked["skill"]} wants to run:\n  {asked["command"]}')
        print('Run it? [y/N] ', end='', flush=True)
        answers[call.tool_call_id] = sys.stdin.readline().strip().lower() == 'y'
    return requests.build_results(approvals=answers, metadata=requests.metadata)


def main() -> None:
    """Run the agent, as often as it has something to ask."""
    result = agent.run_sync('Which region sold the most?')
    while isinstance(requests := result.output, DeferredToolRequests):
        result = agent.run_sync(message_history=result.all_messages(), deferred_tool_results=ask(requests))
    print(result.output)


if __name__ == '__main__':
    main()
