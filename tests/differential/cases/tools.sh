# Small tools: bc, dc, make, ed, patch, xxd, hexdump, column, rev, tree, file, less, time, which.

#: bc
#| needs: bc
echo '2^100; 10/3; scale=5; 10/3; sqrt(2); 7%3; obase=16; 255; ibase=2; 1010' | bc; echo 'scale=20; 4*a(1); e(1); l(2); s(1); c(0)' | bc -l; echo 'define f(n) { if (n<2) return 1; return n*f(n-1); } f(30)' | bc; echo 'for(i=0;i<3;i++) i*i; a[1]=5; a[1]+1; x=3; x^=2; x; length(12345); scale(1.234)' | bc; echo '1/0' | bc; echo $?; echo 'bad syntax here (' | bc; echo $?; bc <<< 'print "hi ", 1+1, "\n"; "text"; 1==1; 5>6 || 1; !0'; bc <<< 'a=1; if (a) { 10 } else { 20 }; while (a<4) { a; a+=1 }'; bc -q <<< '.5+.5; -3.7; 1.10*2; 0.0001; 100000000000000000000*3'; bc nowhere < /dev/null; echo $?; bc <<< 'scale=3; 2/3; last*2; 10^-2; 2^0.5'; bc <<< '2^3000' | wc

#: dc
#| needs: bc
dc -e '2 3 + p 5 * p 2 ^ p'; dc -e '10 k 2 v p 16 o 255 p [hello] p'; dc <<< '1 2 3 f c z p'; dc -e '[la 1 + d sa p 5 >b] sb 0 sa lbx'; dc -e '1 0 / p'; dc -e 'x y'; dc -e '16 i FF p'; dc -e '5 !'; echo $?; dc -e '3 4 ~ f [p]x 10 P'

#: make
#| needs: make grep
printf 'CC = gcc\nOBJ := a.o b.o\nprog: $(OBJ)\n\t@echo link $^ to $@\n\t@touch $@\n%%.o: %%.c\n\t@echo compile $<\n\t@touch $@\n.PHONY: clean\nclean:\n\trm -f prog *.o\n' > Makefile; touch -d '2020-01-01' a.c b.c; make; make; touch -d '2021-01-01' *.o; touch -d '2022-01-01' a.c; make; make -n clean; make clean; make nosuch; echo $?; make -s prog; make -B -j4 prog | sort; make -q; echo $?; ls; make V=1 -p | grep -c '^OBJ'; touch -d 2020-01-01 a.c; make --version | head -1; make -f nowhere; echo $?; make -C nodir; echo $?; rm *.o prog

#: make functions and variables
#| needs: make
cat > Makefile <<'M'
SHELL := bash
SRC := $(wildcard *.c)
NAMES = $(patsubst %.c,%,$(SRC))
UP := $(shell echo hello | tr a-z A-Z)
define block
one
two
endef
export EXPORTED = yes
ifeq ($(MODE),debug)
FLAGS += -g
else
FLAGS ?= -O2
endif
all: show fail-ok multi
	@echo all done
show:
	@echo $(sort $(NAMES)) $(UP) $(words $(SRC)) $(firstword $(SRC:.c=.o)) $(FLAGS) $(origin FLAGS) $(filter b%,$(NAMES)) $(subst a,A,$(NAMES)) $(dir x/y.c) $(notdir x/y.c) $(basename y.c) $(suffix y.c) $(addprefix p-,a b) $(foreach n,1 2,[$n]) $(if x,then,else) $(call rev,1,2) $(strip  a  b ) $(lastword a b)
	@echo "$$EXPORTED $${HOME:+home} $(EXPORTED)"
	@printf '%s\n' "$(info informed)$(words $(block))"
rev = $2 $1
fail-ok:
	-@false
	@echo after
multi: a b
a b:
	@echo target $@
fail:
	@echo before; exit 3
	@echo not
loop: loop
	@echo loop
warn:
	$(warning careful)
	$(error stop here)
.DEFAULT:
	@echo default for $@
