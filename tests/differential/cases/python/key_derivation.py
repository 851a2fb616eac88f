"""A key from a password."""

import hashlib

print(hashlib.scrypt(b"password", salt=b"salt", n=1024, r=8, p=1, dklen=32).hex())
print(hashlib.pbkdf2_hmac("sha512", b"password", b"salt", 20_000, 40).hex())
