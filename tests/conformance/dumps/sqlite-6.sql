BEGIN TRANSACTION;
CREATE TABLE artifact_uses (
        run_id TEXT NOT NULL, ref TEXT NOT NULL, PRIMARY KEY (run_id, ref));
INSERT INTO "artifact_uses" VALUES('done','sha256:96256371b0766d003d12eeb3974b9f1086f329d5370b44b025c8fd07aa98132d');
INSERT INTO "artifact_uses" VALUES('open','sha256:ae01ec3d67117d6a74f66eaba8be51814f73ecc05405741c8cbb0ad1d173a2ca');
CREATE TABLE artifacts (ref TEXT NOT NULL PRIMARY KEY, body TEXT NOT NULL);
INSERT INTO "artifacts" VALUES('sha256:96256371b0766d003d12eeb3974b9f1086f329d5370b44b025c8fd07aa98132d','{"steps":["done"]}');
INSERT INTO "artifacts" VALUES('sha256:ae01ec3d67117d6a74f66eaba8be51814f73ecc05405741c8cbb0ad1d173a2ca','{"steps":["open"]}');
CREATE TABLE decisions (
        question_id TEXT NOT NULL PRIMARY KEY, run_id TEXT NOT NULL, decision TEXT NOT NULL,
        "by" TEXT NOT NULL, at TEXT NOT NULL, answer TEXT NOT NULL, comment TEXT NOT NULL,
        content_hash TEXT NOT NULL, steps TEXT NOT NULL, expires_at TEXT);
INSERT INTO "decisions" VALUES('done-q1','done','approve','ann','2026-01-31T08:15:00.000007+00:00','{"limit":10}','','','["S1"]',NULL);
INSERT INTO "decisions" VALUES('open-q1','open','approve','ann','2026-01-31T08:15:00.000007+00:00','{"limit":10}','','','["S1"]',NULL);
CREATE TABLE effects (
        effect_key TEXT NOT NULL PRIMARY KEY, business_key TEXT NOT NULL, run_id TEXT NOT NULL,
        goal_id TEXT NOT NULL, step TEXT NOT NULL, plan_version BIGINT NOT NULL,
        attempt_id TEXT NOT NULL, tool TEXT NOT NULL, tool_version TEXT NOT NULL,
        args_sha256 TEXT NOT NULL, approval TEXT, state TEXT NOT NULL, epoch BIGINT NOT NULL,
        operation_id TEXT, output TEXT, error_code TEXT NOT NULL, business_state TEXT NOT NULL,
        created_at TEXT NOT NULL, settled_at TEXT, note TEXT NOT NULL, "by" TEXT NOT NULL, owner TEXT NOT NULL DEFAULT '');
INSERT INTO "effects" VALUES('done','refund:done','done','x','S1',1,'x','x','x','0','q','done',1,NULL,'sha256:0','','PAID','2026-01-31T08:15:00.000007+00:00','2026-01-31T08:15:00.000007+00:00','','','');
INSERT INTO "effects" VALUES('open','refund:open','open','x','S1',1,'x','x','x','0','q','intended',1,NULL,NULL,'','','2026-01-31T08:15:00.000007+00:00',NULL,'','','elsewhere.0:1:1:abc');
CREATE TABLE events (
        run_id TEXT NOT NULL, seq BIGINT NOT NULL, at TEXT NOT NULL, epoch BIGINT NOT NULL,
        type TEXT NOT NULL, step TEXT, body TEXT NOT NULL, PRIMARY KEY (run_id, seq));
INSERT INTO "events" VALUES('done',1,'2026-01-31T08:15:00.000007+00:00',1,'question_asked',NULL,'{"type":"question_asked","question_id":"done-q1","kind":"approval","audience":"operator","payload":"sha256:96256371b0766d003d12eeb3974b9f1086f329d5370b44b025c8fd07aa98132d","payload_sha256":"0","plan_version":1,"content_hash":"h","step":null,"expires_at":null,"allowed":[],"confirm":[],"args":{},"roles":[],"quorum":1}');
INSERT INTO "events" VALUES('done',2,'2026-01-31T08:15:00.000007+00:00',1,'step_released','S1','{"type":"step_released","step":"S1","plan_version":1,"gaps":[]}');
INSERT INTO "events" VALUES('done',3,'2026-01-31T08:15:00.000007+00:00',1,'run_ended',NULL,'{"type":"run_ended","ending":"completed","verdict":"pass","why":"","report":"sha256:0","verified":{"task_type":"refund","catalog_hash":"c","policy_hash":"p"},"used":[{"subject":"tool:refund@1","calls":1,"samples":[{"seconds":0.5,"tokens_in":0,"tokens_out":0,"usd":"0","calls":1}]}]}');
INSERT INTO "events" VALUES('open',1,'2026-01-31T08:15:00.000007+00:00',1,'question_asked',NULL,'{"type":"question_asked","question_id":"open-q1","kind":"approval","audience":"operator","payload":"sha256:ae01ec3d67117d6a74f66eaba8be51814f73ecc05405741c8cbb0ad1d173a2ca","payload_sha256":"0","plan_version":1,"content_hash":"h","step":null,"expires_at":null,"allowed":[],"confirm":[],"args":{},"roles":[],"quorum":1}');
INSERT INTO "events" VALUES('open',2,'2026-01-31T08:15:00.000007+00:00',1,'step_released','S1','{"type":"step_released","step":"S1","plan_version":1,"gaps":[]}');
CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "meta" VALUES('schema_version','6');
CREATE TABLE reservations (
        row_id TEXT NOT NULL PRIMARY KEY, account TEXT NOT NULL, day TEXT NOT NULL,
        run_id TEXT NOT NULL, epoch BIGINT NOT NULL, act TEXT NOT NULL, ledgered BIGINT NOT NULL,
        state TEXT NOT NULL, nano_usd BIGINT, tokens BIGINT NOT NULL, tool_calls BIGINT NOT NULL,
        model_calls BIGINT NOT NULL);
