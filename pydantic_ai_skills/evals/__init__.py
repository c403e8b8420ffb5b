"""Evaluates skills: which prompts load them, and whether they help.

`evaluate` needs pydantic-evals: `pip install 'pydantic-ai-skills[evals]'`.
"""

from .baseline import Baseline
from .case_files import cases_in_json, cases_of, read_cases, write_cases
from .cases import CaseSet, FolderFile, SkillCase
from .checks import (
    Check,
    ExitCode,
    FileWritten,
    Judged,
    OutputContains,
    OutputEquals,
    OutputMatches,
    Satisfies,
    ScriptRan,
)
from .evaluate import EvalProgress, evaluate
from .html_page import html_page, is_of_stand_in
from .outcome_report import (
    CheckResult,
    Configuration,
    OutcomeDelta,
    OutcomeReport,
    OutcomeResult,
    OutcomeRun,
    OutcomeSummary,
    SkillOutcomes,
)
from .report import EvalReport, SkillScore
from .results import write_results
from .run_cost import RunCost
from .runs import CaseRun
from .spread import Delta, Spread
from .stand_in import STAND_IN, stand_in_model
from .trigger_report import ConfusionMatrix, SkillTriggers, TriggerReport, TriggerResult, TriggerRun

__all__ = (
    'STAND_IN',
    'Baseline',
    'CaseRun',
    'CaseSet',
    'Check',
    'CheckResult',
    'Configuration',
    'ConfusionMatrix',
    'Delta',
    'EvalProgress',
    'EvalReport',
    'ExitCode',
    'FileWritten',
    'FolderFile',
    'Judged',
    'OutcomeDelta',
    'OutcomeReport',
    'OutcomeResult',
    'OutcomeRun',
    'OutcomeSummary',
    'OutputContains',
    'OutputEquals',
    'OutputMatches',
    'RunCost',
    'Satisfies',
    'ScriptRan',
    'SkillCase',
    'SkillOutcomes',
    'SkillScore',
    'SkillTriggers',
    'Spread',
    'TriggerReport',
    'TriggerResult',
    'TriggerRun',
    'cases_in_json',
    'cases_of',
    'evaluate',
    'html_page',
    'is_of_stand_in',
    'read_cases',
    'stand_in_model',
    'write_cases',
    'write_results',
)
