# What openssl prints when nothing is random.
#| needs: openssl

#: digests of a file and of its input
printf 'The quick brown fox\n' > f
for d in md5 sha1 sha224 sha256 sha384 sha512 sha512-256 sha3-256 shake128 blake2b512 sm3 ripemd160; do
    openssl dgst -$d f
done
openssl sha256 -r f; openssl dgst -sha256 -binary f | openssl base64; openssl sha1 < f
openssl dgst -sha256 -hmac key f; openssl mac -digest SHA512 -macopt key:secret -in f HMAC

#: encryption with a given salt, and back
seq 100 > f
for c in aes-128-cbc aes-256-ctr camellia-192-cbc chacha20 des-ede3-cbc; do
    openssl enc -$c -pbkdf2 -S 0011223344556677 -pass pass:word -in f -a | head -n 2
done
openssl enc -aes-256-cbc -K 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff \
    -iv 000102030405060708090a0b0c0d0e0f -in f -out g
openssl enc -d -aes-256-cbc -K 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff \
    -iv 000102030405060708090a0b0c0d0e0f -in g | tail -n 1
openssl enc -d -aes-256-cbc -K 00 -iv 00 -in g > /dev/null 2>&1; echo $?

#: base64 lines
seq 30 | openssl base64; seq 30 | openssl base64 -A; echo; echo aGVsbG8K | openssl base64 -d

#: derived keys and passwords
openssl kdf -keylen 16 -kdfopt digest:SHA256 -kdfopt pass:pw -kdfopt salt:NaCl -kdfopt iter:1000 PBKDF2
openssl kdf -keylen 16 -kdfopt pass:pw -kdfopt salt:NaCl -kdfopt n:1024 -kdfopt r:8 -kdfopt p:1 SCRYPT
openssl passwd -6 -salt ab word; openssl passwd -5 -salt ab word; openssl passwd -1 -salt ab word

#: a key, and what can be said of it
cat > key.pem <<'EOF'
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
EOF
openssl pkey -in key.pem -text -noout; openssl pkey -in key.pem -pubout
openssl req -x509 -key key.pem -subj '/C=DE/O=Test/CN=a.example' -set_serial 1 -out c.pem \
    -not_before 20240101000000Z -not_after 20340101000000Z \
    -addext 'subjectAltName=DNS:a.example,IP:127.0.0.1'
cat c.pem; openssl x509 -in c.pem -noout -text; openssl x509 -in c.pem -noout -fingerprint -sha256
openssl verify -CAfile c.pem -attime 1720000000 c.pem; openssl verify -CAfile c.pem -attime 1 c.pem
openssl asn1parse -in c.pem | head -n 20

#: numbers
openssl prime 97 91; openssl prime -generate -bits 3 | wc -l; openssl ciphers -s -tls1_3

#: mistakes
openssl dgst -sha256 nowhere > /dev/null 2>&1; echo $?; openssl nosuch > /dev/null 2>&1; echo $?
echo x | openssl enc -d -aes-256-cbc -pbkdf2 -pass pass:p > /dev/null 2>&1; echo $?
