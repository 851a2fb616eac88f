# Runs one run-* script of bash's test suite as the suite's run-all does, in the
# sandbox and natively alike.
#
#   bash bash_driver.sh RUN-SCRIPT RESULTS
#
# A run-* script compares what bash printed with what is expected, by diff, and a few
# filter the output by grep first. Both are left to the harness: a sandbox need not
# have these programs for its bash to be judged. So, in the run-* script itself and
# nowhere below it, diff keeps both files and its options as RESULTS/N.*, and grep
# hands its input on and keeps its arguments for the next comparison.

script=$1 results=$2
exec >"$results/log" 2>&1

: "${TMPDIR:=/tmp}"
BASH_TSTOUT=$TMPDIR/bashtst-$$
PATH=.:$PATH
export TMPDIR BASH_TSTOUT PATH
unset BASH_ENV
export -n SHELLOPTS BASHOPTS

diff() {
	local n=0 left=${*: -2:1} right=${*: -1}
	[ "$left" = "$right" ] && return 0 # the script tries out an option of diff
	while [ -e "$results/$n.options" ]; do n=$((n + 1)); done
	cat "$left" >"$results/$n.left"
	cat "$right" >"$results/$n.right"
	[ -e "$results/filter" ] && cat "$results/filter" >"$results/$n.filter"
	printf '%s\n' "${@:1:$#-2}" >"$results/$n.options"
	return 0
}

grep() {
	printf '%s\n' "$@" >"$results/filter"
	cat
}

. "./$script"
