-- Conditions on which a bound clause and Spark must agree, over the rows of tests/language/test_predicates.py.
-- `column: constants` stands for all comparisons of the column with each constant; other lines are conditions.

i: 0|5|-1|2147483647|-2147483648|2147483648|3000000000|1.5|1.5D|-0.5|1e10|'7'|' 5 '|1L|7BD|5Y|NULL|16777217.0D|1.5F
l: 0|5|9007199254740992D|9007199254740993.0D|9007199254740993|9.3e18|-9.3e18|1.5|'9223372036854775807'|9223372036854775806.5|CAST('NaN' AS DOUBLE)|16777217F
f: 0|0.1|0.1D|0.1F|1.5|1.1|'1.1'|CAST('1.1' AS FLOAT)|16777216|16777217|double('NaN')|CAST('-Infinity' AS DOUBLE)|-0.0D|1e39D
d: 0|-0.0D|0.1|1.5|1.1|'1.5'|1|9007199254740993|CAST('NaN' AS DOUBLE)|CAST('inf' AS DOUBLE)|CAST('-inf' AS DOUBLE)|1e308|5e-324|NULL|0.1F
n: 0|1.23|1.234|1.235|-1.23|1.5D|1.23D|'1.23'|1.24F|100000000|1e20|5|1.2300000|123456789012345678901234567890123456.55|CAST('NaN' AS DOUBLE)
k: 900719925474099.31D|900719925474099.32D|900719925474099.315|1.1|1.1D|'1.1'
m: 0|1.2345678901|1.2345678901D|0.005D|0.01|9999999999999999999999999999.9999999999|123456789012345678901234567890123456.55|1e28|-1e-10|0.000000000051
s: ''|'a'|'ab'|'é'|'\uffff'|'it\'s'|'it''s'|"x\ty"|'😀'|'straße'|NULL|r'a\c'|'a' 'b'
dt: DATE '1970-01-01'|'2020-02-29'|'2020'|'2020-2-9'|TIMESTAMP '2020-02-29 00:00:00'|TIMESTAMP '2020-02-29 00:00:01'|TIMESTAMP '1969-12-31 23:59:59.999999'|DATE '0001-01-01'|DATE '9999-12-31'
ts: TIMESTAMP '2020-02-29 12:30:15.5'|'2020-02-29'|DATE '2020-02-29'|TIMESTAMP '2020-02-29 14:30:15.5+02:00'|'1970-01-01T00:00:00Z'|TIMESTAMP '2020-02-29 13:30:15.5 Europe/Berlin'|'1969-12-31 23:59:59.999999'|'0001-01-01'
b: TRUE|FALSE|'true'|'no'|NULL
a: 0|5|-1|127|-128|128|1000|-129|3000000000|1.5|1.5D|'7'|5Y|5S|5L|NULL|-0.5F|1e10
h: 0|255|32767|-32768|32768|-32769|1.5|1e3|'12345'|100Y|127S|2147483648|99999.5

