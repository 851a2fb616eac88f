# tar, compressors and zip.
#| needs: tar gzip bzip2 xz zstd zip unzip
mkdir -p t/sub; printf 'alpha\n' > t/a.txt; printf '#!/bin/sh\n' > t/run.sh; chmod 755 t/run.sh; ln -s a.txt t/link; ln t/a.txt t/hard; seq 500 > t/sub/n.txt; : > t/empty; touch -h -d '2024-01-02 03:04:05' t/link; touch -d '2024-01-02 03:04:05' t/a.txt t/run.sh t/sub/n.txt t/empty t/sub t; mkdir out
tarf() { tar --sort=name --owner=0 --group=0 --numeric-owner "$@"; }

#: round trip keeps modes, links and times
#| needs: gawk diffutils
tarf -cf a.tar t; tar tf a.tar; tar xf a.tar -C out; stat -c '%a %n %Y' out/t/a.txt out/t/run.sh out/t/sub/n.txt; readlink out/t/link; stat -c %h out/t/a.txt; tar tvf a.tar | awk '{print $1,$2,$4,$5,$6,$7,$8}'; md5sum < a.tar; cmp t/sub/n.txt out/t/sub/n.txt; tar df a.tar && echo same

#: with gzip, bzip2, xz and zstd
#| needs: diffutils gawk
for z in z j J; do tar -c${z}f a.$z t/sub; tar -t${z}f a.$z; tar xf a.$z -C out; cmp t/sub/n.txt out/t/sub/n.txt && echo ok $z; rm -r out/t; done; tar --zstd -cf a.zst t/sub; tar xf a.zst -C out; ls out/t/sub; tar caf b.tar.gz t/a.txt; tar caf b.tar.xz t/a.txt; tar tf b.tar.gz; gzip -dc b.tar.gz | tar t; xz -dc b.tar.xz | tar tv | awk '{print $1,$3,$6}'; tar -I 'gzip -9' -cf c.tgz t/a.txt; tar tzf c.tgz; tar cf - t/sub | gzip -n | tar xzf - -C out; ls -R out; rm -f a.* b.* c.*

#: choosing members
#| needs: findutils
tarf -cf a.tar t; tar xf a.tar -C out t/a.txt; ls -R out; tar xf a.tar -O t/a.txt; tar tf a.tar --wildcards '*.txt'; tar tf a.tar --exclude='*.txt'; tarf -cf b.tar --exclude=sub t; tar tf b.tar; tar xf a.tar --strip-components=1 -C out; ls out; tar rf b.tar out/a.txt; tar tf b.tar | tail -1; tar --delete -f b.tar t/empty; tar tf b.tar; printf 't/a.txt\nt/run.sh\n' | tarf -cf c.tar -T -; tar tf c.tar; tarf -cf d.tar --transform='s,^t,renamed,' t/a.txt; tar tf d.tar; tar xf a.tar nowhere; echo $?; tar -C t -cf e.tar . --sort=name; tar tf e.tar; tarf -cvf f.tar t/sub; tar xvf f.tar -C out; tar uf b.tar t/a.txt; tar tf b.tar | wc -l; find t -name '*.txt' -print0 | sort -z | tar --null -T - -cf g.tar; tar tf g.tar; tar xf a.tar -C out --one-top-level=top; ls out/top; tar xf a.tar -C out -k t/a.txt; tar xf a.tar -C out -k t/a.txt; echo $?; tar xf a.tar -C out --overwrite; tar cf h.tar --files-from=/dev/null; tar tf h.tar; stat -c %s h.tar; rm *.tar

#: complaints
tar; echo $?; tar xf nowhere.tar; echo $?; tar cf; echo $?; tar cf a.tar nowhere; echo $?; echo garbage > g; tar tf g; echo $?; tar tzf g; echo $?; tar xf /dev/null; echo $?; tar cf a.tar; echo $?; head -c 2000 <(tar c t/sub) > cut.tar; tar tf cut.tar; echo $?; tar --nosuch; echo $?; tar xf a.tar -C nodir; echo $?; tar -cf a.tar /etc/hostname; tar tf a.tar; tar -cPf b.tar /etc/hostname; tar tf b.tar; tar xzf a.tar; echo $?; tar ctf x; echo $?; tar -cf x.tar t -C nodir; echo $?; rm -f *.tar

