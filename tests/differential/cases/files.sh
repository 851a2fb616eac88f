# Files and directories: listing, copying, moving, linking, modes, times, and what goes wrong.
umask 022

#: ls of names in columns of its choice
mkdir d; touch a b .h d/x; ln -s a l; ls; ls -a; ls -A; ls -1; ls -F; ls -p; ls -d */; ls d a; ls -R; ls -m; ls -Q; ls -r; ls -xw 20; ls -C; ls --group-directories-first; ls -B; ls -I 'a*'; ls --hide='b'

#: long listing without what depends on the machine
printf 12345 > f; chmod 640 f; touch -d '2024-02-03 04:05:06' f; ln -s f s; mkfifo p; chmod 600 p; ls -l --time-style=long-iso f | cut -d' ' -f1,2,5-; ls -l s p | cut -c1-10; ls -lh --time-style=+%F f | cut -d' ' -f5-; ls -g -o --time-style=iso f | cut -c1-10; stat -c '%A %a %F %n %s %h %N' f s p; ls -ln --full-time f | cut -d' ' -f5-8

#: ls sorts by size, time, extension, version
printf 1 > small; printf 123 > big; : > z.c; : > y.a; touch -d 2020-01-01 small; touch -d 2021-01-01 big; touch -d 2022-01-01 z.c; touch -d 2019-01-01 y.a; ls -S; ls -t; ls -tr; ls -X; touch -d 2023-01-01 f1 f10 f2; ls -v f*; ls -U | sort; ls -1t | head -2; ls -cu | wc -l

#: ls of strange names
touch 'a b' $'n\nl' 'q"q' "s'q" $'t\tb' '*' '-dash' 'ü' $'\x01' '\'; ls; ls -b; ls -q; ls --quoting-style=shell-escape; ls --quoting-style=c; ls -N | od -c; ls -- -dash; ls -dash; echo $?; ls --quoting-style=locale; ls --zero | tr '\0' '|'

#: ls complaints
ls nowhere; echo $?; ls -l nowhere . ; echo $?; ls --nosuch; echo $?; ls -w x; echo $?; mkdir d; chmod 000 d; ls d; echo $?; ls --color=maybe; echo $?; ls --sort=abc; echo $?; ls ''; echo $?; chmod 755 d

#: ls with colours
mkdir d; touch x.tar e; chmod +x e; ln -s e l; ln -s gone g; mkfifo p; LS_COLORS='di=01;34:ln=01;36:ex=01;32:or=31:*.tar=33:pi=40' ls --color=always; TERM=xterm ls --color; ls --color=auto --hyperlink=never

#: cp of files
echo 1 > a; cp a b; cp -v a c; cp a nodir/x; echo $?; mkdir d; cp a b d; cp -n a b; cp a a; echo $?; cp nowhere x; echo $?; cp d e; echo $?; cp a; echo $?; cp -i a b < /dev/null; echo; cp --backup=numbered a b; cp -b -S .bak a b; ls; cp a b nowhere; echo $?; cp -t d c; cp -T a d; echo $?; cp ''  z

#: cp -r, -a, and links
#| needs: findutils
mkdir -p t/s; echo x > t/s/f; chmod 741 t/s/f; ln -s s/f t/l; ln t/s/f t/h; touch -d 2020-01-01 t/s/f; cp -r t r; cp -a t k; cp -rL t L; cp -rl t hl; cp -rs $PWD/t sl; stat -c '%n %a %F' r/s/f k/s/f k/l; stat -c %y k/s/f; cp --parents t/s/f k; find . -type f | sort; cp -P t/l P; cp t/l Q; cp -u t/s/f Q; cp -p t/s/f pp; stat -c %a pp

#: cp keeps holes and modes
#| needs: diffutils
truncate -s 1M sparse; printf end >> sparse; cp sparse copy; cmp sparse copy; stat -c %s copy; cp --sparse=always sparse s2; printf x > e; chmod 4755 e; cp e e2; cp -p e e3; stat -c %a e2 e3; chmod 000 e; cp e e4; echo $?; cp --attributes-only e3 e5; cp --reflink=auto e3 e6; cp --no-preserve=mode e3 e7; stat -c %a e5 e6 e7; chmod 600 e

#: mv
echo a > a; echo b > b; mkdir d e; mv a c; mv -v c d; mv d/c b; cat b; mv b d e; ls -R; mv nowhere x; echo $?; mv e e/d; echo $?; mv e/b nodir/; echo $?; mkdir -p f/d; touch f/d/k; mv e/d f; echo $?; touch x y; mv -n x y; mv --backup x y; ls; mv -t e y; mv x; echo $?; mv y y; mv e/. g; echo $?; mkdir q; touch q/d; mv q/d f; echo $?; ls

