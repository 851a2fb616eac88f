# What agents do all day: logs, CSV, configuration, code bases, small scripts.
#| needs: grep sed gawk findutils diffutils
cat > access.log <<'DATA'
10.0.0.1 - - [15/Jan/2024:10:00:01 +0000] "GET /index.html HTTP/1.1" 200 1043 "-" "Mozilla/5.0"
10.0.0.2 - bob [15/Jan/2024:10:00:02 +0000] "POST /api/login HTTP/1.1" 401 87 "-" "curl/8.0"
10.0.0.1 - - [15/Jan/2024:10:01:13 +0000] "GET /api/items?page=2 HTTP/1.1" 200 20481 "-" "Mozilla/5.0"
10.0.0.3 - - [15/Jan/2024:11:00:00 +0000] "GET /missing HTTP/1.1" 404 162 "-" "bot"
10.0.0.1 - - [15/Jan/2024:11:05:59 +0000] "DELETE /api/items/7 HTTP/1.1" 500 0 "-" "python-requests"
10.0.0.2 - bob [15/Jan/2024:11:06:00 +0000] "POST /api/login HTTP/1.1" 200 12 "-" "curl/8.0"
DATA
cat > sales.csv <<'DATA'
date,region,item,qty,price
2024-01-01,north,widget,10,2.50
2024-01-01,south,gadget,3,10.00
2024-01-02,north,gadget,1,10.00
2024-01-02,east,widget,7,2.50
2024-01-03,south,widget,,2.50
DATA

#: top addresses and status codes
cut -d' ' -f1 access.log | sort | uniq -c | sort -rn | head -3; awk '{print $9}' access.log | sort | uniq -c; awk '$9>=400{print $1,$7,$9}' access.log; awk -F'[][]' '{split($2,t,":"); h[t[2]]++} END{for(k in h) print k,h[k]}' access.log | sort; grep -oE '"(GET|POST|DELETE) [^"]+' access.log | cut -d' ' -f2 | cut -d? -f1 | sort | uniq -c | sort -k1,1nr -k2; awk '{s+=$10} END{printf "%.1f KiB\n", s/1024}' access.log; sed -nE 's/.*"([^"]+)"$/\1/p' access.log | sort -u; awk '{b[$1]+=$10} END{for(i in b) printf "%s\t%d\n", i, b[i]}' access.log | sort -t$'\t' -k2,2nr

#: csv totals, pivots and joins
awk -F, 'NR>1 && $4!=""{t[$2]+=$4*$5} END{for(r in t) printf "%s,%.2f\n",r,t[r]}' sales.csv | sort; tail -n +2 sales.csv | cut -d, -f3 | sort | uniq -c; awk -F, 'NR==1{for(i=1;i<=NF;i++) h[$i]=i; next} {print $h["item"], $h["qty"]+0}' sales.csv; (head -1 sales.csv; tail -n +2 sales.csv | sort -t, -k5,5nr -k4,4nr); awk -F, 'NR>1{q[$2","$3]+=$4; r[$2]; i[$3]} END{printf "region"; n=asorti(i,I); for(k=1;k<=n;k++) printf ",%s",I[k]; print ""; m=asorti(r,R); for(j=1;j<=m;j++){printf "%s",R[j]; for(k=1;k<=n;k++) printf ",%d",q[R[j]","I[k]]; print ""}}' sales.csv; paste -d, <(cut -d, -f1 sales.csv) <(cut -d, -f4 sales.csv); join -t, -1 2 -2 1 <(tail -n +2 sales.csv | sort -t, -k2,2) <(printf 'east,E\nnorth,N\n'); sed 's/,/\t/g' sales.csv | expand -t 12; awk -F, -v OFS=, '$4==""{$4=0}1' sales.csv; grep -n ',,' sales.csv | cut -d: -f1; while IFS=, read -r d r i q p; do [ "$d" = date ] && continue; printf '%-6s %s\n' "$r" "$i"; done < sales.csv

