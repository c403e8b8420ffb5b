"""Skills, and requests for them that share few words with their descriptions."""

from __future__ import annotations

from typing import Any

from pydantic_ai_skills import Skill

SKILLS: list[Skill[Any]] = [
    Skill(name, description, '')
    for name, description in {
        'invoice-writer': 'Create an invoice for a payment that is due.',
        'expense-report': 'File an expense with its receipt for reimbursement.',
        'pdf-merge': 'Merge PDF documents.',
        'image-resize': 'Resize images and compress them.',
        'speech-to-text': 'Transcribe audio with a voice in it.',
        'translator': 'Translate into German and other languages.',
        'leave-request': 'Apply for vacation or sick leave.',
        'onboarding': 'Onboarding plan for a new employee.',
        'deploy': 'Deploy to the production server.',
        'rollback': 'Revert a deployment to the previous release.',
        'profiler': 'Profile latency and performance.',
        'sql-query': 'Query a database with SQL.',
        'unit-tests': 'Add unit tests.',
        'reset-access': 'Reset the credential of a login.',
        'plotter': 'Plot a chart of measurements.',
        'csv-cleaner': 'Clean a CSV spreadsheet.',
        'scheduler': 'Schedule an appointment in the calendar.',
        'mail-answers': 'Answer email from the inbox.',
        'contract-review': 'Review the clauses of a contract.',
        'complaints': 'Handle a complaint of a customer.',
        'forecast': 'Tell the weather.',
        'recipes': 'Find a recipe.',
        'poet': 'Compose verse.',
        'route-planner': 'Plan a route on a map.',
        'summarizer': 'Summarize in brief.',
        'bug-hunter': 'Find the cause of an exception.',
        # Words of some requests, which mean something else there.
        'carpentry': 'Build furniture: a bed, a bench, a wardrobe for a day in May.',
        'shipping': 'Track containers on board tonight.',
        'site-builder': 'Build a site with orders and growth reports.',
        'function-guide': 'Explain a function with a loop.',
        'board-games': 'Something to play on Friday or Monday with Bob and Ana.',
    }.items()
]

REQUESTS = {
    'Bill Acme for what they owe us': 'invoice-writer',
    'Charge the buyer': 'invoice-writer',
    'I travelled to Rome and want my spending back': 'expense-report',
    'Glue these papers together': 'pdf-merge',
    'Stitch the pages together': 'pdf-merge',
    'Make my photographs lighter': 'image-resize',
    'The snapshots should be smaller': 'image-resize',
    'Turn this podcast recording into written words': 'speech-to-text',
    'Put into words what is heard in this talk': 'speech-to-text',
    'My reader speaks French only': 'translator',
    'I will be away for a holiday in May': 'leave-request',
    'Take Friday off': 'leave-request',
    'A joiner is hired, how do we welcome him on his first day': 'onboarding',
    'Prepare for the newcomer to begin on Monday': 'onboarding',
    'Ship it, we go live tonight': 'deploy',
    'Undo the rollout of today': 'rollback',
    'Why is the site so sluggish': 'profiler',
    'Look into the speed of this slow loop': 'profiler',
    'How many rows has the table of orders': 'sql-query',
    'Verify this function with proof': 'unit-tests',
    'My password does not work, I am locked out': 'reset-access',
    'Show me a curve, a diagram of the growth': 'plotter',
    'Tidy up the cells of this Excel sheet': 'csv-cleaner',
    'Find a slot for a meeting with Ana in my diary': 'scheduler',
    'Reply to the letter from Bob': 'mail-answers',
    'Would a lawyer be happy with this legal agreement': 'contract-review',
    'An unhappy client wrote, he is angry': 'complaints',
    'Do I need an umbrella, will there be rain': 'forecast',
    'I am hungry, what is for dinner': 'recipes',
    'Something with a rhyme, like a sonnet': 'poet',
    'What is the distance, and how do I drive there': 'route-planner',
    'Give me the gist, just the main points': 'summarizer',
    'Merge the documents from Ana': 'pdf-merge',
    'Compress images of the bench': 'image-resize',
    'Deploy the site': 'deploy',
    'Query the orders': 'sql-query',
    'Plot the growth of orders': 'plotter',
    'Weather on Friday': 'forecast',
    'It is broken: look at this stacktrace of the crash': 'bug-hunter',
}
"""The skill that each request means."""
