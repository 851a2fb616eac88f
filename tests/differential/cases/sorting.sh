# Sorting, and what wants sorted input: sort, uniq, comm, join, paste, tsort, shuf.
cat > people.csv <<'DATA'
id,name,dept,salary,city
7,Alice,eng,5200.50,Berlin
3,bob,ops,4100,São Paulo
12,Charlie,eng,6100,Zürich
1,dave,hr,3900,Ålesund
25,Eve,ops,4100,berlin
4,Frank,eng,,Oslo
DATA
printf 'b 2\na 10\nc 1\na 9\nb 2\n' > pairs

#: plain, reverse, unique
sort pairs; sort -r pairs; sort -u pairs

#: by number, by human size, by version, by month, by general number
printf '%s\n' 10 9 -1 0x1F 1e3 5.5 '' abc | sort -n; printf '%s\n' 1K 900 2M 1G 3k | sort -h; printf 'v1.10\nv1.9\nv1.2.3\nv1.2\n1.0~rc1\n1.0\n' | sort -V; printf 'Mar\nJan\nfeb\nxx\n' | sort -M; printf '%s\n' 1e3 5 -2e-1 nan inf | sort -g

#: by columns of a csv
tail -n +2 people.csv | sort -t, -k3,3 -k4,4nr; tail -n +2 people.csv | sort -t, -k1,1n | cut -d, -f1,2

#: keeps equal lines in order when stable
sort -s -k2,2 pairs; sort -k2,2n -k1,1r pairs

#: keys with character offsets and options
printf 'ab3\nxy1\nAb2\n' | sort -k1.3; printf 'ab3\nxy1\nAb2\n' | sort -f; printf ' z\n  a\nm\n' | sort -b; printf '%s\n' a-b ab a_c | sort -d

#: checks order
sort -c pairs; echo $?; sort -C pairs; echo $?; printf '1\n2\n' | sort -c -n; echo $?

#: merges sorted files
seq 1 2 9 > odd; seq 2 2 9 > even; sort -m -n odd even; sort -n odd even -o odd; cat odd

#: NUL-separated records
printf 'c\0a\0b\0' | sort -z | tr '\0' '\n'; printf 'x\0x\0' | uniq -zc | tr '\0' '\n'

#: numbers the most frequent words
printf 'the cat and the dog and the bird\n' | tr ' ' '\n' | sort | uniq -c | sort -k1,1nr -k2 | head -3

#: uniq options
sort pairs | uniq -c; sort pairs | uniq -d; sort pairs | uniq -u; printf 'A\na\nB\n' | uniq -i; printf '1 x\n2 x\n3 y\n' | uniq -f1; printf 'ax\nbx\ncy\n' | uniq -s1 -c; printf 'a\na\nb\n' | uniq --group=both; printf 'abc\nabd\n' | uniq -w2; sort pairs | uniq -D

#: comm in all ways
printf 'a\nb\nc\n' > l; printf 'b\nc\nd\n' > r; comm l r; comm -12 l r; comm -3 l r; comm -23 l r; comm --total l r | tail -1; printf 'b\na\n' > bad; comm bad r; echo $?; comm --nocheck-order bad r; comm --output-delimiter='|' l r

#: join in all ways
printf '1 a\n2 b\n4 d\n' > l; printf '1 x\n3 y\n4 z\n' > r; join l r; join -a1 l r; join -v2 l r; join -a1 -a2 -e NULL -o 0,1.2,2.2 l r; join -t, <(printf 'k,1\n') <(printf 'k,2\n'); join -1 2 -2 1 <(printf 'x k\n') <(printf 'k v\n'); join --header <(printf 'id a\n1 b\n') <(printf 'id c\n1 d\n'); join <(printf '2\n1\n') l; echo $?

#: paste in all ways
seq 3 | paste -sd+; paste -d, <(seq 3) <(seq 4 5) <(seq 6 9); seq 6 | paste - - -; paste -s -d '\n\t' <(seq 4); paste -d '' <(seq 2) <(seq 2); paste nowhere; echo $?

#: sums by shell pipeline
#| needs: grep
cut -d, -f4 people.csv | tail -n +2 | grep . | paste -sd+ | tee sum; 

#: tsort and its loops
printf 'a b\nb c\nd c\n' | tsort; printf 'a b\nb a\n' | tsort; echo $?; printf 'a\n' | tsort; echo $?

#: shuffles by a given source
seq 10 | shuf --random-source=<(yes) ; shuf -i 1-5 --random-source=<(yes) -n 2; shuf -e a b c --random-source=<(yes); seq 100 | shuf | sort -n | md5sum; shuf -n 0 people.csv; shuf -i 5-1; echo $?

#: random order is a permutation and stable for equal keys
seq 50 | sort -R | sort -n | cksum; printf 'a\nb\na\nb\n' | sort -R --random-source=<(yes) | uniq | wc -l

#: sorts utf-8 by bytes
printf '%s\n' zebra Ä apple ä Z É e ß 日本 | sort; printf '%s\n' b A a B | LC_ALL=C sort; printf 'É\né\n' | sort -f | od -An -tx1

#: sorts what is larger than its buffer
seq 20000 | sort -r -S 16k -T . | md5sum; ls; seq 30000 | sort -n --parallel=4 | tail -1; seq 3000 | sort --batch-size=2 -S 16k -T . | cksum

#: sort complaints
sort nowhere; echo $?; sort -k0 pairs; echo $?; sort -t ab pairs; echo $?; sort --nosuch; echo $?; sort -n -M pairs; echo $?; sort -o /nodir/x pairs; echo $?; mkdir d; sort d; echo $?; sort -S xyz pairs; echo $?

#: sort with debug annotations
printf ' 3\n12\n' | sort -n --debug 2>&1 | tail -4
