# Writes Misc/stable_abi.toml as FUNCTION(name) and DATA(name), for symbols.cpp: what has a
# declaration, on every system, and is no macro.
function flush() { if (name && !hidden) print kind "(" name ")"; name = "" }
/^\[/ {
	flush(); hidden = 0
	if (match($0, /^\[(function|data)\./)) {
		kind = /function/ ? "FUNCTION" : "DATA"
		name = $0; sub(/^\[[a-z]*\./, "", name); sub(/\].*/, "", name)
	}
}
/^ *(abi_only|ifdef)/ || /_PACK_/ { hidden = 1 }
END { flush() }
