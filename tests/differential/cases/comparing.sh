# diff, cmp, diff3, sdiff.
#| needs: diffutils
printf 'one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n' > a; printf 'one\n2\nthree\nfour\nfive\nsix\nseven\nEIGHT\nnine\n' > b
touch -d '2024-01-01 00:00:00' a; touch -d '2024-01-02 00:00:00' b

#: formats
diff a b; echo $?; diff -u a b; diff -c a b; diff -e a b; diff -n a b; diff -y -W 40 a b; diff --suppress-common-lines -y -W 40 a b; diff -q a b; diff -s a a; diff -U0 a b; diff -U 1 --label old --label new a b; diff --normal a b | head -1; diff --line-format='%L' a b; diff --old-line-format='-%l
' --new-line-format='+%l
' --unchanged-line-format='' a b; diff --color=always a b | cat -v | head -3; diff -D FLAG a b; diff -p -u a b | head -3; diff --changed-group-format='<%<|%>>' a b; diff -f a b

#: ignoring blanks, case, blank lines
printf 'A  b\n\nc \n' > x; printf 'a b\nc\n' > y; diff -i x y; diff -b x y; diff -w -i -B x y; echo $?; diff -Z x y; diff -B x y; diff --strip-trailing-cr <(printf 'a\r\n') <(printf 'a\n'); echo $?; diff -I '^#' <(printf '#1\nx\n') <(printf '#2\nx\n'); echo $?; diff -E <(printf 'a\tb\n') <(printf 'a       b\n'); echo $?; diff -a <(printf 'a\0\n') <(printf 'b\0\n') | od -c | head -2; diff -t -u <(printf '\tx\n') <(printf '\ty\n')| tail -2

#: directories
#| needs: grep
mkdir -p l/s r/s; echo 1 > l/f; echo 2 > r/f; echo x > l/only; echo s > l/s/g; echo t > r/s/g; touch r/new; diff -r l r; echo $?; diff -rq l r; diff -rN l r; diff -ruN l r | grep -v '^---\|^+++'; diff -r -x 's' l r; diff l r; diff a l; echo $?; mkdir a.d; cp a a.d; diff a a.d; echo $?; diff -r l nowhere; echo $?; diff --from-file=a b a; echo $?; diff -rq --no-dereference l r

#: binary and missing files
printf '\0\1' > m; printf '\0\2' > n; diff m n; echo $?; diff -q m n; diff a nowhere; echo $?; diff -N a nowhere | wc -l; diff; echo $?; diff --nosuch a b; echo $?; diff - b < a | head -2; printf 'x' > p; printf 'x\n' > q; diff p q; diff -u p q | tail -3; diff /dev/null a | head -2; chmod 0 q; diff p q; echo $?; chmod 600 q

#: cmp
cmp a b; echo $?; cmp -l m1 m2; echo $?; printf abc > m1; printf aXcd > m2; cmp m1 m2; cmp -l m1 m2; cmp -s m1 m1; echo $?; cmp -b m1 m2; cmp -n 1 m1 m2; echo $?; cmp -i 2 m1 m2; cmp a nowhere; echo $?; cmp - a < b; cmp -l -b m1 m2; cmp m1; echo $?

#: diff3 and sdiff
printf '1\n2\n3\n' > o; printf '1\nmine\n3\n' > m; printf '1\n2\n3\n4\n' > t; diff3 m o t; diff3 -m m o t; echo $?; printf '1\ntheirs\n3\n' > t2; diff3 -m -L M -L O -L T m o t2; echo $?; diff3 -e m o t; sdiff -w 30 m t; echo $?; sdiff -l -w 30 m o; sdiff -s -w 30 m o; diff3 m o; echo $?; diff3 -A m o t2

#: long files
#| needs: sed
seq 5000 > s; sed 's/^\(.*7\)$/\1x/; 100,120d; 3000a\inserted' s > t; diff s t | wc -l; diff -u s t | tail -n +3 | md5sum; diff --speed-large-files s t | wc -l; diff -d s t | wc -l; diff <(shuf -i 1-500 --random-source=<(yes)) <(seq 500) | md5sum; diff -u --label x --label y <(seq 100) <(seq 2 101); diff --minimal <(seq 1 3 900) <(seq 1 2 900) | md5sum
