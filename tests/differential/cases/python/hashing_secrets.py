"""hashlib, hmac, base64, binascii, uuid, secrets."""

import base64
import binascii
import hashlib
import hmac
import random
import secrets
import uuid

data = b"The quick brown fox" * 100
for name in sorted(hashlib.algorithms_guaranteed):
    digest = hashlib.new(name, data)
    print(name, digest.hexdigest(16) if name.startswith("shake") else digest.hexdigest())
print(hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 1000).hex())
print(hashlib.blake2b(data, key=b"k", digest_size=10).hexdigest())
print(hmac.new(b"key", data, "sha512").hexdigest()[:32], hmac.compare_digest("a", "a"))
print(base64.b64encode(data[:10]), base64.urlsafe_b64decode("_-8="), base64.b32encode(b"hi"), base64.b85encode(b"hello"))
print(binascii.hexlify(b"\x01\xab", ":"), binascii.crc_hqx(b"123456789", 0))
print(uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"), uuid.UUID(int=5).version, len(str(uuid.uuid4())))
print(len(secrets.token_hex(16)), secrets.choice([7]), secrets.token_bytes(4) != secrets.token_bytes(4))
random.seed(42)
print(random.random(), random.sample(range(100), 5), random.gauss(0, 1), random.choices("abc", [5, 1, 1], k=4))
shuffled = list(range(8))
random.Random("text").shuffle(shuffled)
print(shuffled)