i BETWEEN 0 AND 7
i NOT BETWEEN 0 AND 7
i BETWEEN 7 AND 0
i BETWEEN '1' AND 5.5
n BETWEEN 1 AND 1.235
i BETWEEN NULL AND 5
NOT (i BETWEEN NULL AND 5)
i IN (1, 2, 5)
i NOT IN (1, 2, 5)
i IN (1, NULL)
i NOT IN (1, NULL)
i IN (1, '2', 5.0)
l IN (1, 9007199254740993, 1.5D)
l IN (9007199254740993)
n IN (1.23, '1.24')
d IN (1, 1.5, CAST('NaN' AS DOUBLE))
s IN ('a', 'ab', NULL)
i IN (j, 5)
i NOT IN (j, 5)
i IS NULL
i IS NOT NULL
b
NOT b
b IS TRUE
b IS NOT TRUE
b IS FALSE
b IS NOT FALSE
(i > 5) IS TRUE
(i > 5) IS NOT TRUE
(i > 5) IS FALSE
(i > 5 AND d < 1) IS NOT FALSE
(i > 5 AND d < 1) IS NULL
(i > 5 OR b) IS NOT NULL
(i > j) IS NOT TRUE
(s LIKE '%b') IS NOT TRUE
i <=> 5
NOT (i <=> 5)
i <=> NULL
i <=> j
NOT i <=> j
i IS DISTINCT FROM 5
i IS NOT DISTINCT FROM j
b = (i > 1)
b > c
NOT (i > 5 AND d < 1)
NOT (i > 5 OR d < 1)
NOT (NOT (i > 5) OR (d < 1 AND NOT b))
i > 1 AND (i < 100 OR d > 1) AND NOT (s = 'a')
i > 5 AND i < 3
i > 5 OR i <= 5
i = 1 OR i = 2 OR i = 5
i > 5 OR NULL
i > 5 AND NULL
NOT (i > 5 AND NULL)
TRUE
1 = 1 AND i = 5
1 > 2 OR i = 5
NULL IS NULL
s LIKE 'a%'
s LIKE 'ab'
s LIKE '%'
s LIKE '%b%'
s LIKE 'a_c'
s NOT LIKE 'a%'
s NOT LIKE '%b%'
NOT (s LIKE 'a_c')
s LIKE 'a\\%c'
s LIKE 'a\%c'
s LIKE 'a/_%' ESCAPE '/'
s LIKE 'a!!%' ESCAPE '!'
s LIKE 'a%%' ESCAPE '%'
s LIKE r'a\\c'
s LIKE NULL
s LIKE '￿%'
s LIKE ''
trim(s) LIKE 'a%'
startswith(s, 'a')
endswith(s, 'c')
contains(s, '%')
contains(s, '')
i < d + 1
d < e + 1.5
d + 1 < e
d >= e - 2
j BETWEEN -1000 AND 1000 AND i < j + 5
j BETWEEN -1000 AND 1000 AND i + 0 < j - 5L
i BETWEEN -1000 AND 1000 AND i + 5 >= j
i BETWEEN -1000 AND 1000 AND i + 5 = 10
i BETWEEN -1000 AND 1000 AND 5 - i > 2
i BETWEEN -1000 AND 1000 AND i * 2 > 10
i BETWEEN -1000 AND 1000 AND -i < 1
i BETWEEN -1000 AND 1000 AND j BETWEEN -1000 AND 1000 AND j <> 0 AND i % j = 1
i BETWEEN -1000 AND 1000 AND i % 3 = -1
j <> 0 AND i / j > 1
j = 0 OR i / j > 1
NOT (j = 0 OR i / j > 1)
j <> 0 AND (b OR i / j > 1)
j <> 0 AND i % j = 0
j <> 0 AND i div j = 2
i / 2 = 2.5
l / 7 > 1
d + 1 > 2
d * 2 > 2
d - e > 0
d * e >= 0
-d > 1
d % 2 = 1.5
f + f > 2
f * 1.5 > 2
f + 1 = 2.5
n + 1 > 2.23
n * 2 = 2.46
n - 0.01 = 1.23
n * n > 1.5
1 - n > 0
-n > 1
n + i > 5
k * 1.5D > 1
dt + 1 > du
dt > du - 30
dt + INTERVAL '1' DAY > DATE '2020-03-01'
dt < du + INTERVAL '30' DAYS
dt > du + INTERVAL 1 HOUR
du < DATE '9000-01-01' AND dt < du + INTERVAL 30 DAYS
ts < tu + INTERVAL '5' MINUTE
ts - INTERVAL 1 DAY >= tu
ts + INTERVAL '1 02:03:04' DAY TO SECOND > tu
ts > TIMESTAMP '2020-01-31 00:00:00' + INTERVAL 1 MONTH
dt > DATE '2020-03-31' - INTERVAL 1 MONTH
dt = DATE '2020-02-28' + 1
CASE WHEN i > 5 THEN d ELSE 1 END > 1
CASE i WHEN 1 THEN 'one' WHEN 2 THEN 'two' END = 'two'
IF(b, i, 7) = 7
IF(b, i, n) > 1.2
CASE WHEN j <> 0 AND i / j > 1 THEN TRUE ELSE FALSE END
coalesce(i, j, 3) = 3
coalesce(d, 1.5) = 1.5
nvl(s, 'none') = 'none'
nvl2(s, 1, 2) = 1
nullif(i, 5) IS NULL
nullif(i, 1.0) = 2
greatest(i, j) > 5
greatest(d, e) > 1
least(d, e, 2) < 1
least(s, t) = 'a'
greatest(dt, ts) > TIMESTAMP '2020-02-29 01:00:00'
i > -1000 AND abs(i) = 1
abs(d) > 1
abs(n) = 1.23
sqrt(d) > 1
isnan(d)
NOT isnan(d)
isnan(i)
abs(d) < 1000 AND ceil(d) > 1
abs(d) < 1000 AND ceil(d) = 0
abs(d) < 1000 AND floor(d) = -2
abs(f) < 1000 AND floor(f) = 1
ceil(n) = 2
floor(n) = -2
ceil(i) > 5
floor(l) = 9007199254740993
length(s) = 2
char_length(s) = 3
upper(s) = 'ABC'
upper(s) = 'STRASSE'
upper(s) > 'B'
lower(s) = 'abc'
length(lower(s)) = 3
upper(s) = 'FIN'
trim(s) = 'ab'
ltrim(s) = 'ab '
rtrim(s) = ' ab'
substring(s, 2) = 'b'
substring(s, 2, 1) = '😀'
substr(s, 1, 0) = ''
left(s, 1) = 'a'
right(s, 2) = 'bc'
instr(s, 'c') = 3
locate('c', s) = 3
position('c' IN s) > 0
replace(s, 'a', 'zz') = 'zzb'
replace(s, '', 'x') = 'ab'
s || t = 'aa'
concat(s, '-', i) = 'a-5'
concat(s, b) = 'atrue'
concat(s, NULL) IS NULL
year(dt) = 2020
month(ts) = 2
day(ts) = 29
dayofmonth(dt) = 31
quarter(dt) = 4
dayofweek(dt) = 1
dayofweek(ts) = 7
dayofyear(dt) = 60
weekofyear(dt) = 1
hour(ts) = 23
hour(dt) = 0
minute(ts) = 30
second(ts) = 59
extract(YEAR FROM ts) = 1969
extract(HOUR FROM ts) > 3
datediff(dt, du) > 0
datediff(ts, tu) < 0
date_add(dt, 1) = DATE '2020-03-01'
date_sub(dt, 1) > DATE '2020-03-01'
to_date(ts) = DATE '2020-02-29'
date(ts) < du
CAST(i AS BIGINT) = 5
CAST(i AS DOUBLE) > 1.5
CAST(l AS DOUBLE) = 9007199254740992D
CAST(m AS DOUBLE) = 1.2345678901D
CAST(i AS STRING) = '5'
CAST(b AS STRING) = 'true'
CAST(dt AS STRING) > '2000'
CAST(b AS INT) = 1
CAST(i AS BOOLEAN)
CAST(n AS INT) = -1
CAST(n AS DECIMAL(12,1)) = 1.2
CAST(n AS DECIMAL(12,1)) > -1.24
CAST(m AS DECIMAL(38,2)) = 0.01
CAST(m AS DECIMAL(38,9)) = 1.234567890
d BETWEEN -100 AND 100 AND CAST(d AS INT) = 1
d BETWEEN -100 AND 100 AND CAST(d AS INT) = -1
f BETWEEN -100 AND 100 AND CAST(f AS BIGINT) = 1
CAST(ts AS DATE) = DATE '1969-12-31'
CAST(dt AS TIMESTAMP) = ts
i = CAST('5' AS INT)
d = CAST('1.5' AS DOUBLE) + 0
i::BIGINT > 5
i > 2 * 3 - 1
l > 2147483647L + 1
d < 10 / 4
n = 1.2 + 0.03
s = upper('ab') || 'C'
ts > '2020-02-29 12:00:00' AND ts <= '2026-12-31T23:59:59+05:30'

