# See train.py.
exec python3 "${0%/*}/train.py"
