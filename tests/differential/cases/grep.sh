# grep.
#| needs: grep
cat > log <<'DATA'
2024-01-15 10:00:01 INFO  [main] Server started on port 8080
2024-01-15 10:00:05 ERROR [db] Connection refused: 10.0.0.12:5432
2024-01-15 10:01:17 WARN  [http] slow request GET /api/users?id=7 (1532 ms)
2024-01-15 10:02:00 ERROR [http] 500 POST /api/orders user=alice@example.com
2024-01-15 10:02:01 info  [main] retry #3
DATA
mkdir -p src/lib; printf 'import os\n\ndef main():\n    # TODO: fix\n    return os.getcwd()\n' > src/a.py; printf 'int main(void) { return 0; } /* todo */\n' > src/lib/b.c; printf 'bin\0ary TODO\n' > src/blob

#: plain, count, number, invert, ignoring case
grep ERROR log; grep -c ERROR log; grep -n main log; grep -vc ERROR log; grep -i info log; grep -w port log; grep -x 'abc' log; echo $?; grep -m1 ERROR log; grep -L ERROR log src/a.py; grep -l ERROR log src/a.py

#: only the matching parts
grep -o '[0-9]\+ ms' log; grep -oE '[0-9]{1,3}(\.[0-9]{1,3}){3}' log; grep -oE '[[:alnum:]._]+@[[:alnum:].]+' log; grep -ob ERROR log; grep -on '\[[a-z]*\]' log | sort -u -t: -k2

#: context
grep -A1 WARN log; grep -B1 -n WARN log; grep -C1 -c WARN log; grep -A1 -e ERROR log; grep --no-group-separator -A0 ERROR log; grep --group-separator=## -C0 ERROR log

#: recursive
grep -rn TODO src | sort; grep -rni todo src --include='*.py' --include='*.c' | sort; grep -rl main src | sort; grep -r --exclude-dir=lib main src | sort; cd src; grep -r getcwd; grep -rc main . | sort; grep -rL main . | sort; grep -rIn TODO .; grep -rh def; grep -rZl main | tr '\0' '\n' | sort

#: binary files
grep TODO src/blob; grep -a TODO src/blob | od -c; grep -c TODO src/blob; grep --binary-files=without-match TODO src/blob; echo $?; grep -q TODO src/blob; echo $?; printf '\xff\xfe caf\n' > latin; grep caf latin; grep -a caf latin | od -c; grep -P 'caf' latin; LC_ALL=C grep -c . latin

#: extended expressions
grep -E 'ERROR|WARN' log | wc -l; grep -E '^[0-9-]+ [0-9:]+ (INFO|info)' log; grep -E '(.)\1' log | wc -l; grep -E 'x{2}|5{1,}' log; grep '\(re\)try' log; grep -e INFO -e WARN log | wc -l; printf 'a+b\naab\n' | grep 'a+b'; printf 'a+b\naab\n' | grep -E 'a+b'; grep -E 'a{,2}z|\bmain\b' log; grep '\<http\>' log | wc -l; grep -F '[db]' log; grep -F -e '(1532' log; printf 'ab\n' | grep -E '()'; printf 'x\n' | grep -E 'a|'; printf 'a.c\nabc\n' | grep 'a\.c'; printf 'tab\there\n' | grep -c $'\t'; grep -E '\w+\s\[main\]' log; grep '[]]' log | wc -l; grep '[^][:alnum:] .:-]' log | wc -l

#: perl expressions
grep -oP '(?<=user=)[^@]+' log; grep -P '^\d{4}-\d\d-\d\d' log | wc -l; grep -oP '\[\K[a-z]+(?=\])' log | sort | uniq -c; grep -P 'ERROR(?!.*db)' log; grep -oP '(?i)info' log; grep -P '\bGET\b.*?\bms\b' log | wc -l; grep -oP 'port (?<p>\d+)' log; printf 'é\n' | grep -oP '\p{L}'; printf 'aXbXc\n' | grep -oP '.*?X'; grep -P '(' log; echo $?; grep -Po '\d+(?= ms)' log; grep -P '^\S+ \S+ \w+\s+\[\w+\]' log | wc -l; printf 'a\tb\n' | grep -P '\t' ; grep -zoP 'def main.*\n.*TODO' src/a.py | tr '\0' '\n'; echo é | grep -P '^.$'; echo 'x=1' | grep -qP 'x\s*=\s*\d' && echo ok; grep -P '\N{U+E9}' <<< é; grep -P '[[:punct:]]$' log | wc -l; seq 100000 | grep -cP '^(\d)\d*\1$'; grep -P '(a+)+$' <<< aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab; echo $?

#: patterns from files and strange options
printf 'ERROR\nWARN\n' > pats; grep -f pats log | wc -l; grep -f /dev/null log; echo $?; grep -c '' log; grep -n '' pats; grep -H ERROR log | head -1; grep -h ERROR log log | wc -l; grep -s x nowhere; echo $?; grep x nowhere; echo $?; grep -T -n WARN log | cut -c1-12; grep --label=in -H x - <<< x; grep -e -v <<< 'a -v b'; grep -- -v <<< 'a -v b'; grep -z a < <(printf 'a\0b\0') | od -c; grep -y info log | wc -l; grep --line-buffered ERROR log | head -1; grep -U x <<< x; echo abc | grep --only-matching b

#: exit codes and complaints
grep nothing log; echo $?; grep -q ERROR nowhere log; echo $?; grep; echo $?; grep -E '(' log; echo $?; grep '[' log; echo $?; grep -E '*a' log; echo $?; grep 'a\{1' log; echo $?; grep '\(' log; echo $?; grep --nosuch x; echo $?; grep -A x y log; echo $?; grep x src; echo $?; grep -E 'a{1,99999}' log; echo $?; grep '[[:foo:]]' log; echo $?; grep '[:alpha:]' log; echo $?; grep '\d' log; echo $?; grep -m x y; echo $?; grep -d skip x src; echo $?; grep -E '[z-a]' log; echo $?; grep -P '[[:foo:]]' log; echo $?; grep -E -P x log; echo $?

#: utf-8
printf 'Ünïcödé\nstraße\nCAFÉ café\n日本語テキスト\n' > u; grep -i café u; grep -o 'ß.' u; grep -c '^.\{7\}$' u; grep -i 'ÜNÏ' u; grep '[é]' u; grep -oE '[[:alpha:]]+' u; grep '日本' u; grep -o . <<< 'aé日' ; grep -w café u; grep -iE 'STRASSE|straße' u; grep -P '\x{65E5}' u; grep -ob 語 u; grep -i É u; grep -E '^[[:upper:]]' u

#: colours
grep --color=always ERROR log | head -1 | cat -v; grep --color=always -n -H port log | cat -v; GREP_COLORS='mt=01;32:fn=34' grep --color=always -rn TODO src/a.py | cat -v; TERM=xterm grep --color=auto ERROR log | head -1; grep --color=always -oE '[0-9]+' <<< a1b22 | cat -v; grep --color=always -A1 WARN log | cat -v | tail -1

#: egrep and fgrep
#| ignore: stderr
egrep 'ERR|WARN' log | wc -l; fgrep '[db]' log

#: large input
seq 200000 > big; grep -c 7 big; grep -n '^199999$' big; grep -vE '[1-9]' big; grep -xF -f <(seq 0 1000 200000) big | wc -l; grep -E '^(1|2)[0-9]{3}$' big | tail -1; seq 2000 | grep -F -x -v -f <(seq 1 2 2000) | md5sum
