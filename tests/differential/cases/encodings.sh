# Text in UTF-8 and other bytes.
printf 'naïve café\n日本語\n😀 emoji\nплан\n' > u
printf 'caf\xe9\n\xff\xfe\n' > latin1

#: counting characters, bytes, columns
wc -m u; wc -c u; wc -L u; wc u; wc -m latin1; printf 'é' | wc -m; s='日本語'; echo ${#s}; LC_ALL=C; echo ${#s}; LC_ALL=C wc -m u; LC_ALL=POSIX wc -m u; printf 'e\u0301\n' | wc -mL; printf '\u200b\u00ad\n' | wc -L

#: cutting characters and bytes
cut -c1-3 u; cut -b1-3 u | od -An -tx1; cut -d' ' -f2 u; cut -c2 latin1 | od -c; s='héllo wörld'; echo ${s:1:3} ${s: -4} ${s/ö/o} ${s^^} ${s%ld}; printf '%.3s|%6s|\n' "$s" é; head -c 4 u; echo

#: translating
tr é e <<< é | od -c; tr a-z A-Z < u; tr '[:upper:]' '[:lower:]' <<< 'ÀB'; tr -d 'é' <<< 'aéb' | od -c; tr -cd '[:print:]\n' < u | od -c | head -2; tr '\303' x <<< é | od -c

#: reversing, folding, formatting
fold -w 3 u; fold -b -w 4 u | od -c | head -2; fmt -w 8 u; expand <<< $'é\tx'; pr -t u; nl u; tac u; paste -d '·' u u | head -1 | od -c | tail -2; numfmt --suffix=é 5; column=1; printf '%-8s|\n' é 日本 a

#: sorting and comparing
sort u; LC_ALL=C sort u; sort -r u; printf 'é\nf\ne\n' | sort; printf 'B\na\nC\n' | sort; printf 'é\ne\n' | uniq; [[ é > z ]] && echo after; [ é \> z ] && echo after; printf 'ä\nA\nz\n' | sort -f; join <(printf 'é 1\n') <(printf 'é 2\n'); comm <(printf 'z\né\n') <(printf 'é\n'); ls | sort; printf 'ö\no\n' | sort -c; echo $?

#: file names
#| needs: findutils
mkdir 日本; touch 'é' $'e\u0301' '😀.txt' $'bad\xff' 日本/x; ls; ls -b; ls -N | od -c | tail -4; echo *; echo ?; echo ??????.txt; for f in *; do printf '%q\n' "$f"; done; find . -name 'é*' | sort; find . | sort | od -c | tail -5; mv é è; rm 😀.txt; cat 日本/nope; cat $'bad\xff/x'; ls $'no\xfe'; echo [é-ü]; stat -c %n $'bad\xff' 2>&1 | od -c | head -2; du -b $'bad\xff' | cut -f1; basename 日本/x; [[ -e 日本/x ]] && echo there

#: regular expressions over characters
#| needs: grep sed
grep -c '^...$' u; grep -o '[[:alpha:]]*' u | head -3; sed 's/./_/g' u; [[ é =~ ^[[:alpha:]]$ ]] && echo alpha; [[ 日 == ? ]] && echo one; expr length 日本; expr 日本 : '.*'; expr substr héllo 2 2; expr index aéb é; case é in ?) echo single;; *) echo multi;; esac; sed -n '/[^ -~]/p' u | wc -l; grep -nP '[^\x00-\x7F]' u | cut -d: -f1

#: printf and echo escapes
printf '\u00e9 \U0001F600 \xc3\xa9 \303\251\n'; echo -e '\u65e5\x41'; printf '%b\n' '\u00e9'; printf '%d\n' "'é" "'日"; printf '%c%c\n' é x | od -c; printf '%5s|%-5s|\n' é é; printf '%q\n' 'é x' $'\xff'; echo $'\u20ac'; printf '%s\n' "${s@Q}"; LC_ALL=C printf '\u00e9\n'; printf '%.1s\n' é; printf '%x\n' "'é"

#: bytes that are no characters
#| needs: grep sed gawk
#| ignore: stderr
cat latin1 | od -c; wc latin1; sort latin1 | od -c; x=$(cat latin1); echo ${#x}; [[ $x == caf?* ]] && echo match; grep -c caf latin1; sed s/caf/CAF/ latin1 | od -c; tr -d '\377' < latin1 | od -c; cut -c1-4 latin1 | od -c; printf '%s' "$x" | md5sum; awk '{print length}' latin1; while read -r l; do echo ${#l}; done < latin1; echo "${x^^}" | od -c; uniq latin1 | wc -c; case $x in *[!a-z]*) echo other;; esac

#: byte order mark and wide files
#| needs: grep sed gawk
printf '\xef\xbb\xbfid,name\n1,x\n' > bom; head -1 bom | od -c | head -1; sed '1s/^\xef\xbb\xbf//' bom | head -1; grep -c '^id' bom; awk -F, 'NR==1{sub(/^\357\273\277/,"");print $1}' bom; printf 'h\0i\0\n\0' > u16; od -c u16; tr -d '\0' < u16; cat -v bom; wc -m bom

#: case changes beyond ascii
#| needs: sed gawk grep
s='straße ÀÉÎ ñ я Ж ǆ'; echo "${s^^}"; echo "${s,,}"; echo "${s^}"; declare -u v=é; echo $v; sed 's/.*/\U&/' <<< "$s"; awk '{print toupper($0); print tolower($0)}' <<< "$s"; tr '[:lower:]' '[:upper:]' <<< "$s"; grep -i 'я ж' <<< "$s"; [[ É == [[:upper:]] ]] && echo upper; shopt -s nocasematch; [[ É == é ]] && echo same; printf 'É\né\n' | sort -f -u | wc -l; printf 'É\né\n' | uniq -i

#: width of characters in columns
printf 'a\t日本\té\n' | expand -t 8; ls -C --width=30 2>/dev/null; touch 日本語 é abc; ls -C --width=20; ls -x --width=14; printf '日本語\n' | wc -L; printf '%s\n' 日本 abc | pr -2 -t -l1 -w 20; nl -w2 <<< 日本; fold -w4 <<< 日本語テ; fmt -w6 <<< '日本 語テ ab'

#: locale variables
#| ignore: stdout
locale 2>/dev/null | head -1; LC_ALL=C bash -c 'x=é; echo ${#x}'; LC_ALL= LANG=C bash -c 'x=é; echo ${#x}'; LC_CTYPE=C.UTF-8 LANG=C bash -c 'x=é; echo ${#x}'; LC_ALL=C date -d 2024-03-01 +%B; LANG=C ls nowhere