#: rm and rmdir
mkdir -p d/e; touch d/f g; rm g; rm g; echo $?; rm -f g; echo $?; rm d; echo $?; rmdir d; echo $?; rm -v d/f; rmdir -pv d/e; mkdir x; touch x/1 x/2; rm -rv x | sort; rm; echo $?; rm -f; echo $?; rm -r /; echo $?; rm -rf . ; echo $?; touch -- -f; rm -- -f; rm ''; mkdir -m 555 ro; rm -r ro; touch w; chmod 0 w; rm w < /dev/null; echo $?; ls; rm -i nothing; touch i; echo n | rm -i i; echo; ls; rm -d /tmp/nosuch; echo $?; echo y | rm -I i *; ls

#: removal from a directory without write permission
mkdir d; touch d/f; chmod 555 d; rm d/f; echo $?; rm -rf d; echo $?; touch d/g; mv d/f .; cp /dev/null d/z; mkdir d/s; ln d/f d/l; ln -s x d/s; echo > d/f; echo $?; chmod 755 d; rm -r d; ls

#: mkdir
mkdir -p a/b/c; mkdir a; echo $?; mkdir x/y; echo $?; mkdir -m 700 m; mkdir -pv n/o; stat -c %a m; touch f; mkdir f/g; echo $?; mkdir -p f; echo $?; mkdir ''; echo $?; mkdir -m u=rwx,go=s w; stat -c %a w; mkdir; echo $?; umask 0; mkdir u; stat -c %a u; mkdir -m +t -p q/r; stat -c '%a %n' q q/r; mkdir 'sp ace' 'ü'; ls

#: ln
echo x > f; ln -s f s; ln f h; ln -s f s; echo $?; ln -sf nowhere s; readlink s; cat s; echo $?; ln nowhere z; echo $?; mkdir d; ln d e; echo $?; ln -s ../f d/; cat d/f; ln -sr f d/rel; readlink d/rel; ln -sv f v; ln -sfn d dd; ln -sfn d dd; ls d; stat -c '%h' f; ln -s loop loop; cat loop; echo $?; ln -sT f d; echo $?; ln -s '' em; echo $?; ln -b f h; ls

#: readlink, realpath, basename, dirname
#| needs: sed
mkdir -p a/b; touch a/b/f; ln -s a/b l; ln -s l/f m; ln -s nope n; readlink l m; readlink -f m | sed "s#^$PWD#.#"; readlink -e n; echo $?; readlink f; echo $?; realpath --relative-to=. m l/../b; realpath --relative-to=a l; realpath nowhere/x; echo $?; realpath -m nowhere/../x | sed "s#^$PWD#.#"; realpath -s --relative-base=$PWD l; basename /a/b.txt .txt; basename -a x/y z; basename /; basename -s .c a.c; dirname /a/b/ a / ''; basename; echo $?; realpath -e .//a/./b/.. | sed "s#^$PWD#.#"; pwd -P > /dev/null; pathchk -p 'ü'; echo $?; pathchk $(printf 'a%.0s' {1..300}); echo $?

#: chmod in all forms
touch f; for m in 644 u+x g-r,o=rw a=r u=rwx,g=u,o= +x -w u+s g+s 1777 =; do chmod $m f; echo $m $(stat -c '%a %A' f); done; chmod 888 f; echo $?; chmod +q f; echo $?; chmod 644 nowhere; echo $?; mkdir -p d/e; touch d/e/x; chmod -R u=rwX,go= d; stat -c '%a %n' d d/e d/e/x; chmod -v 600 f; chmod -c 600 f; chmod --reference=d f; stat -c %a f; ln -s f l; chmod 640 l; stat -c %a f l; chmod u+x,g=o f; stat -c %a f; chmod; echo $?; chmod 644 /etc/passwd; echo $?; chmod 4755 d; chmod 755 d; stat -c %a d; chmod 00755 d; stat -c %a d; chmod ug+rw,o-rwx,+t d; stat -c %a d

#: touch and times
touch -d '2024-06-15 12:00:00.123456789' a; stat -c '%y' a; touch -t 202001020304.05 b; stat -c %y b; touch -r a c; stat -c %Y c; touch -c none; ls; touch -d @86400 a; stat -c '%x|%y' a; touch -m -d '2000-01-01' a; stat -c '%x|%y' a; touch -d 'next year nonsense' a; echo $?; touch /nodir/x; echo $?; touch -d '2024-02-30' a; echo $?; touch -a -d 1999-12-31T23:59:59Z a; stat -c %X a; touch ''; echo $?; touch -d '1960-01-01' a; stat -c %Y a; touch -d '2040-01-01' a; stat -c %y a; date -r c +%F; touch -h -d 2001-01-01 x; ln -s a l; touch -h -d 2001-01-01 l; stat -c %Y l

