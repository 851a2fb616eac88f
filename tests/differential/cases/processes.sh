# Processes as other programs see them: ps, pgrep, kill, flock, setsid, nice.
#| needs: procps util-linux

#: ps of the shell itself
#| needs: grep
#| ignore: stderr
ps -o comm= -p $$; ps -o ppid= -p $BASHPID | tr -d ' ' | grep -c '^[0-9]*$'; { sleep 0.3; ps -o stat= -p $$; } | cut -c1; sleep 5 & sleep 0.5; ps -o comm=,stat= -p $! | tr -s ' '; kill $!; wait $! 2>/dev/null; ps -p $! > /dev/null; echo $?; ps -o args= -p $$ | cut -c1-7; ps -o pid= --ppid $$ > children; wc -l < children; rm children; ps -o user= -p $$ | wc -w; ps -p 999999 -o pid=; echo $?; ps -o nosuch; echo $?; ps --nosuch > /dev/null 2>&1; echo $?; ps -o pid,comm -p $$ | head -1; ps -o comm= -C nosuch; echo $?; sleep 3 & sleep 0.5; ps -o args= -p $!; kill $!

#: pgrep and pkill of children
#| ignore: stderr
sleep 31.7 & sleep 31.8 & sleep 0.5; pgrep -P $$ sleep | wc -l; pgrep -P $$ -f '^sleep 31.7' | wc -l; pgrep -P $$ -c sleep; pkill -P $$ -f '^sleep 31.7'; wait -n; echo $?; pgrep -P $$ -a sleep | cut -d' ' -f2-; pkill -P $$ sleep; wait; pgrep -P $$ sleep; echo $?; pgrep; echo $?; pkill -NOSUCH x; echo $?; pidof nosuchprogram; echo $?

#: locks with flock
#| ignore: stderr
flock lock echo locked; exec 9> lock; flock 9; flock -n lock echo no; echo $?; flock -w 0.1 lock echo no; echo $?; flock -u 9; flock -n lock echo yes; (flock 8; echo inside; touch held; sleep 0.1) 8> l2 & until [ -e held ]; do sleep 0.01; done; flock l2 echo after; wait; rm held; flock -s lock flock -s -n lock echo shared; flock -s lock flock -n lock echo exclusive; echo $?; flock -E 42 -n lock true; echo $?; flock nodir/x true; echo $?; flock lock sh -c 'exit 5'; echo $?; for i in 1 2 3; do (flock 7; n=$(cat count 2>/dev/null || echo 0); sleep 0.01; echo $((n+1)) > count) 7> l3 & done; wait; cat count

#: sessions and priorities
#| needs: grep
#| ignore: stderr
setsid -w echo new session; setsid -w sh -c 'exit 3'; echo $?; nice -n 3 nice; nice -n 3 bash -c 'nice'; (trap 'echo hup' HUP; kill -HUP $BASHPID; echo survived); nohup sh -c 'echo out' < /dev/null 2>/dev/null; cat nohup.out 2>/dev/null; prlimit --pid $$ --nofile --noheadings -o RESOURCE; uuidgen | grep -cE '^[0-9a-f-]{36}$'; setsid nosuch; echo $?; mcookie | wc -c; rename .txt .md *.txt; touch a.txt b.txt; rename .txt .md *.txt; ls; namei x 2>/dev/null | head -1; whereis nosuch; fallocate -l 1000 big; stat -c %s big; hardlink -q . ; getopt -T; echo $?

#: a tree of processes ends with its leader
#| ignore: stderr
bash -c 'sleep 20 & echo $! > pid; sleep 20' & p=$!; sleep 0.5; kill $p; wait $p 2>/dev/null; echo $?; kill -0 $(cat pid) && echo child lives; kill $(cat pid); rm pid; set -m; (sleep 20 & sleep 20) & sleep 0.5; kill -- -$!; wait $! 2>/dev/null; echo $?; pgrep -P $$ > kids; wc -l < kids; rm kids; set +m; timeout 0.2 bash -c 'sleep 20 & wait'; echo $?; (exec -a renamed sleep 3) & sleep 0.5; ps -o args= -p $!; wait

#: proc files of oneself
#| needs: grep sed gawk
#| ignore: stderr
cat /proc/self/comm; tr '\0' ' ' < /proc/$$/cmdline | cut -c1-8; readlink /proc/self/cwd | sed "s#$PWD#HERE#"; A=1 B=2 env -i X=y cat /proc/self/environ | tr '\0' '\n'; ls /proc/self/fd | head -3; readlink /proc/self/fd/0 | cut -c1-5; exec 5< /etc/passwd; readlink /proc/$$/fd/5; grep -c '^Name' /proc/self/status; grep '^PPid' /proc/self/status | grep -c $$; cat /proc/nosuch; echo $?; [ -d /proc/$$ ] && echo dir; cat /proc/sys/kernel/pid_max | wc -l; awk '{print NF}' /proc/self/stat; awk '{print $3}' /proc/self/stat; [ /proc/self/exe -ef /proc/$$/exe ]; echo $?; head -1 /proc/self/limits | tr -s ' '; cat /proc/self/mounts | wc -w | awk '{print $1%6}'; echo x > /proc/version; echo $?; cat /proc/1/environ; echo $?
