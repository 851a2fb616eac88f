# date, time zones by rule, sleep and durations.
export TZ=UTC

#: formats
date -d @0 '+%Y-%m-%dT%H:%M:%SZ'; date -d '2024-02-29 13:05:09' '+%a %A %b %B %d %e %j %U %V %W %u %w %y %C %H %I %k %l %M %p %P %r %R %S %s %T %D %F %G %g %n%t%% %Z %z %:z %::z %N %3N %q %h'; date -ud '2024-02-29' '+%c|%x|%X'; date -d @1700000000; date -R -d @0; date -Iseconds -d @0; date -I -d 2024-05-06; date --rfc-3339=ns -d @1.5; date -u -d @0 +%s%N; date -d 2024-01-05 '+%-d/%-m %_d %05d %^a %#Z %10Y %+Y'; date +%E -d @0; date +%Ey -d @0; date +%Oy -d @0; LC_ALL=C date -d @0

#: arithmetic
d='2024-01-31 12:00'; for a in '+1 day' '+1 month' '-1 week' 'next friday' 'last monday' 'yesterday' 'tomorrow' '+2 hours 30 minutes' '1 year ago' '+ 3 fortnights' 'noon' '-5 sec'; do echo "$a: $(date -d "$d $a" '+%F %T' 2>&1)"; done; date -d '2024-03-01 - 1 day' +%F; date -d '2023-03-01 -1 day' +%F; echo $(( ($(date -d 2024-12-25 +%s) - $(date -d 2024-01-01 +%s)) / 86400 )); date -d '@1e3' 2>&1; date -d 'Thu, 01 Jan 1970 00:00:10 +0000' +%s; date -d '20240102T030405' '+%F %T'; date -d '01/02/2024' +%F; date -d '3 Mar 2021 5pm' '+%F %T'; date -d 'Jan 5' +%m-%d; date -d '12:34' +%T; date -d '2024-06-01T12:00:00+02:00' +%T; date -d 'TZ="UTC-9" 2024-01-01 00:00' '+%F %T'; date -d '2024-W01' 2>&1; date -d 1/1/1 +%Y

#: time zones by rule
for z in UTC EST5EDT JST-9 'CET-1CEST,M3.5.0,M10.5.0/3' 'NST3:30NDT,M3.2.0,M11.1.0' '<+0530>-5:30' UTC0; do TZ=$z date -d @1720000000 '+%F %T %Z %z'; TZ=$z date -d @1705000000 '+%F %T %Z %z'; done; TZ='CET-1CEST,M3.5.0,M10.5.0/3' date -d '2024-03-31 02:30' '+%T %Z' 2>&1; TZ=EST5 date -d '2024-01-01 00:00 UTC' '+%F %T'; TZ= date -d @0 +%Z

#: before 1970 and after 2038
date -d '1900-01-01' +%s; date -d @-1 '+%F %T'; date -d '2100-12-31 23:59:59' +%s; date -d @4294967296 +%F; date -d @253402300800 +%F; date -d '1582-10-15' +%j; date -d '0001-01-01' +%s; date -d '9999-12-31' +%A; date -d @9223372036854775807 2>&1; date -d '99999-01-01' 2>&1; date -d 69-01-01 +%Y; date -d 68-01-01 +%Y

#: complaints
date -d nonsense; echo $?; date -d '2024-13-01'; echo $?; date +; echo $?; date --nosuch; echo $?; date -d '2023-02-29'; echo $?; date -r nowhere; echo $?; date a b; echo $?; date -d '25:00'; echo $?; date --date; echo $?; date -Ixyz; echo $?; date -s '2020-01-01' > /dev/null; echo $?; date -f <(printf '@0\nbad\n@1\n') +%s; echo $?; date --debug -d @0 +%s 2>&1 | tail -1; date -d '' +%T

#: time stamps of files
#| needs: findutils
touch -d '2021-05-05 05:05:05' f; date -r f '+%F %T'; stat -c '%y %Y' f; TZ=JST-9 stat -c %y f; TZ=JST-9 ls -l --time-style=+%FT%T%z f | cut -d' ' -f6; ls -l --time-style=full-iso f | cut -d' ' -f6-8; touch -d '2021-05-05 05:05:05 JST-9' g 2>&1; touch -d 'yesterday noon' h; find . -newermt '2021-01-01' ! -newermt '2022-01-01' -name f; [ h -nt f ] && echo newer; cp -p f k; [ k -nt f ] || echo same; date -r nowhere 2>/dev/null || echo none; ls -l --time-style=locale f | cut -d' ' -f6-9; ls -l --time-style=posix-iso f | cut -d' ' -f6-

#: bash and awk times
#| needs: gawk
printf '%(%F %T %Z)T\n' 86400; TZ=EST5EDT printf '%(%F %T %Z)T\n' 1720000000; printf '%(%s)T\n' 5; (( EPOCHSECONDS > 1600000000 )) && echo now; printf '%(%Y)T\n' -1 | wc -c; TZ=JST-9 bash -c 'printf "%(%T)T\n" 0'; awk 'BEGIN{print strftime("%F %T %z", 1720000000)}'; TZ=EST5EDT awk 'BEGIN{print strftime("%F %T %Z", 1720000000), mktime("2024 07 03 05 46 40")}'

#: time zones by name
#| needs: tzdata
for z in Europe/Berlin America/New_York Asia/Kolkata Australia/Sydney America/St_Johns Asia/Tokyo UTC Etc/GMT+5 America/Sao_Paulo Africa/Casablanca Pacific/Apia Antarctica/Troll; do for t in 0 1705000000 1720000000 1143936000 -2000000000 4102444800; do TZ=$z date -d @$t '+%F %T %Z %z'; done; done

#: dates in named zones
#| needs: tzdata findutils gawk
TZ=Europe/Berlin date -d '2024-03-31 03:30' '+%s %Z'; TZ=Europe/Berlin date -d '2024-03-31 02:30' 2>&1; date -d 'TZ="America/New_York" 2024-07-04 12:00' -u '+%F %T'; TZ=America/New_York date -d '2024-07-04T12:00Z' '+%F %T %Z'; TZ=Asia/Tokyo printf '%(%F %T %Z)T\n' 0; touch -d '2024-01-15 12:00 UTC' f; TZ=Asia/Tokyo ls -l --time-style=+'%F %T' f | cut -d' ' -f6-; TZ=Asia/Tokyo stat -c %y f; TZ=Asia/Kolkata find f -printf '%t\n' | cut -c1-24; TZ=Europe/London awk 'BEGIN{print strftime("%F %T %Z", 1720000000)}'; TZ=Europe/Paris date -d '1 month ago 2024-03-31' +%F; for c in Asia/Tokyo Europe/London America/Los_Angeles; do echo "$c $(TZ=$c date -d '2024-02-29 00:00 UTC' '+%a %H:%M')"; done; TZ=Europe/Berlin date -d 'last sunday of' 2>&1; TZ=:Europe/Rome date -d @0 +%Z; [ -e /etc/localtime ] || true; date -d '2024-01-01 12:00 CET' -u +%T; date -d '2024-01-01 12:00 EST' -u +%T; date -d '2024-01-01 12:00 PDT' -u +%T
