# awk: one-liners and reports.
#| needs: gawk
cat > sales.csv <<'DATA'
region,product,units,price
north,apple,10,1.25
south,pear,3,2.5
north,pear,7,2.50
east,apple,,1.25
south,fig,12,0.4
DATA
printf 'alice 30 nyc\nbob 25 la\ncarol 35 nyc\n' > p

#: fields and separators
awk '{print $1}' p; awk '{print $NF, NF, NR}' p; awk -F, '{print $2}' sales.csv; awk -F: -v OFS=- '{$1=$1; print}' <<< a:b:c; awk -F'[,;]' '{print $2}' <<< 'a;b,c'; awk 'BEGIN{FS="\t"} {print $2}' <<< $'a b\tc'; awk '{$2="X"; print; print NF}' p; awk '{$6="six"}1' p; awk '{NF=2}1' p; awk -F '' '{print $2}' <<< abc; awk -F'|' '{print $2}' <<< 'a|b'; awk '{print $(NF-1)}' p; awk -v FIELDWIDTHS='2 3' '{print $2}' <<< abcdef; awk -v FPAT='([^,]+)|("[^"]+")' '{print $2}' <<< 'a,"b,c",d'

#: patterns
awk 'NR==2' p; awk '$2>28' p; awk '/nyc/' p; awk '!/nyc/' p; awk '$3=="nyc" && $2>30 {print $1}' p; awk 'NR>1 && NR<3' p; awk '/alice/,/bob/' p; awk 'END{print NR}' p; awk 'NF' <<< $'a\n\nb'; awk '!seen[$3]++' p; awk 'length>11' p; awk '$1 ~ /^[a-b]/' p; awk 'NR%2' p; awk '$2 ~ 5' p; awk 'BEGINFILE{print FILENAME} ENDFILE{print FNR}' p p; awk '1;END{print "end"}' p

#: sums, averages, minima
awk -F, 'NR>1{s+=$3*$4} END{print s, s/(NR-1)}' sales.csv; awk -F, 'NR>1{u[$1]+=$3} END{for(r in u) print r, u[r]}' sales.csv | sort; awk -F, 'NR==2{m=$4} NR>1&&$4<m{m=$4;l=$0} END{print m, l}' sales.csv; awk -F, 'NR>1{c[$2]++;t[$2]+=$3} END{for(k in c) printf "%-8s %3d %6.2f\n", k, c[k], t[k]/c[k]}' sales.csv | sort; awk '{s+=$2;q+=$2^2} END{printf "%.4f\n", sqrt(q/NR-(s/NR)^2)}' p; seq 100 | awk '{a[NR]=$1} END{n=asort(a); print a[int(n/2)], a[n]}'

#: printf and numbers
awk 'BEGIN{printf "%5d|%-5s|%05.1f|%x|%o|%e|%g|%c|%c|%%\n", 42, "ab", 3.14159, 255, 8, 12345.678, 0.0001, 65, "hello"}'; awk 'BEGIN{print 1/3, 1e6, 1e20, 100000000, 0.1+0.2, 2^53, 2^53+1, -7%3, 7.0, 1e-5, 123456789012}'; awk 'BEGIN{OFMT="%.2f"; x=3.14159; print x, x ""; CONVFMT="%.3f"; print (x "")}'; awk 'BEGIN{print int(-3.7), int("12abc"), "3x"+1, +"", 1=="1", "a"<"b", 10<9, "10"<"9"}'; awk 'BEGIN{print 010, 0x10, "0x10"+0; print substr("hello",2,3), index("hello","l"), length("héé")}'; awk 'BEGIN{print log(10), exp(1), sin(1), cos(1), atan2(1,2), sqrt(2), 2**0.5}'; awk 'BEGIN{printf "%s %d %i\n", 1e18, 1e18, 2147483648; printf "%d %d\n", "0x1F", -1.9; print 1e300*1e300, -1e300*1e300, log(-1)}' 2>&1

#: strings
awk 'BEGIN{s="foo bar foo"; n=gsub(/foo/,"[&]",s); print n, s; sub(/bar/,"\\&",s); print s; print toupper(s) tolower("ÄB"); print match("abc123",/[0-9]+/), RSTART, RLENGTH; n=split("a:b:c",x,":"); print n, x[3]; print gensub(/(.)(.)/,"\\2\\1","g","abcd"); print sprintf("%3d|",5); print substr("hello",0), substr("hello",-1,3), substr("hello",4,99); print "a" > "/dev/stderr"; print length()}' < /dev/null; awk '{print length($0), length}' p; awk 'BEGIN{n=split("2024-01-15T10:20",d,/[-T:]/,seps); print n,d[4],seps[3]; match("k=v; x=y", /(\w)=(\w)/, m); print m[1] m[2], m[0,"start"]; print strtonum("0x1f"), strtonum("017"); patsplit("a1b22",q,/[0-9]+/); print q[2]}'

