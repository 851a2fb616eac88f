# bash as a programming language: functions, arrays, loops, traps, job control in scripts.

#: indexed arrays
a=(one "two words" three); a+=(four); a[7]=eight
echo ${#a[@]} ${!a[@]}; printf '<%s>\n' "${a[@]}"; unset 'a[1]'; echo "${a[@]:1:2}" ${a[-1]}; declare -p a

#: associative arrays
declare -A m=([x]=1 [y]=2); m["key with space"]=3; for k in $(printf '%s\n' "${!m[@]}" | sort | tr ' ' _); do echo $k; done; echo ${m[y]} ${#m[@]} ${m[none]:-nothing}; unset 'm[x]'; [[ -v m[x] ]] || echo gone

#: word counts with an associative array
declare -A c; for w in the cat the dog the end; do ((c[$w]++)); done; for k in "${!c[@]}"; do echo "$k ${c[$k]}"; done | sort

#: mapfile and reading lines
printf 'l1\nl2\n\nl4' > f; mapfile -t lines < f; echo ${#lines[@]} "${lines[3]}"; while IFS= read -r l || [ -n "$l" ]; do echo "[$l]"; done < f; readarray -d '' -t z < <(printf 'a\0b\0'); echo ${z[1]}

#: read with fields, delimiters, counts
printf 'root:x:0:0::/root:/bin/sh\n' | while IFS=: read -r u _ uid rest; do echo $u $uid $rest; done
read -n 3 x <<< abcdef; echo $x; read -d , y <<< 'p,q'; echo $y; read -a arr <<< '1 2 3'; echo ${arr[2]}; read -r z < /dev/null; echo $?; read -t 0.01 q < <(sleep 1); echo $((? > 128))

#: read and mapfile take no more of a pipe or a file than they need
printf 'one\ntwo\nthree\nfour\n' | { read x; echo "$x"; (read y; echo "sub $y"); head -n 1; cat; }
printf 'one\ntwo\nthree\nfour\n' > f; { read x; echo "$x"; (read y; echo "sub $y"); cat; } < f
printf 'a,b\nc,d' | { read -d , x; echo "$x"; read y; echo "$y"; cat; echo; }
seq 9 | { mapfile -n 2 -t a; echo "${a[@]}"; mapfile -s 1 -n 1 b; echo "${b[0]}"; cat; }
seq 5 | { mapfile -t -c 2 -C 'read z; echo got $z #' a; echo "${a[@]}"; }
mkfifo p; (printf 'x\ny'; sleep 0.1; printf 'z\nrest\n') > p & { read -r a; read -r b; echo "$a $b"; cat; } < p; wait
printf 'a\\\nb c\\d\n\\\n' | { read x; echo "$x"; read -r y; echo "$y"; read z; echo "<$z> $?"; }
printf 'x\0y\0z' | while IFS= read -r -d '' v || [ -n "$v" ]; do echo "<$v>"; done
printf 'gr\303\274n\n\303\nab\303' | while read -r v || [ -n "$v" ]; do printf '%s' "$v" | od -An -tx1; done
printf '%05000d\nend\n' 7 | { read x; echo ${#x}; read y; echo $y; }
trap 'read t < f; echo trap $t' USR1; (sleep 0.2; kill -USR1 $$; sleep 0.2; echo late; echo more) > p & { read x; echo "$x"; cat; } < p; wait; trap - USR1
exec 5< <(printf '1\n2\n3\n'); read -u 5 a; read -u 5 b; echo $a $b; cat <&5; read -t 1 q < <(echo timed; echo more); echo $q

#: functions, local variables, return values
f() { local x=inner; g; echo "f sees $x"; return 3; }; g() { x=changed; }; x=outer; f; echo $? $x

#: recursion
fact() { (( $1 <= 1 )) && echo 1 || echo $(( $1 * $(fact $(($1-1))) )); }; fact 15; fib() { if (($1<2)); then r=$1; else local a; fib $(($1-1)); a=$r; fib $(($1-2)); r=$((r+a)); fi; }; fib 15; echo $r

#: name references
swap() { local -n p=$1 q=$2; local t=$p; p=$q; q=$t; }; a=1 b=2; swap a b; echo $a $b

#: loops with break and continue
for i in 1 2 3 4 5; do for j in a b c; do [ $j = b ] && continue 2; [ $i = 4 ] && break 2; echo $i$j; done; done; for ((i=0,j=10; i<j; i+=3,j--)); do echo $i $j; done; until ((i<=0)); do ((i-=4)); done; echo $i

#: select and getopts
while getopts ':ab:c' o -a -b val -x -c rest; do case $o in b) echo b=$OPTARG;; \?) echo bad -$OPTARG;; :) echo need $OPTARG;; *) echo $o;; esac; done; echo $OPTIND
printf '2\n' | (select w in red green; do echo picked $w; break; done) 2>&1

#: getopts complains
f() { while getopts 'ab:' o "$@"; do echo $o; done; }; f -z; OPTIND=1; f -b; echo rc $?

#: exit codes of compound commands
true && false || echo alt; ! true; echo $?; (exit 7); echo $?; { false; true; }; echo $?; if false; then :; fi; echo $?; false | true; echo $? ${PIPESTATUS[@]}; while false; do :; done; echo $?

#: pipefail
set -o pipefail; false | true; echo $?; (exit 3) | (exit 4) | true; echo $? ; yes | head -1; echo ${PIPESTATUS[@]}; set +o pipefail; (exit 3) | true; echo $?

#: errexit and its exceptions
set -e; false || echo guarded; if false; then :; fi; ! true; f() { false; echo in f; }; f && echo conditional; x=$(false; echo sub); echo $x; (set +e; false; echo here); false; echo not reached

#: errexit in a pipeline and a function
bash -ec 'f() { echo a; false; echo b; }; f | cat; echo c; f; echo d'; echo $?

#: nounset
set -u; echo ${x:-default}; bash -uc 'echo $undefined_thing; echo after'; echo $?; bash -uc 'a=(); echo "${a[@]}" ok; echo $1'; echo $?

#: xtrace
set -x; x=1; echo "a b" $x; for i in 1 2; do :; done; [[ $x == 1 ]]; y=$(echo z); set +x

#: traps on exit, error and debug
bash -c 'trap "echo bye \$?" EXIT; trap "echo err line \$LINENO" ERR; false; true; exit 5'; echo $?; bash -c 'trap "echo got \$BASH_COMMAND" DEBUG; x=1; echo hi'; bash -c 'f() { trap "echo ret" RETURN; :; }; f; trap -p'

#: traps on signals
trap 'echo usr1' USR1; trap 'echo term; exit 9' TERM; kill -USR1 $$; echo after; (kill -TERM $$); echo never

#: signals end children
#| needs: sed
bash -c "sleep 10 & kill \$!; wait \$!; echo \$?; sleep 10 & kill -9 \$!; wait \$!; echo \$?; bash -c 'kill -SEGV \\\$\\\$'; echo \$?" 2> err; sed 's/line 1: *[0-9]* /PID /' err; rm err; bash -c 'kill -INT $$'; echo $?; bash -c 'trap "" TERM; kill -TERM $$; echo alive'

#: kill lists signals
kill -l | head -3; kill -l 9 TERM 143; kill -l USR1; kill -0 $$ && echo exists; kill -s NOSUCH $$; echo $?; kill; echo $?

#: background jobs and wait
for i in 3 1 2; do (sleep 0.0$i; exit $i) & pids+=($!); done; for p in "${pids[@]}"; do wait $p; echo $?; done; wait; echo $?; (exit 4) & wait -n; echo $?

#: wait for what is not a child
wait 999999; echo $?; wait %7; echo $?

#: job control messages
set -m; sleep 0.7 & jobs | sed 's/[0-9]\{2,\}/PID/'; wait; sleep 5 & kill %1; wait %1 2>/dev/null; echo $?; set +m; fg; echo $?

#: coprocesses
coproc UP { tr a-z A-Z; }; echo hello >&${UP[1]}; exec {UP[1]}>&-; cat <&${UP[0]}; wait

#: file descriptors
exec 3>out 4<&0; echo to3 >&3; echo err >&2 2>err.txt; { echo o; echo e >&2; } > both 2>&1; exec 3>&-; cat out both; echo closed >&3; echo $?; echo x > /dev/full; echo $?

#: redirections and noclobber
set -C; echo a > f; echo b > f; echo $?; echo c >| f; cat f; set +C; echo d >> f; cat < f; : > f; wc -c < f; cat < missing; echo $?; echo hi &> all; cat all; echo x > nodir/f; echo > .

#: process substitution
diff <(printf '1\n2\n') <(printf '1\n3\n'); echo $?; paste <(seq 3) <(seq 4 6); tee >(wc -l > count) >(tr 1 x > tr) < <(seq 3) > /dev/null; wait; sleep 0.1; cat count tr

#: command substitution strips newlines and drops NULs
x=$(printf 'a\n\n\n'); echo "[$x]"; y=$(printf 'a\0b'); echo ${#y}; z=$(< /dev/null); echo "[$z]"; echo "$(cat <<E
doc
E
)"

#: subshells do not leak
x=1; (x=2; cd /; exit 3); echo $x $? ; pwd | wc -l; { x=4; }; echo $x; echo a | read v; echo "[$v]"; shopt -s lastpipe; echo b | read v; echo "[$v]"

#: source and arguments
printf 'echo "$# $1"; v=sourced; return 4\n' > lib.sh; . ./lib.sh A B; echo $? $v; source nowhere.sh; echo $?; . lib.sh; echo $?

#: a script by its hash-bang
printf '#!/usr/bin/env bash\necho "$0|$1|$#"\n' > s.sh; ./s.sh; echo $?; chmod +x s.sh; ./s.sh 'a b' c; PATH=.:$PATH s.sh; printf 'echo plain $1\n' > p; chmod +x p; ./p q; printf '#!/no/such/interp\n' > bad; chmod +x bad; ./bad; echo $?

#: command not found and not executable
nosuchcommand; echo $?; ./nosuch; echo $?; mkdir d; ./d; echo $?; touch t; ./t; echo $?; /etc/passwd; echo $?; ""; echo $?; '' x; . ./d; echo $?

#: type, command, builtin, hash, alias
f() { :; }; type -t f echo if ls nosuch; command -v f echo if; command -V echo; type f; builtin echo b; alias ll='ls -l'; alias; unalias ll; builtin nosuch; command nosuch; echo $?

#: declare and printing of variables
declare -i n=5+5; declare -r ro=1; declare -x ex=y; declare -l low=ABC; echo $n $low; declare -p n ro ex low; ro=2; echo after $?; readonly -p | grep -c ro=; export -p | grep ex=; unset ro; declare -f nothing; echo $?

#: printing functions
f() { local a=$1; if [[ $a ]]; then for i in x y; do echo "$i" | cat; done; else case $a in b) :;; esac; fi 2>/dev/null; while :; do break; done; }; declare -f f; type f | head -2

