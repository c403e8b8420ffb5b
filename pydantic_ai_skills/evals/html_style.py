"""The style of the HTML page, for light and dark screens of any width."""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --dim: #646c7d; --ground: #fff; --card: #f5f6f9; --line: #dcdfe6;
  --with: #2563eb; --without: #b4bac6; --base: #d29922; --good: #14803c; --bad: #c62828; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f0; --dim: #99a1b3; --ground: #14171f; --card: #1d222d;
  --line: #343b4a; --with: #6ea0ff; --without: #5b6477; --base: #e3b341; --good: #5fd38a; --bad: #ff8080; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 60rem; color: var(--ink); background: var(--ground);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; overflow-wrap: anywhere; }
p { margin: .3rem 0 .8rem; }
pre, code { font: .85rem/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { margin: .3rem 0 .6rem; padding: .6rem; white-space: pre-wrap; background: var(--ground);
  border: 1px solid var(--line); border-radius: .3rem; max-height: 20rem; overflow: auto; }
.dim { color: var(--dim); } .good { color: var(--good); } .bad { color: var(--bad); }
.note { padding: .6rem .8rem; border-left: .25rem solid var(--base); background: var(--card); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.tile { padding: .6rem .8rem; background: var(--card); border-radius: .4rem; }
.tile b { display: block; font-size: 1.4rem; }
.group { display: grid; grid-template-columns: 11rem 1fr; gap: .1rem .8rem; margin: .6rem 0; align-items: start; }
.group > b { overflow-wrap: anywhere; font-size: .95rem; }
.bar { display: grid; grid-template-columns: 1fr 11rem; gap: .6rem; align-items: center; font-size: .85rem; }
.bar svg { width: 100%; height: .8rem; background: var(--card); border-radius: .15rem; }
rect.with_skill, .key.with_skill { fill: var(--with); color: var(--with); }
rect.without_skill, .key.without_skill { fill: var(--without); color: var(--without); }
rect.baseline, .key.baseline { fill: var(--base); color: var(--base); }
line.spread { stroke: var(--ink); stroke-width: 2; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .4rem 0; }
th, td { padding: .25rem .6rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: break-word; }
td .bar { grid-template-columns: minmax(4rem, 10rem) 3rem; }
.matrix th[scope=col] { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; padding: .4rem .2rem; }
.matrix th { font-weight: 500; white-space: nowrap; }
.matrix td { min-width: 2rem; text-align: center; border: 1px solid var(--line); }
.matrix .right { background: color-mix(in srgb, var(--good) calc(15% + 45% * var(--share)), transparent); }
.matrix .wrong { background: color-mix(in srgb, var(--bad) calc(15% + 45% * var(--share)), transparent); }
.matrix .missed { background: color-mix(in srgb, var(--base) calc(15% + 45% * var(--share)), transparent); }
details { margin: .3rem 0; padding: .35rem .7rem; background: var(--card); border-radius: .4rem; }
details details { background: transparent; border: 1px solid var(--line); }
summary { cursor: pointer; overflow-wrap: anywhere; }
ul { margin: .3rem 0; padding-left: 1.2rem; list-style: none; }
li { overflow-wrap: anywhere; }
.mark { display: inline-block; width: 1.3em; margin-left: -1.3em; font-weight: 700; }
summary .mark, td .mark { margin-left: 0; }
@media (max-width: 40rem) { .group { grid-template-columns: 1fr; } .bar { grid-template-columns: 1fr 8rem; } }
"""
