# Text by coreutils: cut, tr, head, tail, wc, nl, fold, fmt, pr, split, tac, expand, numfmt, od.
cat > poem <<'DATA'
Two roads diverged in a yellow wood,
And sorry I could not travel both

And be one traveler, long I stood
	And looked down one as far as I could
DATA
printf 'a:b:c\nd:e\nnone\n:x:\n' > colons

#: cut by field, character, byte, complement
cut -d: -f2 colons; cut -d: -f2 -s colons; cut -d: -f1,3 --output-delimiter=- colons; cut -c1-3 poem; cut -c 5- <<< abcdefg; cut -b -2 <<< hello; cut -d: --complement -f1 colons; cut -f1 colons | head -1; cut -d' ' -f2- poem

#: cut complaints
cut poem; echo $?; cut -f0 poem; echo $?; cut -d ab -f1 poem; echo $?; cut -f2-1 poem; echo $?; cut -f1 nowhere; echo $?

#: tr sets, ranges, classes, deletion, squeezing
echo 'Hello, World 123' | tr a-z A-Z; echo 'a1b2' | tr -d 0-9; echo 'aabbcc' | tr -s ab; echo 'x-y_z' | tr -- '-_' '  '; echo abc | tr -c 'ab\n' x; echo 'tab	here' | tr '\t' ' '; echo hello | tr '[:lower:]' '[:upper:]'; echo abc | tr abc x; echo abc | tr -t abc x; echo 'a b  c' | tr -s '[:space:]' '\n'; printf 'a\r\nb\r\n' | tr -d '\r'; echo ABC | tr 'A-C' '[1*]'; echo '\ [x]' | tr '\\[]' '/<>'

#: tr complaints
echo a | tr; echo $?; echo a | tr b-a x; echo $?; echo a | tr '[:nope:]' x; echo $?; tr a b c; echo $?

#: head and tail
#| needs: sed
seq 20 > n; head -3 n; tail -2 n; head -n -17 n; tail -n +18 n; head -c 5 n; tail -c 6 n; tail -c +48 n; head -n 1 n colons; tail -qn1 n colons; head -v -n1 n; seq 5 | head -n 2k | wc -l; tail -r n; echo $?; head -n x n; echo $?; head nowhere n -n1; echo $?; sed -n '3,5p' n; sed -n '$p' n

#: tail -f ends with its process
(sleep 0.2; echo more >> log; sleep 0.3) & echo first > log; tail -f --pid=$! -s 0.1 log

#: wc in all ways
wc poem colons; wc -l < poem; wc -w poem; wc -c poem; wc -L poem; wc -lw nowhere poem; echo $?; printf 'no newline' | wc -l; printf 'poem\0colons\0' | wc -l --files0-from=-; wc --total=only poem colons; wc < /dev/null; printf '' | wc -c

#: nl and cat -A
nl poem; nl -ba -w3 -s'. ' poem; cat -n poem; cat -b poem; cat -A poem; cat -s <(printf 'a\n\n\n\nb\n'); cat - poem <<< stdin | head -2; nl -v10 -i5 colons

#: cat of binary and of directories
#| needs: diffutils
printf '\0\1\177\200\377\n' | cat -v; mkdir d; cat d; echo $?; cat nowhere poem | head -1; cat > out < poem; cat out >> out2; cat < out > out3; cmp out out3; cat out >> out; echo $?

#: fold, fmt, pr
fold -w 20 poem; fold -s -w 20 poem; fmt -w 30 poem; fmt -u <<< 'a   b.  c'; fmt -s -w 15 poem; pr -t -2 -l 5 <(seq 10); pr -n -t colons; pr -h Title -l 20 poem | tail -n +4 | head -5; pr -mt colons <(seq 3); printf 'a b c d e f\n' | fmt -w 5; pr -T -s, -3 <(seq 6)

#: split by lines, bytes, number, with suffixes and filters
seq 10 > n; split -l 4 n part.; cat part.ab; split -b 5 -d n num-; split -n 3 -a 1 n c; split -n l/2 n L; split -l 5 --additional-suffix=.txt --numeric-suffixes=1 n out; split -l 5 --filter='tr 0-9 a-j > $FILE.f' n; split -n r/3 n rr; split -l 0 n; echo $?; split -a 1 -l 1 <(seq 30) z; echo $?

#: csplit
seq 9 > n; csplit n 4 7; csplit -f p -b '%02d.txt' -s n '/5/' '{*}'; printf 'a\n--\nb\n--\nc\n' > s; csplit -z s '/--/' '{*}'; csplit --suppress-matched -f m s '/--/' '{*}'; csplit -f e n '/nope/'; echo $?

#: tac, rev-like, expand, unexpand
tac colons; printf 'a,b,c' | tac -s,; printf 'a\tb\n' | expand -t4; printf '        x\n' | unexpand; printf 'a       b\n' | unexpand -a; expand -t 2,6 <<< $'a\tb\tc'; unexpand -t 4 --first-only <<< '        a    b'

