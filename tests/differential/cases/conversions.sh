# Converting text: iconv, dos2unix, envsubst, sponge and others of the kind.
#| needs: libc-tools dos2unix moreutils gettext

#: iconv between utf-8 and others
#| needs: diffutils
printf 'café €5 naïve\n' > u; iconv -f UTF-8 -t ISO-8859-15 u | od -c; iconv -f utf8 -t utf-16le u | od -An -tx1; iconv -f utf-8 -t UTF-32BE <<< é | od -An -tx1; printf 'caf\xe9\n' | iconv -f latin1 -t utf8; printf 'caf\xe9\n' | iconv -f ISO-8859-1; printf '\x93\xfa\x96\x7b\n' | iconv -f SHIFT_JIS -t UTF-8; printf '\xe4\xe5\n' | iconv -f KOI8-R -t UTF-8; printf '\x80\n' | iconv -f CP1252 -t UTF-8; iconv -f UTF-8 -t CP1251 <<< привет | od -An -tx1; iconv -f UTF-8 -t EUC-JP <<< 日本 | od -An -tx1; printf '\xd6\xd0\xce\xc4\n' | iconv -f GB18030 -t UTF-8; iconv -f ascii -t utf-8 <<< plain; iconv -t ascii <<< abc; iconv u -f utf-8 -t latin9 -o out; od -c out; printf '\xd0\xcf\n' | iconv -f CP866 -t UTF-8; iconv -f UTF-8 -t UTF-8 u | cmp - u && echo same

#: iconv fails
iconv -f utf-8 -t ascii <<< é > /dev/null 2>&1; echo $?; printf '\xff' | iconv -f utf-8 -t utf-16le > /dev/null 2>&1; echo $?; iconv -f nosuch -t utf-8 <<< x > /dev/null 2>&1; echo $?; iconv -f utf-8 -t nosuch <<< x > /dev/null 2>&1; echo $?; iconv nowhere > /dev/null 2>&1; echo $?; iconv -f utf-8 -t ascii -c <<< 'aéb' 2> /dev/null; printf 'ab\xc3' | iconv -f utf-8 -t utf-16le > /dev/null 2>&1; echo $?; iconv -f utf-8 -t latin1 <<< 'ok €' 2> /dev/null; echo $?

#: iconv to chinese and korean character sets
#| xfail: L019 only from them
iconv -f UTF-8 -t GB18030 <<< 中文 | od -An -tx1; iconv -f UTF-8 -t BIG5 <<< 中文 | od -An -tx1; iconv -f UTF-8 -t EUC-KR <<< 한국 | od -An -tx1

#: line endings
printf 'a\r\nb\r\n' > d; dos2unix -q d; od -c d; unix2dos -q d; od -c d; dos2unix < <(printf 'x\r\n') | od -c; printf 'a\nb\r\n' > m; dos2unix -i m; dos2unix -n d e 2>/dev/null; od -c e; dos2unix nowhere; echo $?; printf '\xef\xbb\xbfbom\r\n' > b; dos2unix -q b; od -c b; dos2unix -i d m b; printf 'a\0b\r\n' > bin; dos2unix bin; echo $?; unix2mac -q m 2>/dev/null; ls

#: variables in text
export NAME=World N=3; envsubst <<< 'Hello $NAME ${N} $UNSET. $$ ${NAME}x \$NAME'; envsubst '$NAME' <<< '$NAME $N'; envsubst -v '$A ${B} c$D'; printf 'a=$N\nb=${NAME}\n' > t; envsubst < t > o; cat o

#: sponge, ifne, pee, isutf8, errno
printf 'b\na\n' > f; sort f | sponge f; cat f; printf 'c\n' | sponge -a f; cat f; printf '' | ifne echo no; printf x | ifne cat; echo; printf '' | ifne -n echo empty; seq 3 | pee 'head -1' 'wc -l' | sort; isutf8 f && echo utf8; printf '\xff' > g; isutf8 g; echo $?; errno ENOENT; errno 13; errno -s directory | sort; mispipe false true; echo $?

#: what the c library says
#| needs: grep
#| ignore: stderr
getconf PATH > /dev/null; echo $?; getconf NAME_MAX /; getconf nosuch; echo $?; locale charmap; getent passwd 0 | cut -d: -f1-4; getent group root | cut -d: -f1-3; getent passwd nosuchuser; echo $?; getent nosuchdb x > /dev/null 2>&1; echo $?; getconf CHAR_BIT; getconf -a | grep -c PATH_MAX > /dev/null; getconf INT_MAX
