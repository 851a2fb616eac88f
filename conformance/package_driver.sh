# Runs one file of a package's tests by pytest, in the sandbox and natively alike.
#
#   sh package_driver.sh LOG DIRECTORY PYTHON ROOT FILE [OPTION...]
#
# DIRECTORY becomes the current directory. FILE is a path below ROOT, and pytest reads the
# conftest.py files between them. PYTHONPATH must name pytest and this plugin's directory.
# Tests that fail run a second time, because some depend on time or on random numbers.

log=$1 directory=$2 python=$3 root=$4 file=$5
shift 5
exec >"$log" 2>&1
export PACKAGE_REPORT=${log%/*}/verdicts
cd "$directory" || exit 99
run() {
	"$python" -m pytest -p package_report -p no:faulthandler -o "cache_dir=$TMPDIR/pytest-cache" \
		--rootdir="$root" --confcutdir="$root" -q -rfEs --tb=short --color=no -W ignore "$@" "$root/$file"
}
run "$@"
status=$?
if [ "$status" -eq 1 ]; then
	run --last-failed "$@"
	status=$?
fi
exit "$status"