#: numfmt
numfmt --to=iec 1024 1536 1048576 999; numfmt --to=si 1500; numfmt --from=iec 1K 2.5M 1G; echo 'f 2048 x' | numfmt --field=2 --to=iec-i --suffix=B; numfmt --grouping 1234567; numfmt --format='%8.2f' 3.14159; numfmt --padding=8 12; numfmt --round=down --to-unit=1000 5999; numfmt --header=1 --to=si <<< $'h\n5000'; numfmt abc; echo $?; numfmt --invalid=ignore --to=si x 5000

#: seq
seq 3; seq 2 2 9; seq 5 -2 0; seq -w 8 11; seq -s, 4; seq 0 0.5 2; seq -f '%03g' 3; seq 1e3 1001; seq 3 1; seq 1 x; echo $?; seq 0.1 0.1 0.5; seq 999999 1000001; seq -w -1 1; seq 1 0; seq -- -2 0; seq 9007199254740993 9007199254740994

#: od
printf 'Hello\n\t\xff\0' > b; od b; od -c b; od -An -tx1 b; od -tx2z b; od -td4 -N4 b; od -Ax -tu1 -w4 b; od -j2 -N3 -c b; od -s b; od -tfF <(printf '\0\0\200?'); od -ta b; od -v <(head -c 40 /dev/zero); od <(head -c 64 /dev/zero); od -to1 -td2 b

#: base64, base32, basenc
printf 'hello world' | base64; printf 'aGVsbG8=' | base64 -d; head -c 100 /dev/zero | base64 -w 20; printf 'x' | base32; basenc --hex <<< hi; basenc --base64url <<< '~~~??>'; echo '!!!' | base64 -d; echo $?; echo 'aGk=xx' | base64 -di; basenc --z85 < <(printf '12345678'); printf '6869' | basenc --base16 -d; base64 nowhere; echo $?

#: checksums and checking them
printf 'data\n' > f; md5sum f; sha1sum f; sha256sum f; sha512sum f | cut -c1-20; b2sum f | cut -c1-20; cksum f; sum f; sum -s f; md5sum --tag f; sha256sum f poem > sums; sha256sum -c sums; echo x >> f; sha256sum -c sums; echo $?; sha256sum -c --quiet sums; md5sum - < f; cksum -a sha256 f; cksum -a crc f; md5sum nowhere; echo $?; echo garbage | md5sum -c; echo $?; sha256sum --ignore-missing -c sums; sha224sum f; sha384sum f | cut -c1-9

#: factor, expr, test numbers
factor 2 97 1001 4294967291 18446744073709551557 1000000007000000049; factor x; echo $?; expr 2 + 3 \* 4; expr 10 / 3; expr 7 % 0; echo $?; expr length hello; expr substr hello 2 3; expr index hello l; expr abc : 'a\(.\)c'; expr 5 \> 10; echo $?; expr a \< b; expr 1 +; echo $?; expr 99999999999999999999 + 1; expr '(' 1 + 2 ')' '*' 3; expr 9223372036854775807 + 1

#: yes, true, false, printf and echo as programs
yes | head -2; yes a b | head -1; env true; echo $?; env false; echo $?; env echo -e 'a\tb'; env printf '%s %5.2f %b\n' x 3.14159 'q\n'; env echo -n; env printf; echo $?; env printf '%d\n' 0x10 "'A"; env printf '%q\n' "a'b c" $'n\nl'; env printf '%s\n'; env printf '\u00e9\n'

#: tee
#| ignore: stderr files
echo x | tee a b; echo y | tee -a a > /dev/null; cat a; echo z | tee /nodir/f; echo $?; seq 100000 | tee big | head -1; wc -l < a; echo q | tee -p a >/dev/full; echo $?

#: ptx and dircolors
printf 'alpha beta\ngamma alpha\n' | ptx -w 40; printf 'TERM xterm\n.tar 01;31\n' | TERM=xterm dircolors -b -; dircolors -p | head -3; ptx -A -w 40 <<< 'x y'

#: text without a last newline
#| needs: sed
printf 'a\nb' > f; cat f; echo; wc -l f; tail -1 f; echo; sort f; while read l; do echo "<$l>"; done < f; paste f f; cat f f; head -1 f; tac f; nl f; sed s/x/y/ f; uniq f; cut -c1 f; rev=1; fold -w1 f; comm f f; join f f

#: very long lines
#| needs: grep sed gawk
head -c 200000 /dev/zero | tr '\0' x > long; wc long; cut -c 199990- long; fold -w 60000 long | wc; sort long | wc -c; head -c 10 long; grep -c x long; sed 's/x/y/100000' long | md5sum; tr -s x < long; awk '{print length}' long

#: empty files
: > e; wc e; sort e; uniq e; head e; tail e; cut -c1 e; tr a b < e; paste e e; tac e; md5sum e; split e; ls; cat e; od e; nl e; cksum e; comm e e; join e e; fmt e; base64 e; shuf e; tsort e; factor < e; numfmt < e; expand e

#: dos line endings
#| needs: grep sed gawk
printf 'a,1\r\nb,2\r\n' > dos; cut -d, -f2 dos | od -c; tr -d '\r' < dos; sed 's/\r$//' dos; while IFS=, read -r k v; do echo "${v%$'\r'}"; done < dos; grep -c $'\r' dos; awk -F, '{sub(/\r$/,"");print $2}' dos
