-- A store with a migration of two files, the second of which was interrupted, and an execution that waits,
-- as release 0.2 wrote them. Made once; never edit it.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE muster_records (
  kind     TEXT    NOT NULL,
  queue    TEXT    NOT NULL,
  key      TEXT    NOT NULL,
  version  INTEGER NOT NULL,
  due      INTEGER,           -- milliseconds since 1970; NULL: never
  owner    TEXT    NOT NULL,  -- empty: free
  epoch    INTEGER NOT NULL,
  attempt  INTEGER NOT NULL,
  claim_id TEXT    NOT NULL,
  body     TEXT    NOT NULL,  -- JSON
  PRIMARY KEY (kind, key)
) STRICT;
INSERT INTO muster_records VALUES('prepare','letters','letters',887594087326794818,NULL,'w1#0e6dca6e',1,0,'74b410c1fb4afe757b33b9e8cdbdf68d','{"state":"done","collection":1,"partitions":1,"pages":1,"selected":["a","b"],"v":1}');
INSERT INTO muster_records VALUES('budget','letters','letters',722123575184119909,179503203125,'',0,0,'','{"v":1}');
INSERT INTO muster_records VALUES('run','letters','letters',355715530984364769,NULL,'',0,0,'','{"incarnation":"31e5eee81cfe8ddcd7a5b27e7447405e","adopts":false,"state":"ready","pages":1,"source":"jsonl:data/","sink":"sqlite:target.db","transforms":"","selection":"","max_failures":"50%","created_ms":1795032031254,"since_ms":1795032031254,"v":1}');
INSERT INTO muster_records VALUES('work','letters','letters/a__0__0',103927718666946333,NULL,'w1#cf07814a',1,1,'72244a0bd3cf104a18b07fde0e664a50','{"v":1,"state":"done","partition":{"collection":"a","shard":0,"part":"data/a.jsonl","begin":"","end":"","bytes":430,"mark":"430:d9e3002c43a71017ab7e2833efc61215"},"progress":{"position":"0000000000000430","end":"","read":20,"written":20,"skipped":0,"failed":0,"bytes":410},"since_ms":1795032031438,"since_read":0,"until_ms":1795032031463}');
INSERT INTO muster_records VALUES('work','letters','letters/b__0__0',232264095561313600,1795032099467,'w1#fc770aeb',1,0,'c464c41608e4d849eb6b31b117b8ba64','{"v":1,"state":"open","partition":{"collection":"b","shard":0,"part":"data/b.jsonl","begin":"","end":"","bytes":4490,"mark":"4096:9fb36a7c283a32db28f93689428d71ea"},"progress":{"position":"0000000000003570","end":"","read":160,"written":160,"skipped":0,"failed":0,"bytes":3410},"fraction":0.7951002227171492,"kept":true,"since_ms":1795032031524,"since_read":0}');
INSERT INTO muster_records VALUES('run_page','letters','letters/000001',160663257656504972,NULL,'',0,0,'','{"items":["a__0__0","b__0__0"],"v":1}');
INSERT INTO muster_records VALUES('target','letters','letters/31e5eee81cfe8ddcd7a5b27e7447405e/ca978112ca1bbdcafac231b39a23dc4d',973406591519717388,NULL,'',0,0,'','{"target":"a","identity":"886d33b925d3e0a3e6fcf1a5bedd5657","v":1}');
INSERT INTO muster_records VALUES('target','letters','letters/31e5eee81cfe8ddcd7a5b27e7447405e/3e23e8160039594a33894f6564e1b134',732043196231471674,NULL,'',0,0,'','{"target":"b","identity":"73943461217e9101b7d9fcafc7a7aa29","v":1}');
INSERT INTO muster_records VALUES('states.part','none','machine-d9652af50f445b248d044c7c1ced5faf541c9318.0',918626256262844951,NULL,'',0,0,'','"{\"StartAt\":\"Wait\",\"States\":{\"Wait\":{\"Type\":\"Wait\",\"Seconds\":4,\"Next\":\"Done\"},\"Done\":{\"Type\":\"Pass\",\"Result\":{\"waited\":true},\"End\":true}}}\n"');
INSERT INTO muster_records VALUES('states.machine','none','d9652af50f445b248d044c7c1ced5faf541c9318',424685343453221107,NULL,'',0,0,'','{"v":1,"parts":["machine-d9652af50f445b248d044c7c1ced5faf541c9318.0"]}');
INSERT INTO muster_records VALUES('states','default','order-17',364555538085135584,1795032044862,'',1,0,'11e082d821b2352e5f2250207563a406','{"tail":187,"v":1,"execution":"order-17","definition":"d9652af50f445b248d044c7c1ced5faf541c9318","machine_name":"wait","start":1795032040465,"flow":{"state":"Wait","status":"RUNNING","wants":"timer","inside":true,"entry":1,"entered":2,"last":2,"entered_time":1795032040861,"due":1795032044861,"input":{"n":1}},"input":{"n":1},"first_event":0,"event_count":2,"inline_events":2,"events":[{"id":1,"type":"ExecutionStarted","time":1795032040465,"payload":{"n":1}},{"id":2,"type":"WaitStateEntered","time":1795032040861,"previous":1,"name":"Wait","payload":{"n":1}}]}');
CREATE TABLE muster_schema (version INTEGER NOT NULL) STRICT;
INSERT INTO muster_schema VALUES(1);
CREATE INDEX muster_records_due ON muster_records (kind, queue, due) WHERE due IS NOT NULL;
CREATE VIEW muster_status AS
  SELECT kind, queue, key,
         CASE WHEN due IS NULL THEN 'never due'
              WHEN due <= (julianday('now') - 2440587.5) * 86400000.0 THEN 'due'
              WHEN owner = '' THEN 'waiting'
              ELSE 'leased' END AS state,
         strftime('%Y-%m-%d %H:%M:%f', due / 1000.0, 'unixepoch') AS due,
         owner, epoch, attempt, body
  FROM muster_records;
CREATE VIEW muster_queues AS
  SELECT kind, queue,
         sum(state = 'due') AS due, sum(state = 'leased') AS leased,
         sum(state = 'waiting') AS waiting, sum(state = 'never due') AS never_due,
         count(*) AS records, min(due) AS next_due
  FROM muster_status GROUP BY kind, queue;
COMMIT;
