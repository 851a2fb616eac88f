# What shells do all day, for the profile: loops, words, arithmetic, functions, arrays, patterns,
# text line by line, and commands that fork. Each part takes about as long as the others.
# Commands that fork come first, because a child adds the counts that it has from its parent.
turns=${1:-4000}

# Files and tests, command substitutions, pipes, here-documents.
for ((i = 0; i < turns / 20; i++)); do
	[ -f "$0" ] && [ ! -d "$0" ] && test -s "$0"
	value=$(echo "$i")
	value=$(printf '%s' "$value" | cat)
	(: "$value")
	cat <<-END > part
		$value and $((i * 2))
	END
	{ read -r value; } < part
	eval "copy_$((i % 5))=\$value"
done
for file in /usr/lib/* /etc/*.conf; do [[ -L $file ]] && sum=$((sum + 1)); done

fibonacci() {
	if (($1 < 2)); then
		echo "$1"
	else
		echo $(($(fibonacci $(($1 - 1))) + $(fibonacci $(($1 - 2)))))
	fi
}
fibonacci 8 > part
numbers=$(seq "$turns")

# Loops and arithmetic.
for ((i = 0; i < turns; i++)); do :; done
i=0 sum=0
while [ "$i" -lt "$turns" ]; do
	sum=$((sum + i * 3 % 7))
	i=$((i + 1))
done
i=0
until ((i >= turns)); do
	if ((i % 3 == 0)); then ((sum += i)); elif ((i & 1)); then ((sum--)); else ((sum ^= i)); fi
	((i++))
done
for i in $numbers; do let "sum += i"; done
for i in {1..2000}; do true; done

# Functions, local variables, return values.
add() {
	local a=$1 b=$2
	result=$((a + b))
	return 0
}
gcd() {
	if (($2 == 0)); then result=$1; else gcd "$2" $(($1 % $2)); fi
}
for ((i = 0; i < turns; i++)); do add "$i" 1 && gcd "$i" 36; done

# Parameter expansion and patterns.
path=/usr/local/share/doc/program-1.2.3/README.md
for ((i = 0; i < turns; i++)); do
	name=${path##*/} folder=${path%/*} base=${name%.*} ending=${name##*.}
	upper=${base^^} changed=${path//\//:} part=${path:5:5} length=${#path}
	default=${missing:-$i} list="$name $folder $i"
	case $name in
	*.txt) kind=text ;;
	README* | LICENSE) kind=documentation ;;
	*) kind=other ;;
	esac
	[[ $path == /usr/*/doc/* && -n $kind && $i -ge 0 ]] && sum=$((sum + length))
	[[ $base =~ ^([A-Z]+)$ ]] && upper=${BASH_REMATCH[1]}
done

# Arrays.
numbers=()
declare -A count
for ((i = 0; i < turns; i++)); do
	numbers+=("$((i * 7919 % 1009))")
	count[key$((i % 50))]=$((${count[key$((i % 50))]:-0} + 1))
done
for number in "${numbers[@]}"; do ((number > 500)) && sum=$((sum + number)); done
for key in "${!count[@]}"; do sum=$((sum + ${count[$key]})); done
for ((i = 1; i < 120; i++)); do
	for ((j = i; j > 0 && numbers[j - 1] > numbers[j]; j--)); do
		swap=${numbers[j]} numbers[j]=${numbers[j - 1]} numbers[j - 1]=$swap
	done
done

# Output, and text line by line.
for ((i = 0; i < turns; i++)); do
	echo "$i line of text, $((i % 10)) fields:with:colons"
	printf '%05d %s %x\n' "$i" "$name" "$sum"
done > lines
while IFS= read -r line; do
	[ -z "$line" ] || text=$line
done < lines
while IFS=': ' read -r first second rest; do
	case $first in [0-9]*) sum=$((sum + 1)) ;; esac
	set -- $rest
	sum=$((sum + $#))
done < lines
mapfile -t all < lines
for line in "${all[@]}"; do text=${line#* }; done
