// Scripts whose output has to be that of a native bash.
//
// Rules: each runs in an empty directory, and prints nothing that depends on the machine.

export const differentialScripts: string[] = [
  "for i in {1..5}; do printf '%02d ' $i; done; echo; echo ${BASH_VERSINFO[0]:+bash}",
  "printf 'b 2\\na 1\\nc 3\\n' | sort | awk '{print NR\":\"$1, $2*2}' | tac",
  "echo 'The quick brown fox' | sed -E 's/(\\w+) (\\w+)/\\2 \\1/g' | tr a-z A-Z | rev",
  "declare -A m=([x]=1 [y]=2); m[z]=3; for k in $(echo ${!m[@]} | tr ' ' '\\n' | sort); do echo $k=${m[$k]}; done",
  "f() { local n=$1; ((n < 2)) && { echo 1; return; }; echo $((n * $(f $((n-1))))); }; f 8",
  "mkdir -p a/b; echo x > a/b/f; cp -r a c; find . -type f | sort; diff -r a c && echo same",
  "set -e; trap 'echo trapped $?' EXIT; false; echo never",
  "cat <<EOF | grep -c o\none\ntwo\nthree\nEOF\necho ${PIPESTATUS[*]}",
  "seq 1 30 | xargs -n 7 echo | cut -d' ' -f1-3 | paste -sd,",
  "tar cf t.tar --files-from /dev/null; printf 'hello' | gzip -n | gunzip; printf 'x' | sha256sum",
  "exec 3>out; echo via3 >&3; exec 3>&-; read -r line < out; echo \"[$line]\"; [[ -s out ]] && wc -l < out",
  "(exit 3) || echo $?; ! true; echo $?; kill -0 $$ && echo alive; (kill -TERM $BASHPID); echo $?",
  "python3 -c \"import sys; print(sum(range(10)), sys.byteorder, 2**100, f'{3.14159:.2f}')\"",
  "mapfile -t lines < <(printf '1\\n2\\n3\\n'); echo ${#lines[@]} ${lines[-1]}; echo ${lines[@]/#/n}",
];