M
touch a.c b.c; make; make MODE=debug show | tail -3 | sed -n 1p; make FLAGS=-O0 show | sed -n 1,2p; make fail; echo $?; make loop; make warn; echo $?; make unknown; make -k fail show; echo $?; make --no-print-directory -C . a; make -i fail; printf 'x:\n  echo spaces\n' > bad; make -f bad; echo $?; printf 'include missing.mk\nx:\n\t@echo x\n' > inc; make -f inc; echo $?; printf 'all:\n\t@for i in 1 2 3; do echo $$i; done\n\t@cd / && pwd\n\t@pwd | wc -l\n' | make -f -; printf 'a: b c\n\t@echo $@ $< $^ $+ $? $*\nb c:\n\t@touch $@\n' > auto; make -f auto; make -rR -f auto; rm -f b c

#: ed
#| needs: ed
printf 'one\ntwo\nthree\n' > f; printf ',n\n2s/two/2/\n1d\na\nnew line\n.\n$p\nw\nq\n' | ed f; cat f; printf '/new/d\nwq\n' | ed -s f; cat f; printf 'H\nbad\nq\n' | ed -s f; echo $?; printf 'g/e/s//E/g\n,p\nQ\n' | ed -s f; ed -s nowhere <<< 'q'; printf '0a\nfirst\n.\n1,2m$\n,p\nQ\n' | ed -s f; printf '1,$j\np\nu\n,p\nQ\n' | ed -s f; printf 'r !echo shell\n$p\n!echo hi\nQ\n' | ed -s f; printf 'a\nx\n.\nq\nq\n' | ed -s f; echo $?; printf '1t1\n,l\n=\nQ\n' | ed -s f; printf 'v/2/d\n,p\nQ\n' | ed -s f; printf 'ka\n'"'"'ap\n1c\nchanged\n.\nw out\nQ\n' | ed -s f; cat out

#: patch
#| needs: patch diffutils sed
printf '1\n2\n3\n4\n5\n' > a; sed 's/3/three/' a > b; diff -u --label a --label b a b > p; cp a c; patch c p; cat c; patch -R c p; cmp a c && echo back; patch -p0 < p; cat a; patch a p < /dev/null; echo $?; ls; printf 'x\ny\n' > d; patch d p; echo $?; ls; cat d.rej; mkdir -p s/t; printf 'q\n' > s/t/f; printf -- '--- a/s/t/f\n+++ b/s/t/f\n@@ -1 +1,2 @@\n q\n+r\n' > q.diff; patch -p1 < q.diff; cat s/t/f; patch -p1 --dry-run -R < q.diff; patch -p1 -N < q.diff; echo $?; printf -- '--- /dev/null\n+++ new\n@@ -0,0 +1 @@\n+created\n' | patch -p0; cat new; printf -- '--- new\n+++ /dev/null\n@@ -1 +0,0 @@\n-created\n' | patch -p0; ls; seq 20 > n; sed '10s/$/x/' n | diff -u --label n --label m n - > np; sed -i 1,2d n; patch n np; sed -i 's/^9$/nine/' n; patch -R n np; echo garbage | patch n; echo $?; patch -p1 < nowhere; echo $?; patch -b -V simple n np; ls; patch -o out n np; patch --verbose n np < /dev/null | head -3; rm -f *.orig

#: tree
#| needs: tree
#| ignore: stderr
mkdir -p p/{a,b/c} p/.h; touch p/a/{1,2} p/b/c/x p/f; ln -s f p/l; chmod +x p/a/1; tree p; tree -a p; tree -L 1 p; tree -d p; tree -f -i p; tree -F p; tree --noreport p; tree -P '1*' p; tree -I 'b' p; tree -J p | head -20; tree nowhere; echo $?; tree --dirsfirst p; tree -s --si p | head -1; tree -p p | head -3; tree -r p; tree --charset=ascii p; tree -X p | head -3; tree -C p | cat -v | head -2; tree -L 0 p; echo $?; tree --du p > /dev/null; tree -Q p; tree --prune p; tree --filelimit 1 p; cd p; tree; tree a b

