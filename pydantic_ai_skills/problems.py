"""Problems with skills and their sources, as values, and one table with a row for each problem code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

DOCS_URL = 'https://pydantic-ai-skills.readthedocs.io/en/latest/problems/'
"""The page that explains each problem code, under an anchor of the same name."""

ProblemSeverity = Literal['error', 'warning']
"""`'error'`: the skill or source was left out, or the skill fails a scan. `'warning'`: it was loaded anyway."""


@dataclass(frozen=True, kw_only=True)
class SkillProblem:
    """Something a person should know about a skill or a source of skills."""

    path: str
    """The file or source it is about."""

    code: str
    """A stable, kebab-case identifier of the rule, such as `name-mismatch`."""

    severity: ProblemSeverity
    """Whether the skill was left out or fails a scan (`'error'`), or was loaded anyway (`'warning'`)."""

    message: str
    """What is wrong and how to fix it, in one or two sentences."""

    line: int | None = None
    """The line of the file it is about, counted from 1, where one can be named."""

    fix: str | None = field(default=None, compare=False, repr=False)
    """What to do about problems of this kind."""

    source: str | None = field(default=None, compare=False, repr=False)
    """The label that the developer gave the source, if any."""

    @property
    def url(self) -> str:
        """Where the documentation explains the code."""
        return f'{DOCS_URL}#{self.code}'

    @property
    def is_source_failure(self) -> bool:
        """Whether a source could not deliver its skills."""
        return self.code in ('source-failed', 'source-refused')

    def __str__(self) -> str:
        place = self.path if self.line is None else f'{self.path}:{self.line}'
        if self.source is not None:
            place = f'{self.source}: {place}'
        text = f'{place}: {self.severity} [{self.code}] {self.message}'
        # It goes to logs and terminals, and file names are not trusted.
        return text if text.isprintable() else ''.join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class SkillRule(NamedTuple):
    """A rule that a skill or a source can break, and what to do about it."""

    code: str
    """A stable, kebab-case identifier."""

    severity: ProblemSeverity
    """`'error'`: the skill is left out, or fails a scan. `'warning'`: it is loaded anyway."""

    summary: str
    """What is wrong, in a sentence for the documentation."""

    fix: str
    """What to do about it, in a sentence or two."""


# fmt: off
_ROWS = (
    # What a file must be.
    SkillRule('empty-file', 'error', 'The file is empty.',
              'Write frontmatter with a name and a description, then the instructions.'),
    SkillRule('not-utf8', 'error', 'The file is not UTF-8 text.',
              'Save the file as UTF-8. Editors have this under "save with encoding".'),
    SkillRule('binary-file', 'error', 'The file holds a NUL byte, so it is not text.',
              'Put text into `SKILL.md`, and binary content into a file beside it.'),
    # What its frontmatter must be.
    SkillRule('no-frontmatter', 'error', 'The file does not begin with a `---` line.',
              'Begin the file with a `---` line, `name:` and `description:` lines, and another `---` line.'),
    SkillRule('unclosed-frontmatter', 'error', 'No second `---` line ends the frontmatter.',
              'Add a line with `---` between the last key and the instructions.'),
    SkillRule('frontmatter-too-large', 'error', 'The frontmatter does not end within the limit of bytes.',
              'Keep the frontmatter short; move long text below the second `---` line.'),
    SkillRule('frontmatter-too-deep', 'error', 'Lists and mappings are nested deeper than the limit.',
              'Use fewer levels of lists and mappings.'),
    SkillRule('frontmatter-not-a-mapping', 'error', 'The frontmatter is not a list of `key: value` lines.',
              'Write the frontmatter as `key: value` lines.'),
    SkillRule('yaml-alias', 'error', 'The frontmatter uses a YAML alias (`*name`), which is never followed.',
              'Write the value out where the alias is.'),
    # What a skill cannot be without.
    SkillRule('name-unusable', 'error', 'Neither the frontmatter nor the folder gives a name that can be used.',
              'Add `name:` with lower-case letters, digits and single hyphens, such as `my-skill`.'),
    SkillRule('description-missing', 'error', 'The description is missing or empty.',
              'Add `description:` and say what the skill does and when to use it.'),
    SkillRule('description-not-text', 'error', 'The description is a list or a mapping.',
              'Write the description as one text after `description:`.'),
    # What a directory or another source must be.
    SkillRule('directory-missing', 'error', 'A directory that was named does not exist.',
              'Create the directory, or correct its path.'),
    SkillRule('unreadable', 'error',
              'A folder or a `SKILL.md` cannot be read; a `SKILL.md` that is a link is not read either.',
              'Make it readable for this user, and a file rather than a link.'),
    SkillRule('special-file', 'error', 'The `SKILL.md` is not a regular file.', 'Replace it with a regular file.'),
    SkillRule('too-large', 'error', 'The `SKILL.md` is larger than the limit.',
              'Move parts of it into files below `references/`, which are read when they are needed.'),
    SkillRule('folder-link', 'error', 'A folder is a link, and its directory does not follow links.',
              'Put the folder itself there, or allow links with `follow_links=True`.'),
    SkillRule('too-many-folders', 'error', 'A directory has more folders than the limit.',
              'Name a directory that contains little besides skills.'),
    SkillRule('source-failed', 'error', 'A source raised an error; skills it gave before are kept.',
              'Fix what the message names; the source is asked again at the next reload.'),
    SkillRule('source-refused', 'error',
              'A source did not accept the credential, or requires one; its earlier skills are no longer offered.',
              'Give a credential that the source accepts; it is asked again at the next reload.'),
    SkillRule('skill-missing', 'error', 'A source does not have a skill that was chosen from it by name.',
              'Correct the name, or leave it out.'),
    SkillRule('skill-unavailable', 'error',
              'A source lists a skill but does not send it, or sends something else.',
              'Tell the publisher. It is fetched again at the next reload.'),
    SkillRule('plugin-missing', 'error', 'A marketplace does not have a plugin that was chosen from it by name.',
              'Correct the name, or leave it out.'),
    SkillRule('plugin-invalid', 'error', 'A plugin, or the entry of a marketplace for it, breaks the rules.',
              'Tell the publisher, or choose other plugins with `plugins=`.'),
    SkillRule('plugin-failed', 'error',
              'A plugin could not be fetched; the others are used, and so are the skills it had before.',
              'Fix what the message names; the plugin is fetched again at the next reload.'),
    SkillRule('entry-invalid', 'error', 'A skill that a server lists breaks the rules of the list.',
              'Tell the operator of the server.'),
    SkillRule('lock-mismatch', 'error', 'A skill, or the commit behind a ref, is not what the lock file says.',
              'Look at what has changed. To accept it, write the lock file again.'),
    SkillRule('requirement-unmet', 'error',
              'A skill lacks something that `require` asks for: to be locked, signed, scanned or evaluated.',
              'Run the command that the message names, or ask for less.'),
    SkillRule('signature-invalid', 'error',
              'The signature of a skill is not by one of the `signers`, or not for all of its files as they are.',
              'Do not use it before you know why. Whoever signs it has to sign it again.'),
    SkillRule('project-untrusted', 'error', 'Skills of a project are left out, because its checkout is not trusted.',
              'Read the skills, then name the project in `trust=`.'),
    # What an installed package must be.
    SkillRule('package-missing', 'error', 'A package that was named is not installed.',
              'Install the package, or remove it from `packages=`.'),
    SkillRule('package-ambiguous', 'error',
              'A package is installed twice, or its metadata has another name, so it may not be what it claims.',
              'Remove what does not belong there, and install the package again.'),
    SkillRule('package-unreadable', 'error', 'The entry points of an installed package cannot be read.',
              'Install the package again.'),
    SkillRule('package-untrusted', 'error',
              'A skill that has to be imported is left out, because its package is not trusted.',
              'If you trust the package, name it in `trusted=`.'),
    SkillRule('entry-point-invalid', 'error', 'An entry point names neither a module nor skills.',
              'Have the entry point name a module, a `Skill`, a list of them or a function.'),
    SkillRule('entry-point-unclear', 'error',
              'An entry point names skills that are known only once its code has run.',
              'Write the skills with literal names and descriptions, or set `import_to_list=True`.'),
    SkillRule('module-missing', 'error', 'The module of an entry point does not exist, or is built into Python.',
              'Correct the entry point, or install the package again.'),
    SkillRule('module-compiled', 'error', 'The module of an entry point has no source, only compiled code.',
              'Ship the source of the module, or a folder with a `SKILL.md`.'),
    SkillRule('module-invalid', 'error',
              'The module of an entry point is too long, cannot be decoded, or is not valid Python.',
              'Make the module valid Python in UTF-8.'),
    SkillRule('module-undocumented', 'error', 'The module of an entry point has no docstring to describe it.',
              'Give the module a docstring that says what it does and when to use it.'),
    SkillRule('module-fails', 'error', 'The module of an entry point raises an exception whenever it is imported.',
              'Import the module by hand to see why, and fix it.'),
    # What `scan` finds.
    SkillRule('hidden-unicode', 'error', 'A file has characters that nobody sees, which can hide or reorder text.',
              'Look at the file with its characters shown, and remove them.'),
    SkillRule('comment-instructions', 'error',
              'An HTML comment tells the model what to do, where people who read the page do not see it.',
              'Remove the comment, or write it where it is seen.'),
    SkillRule('pipe-to-shell', 'error', 'A download is run by a shell or an interpreter without a look at it.',
              'Name a package with a version, or download a file, compare its hash and then run it.'),
    SkillRule('secret-in-file', 'error', 'A file has a private key, or what looks like a token of a service.',
              'Revoke it, for others have read it, and pass secrets in environment variables.'),
    SkillRule('compiled-code', 'error', 'A file is compiled code, which nobody can review.',
              'Remove it, and let it be built or installed where it is needed.'),
    SkillRule('oversized-file', 'error', 'A file, or a skill, is too large to be searched.',
              'Make it smaller, or have a script fetch it where it is needed.'),
    SkillRule('scanner-finding', 'error', 'Another scanner found something.',
              'Read what it says about its rule.'),
    # What the reader repaired.
    SkillRule('frontmatter-not-first', 'warning', 'Blank lines come before the frontmatter.',
              'Remove the blank lines at the top of the file.'),
    SkillRule('yaml-repaired', 'warning', 'The frontmatter is not valid YAML and was repaired.',
              'Put values that hold `: `, ` #` or quotes into quotes.'),
    SkillRule('yaml-duplicate-key', 'warning', 'A key occurs more than once; the last value counts.',
              'Keep one of the lines.'),
    SkillRule('yaml-tag', 'warning', 'A YAML tag (`!!float`, `!custom`) is ignored; text stays text.',
              'Remove the tag.'),
    # What the specification asks for.
    SkillRule('name-missing', 'warning', 'There is no name, so the name of the folder is used.',
              'Add `name:` with the name of the folder.'),
    SkillRule('name-mismatch', 'warning', 'The name is not the name of the folder.',
              'Give `name:` and the folder the same name.'),
    SkillRule('name-invalid', 'warning', 'The name is not lower-case letters, digits and single hyphens.',
              'Use lower-case letters, digits and single hyphens, such as `my-skill`.'),
    SkillRule('name-too-long', 'warning', 'The name is longer than 64 characters.', 'Use at most 64 characters.'),
    SkillRule('name-reserved', 'warning', 'The name holds a word that some programs reserve: `anthropic` or `claude`.',
              'Leave the word out of the name.'),
    SkillRule('description-too-long', 'warning', 'The description is longer than 1024 characters.',
              'Use at most 1024 characters; details belong in the instructions.'),
    SkillRule('compatibility-too-long', 'warning', 'The compatibility note is longer than 500 characters.',
              'Use at most 500 characters; details belong in the instructions.'),
    SkillRule('field-type', 'warning', 'A field has a value of the wrong kind.',
              'Give the field the kind of value the message names, or move it below `metadata:`.'),
    SkillRule('file-name', 'warning', 'The name of the file is not exactly `SKILL.md`.',
              'Rename the file to `SKILL.md`.'),
    SkillRule('model-ignored', 'warning',
              'A skill names a model or its settings, which the application chooses.',
              'Remove it; say in `compatibility` what kind of model the skill needs.'),
    # Tools of a skill that are not offered.
    SkillRule('tool-invalid', 'warning',
              'A tool that a skill declares lacks something or has an option of the wrong kind.',
              'Write it as the page about typed tools shows.'),
    SkillRule('tool-script-outside', 'warning', 'A tool that a skill declares names a script outside the skill.',
              'Put the script into the skill and name it by its path there.'),
    SkillRule('tool-script-missing', 'warning', 'A tool that a skill declares names a script that does not exist.',
              'Add the script, or correct its path.'),
    SkillRule('tool-type-unknown', 'warning', 'A tool that a skill declares has an argument of an unknown type.',
              'Use a type of JSON Schema: string, integer, number, boolean, array or object.'),
    SkillRule('tool-name-clash', 'warning', 'Two tools of a skill have the same name; the first one is used.',
              'Give one of the tools another name.'),
    SkillRule('tool-name-too-long', 'warning',
              'The name of a tool, with that of its skill before it, is longer than 64 characters.',
              'Use a shorter name for the tool or for the skill.'),
    SkillRule('tools-refused', 'warning',
              'A `tools.py` is not imported: its source is not trusted, or code of skills may not run here.',
              'Read the file; if you trust the source, mark it as trusted, or let `script_policy` allow `tools.py`.'),
    SkillRule('allowed-tools-ignored', 'warning',
              'A skill that is not trusted lists `allowed-tools`, which therefore approve nothing.',
              'If you trust the source, mark it as trusted; or delete the line.'),
    # Cases for evaluations that are not tried.
    SkillRule('evals-invalid', 'warning',
              'A file with cases for evaluations, or a case in it, cannot be read; the others are used.',
              'Write the cases as the page about evaluations shows.'),
    # Files of a skill that are not offered.
    SkillRule('file-link', 'warning', 'A file or folder in a skill is a link.', 'Put the file itself into the skill.'),
    SkillRule('file-special', 'warning', 'A file in a skill is not a regular file.',
              'Remove it, or replace it with a regular file.'),
    SkillRule('file-too-large', 'warning', 'A file in a skill is larger than the limit.',
              'Make it smaller, or have a script read it.'),
    SkillRule('file-unreadable', 'warning', 'A file or folder in a skill cannot be read.',
              'Make it readable for this user, or give it a plain name.'),
    SkillRule('folder-too-deep', 'warning', 'A folder in a skill is deeper than the limit.',
              'Use fewer levels of folders.'),
    SkillRule('too-many-files', 'warning', 'A skill has more files or folders than are offered.',
              'Keep only what the skill needs in its folder.'),
    SkillRule('file-edited', 'warning',
              'A file in the `target_dir` of a registry was edited there and is not brought up to date.',
              'Move your changes elsewhere, or remove the file so that it is fetched again.'),
    # Plugins.
    SkillRule('plugin-partly-used', 'warning',
              'Plugins have more than skills, such as hooks or MCP servers, none of which is used.',
              'Nothing to do if the skills are enough. Otherwise set the rest up yourself.'),
    SkillRule('plugin-without-skills', 'warning', 'A plugin, or a folder that it names, has no skills.',
              'Nothing to do, or choose other plugins with `plugins=`.'),
    SkillRule('plugin-key-unknown', 'warning',
              'The manifest of an Agent Plugin has keys that the format does not have.',
              'Tell the publisher; the keys are ignored.'),
    # What `scan` finds, of less weight.
    SkillRule('undeclared-url', 'warning', 'A program names a host that the `SKILL.md` does not.',
              'Say in the `SKILL.md` which hosts its programs connect to, and why.'),
    # What a skill needs and this machine lacks; reported on request.
    SkillRule('dependency-missing', 'warning', 'A skill needs a Python or npm package that is not installed here.',
              "Install the package where scripts run; for Python, `dependencies='uv'` of the executor does it."),
    SkillRule('program-missing', 'warning', 'A skill calls a program that is not installed here.',
              'Install the program, or tell the model in your instructions to do without it.'),
    SkillRule('key-missing', 'warning', 'A skill reads a variable of the environment that is not set here.',
              "Set the variable, and pass it to the skill with `skill_env={'skill': ['NAME']}`."),
    # Skills that give way to others.
    SkillRule('duplicate-name', 'warning',
              'Two folders of one directory have a skill of the same name; the first one is used.',
              'Rename one of the skills.'),
    SkillRule('shadowed', 'warning', 'A source of higher priority has a skill of the same name.',
              'Nothing to do if this is intended. Otherwise rename one of the skills, or leave out a source.'),
    SkillRule('renamed', 'warning',
              'A skill of a server is offered under a longer name, because another skill has its name.',
              'Nothing to do. To choose a name yourself, use `.renamed()` or `.prefixed()` of the registry.'),
    SkillRule('skill-dynamic', 'warning',
              'A server does not list the files of a skill, so they cannot be verified.',
              'Nothing to do if reading is enough. To run its scripts or lock it, the server has to list its files.'),
    SkillRule('too-many-skills', 'warning', 'A server lists more skills than are read.',
              'Choose a server with fewer skills.'),
    # Speed and settings.
    SkillRule('index-failed', 'warning', 'The index on disk cannot be used; the files are read instead.',
              'Make the file named in the message writable, or remove it so that it is created again.'),
    SkillRule('vectors-failed', 'warning', 'The vectors on disk cannot be used; descriptions are embedded again.',
              'Make the file named in the message writable, or remove it so that it is created again.'),
    SkillRule('embedding-failed', 'warning',
              'The provider of embeddings failed or took too long; skills are found by their words meanwhile.',
              'Fix what the message names; the provider is asked again a minute later.'),
    SkillRule('watch-failed', 'warning',
              'A directory cannot be watched for changes; its files are compared before each run instead.',
              'Fix what the message names, or use `auto_reload=True`.'),
    SkillRule('pinned-unknown', 'warning', 'A skill to be pinned does not exist.',
              'Correct the name in `pinned=`, or remove it there.'),
    SkillRule('pinned-too-long', 'warning', 'The pinned skills take more room than the budget of the list of skills.',
              'Pin fewer skills, or raise `catalog_budget`.'),
    SkillRule('too-many-on-demand', 'warning',
              'There are more skills than may be offered on demand, so they are offered by the tools.',
              "Offer fewer skills, use `disclosure='tools'`, or raise `max_on_demand`."),
    SkillRule('rename-unknown', 'warning', 'A skill to rename does not exist in the registry.',
              'Correct the name in `.renamed()`, or remove it there.'),
    # Installed packages.
    SkillRule('package-available', 'warning',
              'An installed package has skills that are not offered, because it was not named.',
              'To offer its skills, name the package in `packages=`.'),
    SkillRule('package-empty', 'warning', 'A package that was named has no skills.',
              'Remove the package from `packages=`, or install a version that has skills.'),
    SkillRule('module-unclear', 'warning',
              'The API of a module, or a function of it, cannot be analysed; the rest of it is loaded.',
              'Nothing to do if the rest is enough. Otherwise simplify what the module exports.'),
    SkillRule('policy-unknown', 'warning',
              'The policy of a function is unknown or does not fit; the function is not offered.',
              'Name a policy that is known, and parameters that the function takes.'),
    SkillRule('import-failed', 'warning', 'A `tools.py`, a module, or a function of it, could not be imported.',
              'Import the module by hand to see why, and fix it.'),
    SkillRule('extra-missing', 'warning', 'Something has to be installed before a skill can be loaded.',
              'Install what the message names.'),
)
# fmt: on

RULES: dict[str, SkillRule] = {rule.code: rule for rule in _ROWS}
"""The rule behind each problem code."""


def skill_rules() -> dict[str, SkillRule]:
    """The rule behind each problem code."""
    return dict(RULES)


def problem(code: str, path: str, message: str, line: int | None = None) -> SkillProblem:
    """Build the problem for a broken rule; the table gives its severity and its fix."""
    rule = RULES[code]
    return SkillProblem(path=path, code=code, severity=rule.severity, message=message, line=line, fix=rule.fix)


def about_problem(found: SkillProblem) -> dict[str, str]:
    """The attributes of a problem, for log records."""
    return {
        'skill.problem.code': found.code,
        'skill.problem.severity': found.severity,
        'skill.problem.path': found.path,
    }
