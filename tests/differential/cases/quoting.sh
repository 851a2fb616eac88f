# Quoting and expansion in bash, as people and models get them wrong and right.

#: single quotes keep everything
echo '$HOME `ls` \n "x"'

#: double quotes expand variables but not globs
touch a.txt b.txt; x='*.txt'; echo "$x" $x

#: ansi-c quoting
printf '%s|' $'a\tb' $'it\'s' $'\x41\u00e9\101' $'\e[0m' | od -An -c

#: words split at IFS
v='a b  c	d'; set -- $v; echo $#; IFS=:; p=/bin:/usr/bin::/x; set -- $p; printf '<%s>\n' "$@"

#: quoted at keeps words and star joins them
set -- 'a b' c ''; printf '[%s]' "$@"; echo; IFS=,; echo "$*"; printf '[%s]' $*; echo

#: nested command substitutions and quotes
echo "$(echo "$(printf '%s' "a  b")  c")" | sed 's/ /_/g'

#: backquotes with escapes
x=`echo \`echo inner\``; echo $x `echo '\\\\'`

#: brace expansion
echo {a,b}{1..3} {01..10..3} {z..w} pre{fix,face}{,s} {single} {a,b

#: default and alternative values
unset u; e=; s=set
echo "${u-d}|${u:-d}|${e-d}|${e:-d}|${s+alt}|${e:+alt}|${u=now}|$u"

#: an error when a variable is missing
echo before; echo "${MISSING:?must be set}"; echo after

#: substrings and lengths
s=abcdefghij; echo ${s:2:3} ${s: -3} ${s:1:-2} ${#s} ${s:20}x

#: prefix and suffix removal
f=/usr/share/doc/readme.tar.gz; echo ${f##*/} ${f#*/} ${f%.*} ${f%%.*} ${f%/*}

#: substitution in variables
p='a.b.c'; echo ${p/./-} ${p//./-} ${p/#a/X} ${p/%c/Z} "${p//[a-b]/<&>}"

#: case conversion
w='hello World'; echo ${w^} ${w^^} ${w,,} ${w~~}; declare -u up=abc; echo $up

#: transformations
v="it's a \"test\"	x"; echo "${v@Q}"; echo "${v@E}"; a=(1 'b c'); echo "${a[@]@Q}"; declare -p a

#: indirect expansion and prefix names
name=target; target=hit; echo ${!name}; abc1=1 abc2=2; echo ${!abc*}

#: tilde expansion
echo ~/x | sed "s#$HOME#HOME#"; echo '~' "~" a~ ; cd /; cd ~-; echo ${PWD##*/} | wc -l

#: arithmetic expansion
echo $((2**10)) $((7/2)) $((-7/2)) $((-7%3)) $((0x1f)) $((010)) $((2#1011)) $((1<<40)) $((5>3?1:0))

#: arithmetic wraps at 64 bits
echo $((9223372036854775807+1)) $((-9223372036854775808)) $((1<<63)) $((3000000000*3000000000))

#: arithmetic errors
echo $((1/0)); echo not reached

#: arithmetic syntax errors
(( 1 + )) ; echo $?; echo $((08)); echo end

#: here-document with and without expansion
v=world
cat <<A
hello $v $(echo sub) \$v `echo bq` \\ "q"
A
cat <<'B'
hello $v $(echo sub) \$v
B

#: here-document with tabs removed
cat <<-END
	indented
		twice
	END
echo done

#: here-string
read -r a b <<< "one two three"; echo "$a|$b"; wc -c <<< ''; tr a-z A-Z <<<"up $((1+1))"

#: two here-documents on one line
cat <<A - /dev/fd/3 3<<B
from a
A
from b
B

#: a here-document that is not ended
bash -c 'cat <<EOF
line
'; echo $?

#: echo and its options
echo -n a; echo -e 'b\tc\n\x41'; echo -E 'x\ty'; echo -ne 'no newline\c ignored'; echo; echo -- -n

#: printf formats
printf '%5d|%-5d|%05d|%+d|%x|%X|%#o|%e|%.3f|%g\n' 42 42 42 42 255 255 8 12345.678 3.14159 0.0001

#: printf repeats its format
printf '%s=%d\n' a 1 b 2 c; printf '%b|%q|%c\n' 'x\ny' "a b'c" xyz

#: printf of bad numbers
printf '%d %d %d\n' abc 12x 0x1F; echo $?

#: printf into a variable and of times
printf -v out '%03d' 7; echo $out; TZ=UTC printf '%(%Y-%m-%d %H:%M:%S)T\n' 0 1700000000

#: large and small floating point numbers
printf '%f %e %g\n' 1e15 1e-300 123456789; printf '%.20f\n' 0.1; printf '%g %g %g\n' inf nan -0

#: an unbalanced quote
bash -c 'echo "abc'; echo $?

#: syntax errors
bash -c 'if true; then echo x'; echo $?; bash -c 'for do'; echo $?; bash -c 'echo a | | b'; echo $?; bash -c 'x=(1 2'; echo $?

#: an empty command and only comments
bash -c ''; echo $?; bash -c '# nothing'; echo $?; bash -c '""'; echo $?

#: line continuation
echo one \
  two\
three
echo 'a\
b'

#: history expansion is off in scripts
echo "wow!" 'x!!' !$

#: special parameters
set -- a b; echo $# $0 "$-" $?; f() { echo $# $FUNCNAME; }; f x y z; echo ${@:2} ${*: -1}

#: globs
touch a1 a2 b1 .hidden 'sp ace' x.TXT; mkdir d; touch d/in
echo *; echo .h*; echo ?1; echo [ab]1; echo [!a]*; echo a[0-9]; echo d/*; echo nomatch*; echo */

#: extended globs
shopt -s extglob; touch a ab abb b.c b.h b.o
echo a*(b) ; echo a+(b); echo !(b.*) ; echo b.@(c|h); echo a?(b)

#: globstar, nullglob, dotglob, nocaseglob, failglob
mkdir -p x/y/z; touch x/1.py x/y/2.py x/y/z/3.py x/.dot X.PY
shopt -s globstar; echo **/*.py; shopt -s nullglob; echo none*.q "|"; shopt -s dotglob; echo x/*
shopt -s nocaseglob; echo *.py; shopt -u nullglob; shopt -s failglob; echo zz*; echo rc $?

#: patterns in case and in double brackets
for w in apple Banana 12 '' 'a b' x.tar.gz; do case $w in [a-z]*) echo lower;; [A-Z]*) echo upper;; +([0-9])) echo num;; '') echo empty;; *) echo other;; esac; done
[[ foo.txt == *.txt ]] && echo glob; [[ abc =~ ^a(.)c$ ]] && echo "${BASH_REMATCH[1]}"; [[ 'a*' == "a*" ]] && echo literal

#: regular expressions in bash
re='^([0-9]{4})-([0-9]{2})-([0-9]{2})T?(.*)$'; for d in 2024-01-31 2024-1-3 2024-02-29T10:00Z; do [[ $d =~ $re ]] && echo "${BASH_REMATCH[@]:1}" || echo "no: $d"; done
[[ é =~ ^.$ ]] && echo one char; [[ $'a\nb' =~ a.b ]] && echo newline; [[ x =~ [[:alpha:]] ]] && echo class; [[ a =~ '(' ]]; echo $?; [[ a =~ ( ]] 2>&1; echo $?