#: arrays
awk 'BEGIN{a["x"]=1; a["y","z"]=2; if("x" in a) print "in"; if(("y","z") in a) print "multi"; delete a["x"]; print length(a); for(k in a){split(k,p,SUBSEP); print p[1],p[2]}; delete a; print length(a)}'; awk 'BEGIN{a[1][2]=3; a[1][3]=4; for(i in a[1]) s+=a[1][i]; print s, isarray(a[1])}'; awk 'BEGIN{PROCINFO["sorted_in"]="@ind_str_asc"; a["b"];a["a"];a["c"]; for(k in a) printf k; print ""; PROCINFO["sorted_in"]="@val_num_desc"; split("3 1 2",v); for(k in v) printf v[k]; print ""}'; awk 'BEGIN{n=split("c a b",a); asorti(a,b); n=asort(a); for(i=1;i<=n;i++) printf "%s ", a[i]; print ""}'; awk '{a[NR]=$0} END{for(i=NR;i>0;i--) print a[i]}' p; awk '{for(i=1;i<=NF;i++) c[i]=c[i] (NR>1?" ":"") $i} END{for(i=1;i<=3;i++) print c[i]}' p

#: functions and control flow
awk 'function f(n){return n<2?n:f(n-1)+f(n-2)} BEGIN{print f(18)}'; awk 'function fill(a,i){for(i=0;i<3;i++)a[i]=i*i} BEGIN{fill(x); print x[2]}'; awk 'BEGIN{i=0; do{i++; if(i==2)continue; if(i>4)break; print i}while(1); while(i-->3) print "w" i; switch(i){case 2: print "two"; break; default: print "d"}}'; awk 'BEGIN{exit 3} END{print "end runs"}'; echo $?; awk '{if(NR==2) next; print} END{print NR}' p; awk 'NR==1{nextfile} {print FILENAME, FNR}' p p; awk 'function g(s){sub(/a/,"b",s); return s} BEGIN{x="aa"; print g(x), x; h="g"; print @h("ca")}'

#: input and output
awk 'BEGIN{while((getline l < "p")>0) n++; print n; close("p"); getline < "p"; print $1; "echo cmd" | getline x; print x; print "z\na" | "sort"; close("sort"); system("echo sys; exit 3"); r=system("exit 4"); print r}'; awk '{print $1 > ($3 ".txt")}' p; cat nyc.txt la.txt; awk '{print | "sort -r"}' p; awk 'BEGIN{printf "a\n" > "o"; printf "b\n" >> "o"; close("o"); while((getline x<"o")>0) print "o:" x; print (getline y < "nowhere")}'; awk 'NR==1{getline; print} END{print NR}' p; awk 'BEGIN{"date +%Y" | getline y; print (y>2000); cmd="tr a-z A-Z"; print "up" |& cmd; close(cmd,"to"); cmd |& getline z; print z}'; awk 'BEGIN{print ENVIRON["X"], ARGC, ARGV[1]}' arg; X=5 awk 'BEGIN{print ENVIRON["X"]}'; awk '{print v, $1}' v=1 p v=2 p | tail -1; awk -v s='a\tb' 'BEGIN{print s}'

#: records
awk 'BEGIN{RS=""} {print NR": "$1, NF}' <<< $'a b\nc\n\nd'; awk 'BEGIN{RS=";"} {print}' <<< 'a;b;c'; awk -v RS='[0-9]+' '{print $0, RT}' <<< a1b22c; awk 'BEGIN{ORS="|"} 1' p; echo; awk -v RS='\0' '{print}' < <(printf 'x\0y\0'); awk 'BEGIN{RS="\r\n"} {print $1"."}' < <(printf 'a\r\nb\r\n'); awk '{printf "%s%s", $1, (NR%2?",":"\n")}' p; echo; awk 'BEGIN{RS="---\n"} END{print NR}' <<< $'a\n---\nb'; awk -v IGNORECASE=1 '/ALICE/' p

#: two files joined
printf 'nyc New York\nla Los Angeles\n' > city; awk 'NR==FNR{k=$1; $1=""; c[k]=$0; next} {print $1 c[$3]}' city p; awk 'FNR==1{f++} f==1{a[$1]=1;next} $3 in a{n++} END{print n}' city p; awk 'NR==FNR{a[$0];next} !($0 in a)' <(seq 3) <(seq 5)

