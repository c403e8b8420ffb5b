"""Looks for what a reader of a skill would not see, or should know before using it."""

from .audit import SkillAudit, audit_skill, skill_content_hash
from .other_scanner import run_scanner
from .sarif import SarifRun, merge_runs, read_sarif

__all__ = ('SarifRun', 'SkillAudit', 'audit_skill', 'merge_runs', 'read_sarif', 'run_scanner', 'skill_content_hash')
