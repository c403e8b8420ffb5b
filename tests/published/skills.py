"""Skills of the shapes that people publish: scripts that work on the user's files, by relative names."""

from __future__ import annotations

from pathlib import Path

from tests.folders import write_skill

UNPACK = """
import sys, zipfile
source, target = sys.argv[1:]
with zipfile.ZipFile(source) as archive:
    archive.extractall(target)
print(f'Unpacked {source} to {target}')
"""

PACK = """
import sys, zipfile
from pathlib import Path
source, target = Path(sys.argv[1]), sys.argv[2]
with zipfile.ZipFile(target, 'w') as archive:
    for path in sorted(source.rglob('*')):
        if path.is_file():
            archive.write(path, path.relative_to(source))
print(f'Packed {source} to {target}')
"""

REPLACE = """
import argparse
from pathlib import Path
parser = argparse.ArgumentParser()
parser.add_argument('file', type=Path)
parser.add_argument('old')
parser.add_argument('new')
args = parser.parse_args()
text = args.file.read_text()
args.file.write_text(text.replace(args.old, args.new))
print(f'{text.count(args.old)} replaced')
"""

FILL = """
import json, sys
from pathlib import Path
template = (Path(__file__).parent.parent / 'assets' / 'form.txt').read_text()
values = json.loads(Path(sys.argv[1]).read_text())
Path(sys.argv[2]).write_text(template.format(**values))
print('Filled in', sys.argv[2])
"""

INIT_PROJECT = """
#!/bin/bash
set -e
name="$1"
mkdir "$name"
cp "$(dirname "$0")/../assets/README.tmpl" "$name/README.md"
cd "$name"
mkdir -p src/app
echo "print('hello')" > src/app/main.py
echo "Project $name is ready."
"""

BUILD_PROJECT = """
#!/bin/bash
set -e
cd "$1"
python3 src/app/main.py > build.log
cat build.log
"""

COUNT = """
import sys
from pathlib import Path
for name in sys.argv[1:]:
    print(name, len(Path(name).read_text().split()))
"""


def write_skills(folder: Path) -> Path:
    """Write them all below a folder."""
    office = {'scripts/unpack.py': UNPACK, 'scripts/pack.py': PACK}
    write_skill(folder / 'office', 'Unpacks and packs documents.', files=office)
    write_skill(folder / 'text', 'Edits text.', files={'scripts/replace.py': REPLACE, 'scripts/count.py': COUNT})
    form = {'scripts/fill.py': FILL, 'assets/form.txt': 'Name: {name}\nCity: {city}\n'}
    write_skill(folder / 'forms', 'Fills in forms.', files=form)
    builder = {
        'scripts/init.sh': INIT_PROJECT.lstrip(),
        'scripts/build.sh': BUILD_PROJECT.lstrip(),
        'assets/README.tmpl': 'Read me.\n',
    }
    write_skill(folder / 'builder', 'Makes projects.', files=builder)
    return folder