#: file
#| needs: file
printf 'text\n' > t; printf 'é\n' > u; printf '#!/bin/bash\necho\n' > s; printf '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\10\2\0\0\0' > p; printf '{"a":1}' > j; : > e; mkdir d; ln -s t l; printf 'GIF89a\1\0\1\0' > g; printf '\x7fELF\1\1\1' > elf; printf '\0asm\1\0\0\0' > w; printf 'PK\3\4\24\0' > z; printf '\x1f\x8b\10\0\0\0\0\0' > gz; printf '%%PDF-1.4\n' > pdf; printf '\xff\xfe' > x; printf '<?xml version="1.0"?>\n<a/>\n' > xml; printf '<!DOCTYPE html>\n' > h; printf 'a,b\n1,2\n3,4\n' > c; printf 'a\r\nb\r\n' > crlf; head -c 100 /dev/zero > zero; printf 'int main(void){return 0;}\n#include <stdio.h>\n' > m.c; printf 'import os\ndef f():\n  pass\n' > py; file *; file -b t; file -i t u p; file --mime-type -b j; file nowhere; echo $?; file -L l; printf 'abc' | file -; file -k p | head -2; file /dev/null; file -h l; file --mime-encoding u; file -0 t | od -c | head -1; file -F '=>' t

#: less and more as pipes
#| needs: less
seq 3 | less; less <(echo file); seq 100 | less | tail -1; less nowhere; echo $?; printf 'é\x01\n' | less; LESS=-R less <<< $'\e[31mred\e[0m' | cat -v; less -N <<< x; seq 5 | less +3; less -F <(seq 2) <(seq 3); less --version | head -1 | cut -d' ' -f1; PAGER=less; seq 2 | $PAGER; less -? < /dev/null | head -1 | wc -l; mkdir d; less d; echo $?; printf '\0\1\2' > bin; less bin | od -c | head -1

#: xxd
#| needs: vim diffutils
printf 'Hello\0\xff world, this is xxd\n' > b; xxd b; xxd -p b; xxd -g1 -l 8 b; xxd -s 5 -l 4 b; xxd -u -c 8 b; xxd -b -l 6 b; xxd -i b; xxd b | xxd -r | cmp - b && echo same; xxd -p b | xxd -r -p | cmp - b && echo same; echo 48656c6c6f | xxd -r -p; echo; xxd nowhere; echo $?; xxd -e -g4 -l 8 b; xxd -ps -c 4 b; printf '00000003: 41' | xxd -r | od -c; xxd -a <(head -c 100 /dev/zero); xxd -h 2>&1 | head -1; xxd -C -i -n name b; xxd -o 16 -l 4 b; xxd -E -l 8 b; xxd < /dev/null

#: hexdump, column, rev, look, cal, getopt
#| needs: util-linux
#| ignore: stderr
printf 'Hello\0\xff world\n' > b; hexdump b; hexdump -C b; hexdump -e '8/1 "%02x " "\n"' b; hexdump -v -e '/1 "%u\n"' -n 3 b; hexdump -x b; hexdump -s 2 -n 4 -c b; hd b | head -1; rev <<< $'abc\néà日'; printf 'a b c\nlong1 x yy\n' | column -t; printf 'a,b\nccc,d\n' | column -t -s, -o ' | '; seq 10 | column -c 20; printf 'k v\n1 2\n' | column -t -N A,B; printf 'é x\nab y\n' | column -t; column -t nowhere; echo $?; printf 'n v\nx 1\n' | column -J -t -N n,v; printf 'apple\nbanana\nbandana\n' > w; look ban w; cal 2 2024; cal -m 1 2023; getopt -o ab:c:: -l long,arg: -- -a -b x --arg=y z -cq; getopt -o a -- -z; echo $?; set -- $(getopt -o a: -- -a 1 rest); echo "$@"; printf 'col1\tcol2\nverylong\tx\n' | column -ts $'\t'; printf '1\n2\n' | column -x; cal 1752 9 2>&1 | head -3; cal 9 1752; rev b | od -c; hexdump nowhere; echo $?; colrm 2 3 <<< abcd; printf 'a\bb_\b_x\n' | col -b; expand <<< x | ul 2>&1

#: which
#| needs: which sed
which nosuch 2> /dev/null; echo $?; which which | sed 's#.*/##'; which --version | head -1; which; echo $?; which --nosuch; echo $?