INSERT INTO "reservations" VALUES('b4876f6b8e454f28b5e7b7345ba6f183','["acme", "ann"]','2026-01-31','done',1,'S1-A1',0,'held',250000000,0,1,0);
INSERT INTO "reservations" VALUES('2cca47e030af450aadd62739c9cce9b0','["acme", "ann"]','2026-01-31','open',1,'S1-A1',0,'held',250000000,0,1,0);
CREATE TABLE runs (
        run_id TEXT NOT NULL PRIMARY KEY, goal_id TEXT NOT NULL, goal TEXT NOT NULL,
        thread_id TEXT NOT NULL, agent TEXT NOT NULL, principal TEXT NOT NULL,
        status TEXT NOT NULL, ending TEXT, verdict TEXT, created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL, last_seq BIGINT NOT NULL, owner TEXT, epoch BIGINT NOT NULL,
        lease_until TEXT);
INSERT INTO "runs" VALUES('done','g','Refund order 1, “ünïcode”','done','refund','{"principal":"ann","roles":["clerk"],"scopes":["pay"],"tenant":"acme"}','ended','completed','pass','2026-01-31T08:15:00.000007+00:00','2026-01-31T08:15:00.000007+00:00',3,NULL,1,NULL);
INSERT INTO "runs" VALUES('open','g','Refund order 1, “ünïcode”','open','refund','{"principal":"ann","roles":["clerk"],"scopes":["pay"],"tenant":"acme"}','waiting',NULL,NULL,'2026-01-31T08:15:00.000007+00:00','2026-01-31T08:15:00.000007+00:00',2,'elsewhere.0:1:1:abc',1,'2026-01-31T08:15:30.000007+00:00');
CREATE TABLE usage (
        run_id TEXT NOT NULL, subject TEXT NOT NULL, at TEXT NOT NULL, calls BIGINT NOT NULL,
        body TEXT NOT NULL, PRIMARY KEY (run_id, subject));
INSERT INTO "usage" VALUES('done','tool:refund@1','2026-01-31T08:15:00.000007+00:00',1,'[{"seconds":0.5,"tokens_in":0,"tokens_out":0,"usd":"0","calls":1}]');
CREATE TABLE verified_runs (
        run_id TEXT NOT NULL PRIMARY KEY, task_type TEXT NOT NULL, catalog_hash TEXT NOT NULL,
        policy_hash TEXT NOT NULL, at TEXT NOT NULL);
INSERT INTO "verified_runs" VALUES('done','refund','c','p','2026-01-31T08:15:00.000007+00:00');
CREATE TABLE votes (
        question_id TEXT NOT NULL, voter TEXT NOT NULL, run_id TEXT NOT NULL, at TEXT NOT NULL,
        body TEXT NOT NULL, PRIMARY KEY (question_id, voter));
INSERT INTO "votes" VALUES('done-q1','ann','done','2026-01-31T08:15:00.000007+00:00','{"question_id":"done-q1","run_id":"done","decision":"approve","by":"ann","at":"2026-01-31T08:15:00.000007Z","answer":{"limit":10},"comment":"","content_hash":"","steps":["S1"],"expires_at":null}');
INSERT INTO "votes" VALUES('open-q1','ann','open','2026-01-31T08:15:00.000007+00:00','{"question_id":"open-q1","run_id":"open","decision":"approve","by":"ann","at":"2026-01-31T08:15:00.000007Z","answer":{"limit":10},"comment":"","content_hash":"","steps":["S1"],"expires_at":null}');
CREATE INDEX runs_by_thread ON runs (thread_id);
CREATE UNIQUE INDEX one_open_run_of_a_thread ON runs (thread_id)
        WHERE status <> 'ended' AND thread_id <> '';
CREATE INDEX effects_by_run ON effects (run_id);
CREATE INDEX decisions_by_run ON decisions (run_id);
CREATE INDEX artifact_uses_by_ref ON artifact_uses (ref);
CREATE INDEX verified_runs_by_kind ON verified_runs (catalog_hash, policy_hash, at);
CREATE INDEX runs_by_owner ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX reservations_by_day ON reservations (account, day);
CREATE INDEX reservations_by_run ON reservations (run_id);
CREATE INDEX usage_by_subject ON usage (subject, at);
COMMIT;
