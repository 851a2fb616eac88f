# sqlite3.
#| needs: sqlite3
cat > setup.sql <<'SQL'
CREATE TABLE emp(id INTEGER PRIMARY KEY, name TEXT NOT NULL, dept TEXT, salary REAL);
INSERT INTO emp(name,dept,salary) VALUES('Ann','eng',5200.5),('Bob','ops',4100),('Cy','eng',NULL),('Dö','hr',3900);
CREATE TABLE dept(code TEXT PRIMARY KEY, title TEXT);
INSERT INTO dept VALUES('eng','Engineering'),('ops','Operations');
SQL
sqlite3 db < setup.sql

#: queries and joins
sqlite3 db 'SELECT * FROM emp;'; sqlite3 db 'SELECT dept,count(*),avg(salary) FROM emp GROUP BY dept ORDER BY 1'; sqlite3 db 'SELECT e.name,d.title FROM emp e LEFT JOIN dept d ON d.code=e.dept ORDER BY e.id'; sqlite3 db "SELECT name FROM emp WHERE salary>(SELECT avg(salary) FROM emp)"; sqlite3 db "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<5) SELECT group_concat(n) FROM c"; sqlite3 db "SELECT name,rank() OVER (ORDER BY salary DESC) FROM emp WHERE salary NOT NULL"; sqlite3 db "SELECT upper(name),length(name),substr(name,1,2),hex(name),typeof(salary),coalesce(salary,0),printf('%05.1f',salary) FROM emp"; sqlite3 db "SELECT json_object('a',json_array(1,2)), json_extract('{\"x\":{\"y\":5}}','\$.x.y')"; sqlite3 db "SELECT date('2024-01-31','+1 month'), strftime('%s','1970-01-02'), julianday('2000-01-01'), datetime(0,'unixepoch')"; sqlite3 db 'SELECT 1/2, 1/2.0, 5%3, 1e3, 9223372036854775807+1, round(2.567,2), abs(-3), max(1,2), random()<>random(), 0.1+0.2'; sqlite3 db 'EXPLAIN QUERY PLAN SELECT * FROM emp WHERE id=1'

#: output modes
for m in list csv column box table markdown json line html insert quote tabs ascii; do echo "== $m"; sqlite3 -cmd ".mode $m" -header db 'SELECT id,name,salary FROM emp LIMIT 3'; done; sqlite3 -csv -header db 'SELECT name,dept FROM emp'; sqlite3 -json db 'SELECT * FROM dept'; sqlite3 -separator '|' -nullvalue NULL db 'SELECT name,salary FROM emp'; sqlite3 -line db 'SELECT * FROM dept'; sqlite3 -column -header db 'SELECT * FROM dept'; sqlite3 -markdown db 'SELECT code FROM dept'; sqlite3 -box db "SELECT 'é' AS u, 'a\nb' AS n"; sqlite3 -tabs db 'SELECT * FROM dept'

#: dot commands
#| needs: sed
sqlite3 db .tables; sqlite3 db '.schema emp'; sqlite3 db .dump; sqlite3 db .indexes; sqlite3 db '.headers on' 'SELECT 1 AS one'; printf '.mode csv\n.import in.csv t\nSELECT count(*),sum(b) FROM t;\n' > s; printf 'a,b\nx,1\n"y,z",2\n' > in.csv; sqlite3 db < s; sqlite3 db "SELECT * FROM t"; sqlite3 db '.output o.csv' '.mode csv' 'SELECT * FROM t'; cat o.csv; sqlite3 db '.databases' | sed "s#$PWD#.#"; sqlite3 db '.nosuch'; echo $?; sqlite3 db '.read s2'; echo $?; sqlite3 db '.show' | head -3; sqlite3 db '.once x.txt' 'SELECT 5' 'SELECT 6'; cat x.txt; sqlite3 db '.print hello world'; sqlite3 db ".backup b.db"; sqlite3 b.db 'SELECT count(*) FROM emp'; sqlite3 db '.width 3 5' '.mode column' 'SELECT id,name FROM emp LIMIT 1'; sqlite3 db .fullschema | wc -l; sqlite3 db '.lint fkey-indexes'; sqlite3 db .dbinfo | head -2; sqlite3 db '.help .mode' | head -1; sqlite3 db '.changes on' 'UPDATE t SET b=b+1'; sqlite3 db '.sha3sum' | wc -c; sqlite3 db '.eqp on' 'SELECT 1'; sqlite3 db '.timer off' 'VACUUM INTO "v.db"'; ls; rm -f *.db