#: renames a function in a code base
mkdir -p app/util tests; printf 'from util import helper\n\ndef main():\n    return helper(1) + helper(2)\n' > app/main.py; printf 'def helper(x):\n    """helper doc"""\n    return x\n' > app/util/__init__.py; printf 'import helper_other\nassert helper(1) == 1\n' > tests/test_a.py; grep -rnw helper --include='*.py' . | sort; grep -rlw helper --include='*.py' . | sort | xargs sed -i 's/\bhelper\b/assist/g'; grep -rn 'assist\|helper' . --include='*.py' | sort; cat app/main.py; find . -name '*.py' -newer sales.csv | sort; find . -name '*.py' -exec wc -l {} + | sort -n | tail -1; find . -name __pycache__ -prune -o -name '*.py' -print | sort | while read -r f; do echo "$f: $(grep -c . "$f")"; done

#: finds todo comments and long lines
mkdir s; printf '// TODO: a\nint x; // FIXME b\n%s\n' "$(printf 'y%.0s' {1..100})" > s/a.c; printf '# todo later\n' > s/b.py; grep -rniE 'todo|fixme' s | sort; awk 'length>80{print FILENAME":"FNR": "length}' s/*; grep -rc '' s | sort; find s -type f -printf '%f %s\n' | sort; grep -rhoE '\b(TODO|FIXME)\b' s | sort | uniq -c; for f in s/*; do ext=${f##*.}; echo "$ext $(wc -l < $f)"; done | sort

#: edits configuration files
printf '[db]\nhost=old\n# port=1\n\n[web]\nhost=w\n' > c.ini; sed -i '/^\[db\]/,/^\[/{s/^host=.*/host=new/;s/^# *port=/port=/}' c.ini; cat c.ini; awk -F= '/^\[/{s=$0} s=="[db]"&&$1=="host"{print $2}' c.ini; grep -q '^timeout=' c.ini || echo 'timeout=5' >> c.ini; tail -1 c.ini; printf 'A=1\nB="two words"\n# c\nexport C=$A$B\n' > .env; set -a; . ./.env; set +a; env | grep -E '^(A|B|C)=' | sort; while IFS='=' read -r k v; do [[ $k =~ ^[A-Z]+$ ]] && echo "$k -> $v"; done < .env; sed -e 's/^/export /' -e '/#/d' .env | head -2; printf 'key: value\nlist:\n  - a\n  - b\n' > y.yaml; sed -n 's/^ *- //p' y.yaml; awk '/^key:/{print $2}' y.yaml; cp c.ini c.ini.bak; diff c.ini c.ini.bak && echo unchanged; eval "cat <<E
host is \$A
E"

#: a script with options, functions and error handling
cat > tool.sh <<'S'
#!/usr/bin/env bash
set -euo pipefail
usage() { cat <<U
Usage: ${0##*/} [-v] [-o FILE] NAME...
U
}
verbose=0 out=/dev/stdout
while getopts ':vo:h' opt; do
  case $opt in
    v) verbose=1 ;;
    o) out=$OPTARG ;;
    h) usage; exit 0 ;;
    :) echo "missing argument for -$OPTARG" >&2; usage >&2; exit 2 ;;
    *) echo "unknown option -$OPTARG" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