-- row values: NULL is the least value, and equal to itself
(i, s) = (1, 'a')
(i, s) <> (1, 'a')
(i, j) < (1, 2)
(i, j) <= (1, 2)
(i, j) > (1, 2)
(i, j) >= (1, 2)
NOT (i, j) < (1, 2)
(i, j) < (j, i)
(i, j) >= (j, i)
(i, j) <=> (j, i)
(i, j) IS DISTINCT FROM (j, i)
(i, j) = (CAST(NULL AS INT), 1)
(i, s) IN ((1, 'a'), (CAST(NULL AS INT), 'b'), (2, CAST(NULL AS STRING)))
(i, s) NOT IN ((1, 'a'), (CAST(NULL AS INT), 'b'))
(i, j) BETWEEN (0, 1) AND (1, 0)
(i, j) NOT BETWEEN (0, 1) AND (1, 0)
(d, e) = (e, d)
(d, e) < (e, d)
(d, i) <= (CAST('NaN' AS DOUBLE), 1)
(d, i) > (0.0D, 1)
(d, f) = (-0.0D, 0.0F)
(n, b) < (CAST(1.5 AS DECIMAL(10,2)), TRUE) OR i > 5
(dt, ts) >= (DATE '2020-01-02', TIMESTAMP '2020-01-02 03:04:05')
(s, t) < (t, s)
((i, j), s) < ((1, 2), 'a')
((i, j), s) = ((j, i), t)
(i, j, l) > (1, 2, 3L) AND i IS NOT NULL
(i + 1L, j) < (2L, 2)
(1, 2) < (1, 3)
(1, 2) = (1, 3)
