#!/bin/bash
# Stands in for Perl on both sides, for the short programs that git's test suite uses where it
# takes Perl for granted: each is known by its text, and done by sed, awk and the like. It
# knows no others.

unknown() {
	echo "perl: not there, and this is none of the programs that are known: $1 $2" >&2
	exit 127
}

# Stdin, or files, edited line by line.
edit() {
	local program=$1
	shift
	case $program in
	'y/'*)
		IFS=/ read -r _ from to _ <<<"$program"
		exec tr "$from" "$to"
		;;
	's/	.*//') exec sed 's/\t.*//' "$@" ;;
	's/\012/\000/g') cat "$@" | tr '\n' '\0' ;;
	's/^"//; s/\\//; s/"$//; tr/\n/\0/')
		sed 's/^"//; s/\\//; s/"$//' "$@" | tr '\n' '\0'
		;;
	's/	"/	/; s/\\//; s/"$//; tr/:\t\n/\0/')
		sed 's/\t"/\t/; s/\\//; s/"$//' "$@" | tr ':\t\n' '\0'
		;;
	*'/^literal/ && $count++ >= 1'*)
		exec awk '/^literal/ && n++ >= 1 { printf "%s", $0; exit } { print }' "$@"
		;;
	*) unknown -pe "$program" ;;
	esac
	exit
}

# What is to be printed of stdin, or of files.
scan() {
	local program=$1
	shift
	case $program in
	*'hex for /../g'*)
		while read -rn 2 digits && [ "$digits" ]; do
			printf '\\%03o' "0x$digits"
		done
		exit
		;;
	*'/^-----END PGP/'*)
		exec awk '/^-----END PGP/ { p = 0 } !p { print } /^-----BEGIN PGP/ { p = 1 }' "$@"
		;;
	'/delta (\d+)/ and print $1')
		exec awk 'match($0, /delta [0-9]+/) { print substr($0, RSTART + 6, RLENGTH - 6) }' "$@"
		;;
	'/[0-9a-f]+/ and print $&')
		exec awk 'match($0, /[0-9a-f]+/) { print substr($0, RSTART, RLENGTH) }' "$@"
		;;
	*'/push< ([^\\]+)/ or next'*)
		exec awk '{ sub(/\\.*/, "") } sub(/.*push< /, "") { if ($0 == "0000") exit; print }' "$@"
		;;
	*'/^(message-id|references|in-reply-to)/i'*)
		# Message-IDs become numbers in the order in which they appear.
		exec awk '
			{ lower = tolower($0) }
			lower ~ /^(message-id|references|in-reply-to)/ { printing = 1 }
			lower ~ /^[^ \t]/ && lower !~ /^(message-id|references|in-reply-to)/ { printing = 0 }
			printing {
				if (match($0, /<[^>]+>/)) {
					id = substr($0, RSTART + 1, RLENGTH - 2)
					if (!(id in number)) number[id] = count++
				}
				for (id in number)
					if (at = index($0, id))
						$0 = substr($0, 1, at - 1) number[id] substr($0, at + length(id))
				print
			}
			lower ~ /^from / { print "---" }
		' "$@"
		;;
	*) unknown -ne "$program" ;;
	esac
}

# Programs that read nothing, or decide for themselves.
run() {
	local program=$1
	shift
	if [[ $program =~ ^[[:space:]]*print\ \"([a-z ]+)\"\ x\ ([0-9]+)\;?[[:space:]]*$ ]]; then
		yes "${BASH_REMATCH[1]}" | head -n "${BASH_REMATCH[2]}" | tr -d '\n'
		exit
	fi
	case $program in
	*'sysread(STDIN, $s, $len)'*) exec head -c "$2" ;;
	*'exit 1 if $ARGV[0] <= $ARGV[1]'*) [ "$(stat -c %s "$1")" -gt "$(stat -c %s "$2")" ] ;;
	*'s[origin(?!/)][quotemeta($url)]ge'*)
		local url
		url=$(sed 's/[^A-Za-z0-9_]/\\&/g' <<<"$3")
		local kept=${2//origin\//$'\1'}
		kept=${kept//origin/"$url"}
		printf %s "${kept//$'\1'/origin/}"
		;;
	*'print STDERR "Author $author (expected'*)
		# Arguments are authors and how many lines each is to have.
		exec awk '
			BEGIN {
				for (i = 1; i + 1 < ARGC; i += 2) { expected[ARGV[i]] = ARGV[i + 1]; found[ARGV[i]] = 0 }
				ARGC = 1
			}
			match($0, /^[0-9a-f]+\t\([^\t]+\t/) {
				author = substr($0, 1, RLENGTH - 1)
				sub(/^[0-9a-f]+\t\([ ]*/, "", author)
				sub(/[ ]*$/, "", author)
				found[author]++
			}
			END {
				for (author in found) if (expected[author] + 0 != found[author]) bad = 1
				exit bad
			}
		' "$@"
		;;
	*) unknown -e "$program" ;;
	esac
	exit
}

case $1 in
-pe) edit "${@:2}" ;;
-ne | -lne) scan "${@:2}" ;;
-e) run "${@:2}" ;;
esac
case "$1 $2" in
'-0pe s/\n\s+/ /g') exec sed -z 's/\n[[:space:]]\+/ /g' "${@:3}" ;;
'-le print readlink($_) for @ARGV') exec readlink "${@:3}" ;;
esac
unknown "$1" "$2"
