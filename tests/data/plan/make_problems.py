# Writes problems.jsonl: plans, and all problems of each as "LINE:COLUMN: REASON".
import json
import pathlib
GOOD="""plan: small
variables: {customer: acme, app-name: small, region: us-east-1, account: "1"}
profiles:
  aws: {kind: aws}
objects:
  A: {rows: 10}
  B: {rows: 20}
scripts:
  load-a: {schema: s, table: a, references: []}
  load-b: {schema: s, table: b, references: [s.a]}
ranks:
  - {rank: 100, extract: [A], transform: [load-a]}
  - {rank: 200, extract: [B], transform: [load-b]}
"""
C=[]
def case(name,text,*problems): C.append({"name":name,"plan":text,"problems":list(problems)})
def edit(name,a,b,*problems):
    assert a in GOOD,(name,a)
    case(name,GOOD.replace(a,b,1),*problems)
case("a good plan",GOOD)
case("JSON is YAML",json.dumps({"plan":"j","profiles":{"aws":{}},"variables":{"customer":"a","app-name":"b","region":"c","account":"d"},"objects":{"A":{}},"ranks":[{"rank":1,"extract":["A"]}]}))
case('malformed YAML', 'plan: [small\nranks: }\n', '2:6: end of sequence flow not found')
for name, text in {"an empty plan": "", "comments only": "# nothing yet\n", "null": "null\n", "a tilde": "~"}.items():
    case(name,text,"1:1: the plan is empty (it needs 'plan', 'profiles' and 'ranks')")
