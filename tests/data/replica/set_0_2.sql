-- A replica set with its store, event log and read model, as release 0.2 wrote it: before tables and
-- records had versions. Made once; never edit it.
BEGIN TRANSACTION;
CREATE TABLE muster_checkpoints (
  replica_set TEXT    NOT NULL,
  projection  TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  slot        INTEGER NOT NULL,
  generation  INTEGER NOT NULL,  -- the fence
  position    INTEGER NOT NULL,
  handled     INTEGER NOT NULL DEFAULT 0,
  digest      INTEGER NOT NULL DEFAULT 0,
  skipped     INTEGER NOT NULL DEFAULT 0,
  effects_until INTEGER NOT NULL DEFAULT -1,
  PRIMARY KEY (replica_set, projection, version, slot)
) STRICT, WITHOUT ROWID;
INSERT INTO "muster_checkpoints" VALUES('set','seen',1,0,1,12,0,0,0,-1);
INSERT INTO "muster_checkpoints" VALUES('set','seen',1,1,1,12,2,7240178308294068416,0,-1);
INSERT INTO "muster_checkpoints" VALUES('set','seen',1,2,1,12,5,5929693045569645247,0,-1);
INSERT INTO "muster_checkpoints" VALUES('set','seen',1,3,1,12,5,4171386665062914377,0,-1);
CREATE TABLE muster_event_log (slots INTEGER NOT NULL) STRICT;
INSERT INTO "muster_event_log" VALUES(4);
CREATE TABLE muster_events (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  stream   TEXT    NOT NULL,
  version  INTEGER NOT NULL,
  slot     INTEGER NOT NULL,
  id       TEXT    NOT NULL,
  type     TEXT    NOT NULL,
  payload  TEXT    NOT NULL,
  metadata TEXT    NOT NULL,
  time     INTEGER NOT NULL,  -- milliseconds since 1970
  UNIQUE (stream, version)
) STRICT;
INSERT INTO "muster_events" VALUES(1,'s0',1,2,'e0','T','{}','{}',1794964104613);
INSERT INTO "muster_events" VALUES(2,'s1',1,3,'e1','T','{}','{}',1794964104613);
INSERT INTO "muster_events" VALUES(3,'s2',1,1,'e2','T','{}','{}',1794964104613);
INSERT INTO "muster_events" VALUES(4,'s3',1,3,'e3','T','{}','{}',1794964104613);
INSERT INTO "muster_events" VALUES(5,'s4',1,2,'e4','T','{}','{}',1794964104613);
INSERT INTO "muster_events" VALUES(6,'s0',2,2,'e5','T','{}','{}',1794964104613);
INSERT INTO "muster_events" VALUES(7,'s1',2,3,'e6','T','{}','{}',1794964104613);
INSERT INTO "muster_events" VALUES(8,'s2',2,1,'e7','Bad','{}','{}',1794964104613);
INSERT INTO "muster_events" VALUES(9,'s3',2,3,'e8','T','{}','{}',1794964104613);
INSERT INTO "muster_events" VALUES(10,'s4',2,2,'e9','T','{}','{}',1794964104613);
INSERT INTO "muster_events" VALUES(11,'s0',3,2,'e10','T','{}','{}',1794964104613);
INSERT INTO "muster_events" VALUES(12,'s1',3,3,'e11','T','{}','{}',1794964104613);
CREATE TABLE muster_parked_events (
  replica_set   TEXT    NOT NULL,
  projection    TEXT    NOT NULL,
  version       INTEGER NOT NULL,
  stream        TEXT    NOT NULL,
  event_version INTEGER NOT NULL,
  side_effects  INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (replica_set, projection, version, stream, event_version)
) STRICT, WITHOUT ROWID;
INSERT INTO "muster_parked_events" VALUES('set','seen',1,'s2',2,1);
CREATE TABLE muster_parked_streams (
  replica_set TEXT    NOT NULL,
  projection  TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  stream      TEXT    NOT NULL,
  slot        INTEGER NOT NULL,
  error       TEXT    NOT NULL,
  replay      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (replica_set, projection, version, stream)
) STRICT, WITHOUT ROWID;
INSERT INTO "muster_parked_streams" VALUES('set','seen',1,'s2',1,'SQLite file set.db: integer overflow',0);
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
INSERT INTO "muster_records" VALUES('replica','replica','set/member/old-3a2772990c7c',1082477138520537669,1794967708638,'old-3a2772990c7c',0,0,'','{"state":"stopped","generation":1,"name":"old","handled":11,"pause_ms":459,"projections":["seen"]}');
INSERT INTO "muster_records" VALUES('replica','replica','set/signal',665355539592687373,1794964108700,'',0,0,'','{}');
INSERT INTO "muster_records" VALUES('replica','replica','set/set',195666168571553937,1794964105306,'',0,0,'','{"generation":1,"phase":"running","strategy":"recreate","partitions":1,"members":["old-3a2772990c7c"],"slots":4,"owners":[0,0,0,0],"projections":["seen"],"reason":"the set is new to the store","since_ms":1794964104861}');
INSERT INTO "muster_records" VALUES('replica-definition','replica','set/seen/5ba19c5968d3',757564332516650556,NULL,'',0,0,'','{"definition":"{\"tables\":[\"seen\"],\"setup\":[\"CREATE TABLE IF NOT EXISTS {seen} (stream TEXT, version INTEGER, PRIMARY KEY (stream, version))\"],\"clear\":[],\"on\":{\"Bad\":[\"INSERT INTO {seen} VALUES (NULL, (SELECT abs(-9223372036854775808)))\"],\"T\":[\"INSERT INTO {seen} VALUES (:stream, :version)\"]}}"}');
INSERT INTO "muster_records" VALUES('replica','replica','set/projection/seen',1050151381066367663,NULL,'',0,0,'','{"paused":false,"active":1,"versions":[1],"held":[],"dropping":[],"highest":1,"definitions":{"1":"5ba19c5968d3"},"touched":0}');
INSERT INTO "muster_records" VALUES('replica','replica','set/scale',255697068250608368,NULL,'',0,0,'','{"workers":3}');
CREATE TABLE muster_schema (version INTEGER NOT NULL) STRICT;
INSERT INTO "muster_schema" VALUES(1);
CREATE TABLE "seen_v1" (stream TEXT, version INTEGER, PRIMARY KEY (stream, version));
INSERT INTO "seen_v1" VALUES('s0',1);
INSERT INTO "seen_v1" VALUES('s1',1);
INSERT INTO "seen_v1" VALUES('s2',1);
INSERT INTO "seen_v1" VALUES('s3',1);
INSERT INTO "seen_v1" VALUES('s4',1);
INSERT INTO "seen_v1" VALUES('s0',2);
INSERT INTO "seen_v1" VALUES('s1',2);
INSERT INTO "seen_v1" VALUES('s3',2);
INSERT INTO "seen_v1" VALUES('s4',2);
INSERT INTO "seen_v1" VALUES('s0',3);
INSERT INTO "seen_v1" VALUES('s1',3);
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
CREATE INDEX muster_events_slot ON muster_events (slot, position);
CREATE VIEW "seen" AS SELECT * FROM "seen_v1";
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('muster_events',12);
COMMIT;
