# Runs one file of a package's tests by pytest, in the sandbox and natively alike.
#
#   sh package_driver.sh LOG PYTHON FILE
#
# The current directory is the top of the tree: tools/ has pytest and what tests import besides.

log=$1 python=$2 file=$3
exec >"$log" 2>&1
export PACKAGE_REPORT=${log%/*}/verdicts
cd "$TMPDIR" || exit 99
exec "$python" -m pytest -p package_report -p no:cacheprovider -p no:faulthandler -q --tb=short \
	--color=no -W ignore "$file"