#: formats and large members
head -c 100000 /dev/zero > t/zeros; for f in ustar pax gnu v7; do tarf -H $f -cf a.tar t/zeros t/a.txt; stat -c %s a.tar; tar tf a.tar; done; n=$(printf 'n%.0s' {1..150}); touch "t/$n"; tarf -H gnu -cf a.tar "t/$n"; tar tf a.tar | wc -c; tarf -H ustar -cf b.tar "t/$n"; echo $?; truncate -s 5M t/sparse; tarf -S -cf s.tar t/sparse; tar xf s.tar -C out; stat -c %s out/t/sparse; [ $(stat -c %s s.tar) -lt 100000 ] && echo small; touch t/ü; tarf -H pax -cf u.tar t/ü; tar tf u.tar; tar tf u.tar --quoting-style=literal; tar --help | head -3; tar --version | head -1; rm *.tar t/sparse out/t/sparse

#: gzip
cp t/sub/n.txt f; gzip -n f; ls; gzip -l f.gz; zcat f.gz | tail -1; gunzip -k f.gz; ls; gzip -t f.gz; echo $?; gzip f; echo $?; gzip -f -n f; gzip -dc f.gz | md5sum; echo hello | gzip -nc | gzip -dc; gzip -d nowhere.gz; echo $?; echo junk > j.gz; gzip -d j.gz; echo $?; gzip -1nc t/sub/n.txt | md5sum; gzip -9nc t/sub/n.txt | md5sum; gzip -nc t/a.txt t/a.txt | gzip -d; gzip -v f 2>&1; gunzip f.gz; gzip -n --suffix .zz f; ls; head -c 30 f.zz > cut.gz; gzip -dc cut.gz > /dev/null; echo $?; zgrep 499 f.zz 2>/dev/null; gzip --nosuch; echo $?; mkdir d; gzip d; echo $?; gzip -nr d; gzip -nc < /dev/null | od -c | head -2; rm -f f.zz

#: bzip2, xz and zstd
for p in bzip2 xz zstd; do cp t/sub/n.txt f; $p -q f; ls f*; $p -dc f.* | md5sum; rm -f f f.*; echo text | $p -c | $p -dc; echo junk | $p -dc; echo $?; $p -t < /dev/null; echo $?; $p -dc nowhere; echo $?; done; bzip2 -c t/sub/n.txt | md5sum; xz -c t/sub/n.txt | md5sum; xz -9e -c t/sub/n.txt | xz -dc | tail -1; xz -l <(xz -c t/a.txt) 2>&1 | head -1; xz -c t/sub/n.txt > n.xz; xz -l n.xz | tail -1 | tr -s ' '; bunzip2 -c <(bzip2 -c t/a.txt); xzcat n.xz | wc -l; unxz -k n.xz; ls n; zstd -q -19 -c t/sub/n.txt | zstdcat | md5sum; xz --format=lzma -c t/a.txt | xz -dc; unlzma -c <(xz --format=lzma -c t/a.txt); bzip2 --version 2>&1 < /dev/null | head -1; zstd -q t/a.txt -o q.zst; zstd -dq q.zst -o q; cat q; rm -f n n.xz q*

#: zip and unzip
#| needs: diffutils gawk
cd t; zip -qrX ../a.zip . -x 'link'; cd ..; unzip -l a.zip | awk '{print $1,$4}' | sort; unzip -q a.zip -d out; stat -c '%a %n' out/run.sh; cmp t/sub/n.txt out/sub/n.txt && echo same; unzip -p a.zip a.txt; zip -q b.zip t/a.txt; unzip -Z1 b.zip; zip -u b.zip t/empty; zip -d b.zip t/a.txt; unzip -t b.zip; unzip nowhere.zip; echo $?; echo junk > j.zip; unzip j.zip; echo $?; zip c.zip nowhere; echo $?; unzip -o -q a.zip a.txt -d out; unzip -n a.zip a.txt -d out; zip -qj d.zip t/sub/n.txt; unzip -Z1 d.zip; zip -qy e.zip t/link; unzip -qo e.zip -d out; readlink out/t/link; cat t/a.txt | zip -q f.zip -; unzip -p f.zip; zip -q -0 g.zip t/sub/n.txt; unzip -v g.zip | awk 'NR==4{print $1,$2,$3,$4}'; unzip -c b.zip | tail -2; zip -T b.zip; unzip -q a.zip 'sub/*' -d only; ls -R only; zip -sf b.zip; zip -r -q h.zip t -i '*.txt'; unzip -Z1 h.zip | sort; rm *.zip
