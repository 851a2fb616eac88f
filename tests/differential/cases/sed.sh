# sed.
#| needs: sed
printf 'one two\nthree four\n\nfive six\n# comment\nkey = value\n' > f
printf '[server]\nhost = localhost\nport = 80\n\n[client]\nport = 99\n' > conf.ini

#: substitutions and their flags
sed 's/o/0/' f; sed 's/o/0/g' f; sed 's/o/0/2' f; sed -n 's/e/E/gp' f; sed 's/ONE/1/I' f; sed 's|/|-|g' <<< a/b/c; sed 's/\(\w*\) \(\w*\)/\2 \1/' f; sed -E 's/(\w+) (\w+)/\2 \1/' f; sed 's/.*/[&]/' f; sed 's/x*/-/g' <<< abc; sed 's/a\|b/X/g' <<< abcab; sed 's/t/T/3g' <<< ttttt; sed 's/$/!/; s/^/> /' f; sed 's/\t/ /' <<< $'a\tb'; sed 's/e$//w out' f; cat out

#: case conversion and special replacements
sed 's/\b./\u&/g' f; sed -E 's/(.*)/\U\1/' f; sed 's/\w\+/\L\u&/2' <<< 'ABC DEF'; sed 's/a/\n/' <<< xay; sed 's/,/\
/g' <<< a,b; sed 's/&/and/; s/x/\&/' <<< '& x'; sed 's/\./\\./g' <<< 1.2; sed 's/a/\x41\d066\o103/' <<< a; sed 's/\(foo\)\(bar\)/\U\1\E\2/' <<< foobar

#: addresses
sed -n 2p f; sed -n '2,4p' f; sed -n '$p' f; sed '2d' f; sed '/^$/d' f; sed '/^#/d;/^$/d' f; sed -n '/three/,/five/p' f; sed -n '2~2p' f; sed -n '/five/,+1p' f; sed -n '0,/o/p' f; sed '1!d' f; sed -n '/port/{p;q}' conf.ini; sed '/\[server\]/,/\[/s/80/8080/' conf.ini; sed -n '4,2p' f; sed -n '\,#,p' f; sed '2,~4d' f; sed '$!N;$!D' f; sed -n '/SIX/I=' f

#: in place
sed -i 's/80/8080/' conf.ini; cat conf.ini; sed -i.bak '/port/d' conf.ini; ls; cat conf.ini; sed -i -e '1i # generated' -e '$a # end' conf.ini; cat conf.ini; sed -i 's/x/y/' nowhere; echo $?; chmod 640 f; sed -i s/one/1/ f; stat -c %a f; ln -s f l; sed -i s/two/2/ l; stat -c %F l; sed -i --follow-symlinks s/a/b/ f; mkdir bk; sed -i'bk/*.old' s/1/2/ f; ls bk; sed -n -i p f; wc -l f; sed -s -n '$p' f conf.ini; sed -i '' f; echo $?; sed -i '1d' f conf.ini; head -1 f conf.ini; mkdir d; sed -i s/a/b/ d; echo $?

#: insert, append, change, read, write
sed '2i\before' f; sed '2a after' f; sed '/three/c\changed\nlines' f; sed '$a\' f | tail -1; printf 'included\n' > inc; sed '1r inc' f; sed '/five/w w.txt' f > /dev/null; cat w.txt; sed '2{i\
  indented
}' f; sed '1e echo run' f | head -2; sed '3R inc' f | head -5; sed 'y/abc/xyz/' <<< aabbcc; sed -n l <<< $'tab\there\x01é'; sed -n 'l 20' <<< 'a long line that is to be folded'; sed = f | head -4; sed '0~3a ---' f

