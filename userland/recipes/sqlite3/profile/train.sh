# What is done with databases: filled, indexed, joined, changed, searched. The counts of each branch
# make ../hot.proftext: `python -m bench.profile sqlite3`.
set -e
awk 'BEGIN { for (i = 0; i < 60000; i++) printf "%d,name %d,%d.%02d,\"text, %d\"\n", i, i * 7919 % 5003, i % 100, i % 97, i % 13 }' > rows.csv

cat > work.sql <<'SQL'
create table people(id integer primary key, name text, score real, note);
create table visits(person int, day text, minutes int, primary key(person, day)) without rowid;
create table log(line text);
.mode csv
.import rows.csv people
create table loose(a, b, c, d);
.import rows.csv loose
.mode list
begin;
with recursive n(i) as (select 0 union all select i + 1 from n where i < 50000)
insert into visits select i % 7001, date('2020-01-01', (i / 7001) || ' days'), i * 31 % 240 from n;
insert into log select printf('%05d %s', id, upper(name)) || ';' from people where id % 3 = 0;
commit;
create index by_name on people(name);
create index by_minutes on visits(minutes, person);
analyze;
select count(*), sum(score), avg(length(name)), min(note), max(note) from people;
select note, count(*), sum(score), group_concat(distinct substr(name, 1, 6)) from people where id < 9000 group by note order by 2 desc;
select sum(p.id + v.minutes), count(distinct p.name) from people p join visits v on v.person = p.id % 7001 where p.id < 30000;
select count(*) from people a join people b on a.name = b.name where a.id % 7 = 0;
select sum(x.a + y.minutes) from loose x join visits y on y.person = x.a and y.minutes > 20;
select name, score from people order by score desc, name limit 5;
select count(*) from people where name like '%99%' or note glob 'text, 1*';
select count(*) from (select distinct name, note from people);
select count(*) from people where name in (select 'name ' || minutes from visits);
select count(*) from visits v where exists (select 1 from people p where p.id = v.minutes and p.score > 50);
select sum(case when minutes between 10 and 100 then minutes * 2 else -1 end) from visits;
select max(r), sum(s) from (select row_number() over (partition by note order by score) r, sum(score) over (order by id rows 5 preceding) s from people where id < 20000);
with recursive t(i, x) as (select 1, 1 union all select i + 1, (x * 1103515245 + 12345) & 2147483647 from t where i < 100000) select sum(x), count(*) from t;
select sum(json_extract(json_object('a', id, 'b', name), '$.a')) from people where id < 10000;
update people set score = score * 1.5, note = note || '!' where id % 4 = 0;
update visits set minutes = minutes + 1 where person < 2000;
delete from people where id % 5 = 0;
insert or replace into people select id, name || 'x', score, null from people where id % 7 = 0;
select count(*), total(score) from people;
create virtual table words using fts5(text);
insert into words select name || ' ' || coalesce(note, 'nothing') from people where id < 5000;
select count(*) from words where words match 'text';
vacuum;
pragma integrity_check;
SQL

sqlite3 file.db < work.sql > file.out
sqlite3 :memory: < work.sql > memory.out
cmp file.out memory.out
sqlite3 file.db .dump > dump.sql
sqlite3 copy.db < dump.sql
sqlite3 -csv copy.db 'select * from people' > people.csv
# Many small statements, as programs make them.
awk 'BEGIN { print "create table t(a integer primary key, b, c text); begin;"
    for (i = 0; i < 20000; i++) printf "insert into t values(%d, %d, '\''r%d'\'');\n", i, i % 997, i
    print "commit; create index i on t(b);"
    for (i = 0; i < 10000; i++) printf "select c from t where a = %d;\n", i * 31 % 20000
    for (i = 0; i < 3000; i++) printf "select count(*) from t where b = %d;\n", i % 997 }' > small.sql
sqlite3 small.db < small.sql > small.out