(( $# )) || { usage >&2; exit 1; }
tmp=$(mktemp -d); trap 'rm -rf "$tmp"; (( verbose )) && echo cleaned >&2 || :' EXIT
for name in "$@"; do
  printf 'Hello, %s!\n' "$name" | tee -a "$tmp/log" > /dev/null
done
sort "$tmp/log" > "$out"
S
chmod +x tool.sh; ./tool.sh -v Zoe Adam; ./tool.sh -o greet.txt Bob; cat greet.txt; ./tool.sh; echo $?; ./tool.sh -o; echo $?; ./tool.sh -q; echo $?; ./tool.sh -h; bash -n tool.sh && echo syntax ok

#: backs up, verifies and rotates files
mkdir data; for i in 1 2 3; do echo "v$i" > data/f$i; done; cp -r data backup; (cd data && sha256sum *) > sums; (cd backup && sha256sum -c ../sums); echo changed > data/f2; diff -rq data backup; (cd data && sha256sum --quiet -c ../sums); for n in 3 2 1; do [ -f log.$n ] && mv log.$n log.$((n+1)); done; touch log; mv log log.1; ls log*; find data -type f -print0 | sort -z | xargs -0 md5sum | md5sum; rsync=1; cp -u data/f2 backup/; diff -r data backup && echo synced; find backup -type f -size -4c | sort; du -b data/f2 | cut -f1

#: text templates and generated reports
name=World items=(apple "ripe pear" fig); cat <<T > report.md
# Report for $name

| item | length |
|---|--:|
$(for i in "${items[@]}"; do printf '| %s | %d |\n' "$i" "${#i}"; done)

Total: ${#items[@]}
T
cat report.md; sed -n '/^|/p' report.md | tail -n +3 | awk -F'|' '{s+=$3} END{print s}'; printf '%s\n' "${items[@]}" | nl -w2 -s') '; printf '%-12s|%5s\n' "${items[@]}" ; printf '=%.0s' {1..20}; echo; seq -f 'line %02g' 3; for i in {1..3}; do echo "$((i*i))"; done | paste -sd' '; date -d '2024-01-15' '+Week %V, %A'; fold -sw 20 <<< "a longer paragraph that must be folded somewhere"; fmt -w 25 <<< "another paragraph   with irregular    spacing in it"; column=3; pr -${column}t -w 30 <(seq 9)

#: checks a project's layout
mkdir -p proj/{src,tests,docs}; touch proj/src/{__init__,core,io}.py proj/tests/test_core.py; for f in proj/src/*.py; do b=$(basename "$f" .py); [ "$b" = __init__ ] && continue; [ -e "proj/tests/test_$b.py" ] || echo "no test for $b"; done; find proj -type d -empty; find proj -type f | sed 's/.*\.//' | sort | uniq -c; comm -23 <(ls proj/src | sed 's/\.py$//' | sort) <(ls proj/tests | sed 's/^test_//;s/\.py$//' | sort); test -d proj/docs && echo docs; ls -1 proj | wc -l; (cd proj && find . -mindepth 1 -maxdepth 2 | sort); stat -c '%n %F' proj/src/core.py

#: parallel jobs with results
work() { sleep 0.0$1; echo "job $1 done"; return $(($1 % 2)); }; export -f work; pids=(); for i in 1 2 3; do work $i > out.$i & pids+=($!); done; fail=0; for p in "${pids[@]}"; do wait "$p" || ((fail++)); done; cat out.*; echo "failed $fail"; seq 4 | xargs -P2 -I{} bash -c 'work {}' 2>&1 | sort; echo "xargs ${PIPESTATUS[1]}"; mkfifo q; (for i in a b c; do echo $i; done > q) & while read -r l; do echo "got $l"; done < q; rm q; (sleep 0.1; echo late) & echo early; wait; timeout 0.1 sleep 3 || echo "timed out $?"; { sleep 3 & } 2>/dev/null; kill %1 2>/dev/null || kill $!; wait 2>/dev/null; echo end

#: retries, locks and temporary files
n=0; until [ $n -ge 3 ]; do n=$((n+1)); [ -e flag ] && break; echo "try $n"; [ $n = 2 ] && touch flag; done; lock() { mkdir lock.d 2>/dev/null; }; lock && echo locked; lock || echo busy; rmdir lock.d; t=$(mktemp); echo data > "$t"; wc -c < "$t"; rm "$t"; [ -e "$t" ] || echo removed; exec 9> lockfile; x=$(cat lockfile); echo "[$x]"; echo pid > pidfile; [ -s pidfile ] && echo running; : "${CACHE:=./cache}"; mkdir -p "$CACHE"; echo $CACHE; trap 'echo cleanup' EXIT; (exit 0); echo main

#: numbers without bc
awk 'BEGIN{printf "%.2f\n", 10/3}'; echo $((17*23)) $((100/7)) $((100%7)); printf '%.3f\n' 2.71828; awk -v a=5 -v b=2 'BEGIN{print a^b, a%b, int(a/b), sqrt(a)}'; seq 10 | awk '{s+=$1; q+=$1*$1} END{m=s/NR; print m, q/NR-m*m}'; printf '%d\n' 0xff 0755; printf '%x %o\n' 255 8; echo "obase" | wc -c; echo $((2**62)) $((16#ff)) $((36#z)); awk 'BEGIN{for(i=1;i<=5;i++) printf "%d%s", i*i, i<5?",":"\n"}'; numfmt --to=iec 123456789; seq -s+ 5; echo $(( $(seq -s+ 100) )); factor 360; printf '%s\n' 3 1 2 | sort -n | awk '{a[NR]=$1} END{print a[int((NR+1)/2)]}'; shuf -i 1-10 | sort -n | paste -sd, ; awk 'BEGIN{srand(7); x=int(rand()*100); print (x>=0&&x<100)}'
