// Examples to click: each is typed into the terminal.

export const examples: [title: string, command: string][] = [
  ["Who am I?", "uname -a; id; bash --version | head -1; ls /usr/bin | wc -l"],
  ["A pipeline", "seq 1 100 | awk '{ s += $1 } END { print s }'"],
  ["A git repository", "git init -q demo; cd demo; echo hi > a; git add a; git -c user.name=me -c user.email=me@example.org commit -qm first; git log --stat; cd .."],
  ["Python and sqlite", "python3 -c \"import sqlite3; print(sqlite3.connect(':memory:').execute('select 6*7').fetchone())\""],
  ["An editor", "vim -c 'normal iHello from vim. Leave with :q!'"],
  ["Job control", "sleep 100 & jobs; kill %1; wait; jobs"],
  ["What runs?", "ps aux; free -m; df -h /"],
  ["JSON with jq", "echo '{\"a\": [1, 2, 3]}' | jq '.a | add'"],
];
