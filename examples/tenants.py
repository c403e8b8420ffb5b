"""A FastAPI service with several tenants: one agent, and each tenant has its own skills only.

Start it with `uvicorn --app-dir examples tenants:app` and ask it something:
`curl localhost:8000/ask -H 'X-Tenant: acme' --json '{"question": "What does a lamp cost?"}'`
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Body, Depends, FastAPI, Header, HTTPException
from offline import model
from pydantic_ai import Agent, RunContext

from pydantic_ai_skills import Skill, SkillsToolset

MARGINS = {'acme': '5 %', 'blum': '9 %'}  # in your service: a database


@dataclass
class Tenant:
    """Who asks: the dependencies of a run."""

    name: str


def belongs(ctx: RunContext[Tenant], skill: Skill[Tenant]) -> bool:
    """Whether a skill exists for a run. It is asked for the instructions and for every tool."""
    return skill.metadata['tenant'] == ctx.deps.name


def tenant_of(x_tenant: Annotated[str, Header()]) -> Tenant:
    """Who sent the request. In your service: from a token that was checked."""
    if x_tenant not in MARGINS:
        raise HTTPException(403, 'No such tenant.')
    return Tenant(x_tenant)


prices = [Skill(f'{t}-prices', 'For offers.', f'Add {m}.', metadata={'tenant': t}) for t, m in MARGINS.items()]
skills = SkillsToolset[Tenant](skills=prices, skill_filter=belongs)
agent = Agent(model([('list_skills', {})], answer='I can use: {}'), deps_type=Tenant, toolsets=[skills])


@asynccontextmanager
async def read_skills_first(app: FastAPI) -> AsyncGenerator[None]:
    """Nothing has to be read when a request comes."""
    await skills.load()
    yield


app = FastAPI(lifespan=read_skills_first)


@app.post('/ask')
async def ask(question: Annotated[str, Body(embed=True)], tenant: Annotated[Tenant, Depends(tenant_of)]) -> str:
    """Answer a question with the skills of the tenant."""
    return (await agent.run(question, deps=tenant)).output