#: stat formats
#| needs: sed
printf 12345 > f; chmod 754 f; touch -d @1 f; stat -c '%a %A %f %F %h %n %N %s %u %U %X %Y %t %T' f | sed "s/ $(id -u) $(id -un) / UID USER /"; mkdir d; ln -s f l; stat -c '%F %n' d l /dev/null .; stat -L -c %F l; stat --printf '%s\t%n\n' f; stat nowhere; echo $?; stat -c %t:%T /dev/null /dev/zero; stat -c '%10s|%-10s|%010s' f; stat -c %q f; stat -f -c %l .; stat --format=%B f; stat -c '%y %w' f | cut -c1-30; stat -c %A /tmp; stat -t f | wc -w

#: truncate and dd
printf 0123456789 > f; truncate -s 5 f; cat f; echo; truncate -s +3 f; od -c f; truncate -s %4 f; stat -c %s f; truncate -s '<2' f; stat -c %s f; truncate -s 1K g; stat -c %s g; truncate -s x f; echo $?; truncate f; echo $?; printf abcdefghij | dd bs=2 skip=1 count=2 2>/dev/null; echo; printf XYZ | dd of=f bs=1 seek=5 conv=notrunc status=none; od -c f; dd if=nowhere; echo $?; seq 100 | dd bs=10 count=3 of=o 2>&1 | head -2; printf hello | dd conv=ucase,swab 2>/dev/null; echo; dd if=/dev/zero bs=1K count=2 2>/dev/null | wc -c; printf 'a\nbc\n' | dd cbs=5 conv=block status=none | od -c; dd if=/dev/zero of=s bs=1 count=0 seek=100 status=none; stat -c %s s; dd bs=0; echo $?; dd foo=1; echo $?; printf 123456 | dd iflag=fullblock,skip_bytes skip=2 bs=3 status=none; echo; dd oflag=append conv=notrunc of=o <<< more status=none; tail -1 o

#: install
echo x > src; install -m 750 src a; install -d p/q/r; install -D src s/t/u; install -v src p; install -m 755 -d w; stat -c '%a %n' a p/q s/t/u w p/src; install nowhere x; echo $?; install -C src a; install -b src a; ls; install src p q; echo $?; install -t p/q src