#: hold space and loops
sed -n '1!G;h;$p' f; sed 'N;s/\n/ + /' f; sed ':a;N;$!ba;s/\n/,/g' f; sed -e :a -e 's/^.\{1,9\}$/ &/;ta' <<< abc; sed 'G' <<< x; sed '$!d' f; sed -n 'H;${x;s/\n/|/g;p}' f; sed -E ':a;s/([0-9])([0-9]{3})($|,)/\1,\2\3/;ta' <<< 1234567; sed '/three/{n;d}' f; sed -n '/one/{N;P;D}' f; sed 'x;p;x' <<< a; sed '/^$/N;/\n$/D' < <(printf 'a\n\n\n\nb\n'); sed '1~3d' f; sed -e '/one/b end' -e 's/$/ X/' -e ': end' f; sed 's/o/0/;T;s/$/ T/' f; sed '/\\$/{N;s/\\\n//}' < <(printf 'a\\\nb\n'); sed -z 's/\n/;/g' f; echo

#: several scripts, files, options
printf 's/one/1/\n# c\n/three/d\n' > s.sed; sed -f s.sed f; sed -e s/a/b/ -e s/b/c/ <<< a; sed --expression='s/a/b/' <<< a; sed -n -e 1p -- f; sed --quiet 1p f; sed 1q f; sed 2q5 f; echo $?; sed Q9 f; echo $?; sed -n '$=' f; sed -s 1F f | head -1; sed --posix 's/a\+/b/' <<< 'a+'; sed --debug -n 1p f | head -3; sed -u 1q f; sed -l 5 -n l <<< abcdefgh; printf '#n\n1p\n' > n.sed; sed -f n.sed f; sed --sandbox 'w x' f; echo $?; sed -E 's/a|b//' -n f; printf '1!d' | sed -f - f

#: complaints
sed; echo $?; sed 's/a' f; echo $?; sed 's/a/b/zz' f; echo $?; sed 'k' f; echo $?; sed '/[/d' f; echo $?; sed 's/\(a/b/' f; echo $?; sed 's/a/\1/' f; echo $?; sed p nowhere; echo $?; sed '{p' f; echo $?; sed 'b nolabel' f; echo $?; sed -E 's/(a/b/' f; echo $?; sed 'y/ab/c/' f; echo $?; sed 2,1,d f; echo $?; sed --nosuch f; echo $?; sed ': ' f; echo $?; sed '}' f; echo $?; sed 'r' f; echo $?; sed -f nowhere f; echo $?; sed 's/x/y/;;p;' <<< x; sed 'w /nodir/x' f; echo $?; sed 's/a\{1/b/' f; echo $?

#: utf-8
sed 's/./X/g' <<< 'aé日'; sed 's/é/e/;s/[äöü]/u/' <<< 'éü'; sed -E 's/(.)(.)/\2\1/' <<< 'éa'; sed 'y/äöü/aou/' <<< 'äöü'; sed 's/.*/\U&/' <<< 'straße é'; printf '\xff\n' | sed 's/./X/' | od -c; sed -n l <<< 'é日'; sed 's/\xc3\xa9/E/' <<< é; sed 's/\w/x/g' <<< 'aé 日'; sed 's/[[:upper:]]/_&/g' <<< 'aÉb'; LC_ALL=C sed 's/./X/g' <<< é

#: edits of a source file
printf 'def foo(x):\n\treturn foo(x-1)\n\nprint(foo(3))  \n' > m.py; sed -i 's/\bfoo\b/bar/g; s/[ \t]*$//; s/^\t/    /' m.py; cat -A m.py; sed -n '/def/,/^$/p' m.py; sed -i '/^import/!b;' m.py; sed -i '1s/^/import os\n\n/' m.py; cat m.py; sed -i "s#print(\(.*\))#print(f'{\1}')#" m.py; cat m.py; sed -n '/return/{=;p}' m.py | paste - -

#: many lines
seq 100000 | sed -n '$='; seq 100000 | sed 's/9/nine/g' | md5sum; seq 10000 | sed -n '500,510p;510q'; seq 5000 | sed '$!N;s/\n/ /' | tail -1; seq 2000 | sed ':a;N;$!ba;s/\n/+/g' | wc -c