#: time
awk 'BEGIN{print strftime("%Y-%m-%d %H:%M:%S",0,1); print mktime("1970 01 02 00 00 00"); print strftime("%A %B %d %j %U",86400*45,1); print (systime()>1600000000)}'; TZ=UTC awk 'BEGIN{print strftime("%c", 1700000000)}'

#: bits and other gawk functions
awk 'BEGIN{print and(12,10), or(12,10), xor(12,10), lshift(1,10), rshift(1024,3), compl(0)}'; awk --version | head -1 | cut -d, -f1; awk 'BEGIN{printf "%'"'"'d\n", 1234567; print typeof(1), typeof("a"), typeof(x), typeof(/r/)}'; awk -M 'BEGIN{print 2^100}' 2>&1 | head -1; awk 'BEGIN{srand(1); a=rand(); srand(1); print (a==rand()), srand()}'; awk 'BEGIN{srand(42); printf "%.6f %.6f\n", rand(), rand()}'; awk 'BEGIN { printf "%s\n", length(sprintf("%c", 256)) }'; awk --csv '{print $2}' <<< 'a,"b,c"' 2>&1 | head -1

#: complaints
awk '{print $1' p; echo $?; awk 'BEGIN{print 1/0}'; echo $?; awk 1 nowhere; echo $?; awk; echo $?; awk -f nowhere; echo $?; awk 'BEGIN{f()}'; echo $?; awk '/(/' p; echo $?; awk 'BEGIN{getline x < "/nodir/f"; print "ok"}'; awk 'BEGIN{print > "/nodir/f"}'; echo $?; awk '{print $-1}' p; echo $?; awk -Z; echo $?; awk 'BEGIN{print substr("x")}'; echo $?; awk 'BEGIN { a[1]=1; print a }'; echo $?; awk -v 1x=2 'BEGIN{}'; echo $?; awk 'BEGIN{print length(}' ; echo $?

#: scripts in files
cat > r.awk <<'A'
#!/usr/bin/awk -f
# totals per region
BEGIN { FS = ","; print "region  units" }
NR > 1 { units[$1] += $3; total += $3 }
END {
    n = asorti(units, names)
    for (i = 1; i <= n; i++) printf "%-7s %5d %5.1f%%\n", names[i], units[names[i]], 100 * units[names[i]] / total
}
A
awk -f r.awk sales.csv; awk -o/dev/stdout 'BEGIN{x=1;if(x)print"y"} /a/{n++}' < /dev/null

#: utf-8
awk '{print length, toupper($0), substr($0,2,1), index($0,"本")}' <<< $'aé日\n日本語'; awk 'BEGIN{printf "%5s|%-5s|%.2s\n", "é", "日本", "éàü"}'; awk -F é '{print $2}' <<< aébéc; awk 'match($0,/[é]+/){print RSTART,RLENGTH}' <<< xéé; LC_ALL=C awk '{print length}' <<< é; awk -b '{print length}' <<< é; printf '\xff\n' | awk '{print length}'; awk 'BEGIN{print "\u00e9" "\x41\101"}'; awk '{print tolower("ÀÉ")}' <<< x

#: larger data
seq 100000 | awk '{s+=$1} END{print s}'; seq 50000 | awk '{a[$1%100]+=$1} END{for(i=0;i<100;i+=33) print a[i]}'; awk 'BEGIN{for(i=0;i<200000;i++) x=x+i%7; print x; for(i=0;i<3000;i++) s=s "x"; print length(s)}'; seq 30000 | awk '{print $1%977}' | sort -n | uniq -c | sort -rn | head -2; awk 'BEGIN{for(i=1;i<=300;i++) if(!(i in c)) {printf "%d ", i>1?i:0; for(j=i*i;j<=300;j+=(i>1?i:301)) c[j]} print ""}' | md5sum

#: ip addresses and status codes of a web log
printf '10.0.0.%d - - [15/Jan/2024:10:00:0%d +0000] "GET /p%d HTTP/1.1" %d %d\n' 1 1 1 200 512 2 2 2 404 12 1 3 1 200 512 3 4 9 500 0 1 5 2 200 99 > acc; awk '{print $1}' acc | sort | uniq -c | sort -rn; awk '{s[$9]++;b+=$10} END{for(c in s) print c,s[c]; print "bytes",b}' acc | sort; awk -F'"' '{split($2,r," "); n[r[2]]++} END{for(u in n) print n[u],u}' acc | sort -rn; awk '$9>=500{print $4,$7}' acc | tr -d '['; awk 'match($0,/\[([^]]+)\]/,m){print m[1]}' acc | head -1