#: mktemp
#| needs: grep
#| ignore: stderr
f=$(mktemp ./x.XXXXXX); echo ${#f}; stat -c %a $f; d=$(mktemp -d ./d.XXX); stat -c '%a %F' $d; mktemp x.XX; echo $?; mktemp -u zXXXX | wc -c; mktemp --suffix=.txt ./a.XXXX | grep -c '\.txt$'; mktemp -p nowhere aXXX; echo $?; mktemp ./q; echo $?; TMPDIR=$PWD mktemp | grep -c "^$PWD/tmp\.[[:alnum:]]*$"; rm -rf x.* d.* a.* tmp.*

#: not a directory, is a directory, name too long, loops
#| needs: sed grep gawk
touch f; cat f/x; echo $?; ls f/; echo $?; cd f; echo $?; cat .; echo $?; echo x > .; echo $?; n=$(printf 'n%.0s' {1..256}); touch $n 2>&1 | sed 's/nnn*/N/'; ln -s b a; ln -s a b; cat a; echo $?; rmdir f; echo $?; mkdir f/d; echo $?; cat ''; echo $?; rm f/x; echo $?; mv f f/g; echo $?; rm -r f/; echo $?; unlink d; echo $?; link f f2; ls -l f/. ; echo $?; truncate -s 1 .; cp . x; head .; wc .; sort .; grep x .; sed p .; awk 1 .; od .

#: denied
#| needs: grep findutils
echo secret > s; chmod 000 s; cat s; echo $?; echo x > s; echo $?; cp s t; grep x s; wc s; sort s; source ./s; echo $?; ./s; echo $?; head s; mkdir -m 000 d; cd d; echo $?; ls d; cat d/x; touch d/x; rm -rf d; find . | sort; ln s h; mv s s2; stat -c %a s2; test -r s2; echo $?; [ -w s2 ]; echo $?; touch /etc/x; mkdir /newdir; rm /etc/passwd < /dev/null; echo x > /etc/hostname; echo $?; cat /etc/shadow 2>/dev/null; echo $?; chown 0 s2; echo $?; chgrp 0 s2; chmod 644 s2 h

#: sticky and set-id bits in directories
mkdir d; chmod 1777 d; stat -c %A d; chmod 2775 d; mkdir d/sub; stat -c %A d/sub; touch d/f; stat -c %A d/f; chmod u+s,g-s d; stat -c %A d; ls -ld d | cut -c1-10; mkdir -m 6777 e; stat -c %a e

#: fifos
mkfifo p; echo through > p & cat p; wait; mkfifo p; echo $?; mkfifo -m 600 q; stat -c '%a %F' q; (for i in 1 2 3; do echo $i; done > p) & while read x; do echo got $x; done < p; wait; [ -p p ] && echo fifo; mkfifo nodir/p; echo $?; exec 3<>p; echo rw >&3; read -u 3 l; echo $l; timeout 0.2 cat q; echo $?; rm p q

#: devices
echo x > /dev/null; cat /dev/null; head -c 4 /dev/zero | od -An -c; head -c 8 /dev/urandom | wc -c; echo x > /dev/full; echo $?; cat /dev/full | head -c 2 | od -An -tx1; [ -c /dev/null ] && echo char; echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin <<< in; cat /dev/fd/0 <<< fd; ls /dev/nosuch; cp /dev/null n; stat -c %s n; test -t 1; echo $?; tty; echo $?; : > /dev/tty; echo $?; mknod x c 1 3; echo $?

#: du and sums of sizes
mkdir -p d/e; head -c 5000 /dev/zero > d/f; head -c 100 /dev/zero > d/e/g; du -ab --apparent-size d/f d/e/g; du nowhere; echo $?; du -sb d/f; du -bh d/f; du -c -b d/f d/e/g | tail -1; ln d/f d/h; du -bc d/f d/h | tail -1; du --max-depth=x; echo $?

#: many files
#| needs: grep
mkdir m; cd m; for i in {1..500}; do echo $i > file-$i.txt; done; ls | wc -l; cat *.txt | sort -n | tail -1; ls file-1?.txt | wc -l; rm file-{1..250}.txt; ls | head -2; cat file-3* | paste -sd+ | md5sum; for f in file-4*.txt; do mv $f ${f/file/moved}; done; ls | grep -c moved; cd ..; rm -r m; ls

#: rename in a loop, by extension
touch a.jpeg b.jpeg 'c d.jpeg'; for f in *.jpeg; do mv -- "$f" "${f%.jpeg}.jpg"; done; ls; for f in *.jpg; do base=$(basename "$f" .jpg); echo "$base" > "$base.txt"; done; cat *.txt

#: deep directories
#| needs: findutils
d=$(printf 'd/%.0s' {1..100}); mkdir -p $d; touch $d/leaf; find . | wc -l; find . -name leaf | wc -c; cp -r d e; rm -r d; cd $(printf 'e/d/%.0s' 1) && pwd | wc -l; rm -rf ../../e; ls

#: timeout and its exit codes
#| ignore: stderr
timeout 0.1 sleep 5; echo $?; timeout 5 true; echo $?; timeout -s KILL 0.1 sleep 5; echo $?; timeout 1 nosuch; echo $?; timeout --preserve-status 0.1 sleep 5; echo $?; timeout -k 0.1 0.1 bash -c 'trap "" TERM; while :; do sleep 0.05; done'; echo $?; timeout x true; echo $?; timeout 5 bash -c 'exit 42'; echo $?; timeout -v 0.1 sleep 1; timeout --foreground 0.1 sleep 1; echo $?

#: nohup, nice, env, stdbuf, id, groups, whoami
#| ignore: stderr files
nohup echo hi < /dev/null; nice -n 5 nice; nice; env -i env; id -u | wc -l; [ "$(id -u)" = "$UID" ] && echo same; id nosuchuser; echo $?; stdbuf -o0 echo x | cat; nice -n x true; echo $?; printf '%s\n' "$(groups)" | wc -l; whoami | wc -l; logname > /dev/null 2>&1; users; arch | wc -l; uname -s; uname -X; echo $?; sleep x; echo $?; sleep 0.01 0.01; sleep; echo $?; hostid | wc -c; chroot / true; echo $?

#: help and version of programs
ls --version | head -1; cat --help | head -3; sort --help | wc -l; true --version | head -1; for p in cp mv rm cut tr wc head; do $p --help | head -1; done; date --help | tail -3 | head -1; [ --help; echo $?; test --help; echo $?; ls --help | md5sum