#: complaints and exit codes
sqlite3 db 'SELEC 1'; echo $?; sqlite3 db 'SELECT * FROM nosuch'; echo $?; sqlite3 db "INSERT INTO emp(name) VALUES(NULL)"; echo $?; sqlite3 db "INSERT INTO dept VALUES('eng','x')"; echo $?; sqlite3 /nodir/db 'SELECT 1'; echo $?; echo 'not a db file at all, but long enough to look' > bad; sqlite3 bad 'SELECT * FROM x'; echo $?; sqlite3 -bail db < <(printf 'SELECT nope;\nSELECT 2;\n'); echo $?; sqlite3 db < <(printf 'SELECT nope;\nSELECT 2;\n'); echo $?; sqlite3 -nosuch db; echo $?; chmod 444 db; sqlite3 db 'DELETE FROM emp'; echo $?; chmod 644 db; sqlite3 -readonly db 'DELETE FROM emp'; echo $?; sqlite3 db 'SELECT 1;;SELECT (' ; echo $?; sqlite3 db "SELECT 'unterminated"; echo $?

#: transactions, triggers, views, full text
#| needs: grep
#| ignore: files
sqlite3 db "BEGIN; DELETE FROM emp; ROLLBACK; SELECT count(*) FROM emp"; sqlite3 db "CREATE VIEW v AS SELECT name FROM emp; SELECT * FROM v"; sqlite3 db "CREATE TABLE log(m); CREATE TRIGGER tr AFTER UPDATE ON emp BEGIN INSERT INTO log VALUES(new.name||'!'); END; UPDATE emp SET salary=1 WHERE id<3; SELECT * FROM log; SELECT changes()"; sqlite3 db "CREATE VIRTUAL TABLE ft USING fts5(body); INSERT INTO ft VALUES('the quick fox'),('lazy dog'); SELECT body FROM ft WHERE ft MATCH 'quick OR dog' ORDER BY rank"; sqlite3 db "PRAGMA journal_mode; PRAGMA integrity_check; PRAGMA user_version=7; PRAGMA user_version; PRAGMA table_info(emp)"; sqlite3 db "INSERT INTO dept VALUES('eng','E2') ON CONFLICT(code) DO UPDATE SET title=excluded.title; SELECT title FROM dept WHERE code='eng'; DELETE FROM dept WHERE code='ops' RETURNING title"; sqlite3 db "PRAGMA journal_mode=WAL; INSERT INTO log VALUES('w'); SELECT count(*) FROM log; PRAGMA wal_checkpoint"; sqlite3 db "CREATE TABLE g(a, b GENERATED ALWAYS AS (a*2)); INSERT INTO g VALUES(4); SELECT b FROM g; ALTER TABLE g RENAME TO h; DROP TABLE h"; sqlite3 db 'PRAGMA compile_options' | grep -c FTS; sqlite3 db 'SELECT sqlite_version()'; rm db*

#: the file is the same
sqlite3 db 'PRAGMA page_size; PRAGMA encoding; SELECT count(*) FROM sqlite_master'; rm -f x.db; sqlite3 x.db 'CREATE TABLE t(a); INSERT INTO t VALUES(1),(2.5),(NULL),(x'"'"'00ff'"'"'),("é")'; stat -c %s x.db; md5sum < x.db; sqlite3 x.db 'SELECT quote(a) FROM t'; sqlite3 :memory: 'CREATE TABLE t(x); INSERT INTO t VALUES(1); SELECT * FROM t'; sqlite3 < setup.sql; sqlite3 x.db 'DELETE FROM t; VACUUM; PRAGMA page_count'; rm x.db

#: larger table
sqlite3 big 'CREATE TABLE n(i INTEGER PRIMARY KEY, v INT); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<20000) INSERT INTO n SELECT x,x*7919%10007 FROM c; CREATE INDEX iv ON n(v); SELECT count(*),sum(v),min(v),max(v) FROM n; SELECT i FROM n WHERE v=42; SELECT v%10,count(*) FROM n GROUP BY 1 ORDER BY 2 DESC,1 LIMIT 3'; sqlite3 -csv big 'SELECT * FROM n ORDER BY v,i' | md5sum; sqlite3 big 'SELECT a.i FROM n a JOIN n b ON a.v=b.i WHERE b.v<5 ORDER BY 1 LIMIT 5'; rm big