case("an empty map","{}","1:1: a plan has no plan","1:1: a plan has no profiles","1:1: a plan has no ranks")
case("no map","- 1\n","1:1: a plan is not a map of fields")
edit('unknown field with a near one', 'plan: small', 'plna: small', '1:1: a plan has no plan', "1:1: a plan has no field 'plna' (did you mean 'plan'?)")
edit('unknown field of a rank', 'extract: [A]', 'extracts: [A]', '6:3: no rank extracts A', "12:17: a rank has no field 'extracts' (did you mean 'extract'?)")
edit('flow not found', 'extract: [A]', 'extract: [AA]', '6:3: no rank extracts A', "12:27: flow not found: no object 'AA' (expected one of: A, B)")
edit("job not found","transform: [load-b]","transform: [load-c]","10:3: no rank runs load-b","13:43: job not found: no script 'load-c' (did you mean 'load-a'?)")
edit("a rank needs a later one","{rank: 100, ","{rank: 100, needs: [200], ","12:5: rank 100 needs a later one, rank 200 (ranks are numbered in the order they run in)","12:5: ranks wait for each other: rank 100 needs rank 200 needs rank 100")
edit("a rank needs itself","{rank: 100, ","{rank: 100, needs: 100, ","12:5: rank 100 needs itself (ranks are numbered in the order they run in)","12:5: ranks wait for each other: rank 100 needs rank 100")
edit('a rank needs one that is not there', '{rank: 200, ', '{rank: 200, needs: [10], ', '10:46: s.b in rank 200 is loaded before s.a in rank 100, which its foreign key points to (let rank 200 need rank 100)', "13:5: rank 200 needs rank 10, which does not exist (did you mean '100'?)")
edit('no number of a rank', '{rank: 200, ', '{rank: 200, needs: [first], ', '10:46: s.b in rank 200 is loaded before s.a in rank 100, which its foreign key points to (let rank 200 need rank 100)', "13:25: 'first' is not the number of a rank")
edit('a rank twice', 'rank: 200', 'rank: 100', '13:5: rank 100 is listed twice', '13:5: rank 100 needs itself (ranks are numbered in the order they run in)')
edit('objects that differ in case only', '  B: {rows: 20}\n', '  B: {rows: 20}\n  b: {}\n', '8:3: no rank extracts b', '8:3: b and B differ in upper and lower case only')
edit('an object twice', 'extract: [B]', 'extract: [B, A]', '13:30: A is extracted twice, first in rank 100')
edit("a table twice","table: b, references: [s.a]","table: a","13:43: the table s.a is loaded twice, first in rank 100")
edit('a child before its parent', 'references: []', 'references: [s.b]', '9:46: s.a in rank 100 is loaded before s.b in rank 200, which its foreign key points to (let rank 100 need rank 200)')
edit("parent and child in one rank","  - {rank: 200, extract: [B], transform: [load-b]}\n","    # both\n","7:3: no rank extracts B","10:3: no rank runs load-b")
edit('a table that nothing loads', 'references: [s.a]', 'references: [s.c]', "10:46: s.b refers to s.c, which nothing loads (did you mean 's.a'?)")
edit('reads what comes later', 'table: a, ', 'table: a, reads: [B], ', '9:41: load-a in rank 100 reads B, which is extracted in rank 200 (extract it in a rank that rank 100 needs)')
edit('a quote in a schema', 'schema: s, table: a', 'schema: "s\\"; drop table x", table: a', '9:20: \'s"; drop table x\' cannot be a schema (up to 63 letters, digits and _, not beginning with a digit)', "10:46: s.b refers to s.a, which nothing loads (did you mean 's.b'?)")
edit("a quote in a table","table: b","table: \"b'\"","10:30: 'b'' cannot be a table (up to 63 letters, digits and _, not beginning with a digit)")
edit("a script outside","{schema: s, table: a","{file: ../../etc/passwd, schema: s, table: a","9:18: '../../etc/passwd' is outside of the plan's folder (keep scripts in the plan's folder, so that both are versioned together)")
edit("a secret in a URL","aws: {kind: aws}","aws: {kind: aws, source: \"postgresql://me:hunter22@db/x\"}","4:28: a plain-text secret (write ${env:NAME} or ${file:PATH})")
edit("an access key","customer: acme","customer: AKIAIOSFODNN7EXAMPLE","2:23: a plain-text secret (write ${env:NAME} or ${file:PATH})")
edit("a secret by reference","aws: {kind: aws}","aws: {kind: aws, source: \"postgresql://me:${env:PW}@db/x\"}")
edit("a name that is not known","profiles:","names: {flow: \"m-{custmer}-{object}\"}\nprofiles:","5:3: 'm-{custmer}-{object}' has {custmer}, which is neither a variable nor an input (did you mean 'customer'?)")
edit("bad numbers and times","A: {rows: 10}","A: {rows: many, time: 5 minutes, timeout: soon, retry: {attempts: -1}}","6:13: rows is not a whole number from 0 to 1000000000000","6:25: time is neither a time such as 5m nor a range such as 5m..10m","6:45: timeout is not a time such as 30s, 5m or 2h","6:69: attempts is not a whole number from 0 to 100")
edit("a pool too small","profiles:","pools: {dpu: 1}\nprofiles:","10:3: load-a takes 2 DPU, and the pool has 1","11:3: load-b takes 2 DPU, and the pool has 1")
edit("an empty rank","  - {rank: 200,","  - {rank: 150}\n  - {rank: 200,","13:5: rank 150 has nothing to do")
edit('an external rank with tasks', '{rank: 200,', '{rank: 200, external: true,', '10:46: s.b in rank 200 is loaded before s.a in rank 100, which its foreign key points to (let rank 200 need rank 100)', '13:5: rank 200 is external and has tasks of its own')
edit('no profile', '  aws: {kind: aws}\n', '', '4:1: profiles is not a map from names')
edit("a word that is not one of a few","plan: small","plan: small\non_failure: finish","2:13: on_failure cannot be 'finish' (did you mean 'finish-rank'?)")
edit("webhooks are not AWS's", '{kind: aws}', '{kind: aws, notify: ["https://x"]}', "4:29: on AWS, notifications go to sns, not to 'https://x' (the topic can pass them on)")
edit("counts of what is not read","table: b,","table: b, counts: {b: A, c: 7},","10:45: load-b counts the rows of 'A', which it does not read (expected one of: B)","10:51: load-b counts the rows of '7', which it does not read (expected one of: B)")
edit('an alias bomb', 'plan: small', 'plan: small\nx1: &a [1,1,1,1,1,1,1,1,1,1]\nx2: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nx3: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nx4: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\nx5: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nx6: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]', '7:24: more than 1000000 values, aliases expanded')
case('deep nesting', 'plan: ' + '[' * 100 + ']' * 100, '1:38: nested deeper than 32 levels')
open(pathlib.Path(__file__).with_name('problems.jsonl'),'w').write("".join(json.dumps(c,ensure_ascii=False)+"\n" for c in C))
