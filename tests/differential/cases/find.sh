# find and xargs.
#| needs: findutils
mkdir -p proj/src/deep proj/docs proj/.git 'proj/sp ace'; cd proj
printf 'x\n' > src/a.py; printf 'longer\n' > src/b.py; : > src/empty.txt; printf 'd\n' > src/deep/c.py; printf '# doc\n' > docs/readme.md; : > .git/config; echo q > 'sp ace/q.txt'; ln -s ../src/a.py docs/link; ln -s gone docs/broken; chmod 755 src/b.py; touch -d 2020-01-01 docs/readme.md; cd ..

#: by name and type
find proj -name '*.py' | sort; find proj -type d | sort; find proj -type l | sort; find proj -iname 'README*'; find proj -type f -empty | sort; find proj -path '*/src/*' | sort; find proj -maxdepth 1 | sort; find proj -mindepth 2 -maxdepth 2 -type f | sort; find proj -regex '.*/[ab]\.py' | sort; find proj -regextype posix-extended -regex '.*\.(md|txt)' | sort; find proj -wholename 'proj/d*' | sort; find . -name 'q*'; find proj/src/a.py; find proj -type f,l | sort; find proj -name '[!a-c]*.py'; find proj -lname '*a.py'

#: operators and pruning
find proj -name .git -prune -o -type f -print | sort; find proj \( -name '*.py' -o -name '*.md' \) -size +0 | sort; find proj -type f ! -name '*.py' | sort; find proj -not -path '*/.*' -type f | sort; find proj -name '*.py' -a -perm -u+x; find proj -type f -name '*.txt' , -name 'a.py' -print | sort; find proj -name a.py -quit; find proj -false; find proj -name src -prune -false -o -type f -print | sort; find proj -depth -type d | head -1 | wc -l; find proj -xdev -name deep

#: size, time, permission, links, owner
head -c 2000 /dev/zero > proj/big; find proj -size +1k -type f; find proj -size -2c -type f | sort; find proj -size 2c -type f | sort; find proj -newer proj/docs/readme.md -name '*.md'; find proj -mtime +100 -type f; find proj -newermt 2021-01-01 -name '*.md'; find proj ! -newermt 2021-01-01 -type f; find proj -mmin -5 -name a.py; find proj -perm 755 -type f; find proj -perm /u+x -type f; find proj -perm -644 -name b.py; find proj -links 1 -name a.py; find proj -uid $(id -u) -name a.py; find proj -executable -type f; find proj -readable -name a.py; find -L proj -type l; find -L proj -name link -type f; find proj -xtype l; find proj -samefile proj/src/a.py; find proj -user nosuch; echo $?; find proj -anewer proj/src/a.py -name zz; find proj -daystart -mtime 0 -name a.py

#: printf
#| needs: sed gawk
#| ignore: stderr
find proj -type f -name '*.py' -printf '%f %s %m %d %y %h\n' | sort; find proj/docs -type l -printf '%p -> %l\n' | sort; find proj -name readme.md -printf '%TY-%Tm-%Td %TH:%TM %Ts %P %H\n'; find proj -maxdepth 1 -printf '%P\0' | tr '\0' '\n' | sort; find proj/src/a.py -printf '[%10f|%-10f|%M|%n|%u]\n' | sed "s/$(id -un)/USER/"; find proj -name a.py -print0 | od -An -c; find proj -name a.py -fprint out; cat out; find proj -name a.py -ls | awk '{print $3, $7, $NF}'; find proj/src/a.py -printf '%%\t\\\a' | od -c; find proj -name b.py -printf '%k %b %B@ %q' > /dev/null; find proj/docs/readme.md -printf '%t\n%A+\n' | cut -c1-12 | head -1

#: exec and delete
find proj -name '*.py' -exec wc -l {} \; | sort; find proj -name '*.py' -exec cat {} + | sort; find proj -name '*.txt' -exec sh -c 'echo "$1" | tr a-z A-Z' _ {} \; | sort; find proj -name '*.txt' -execdir echo {} \; | sort; find proj -empty -type f -delete; find proj -type f | sort; find proj -name a.py -exec false \; -print; find proj -name a.py -exec true \; -print; find proj -name a.py -ok rm {} \; < /dev/null; echo $?; find proj -name '*.py' -exec nosuch {} \;; echo $?; find proj/src -delete; ls proj; find proj -name docs -exec rm -r {} +; ls proj; find proj -exec false {} + ; echo $?; find . -maxdepth 1 -exec echo x{}x \; | sort

#: complaints
find nowhere; echo $?; find proj -nosuch; echo $?; find proj -name; echo $?; find proj -type q; echo $?; find proj -exec echo; echo $?; find proj -size x; echo $?; find proj -name *.zz -o; echo $?; chmod 0 proj/src; find proj -name '*.py'; echo $?; chmod 755 proj/src; find -name a.py proj; echo $?; find proj -perm zz; echo $?; find proj -maxdepth -1; echo $?; find proj -newer nowhere; echo $?; find '' ; echo $?; find proj -mtime x; echo $?; find proj \( -name a; echo $?; find proj -regex '['; echo $?; find proj -delete -name x -prune; echo $?

#: xargs basics
printf '1 2\n3\n' | xargs; printf '1 2 3\n' | xargs -n1; seq 6 | xargs -n2 echo; seq 3 | xargs -I{} echo 'item {}!'; printf 'a b\0c\0' | xargs -0 -n1 echo; echo "'q q' \"d d\" e\\ e" | xargs -n1; seq 5 | xargs -L2 echo; printf 'a,b,c' | xargs -d, -n1 echo; echo x | xargs -t echo; xargs < /dev/null; xargs -r echo no < /dev/null; xargs echo yes < /dev/null; printf 'a\n\nb\n' | xargs -d '\n' -n1 printf '[%s]\n'; seq 3 | xargs -I N sh -c 'echo $((N*N))'; printf '%s\n' a b | xargs -a <(echo from file) echo; seq 1000 | xargs -s 100 echo | wc -l; echo 1 2 | xargs -E 2 echo; printf 'x\n' | xargs -I{} -n1 echo {} 2>/dev/null; seq 10 | xargs -x -n 20 echo

#: xargs with find and parallel children
find proj -name '*.py' -print0 | xargs -0 wc -c | tail -1; find proj -type f -print0 | sort -z | xargs -0 -n1 basename; seq 8 | xargs -P4 -I{} sh -c 'sleep 0.0{}; echo {}' | sort -n; find proj -name '*.txt' | tr '\n' '\0' | xargs -0 ls | sort; seq 100 | xargs -P 3 -n 7 echo | wc -w; find proj -name '*.py' | sort | xargs head -n1; find proj -type f -print0 | xargs -0 -I{} sh -c 'test -s "$1" || echo "empty: $1"' _ {} | sort; seq 3 | xargs --process-slot-var=S -P1 -n1 sh -c 'echo $S $0'

#: xargs exit codes and complaints
echo x | xargs false; echo $?; echo x | xargs nosuch; echo $?; echo x | xargs sh -c 'exit 255'; echo $?; echo "it's" | xargs; echo $?; xargs -n x; echo $?; seq 3 | xargs sh -c 'exit 3'; echo $?; printf 'a\0' | xargs echo; echo x | xargs sh -c 'kill -9 $$'; echo $?; echo x | xargs -n0 echo; echo $?; xargs --nosuch < /dev/null; echo $?; echo x | xargs ./proj; echo $?; head -c 200000 /dev/zero | tr '\0' x | xargs echo | wc -c
