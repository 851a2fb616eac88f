#| xfail: L031 there is no scrypt without OpenSSL
"""A key from a password."""

import hashlib

print(hashlib.scrypt(b"password", salt=b"salt", n=1024, r=8, p=1, dklen=32).hex())
