"""Whatever happens to the files, a reload ends with the same catalogue as a fresh start."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pydantic_ai_skills import SkillsDirectory, SkillsToolset
from pydantic_ai_skills.directory.watch import WatchedDirectory
from tests.folders import skill_md

NAMES = st.sampled_from(['a', 'b', 'c-d', 'group/a', 'group/e', 'a/skills/n', 'group/deep/er/f', 'b/references/x'])
TEXTS = st.sampled_from(['One.', 'Two.', 'Red.', 'A longer description.'])
ODD = st.sampled_from(
    ['', 'No frontmatter.', '---\nname: x\n', '---\nname: [x]\n---\n', '---\ndescription: y\n---\n', '\xff']
)
FILES = st.sampled_from(['SKILL.md', 'SKILL.md', 'skill.md', 'notes.md', 'pyvenv.cfg'])


class Library(RuleBasedStateMachine):
    """Somebody works on a folder of skills while several readers look at it now and then."""

    @initialize()
    def begin(self) -> None:
        self.home = Path(os.path.realpath(tempfile.mkdtemp()))
        self.root = self.home / 'root'
        self.root.mkdir()
        self.directories = [SkillsDirectory(self.root), SkillsDirectory(self.root, follow_links=True, max_depth=None)]
        self.watched = WatchedDirectory(SkillsDirectory(self.root))
        self.toolset = SkillsToolset[Any](directories=[self.root])
        self.indexed = SkillsDirectory(self.root, disk_index=self.home / 'index.sqlite')
        # Nobody is in the middle of writing, so nothing is waited for.
        self.patch = patch('pydantic_ai_skills.directory.scan.is_fresh', return_value=False)
        self.patch.start()

    def teardown(self) -> None:
        self.patch.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def path(self, name: str) -> Path | None:
        """A place that can be written to."""
        path = self.root / name
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError:
            return None
        return path

    @rule(name=NAMES, text=TEXTS, file=FILES)
    def write(self, name: str, text: str, file: str) -> None:
        path = self.path(name)
        if path is not None and not (path / file).is_dir():
            (path / file).write_text(skill_md(name.rpartition('/')[2], text))

    @rule(name=NAMES, text=ODD)
    def break_it(self, name: str, text: str) -> None:
        path = self.path(name)
        if path is not None and not (path / 'SKILL.md').is_dir():
            (path / 'SKILL.md').write_bytes(text.encode('latin-1'))

    @rule(name=NAMES, text=TEXTS)
    def edit_and_set_the_times_back(self, name: str, text: str) -> None:
        file = self.root / name / 'SKILL.md'
        if file.is_file():
            before = file.stat()
            file.write_text(skill_md(name.rpartition('/')[2], text))
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    @rule(name=NAMES, hours=st.sampled_from([-1, 1]))
    def set_the_clock(self, name: str, hours: int) -> None:
        file = self.root / name / 'SKILL.md'
        if file.is_file():
            time = file.stat().st_mtime + hours * 3600
            os.utime(file, (time, time))

    @rule(name=NAMES, text=TEXTS)
    def replace_the_file(self, name: str, text: str) -> None:
        path = self.path(name)
        if path is not None and not (path / 'SKILL.md').is_dir():
            (path / 'new').write_text(skill_md(name.rpartition('/')[2], text))
            (path / 'new').replace(path / 'SKILL.md')

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        path = self.root / name
        path.unlink() if path.is_symlink() else shutil.rmtree(path, ignore_errors=True)

    @rule(name=NAMES)
    def remove_the_file(self, name: str) -> None:
        (self.root / name / 'SKILL.md').unlink(missing_ok=True) if (self.root / name).is_dir() else None

    @rule(source=NAMES, to=NAMES)
    def move(self, source: str, to: str) -> None:
        if (self.root / source).exists() and not os.path.lexists(self.root / to):
            try:
                (self.root / to).parent.mkdir(parents=True, exist_ok=True)
                (self.root / source).rename(self.root / to)
            except OSError:
                return

    @rule(name=NAMES, to=NAMES)
    def link(self, name: str, to: str) -> None:
        if not os.path.lexists(self.root / name):
            try:
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                (self.root / name).symlink_to(self.root / to)
            except OSError:
                return

    @rule()
    def replace_everything(self) -> None:
        shutil.copytree(self.root, self.home / 'copy', symlinks=True)
        self.root.rename(self.home / 'old')
        (self.home / 'copy').rename(self.root)
        shutil.rmtree(self.home / 'old')

    @rule(which=st.integers(0, 3))
    def look(self, which: int) -> None:
        (self.toolset.reload, self.watched.find, *(each.find for each in self.directories))[which]()

    @rule()
    def start_another_process(self) -> None:
        self.indexed = SkillsDirectory(self.root, disk_index=self.home / 'index.sqlite')
        self.indexed.find()

    @invariant()
    def all_see_what_a_newcomer_sees(self) -> None:
        plain = SkillsDirectory(self.root)
        following = SkillsDirectory(self.root, follow_links=True, max_depth=None)
        for seen, new in [
            (self.directories[0], plain),
            (self.directories[1], following),
            (self.indexed, plain),
            (self.watched, plain),
        ]:
            assert described(seen.find()) == described(new.find())
        self.toolset.reload()
        listed = [(skill.name, skill.description) for skill in self.toolset.skills.values()]
        assert listed == sorted((skill.name, skill.description) for skill in plain.find().skills)


def described(found: Any) -> Any:
    skills = [(skill.name, skill.description, skill.path, skill.headings) for skill in found.skills]
    return skills, found.problems


Library.TestCase.settings = settings(max_examples=10, stateful_step_count=12, deadline=None)
TestLibrary = Library.TestCase
