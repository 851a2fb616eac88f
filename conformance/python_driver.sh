# Runs one module of CPython's test suite, in the sandbox and natively alike.
#
#   sh python_driver.sh LOG MODULE
#
# The current directory is the top of the tree: python/ is an installation that has the tests.

log=$1 module=$2 tree=$PWD
exec >"$log" 2>&1
cd "$TMPDIR" || exit 99
exec "$tree/python/bin/python3" -m test --verbose3 "$module"