#: set and shopt options
set -o | grep -E 'errexit|pipefail'; set -euo pipefail; echo $-; set +e; shopt -o errexit; shopt extglob; shopt nosuch; echo $?; set -o nosuch; echo $?

#: test and brackets
[ -f . ]; echo $?; [ -d . ] && [ -e . ] && [ ! -L . ] && echo dir; [ a = a -a b != c ] && echo and; [ 3 -gt 2 -o 1 -eq 2 ] && echo or; [ "" ]; echo $?; [ -z "" ] && [ -n x ] && echo zn; [ 1 -eq x ]; echo $?; [ a b ]; echo $?; test; echo $?; [ ; echo $?
touch old; sleep 0.02; touch new; [ new -nt old ] && echo newer; ln old hard; [ old -ef hard ] && echo same; [[ a < b && ! b < a ]] && echo order

#: let, increments, assignment operators, commas, logic
let x=5 x*=3 'y = x << 2'; echo $x $y; ((x++, ++y)); echo $((x--)) $x $((x ^= 3)) $((~x)) $((!x)) $((x & 6 | 1)) $((x > 5 && y < 3)); a[1]=4; echo $((a[1] ** 2)); v=n; n=9; echo $((v + 1))

#: random and seconds behave
RANDOM=42; a=$RANDOM; RANDOM=42; b=$RANDOM; [ $a = $b ] && echo same; echo $((RANDOM < 32768)) $((SECONDS < 10)) ${#EPOCHSECONDS} $((SRANDOM >= 0)); echo $LINENO

#: caller, FUNCNAME, BASH_SOURCE, LINENO
a() { b; }
b() { echo ${FUNCNAME[@]} $LINENO; caller 0; caller 1; }
a

#: eval and quoting again
cmd='echo "a  b" $((1+1))'; eval "$cmd"; eval 'x=1;' 'y=2'; echo $x$y; eval 'echo (' ; echo $?; set -- "a b" c; q=$(printf '%q ' "$@"); eval "set -- $q"; echo $#

#: exec replaces the shell
bash -c 'exec echo replaced; echo not'; bash -c 'exec nosuch; echo not'; echo $?; bash -c 'exec -a name bash -c "echo \$0"'; (exec 2>&1; ls nowhere)

#: umask and its forms
umask; umask -S; umask 077; touch f; mkdir d; umask u=rwx,g=rx,o=; touch g; umask; umask 9; echo $?

#: ulimit in a subshell
(ulimit -n 20; ulimit -n; ulimit -n 10000; echo $?); (ulimit -f 1; head -c 5000 /dev/zero > big; echo $?) 2>&1 | sed 's/: *[0-9][0-9]* /: PID /'

#: times, time, and TIMEFORMAT
TIMEFORMAT='%P' ; { time true; } 2>&1 | grep -c '^[0-9]'; TIMEFORMAT=; { time sleep 0; } 2>&1; { time -p true; } 2>&1 | sed 's/[0-9.]*$//'; times | wc -l

#: pushd, popd, dirs, cd -
mkdir -p a/b c; pushd a > /dev/null; pushd b > /dev/null; dirs | wc -w; popd > /dev/null; echo ${PWD##*/}; cd ../c; cd - > /dev/null; echo ${PWD##*/}; cd nowhere; echo $?; cd a b; echo $?; CDPATH=..; cd c | sed 's#.*/##'; popd +7; echo $?

#: logical and physical directories
mkdir -p real/sub; ln -s real link; cd link/sub; echo ${PWD##*/link}; pwd -P | sed 's#.*/real#real#'; cd ..; echo ${PWD##*/}; cd -P sub; echo ${PWD##*/real}; rmdir ../sub; pwd -P > /dev/null; echo $?; ls; cd .; echo $?

#: long scripts from standard input
seq 1 300 | sed 's/.*/x=$((x+&))/' > s; echo 'echo $x' >> s; bash < s; bash s; cat s | bash -s -- arg; bash -s a b <<< 'echo $2'; bash nowhere.sh; echo $?

#: bash options on the command line
bash -n -c 'echo not run; if'; echo $?; bash -c 'echo $0 $1' zero one; bash -o pipefail -c 'false | true'; echo $?; bash --norc --noprofile -c 'echo ok'; bash -Z; echo $?; bash --nosuch 2>&1 | head -1; bash -v -c 'echo verbose'; bash --posix -c 'echo $POSIXLY_CORRECT'

#: environment of commands
A=1 B='2 3' bash -c 'echo $A $B'; env -i X=1 "$BASH" -c 'echo $X ${HOME-none}'; env -u HOME bash -c 'echo ${HOME-unset}'; export -n HOME; bash -c 'echo ${HOME-gone}'; export BAD-NAME=1; echo $?; env FOO=bar printenv FOO; printenv NOPE; echo $?; env nosuch; echo $?; env -S 'printf %s\\n a b'; env -C / pwd; env A=1 -u B -- true; echo $?

#: exported functions
#| needs: findutils
hello() { echo "hello $1"; }; export -f hello; bash -c 'hello world'; printf '%s\n' 1 2 | xargs -I{} bash -c 'hello {}'

#: compgen and completion
touch apple apricot; compgen -f ap | sort; compgen -W 'one two three' t; compgen -A function; compgen -v BASH_VERS | head -3; compgen -b | head -5; compgen -k | tail -3

#: deep recursion ends with a message
FUNCNEST=50; f() { f; }; f; echo rc $?

#: a long pipeline
#| needs: grep sed
seq 1000 | cat | cat | cat | grep 7 | sed 's/7/x/' | sort | uniq | head -50 | tail -5 | tr x y | wc

#: big strings and many words
x=$(printf 'a%.0s' {1..5000}); echo ${#x}; y=${x//a/bc}; echo ${#y}; set -- $(seq 20000); echo $# ${20000}; printf '%s' {1..3000} | md5sum; z=$(seq 50000); echo "${#z}"

#: argument list too long
x=$(head -c 3000000 /dev/zero | tr '\0' a); (env echo "$x" > /dev/null) 2>&1 | sed 's/.*: //'; echo "$x" | wc -c; export x; env true 2> /dev/null; echo $?
