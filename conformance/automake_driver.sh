# Runs one test as automake's `make check VERBOSE=yes` does, in the sandbox and natively
# alike.
#
#   bash automake_driver.sh LOG SETUP TEST
#
# The current directory is that of the Makefile. SETUP are the commands that this suite's
# Makefile runs before each test (its TESTS_ENVIRONMENT); what the Makefile only exports is
# in the environment already.

log=$1 setup=$2 test=$3
exec >"$log" 2>&1 9>&2

temporary=$TMPDIR
eval "$setup"
export TMPDIR=$temporary # setups take it away

# Not by exec: as under make, a test is not the only process.
bash "./$test"
exit $?
