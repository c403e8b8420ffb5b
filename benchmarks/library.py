"""Skills as a company might have them, many of them nearly alike, and requests with the skills they mean."""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

from pydantic_ai_skills import Skill


class Deed(NamedTuple):
    """Something that can be done with things of a kind, and how people ask for it."""

    name: str
    does: str
    when: str
    tags: tuple[str, ...]
    asked: tuple[str, ...]


DOCUMENTS = (
    Deed(
        'merge',
        'Merge several {} into a single one, in a given order',
        'parts belong together',
        ('combine', 'join'),
        ('put these {} together into one', 'combine multiple {}', 'mergin {} in the right order'),
    ),
    Deed(
        'split',
        'Split {} at pages or chapters',
        'one is too long',
        ('separate', 'divide'),
        ('cut {} into chapters', 'separate a long {} into pieces', 'splitting {} by page'),
    ),
    Deed(
        'convert',
        'Convert {} to other formats and keep the layout',
        'another format is asked for',
        ('export',),
        ('turn {} into another format', 'conversion of {}', 'covert {} keeping its layout'),
    ),
    Deed(
        'summarize',
        'Summarize {} in a few sentences with the main points',
        'nobody has time to read',
        ('abstract',),
        ('short summary of {}', 'what are the main points of these {}', 'summarise {}'),
    ),
    Deed(
        'translate',
        'Translate {} into another language, with the terms of a glossary',
        'readers speak another language',
        ('localization',),
        ('{} in French please', 'translation of {} with our glossary', 'tranlate {}'),
    ),
    Deed(
        'redact',
        'Redact names and numbers in {} before they are passed on',
        'personal data must not leave',
        ('privacy',),
        ('black out personal data in {}', 'redacting names from {}', 'privacy of people in {}'),
    ),
    Deed(
        'compare',
        'Compare two versions of {} and list what changed',
        'there are several versions',
        ('diff',),
        ('what changed between two {}', 'diff of {}', 'comparing versions of {}'),
    ),
    Deed(
        'sign',
        'Prepare {} for signature and collect the signatures',
        'somebody has to sign',
        ('approval',),
        ('get signatures on {}', 'signing {}', 'collect approval signatures for {}'),
    ),
    Deed(
        'extract',
        'Extract tables and figures from {} as data',
        'numbers are locked in text',
        ('scrape',),
        ('pull tables out of {}', 'extraction of figures from {}', 'get the data from tables in {}'),
    ),
)
DATA = (
    Deed(
        'clean',
        'Clean {}: fix types, fill gaps and trim text',
        'imports fail',
        ('tidy', 'normalize'),
        ('fix wrong types in {}', 'cleaning {}', 'tidy up {} with gaps'),
    ),
    Deed(
        'chart',
        'Draw charts of {} with labelled axes',
        'a picture says more',
        ('plot', 'visualization'),
        ('plot {}', 'visualise {} as a diagram', 'charts with labelled axes from {}'),
    ),
    Deed(
        'validate',
        'Validate {} against a schema and report each violation',
        'quality is in doubt',
        ('schema', 'check'),
        ('check {} against the schema', 'validation of {}', 'which {} violate the schema'),
    ),
    Deed(
        'dedupe',
        'Find and remove duplicates in {}',
        'things are there twice',
        ('duplicates', 'unique'),
        ('remove duplicate {}', 'same entries twice in {}', 'unique {} only'),
    ),
    Deed(
        'query',
        'Answer questions about {} with SQL',
        'somebody wants a number',
        ('sql', 'analysis'),
        ('sql question about {}', 'how many {} per month with sql', 'quering {}'),
    ),
    Deed(
        'forecast',
        'Forecast {} for the coming months with error bars',
        'plans need numbers',
        ('prediction', 'trend'),
        ('predict {} for next quarter', 'forcast of {}', 'trend of {} in the coming months'),
    ),
    Deed(
        'import',
        'Import {} from files and services into the warehouse',
        'a new source appears',
        ('ingest', 'load'),
        ('load {} into the warehouse', 'ingest {} from a service', 'importing {}'),
    ),
    Deed(
        'anonymize',
        'Anonymize {} so that no person can be found in it',
        'they are shared outside',
        ('privacy', 'gdpr'),
        ('make {} anonymous', 'gdpr safe {}', 'anonymizing {} before sharing'),
    ),
    Deed(
        'archive',
        'Archive {} that are older than the retention period',
        'storage runs out',
        ('retention',),
        ('move old {} to the archive', 'retention of {}', 'archiving {}'),
    ),
)
SYSTEMS = (
    Deed(
        'deploy',
        'Deploy {} to staging and production step by step',
        'a release is ready',
        ('release', 'rollout'),
        ('roll out {} to production', 'deployment of {}', 'release {} to staging'),
    ),
    Deed(
        'monitor',
        'Watch {} and raise alerts on errors and latency',
        'nobody notices failures',
        ('alerts', 'metrics'),
        ('alerts for {}', 'monitoring latency of {}', 'metrics and errors of {}'),
    ),
    Deed(
        'rollback',
        'Roll {} back to the last good version',
        'a release went wrong',
        ('revert', 'undo'),
        ('undo the bad release of {}', 'revert {}', 'back to the last good version of {}'),
    ),
    Deed(
        'scale',
        'Scale {} up and down with the load',
        'traffic grows',
        ('autoscaling', 'capacity'),
        ('autoscaling of {}', 'more capacity for {}', 'scaling {} with the load'),
    ),
    Deed(
        'harden',
        'Harden {}: close ports, drop rights, patch',
        'a security review is due',
        ('security', 'patch'),
        ('security review of {}', 'patch {} and close ports', 'hardening {}'),
    ),
    Deed(
        'migrate',
        'Migrate {} to another provider without downtime',
        'a contract ends',
        ('move',),
        ('move {} to another provider', 'migration of {} without downtime', 'migating {}'),
    ),
    Deed(
        'debug',
        'Find out why {} fail, from logs and traces',
        'something is broken',
        ('troubleshoot', 'logs'),
        ('why do {} fail', 'troubleshooting {}', 'read the logs and traces of {}'),
    ),
    Deed(
        'backup',
        'Back {} up each night and test the restore',
        'data could be lost',
        ('restore', 'snapshot'),
        ('nightly backup of {}', 'restore {} from a snapshot', 'backing up {}'),
    ),
    Deed(
        'costs',
        'Cut the costs of {} by finding what is idle',
        'the bill is too high',
        ('finops', 'savings'),
        ('save money on {}', 'idle {} that cost us', 'the bill for {} is too high'),
    ),
)
MESSAGES = (
    Deed(
        'draft',
        'Draft {} in the tone of the house',
        'words are missing',
        ('write', 'compose'),
        ('write {} in our tone', 'compose {}', 'drafting {}'),
    ),
    Deed(
        'triage',
        'Sort {} by urgency and hand them to the right team',
        'too much comes in',
        ('prioritize', 'inbox'),
        ('prioritise {} by urgency', 'which {} are urgent', 'triaging {}'),
    ),
    Deed(
        'schedule',
        'Schedule {} for the best time in each time zone',
        'people live far apart',
        ('calendar',),
        ('best time for {} across time zones', 'scheduling {}', 'put {} on the calendar'),
    ),
    Deed(
        'follow-up',
        'Follow up on {} nobody has answered',
        'an answer is overdue',
        ('remind', 'reminder'),
        ('remind people about unanswered {}', 'reminder for {}', 'follow up {} that are overdue'),
    ),
    Deed(
        'template',
        'Build templates for {} with placeholders',
        'the same is written again and again',
        ('boilerplate',),
        ('boilerplate for {}', 'templates with placeholders for {}', 'reuse {} as a template'),
    ),
    Deed(
        'sentiment',
        'Measure the sentiment of {} and report trends',
        'the mood matters',
        ('mood', 'tone'),
        ('are {} positive or negative in mood', 'sentiment of {}', 'mood trends in {}'),
    ),
    Deed(
        'unsubscribe',
        'Unsubscribe from {} that nobody reads',
        'the inbox is full',
        ('spam',),
        ('stop getting {}', 'unsubscribing from {}', 'spam like {} nobody reads'),
    ),
    Deed(
        'thread',
        'Collect {} on one subject into a thread with a timeline',
        'a story is scattered',
        ('timeline',),
        ('timeline of {} on one subject', 'threads of {}', 'collect {} about the same subject'),
    ),
    Deed(
        'label',
        'Label {} by topic and customer',
        'they have to be found again',
        ('tag', 'categorize'),
        ('categorise {} by topic', 'labels for {}', 'tag {} by customer'),
    ),
)
THINGS = {
    'pdf': ('PDF files', 'PDFs', DOCUMENTS), 'word': ('Word documents', 'word files', DOCUMENTS),
    'slides': ('slide decks', 'presentations and slides', DOCUMENTS), 'contract': ('contracts', 'contracts', DOCUMENTS),
    'minutes': ('meeting minutes', 'meeting minutes', DOCUMENTS), 'thesis': ('theses', 'a thesis', DOCUMENTS),
    'manual': ('product manuals', 'the product manual', DOCUMENTS), 'resume': ('resumes', 'resumes', DOCUMENTS),
    'brochure': ('brochures', 'brochure', DOCUMENTS),
    'sales': ('sales records', 'sales', DATA), 'sensor': ('sensor readings', 'sensor readings', DATA),
    'survey': ('survey answers', 'survey answers', DATA), 'customer': ('customer records', 'customer records', DATA),
    'inventory': ('inventory lists', 'inventory', DATA), 'payroll': ('payroll data', 'payroll', DATA),
    'weather': ('weather observations', 'weather observations', DATA),
    'clinic': ('clinic visits', 'clinic visits', DATA),
    'web-traffic': ('web traffic logs', 'web traffic', DATA),
    'postgres': ('Postgres databases', 'postgres', SYSTEMS),
    'kubernetes': ('Kubernetes clusters', 'kubernetes', SYSTEMS),
    'lambda': ('Lambda functions', 'lambda functions', SYSTEMS), 'redis': ('Redis caches', 'redis', SYSTEMS),
    'nginx': ('nginx proxies', 'nginx', SYSTEMS), 'kafka': ('Kafka brokers', 'kafka brokers', SYSTEMS),
    'android': ('Android apps', 'the android app', SYSTEMS), 'website': ('websites', 'our website', SYSTEMS),
    'gpu': ('GPU nodes', 'gpu nodes', SYSTEMS),
    'email': ('emails', 'emails', MESSAGES), 'slack': ('Slack messages', 'slack messages', MESSAGES),
    'newsletter': ('newsletters', 'newsletters', MESSAGES), 'ticket': ('support tickets', 'support tickets', MESSAGES),
    'review': ('product reviews', 'product reviews', MESSAGES), 'invite': ('invitations', 'invitations', MESSAGES),
    'press': ('press releases', 'press releases', MESSAGES), 'comment': ('code comments', 'code comments', MESSAGES),
    'sms': ('text messages', 'text messages', MESSAGES),
}  # fmt: skip


def skills() -> list[Skill[Any]]:
    """Each deed for each thing it fits, and near-duplicates of every seventh for a department."""
    made: list[Skill[Any]] = []
    for thing, (noun, _, deeds) in THINGS.items():
        for deed in deeds:
            description = f'{deed.does.format(noun)}. Use when {deed.when}.'
            body = f'# {noun.capitalize()}: {deed.name}\n\n## Before you begin\n\n## Steps\n\n## Checks\n'
            made.append(Skill(f'{thing}-{deed.name}', description, body, metadata={'tags': list(deed.tags)}))
    for skill, number in zip(list(made), count()):
        if number % 7 == 0:
            text = f'{skill.description} This one is for the legal department only.'
            made.append(Skill(f'{skill.name}-legal', text, skill.content, metadata=skill.metadata))
    return made


def requests() -> list[tuple[str, str]]:
    """What people ask for, in words of their own and mistyped here and there, and the skill that is meant."""
    asked: list[tuple[str, str]] = []
    for thing, (_, called, deeds) in THINGS.items():
        for deed in deeds:
            asked += [(request.format(called), f'{thing}-{deed.name}') for request in deed.asked]
    return asked
