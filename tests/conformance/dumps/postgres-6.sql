CREATE TABLE public.artifact_uses (
    run_id text NOT NULL COLLATE pg_catalog."C",
    ref text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.artifacts (
    ref text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.decisions (
    question_id text NOT NULL COLLATE pg_catalog."C",
    run_id text NOT NULL COLLATE pg_catalog."C",
    decision text NOT NULL COLLATE pg_catalog."C",
    by text NOT NULL COLLATE pg_catalog."C",
    at text NOT NULL COLLATE pg_catalog."C",
    answer text NOT NULL COLLATE pg_catalog."C",
    comment text NOT NULL COLLATE pg_catalog."C",
    content_hash text NOT NULL COLLATE pg_catalog."C",
    steps text NOT NULL COLLATE pg_catalog."C",
    expires_at text COLLATE pg_catalog."C"
);
CREATE TABLE public.effects (
    effect_key text NOT NULL COLLATE pg_catalog."C",
    business_key text NOT NULL COLLATE pg_catalog."C",
    run_id text NOT NULL COLLATE pg_catalog."C",
    goal_id text NOT NULL COLLATE pg_catalog."C",
    step text NOT NULL COLLATE pg_catalog."C",
    plan_version bigint NOT NULL,
    attempt_id text NOT NULL COLLATE pg_catalog."C",
    tool text NOT NULL COLLATE pg_catalog."C",
    tool_version text NOT NULL COLLATE pg_catalog."C",
    args_sha256 text NOT NULL COLLATE pg_catalog."C",
    approval text COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    operation_id text COLLATE pg_catalog."C",
    output text COLLATE pg_catalog."C",
    error_code text NOT NULL COLLATE pg_catalog."C",
    business_state text NOT NULL COLLATE pg_catalog."C",
    created_at text NOT NULL COLLATE pg_catalog."C",
    settled_at text COLLATE pg_catalog."C",
    note text NOT NULL COLLATE pg_catalog."C",
    by text NOT NULL COLLATE pg_catalog."C",
    owner text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.events (
    run_id text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    at text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    step text COLLATE pg_catalog."C",
    body text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.meta (
    key text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.reservations (
    row_id text NOT NULL COLLATE pg_catalog."C",
    account text NOT NULL COLLATE pg_catalog."C",
    day text NOT NULL COLLATE pg_catalog."C",
    run_id text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    act text NOT NULL COLLATE pg_catalog."C",
    ledgered bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    nano_usd bigint,
    tokens bigint NOT NULL,
    tool_calls bigint NOT NULL,
    model_calls bigint NOT NULL
);
CREATE TABLE public.runs (
    run_id text NOT NULL COLLATE pg_catalog."C",
    goal_id text NOT NULL COLLATE pg_catalog."C",
    goal text NOT NULL COLLATE pg_catalog."C",
    thread_id text NOT NULL COLLATE pg_catalog."C",
    agent text NOT NULL COLLATE pg_catalog."C",
    principal text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    ending text COLLATE pg_catalog."C",
    verdict text COLLATE pg_catalog."C",
    created_at text NOT NULL COLLATE pg_catalog."C",
    updated_at text NOT NULL COLLATE pg_catalog."C",
    last_seq bigint NOT NULL,
    owner text COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    lease_until text COLLATE pg_catalog."C"
);
CREATE TABLE public.usage (
    run_id text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    at text NOT NULL COLLATE pg_catalog."C",
    calls bigint NOT NULL,
    body text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.verified_runs (
    run_id text NOT NULL COLLATE pg_catalog."C",
    task_type text NOT NULL COLLATE pg_catalog."C",
    catalog_hash text NOT NULL COLLATE pg_catalog."C",
    policy_hash text NOT NULL COLLATE pg_catalog."C",
    at text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.votes (
    question_id text NOT NULL COLLATE pg_catalog."C",
    voter text NOT NULL COLLATE pg_catalog."C",
    run_id text NOT NULL COLLATE pg_catalog."C",
    at text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL COLLATE pg_catalog."C"
);
INSERT INTO public.artifact_uses VALUES ('done', 'sha256:96256371b0766d003d12eeb3974b9f1086f329d5370b44b025c8fd07aa98132d');
INSERT INTO public.artifact_uses VALUES ('open', 'sha256:ae01ec3d67117d6a74f66eaba8be51814f73ecc05405741c8cbb0ad1d173a2ca');
INSERT INTO public.artifacts VALUES ('sha256:96256371b0766d003d12eeb3974b9f1086f329d5370b44b025c8fd07aa98132d', '{"steps":["done"]}');
INSERT INTO public.artifacts VALUES ('sha256:ae01ec3d67117d6a74f66eaba8be51814f73ecc05405741c8cbb0ad1d173a2ca', '{"steps":["open"]}');
INSERT INTO public.decisions VALUES ('done-q1', 'done', 'approve', 'ann', '2026-01-31T08:15:00.000007+00:00', '{"limit":10}', '', '', '["S1"]', NULL);
INSERT INTO public.decisions VALUES ('open-q1', 'open', 'approve', 'ann', '2026-01-31T08:15:00.000007+00:00', '{"limit":10}', '', '', '["S1"]', NULL);
INSERT INTO public.effects VALUES ('done', 'refund:done', 'done', 'x', 'S1', 1, 'x', 'x', 'x', '0', 'q', 'done', 1, NULL, 'sha256:0', '', 'PAID', '2026-01-31T08:15:00.000007+00:00', '2026-01-31T08:15:00.000007+00:00', '', '', '');
INSERT INTO public.effects VALUES ('open', 'refund:open', 'open', 'x', 'S1', 1, 'x', 'x', 'x', '0', 'q', 'intended', 1, NULL, NULL, '', '', '2026-01-31T08:15:00.000007+00:00', NULL, '', '', 'elsewhere.0:1:1:abc');
INSERT INTO public.events VALUES ('done', 1, '2026-01-31T08:15:00.000007+00:00', 1, 'question_asked', NULL, '{"type":"question_asked","question_id":"done-q1","kind":"approval","audience":"operator","payload":"sha256:96256371b0766d003d12eeb3974b9f1086f329d5370b44b025c8fd07aa98132d","payload_sha256":"0","plan_version":1,"content_hash":"h","step":null,"expires_at":null,"allowed":[],"confirm":[],"args":{},"roles":[],"quorum":1}');
INSERT INTO public.events VALUES ('done', 2, '2026-01-31T08:15:00.000007+00:00', 1, 'step_released', 'S1', '{"type":"step_released","step":"S1","plan_version":1,"gaps":[]}');
INSERT INTO public.events VALUES ('done', 3, '2026-01-31T08:15:00.000007+00:00', 1, 'run_ended', NULL, '{"type":"run_ended","ending":"completed","verdict":"pass","why":"","report":"sha256:0","verified":{"task_type":"refund","catalog_hash":"c","policy_hash":"p"},"used":[{"subject":"tool:refund@1","calls":1,"samples":[{"seconds":0.5,"tokens_in":0,"tokens_out":0,"usd":"0","calls":1}]}]}');
INSERT INTO public.events VALUES ('open', 1, '2026-01-31T08:15:00.000007+00:00', 1, 'question_asked', NULL, '{"type":"question_asked","question_id":"open-q1","kind":"approval","audience":"operator","payload":"sha256:ae01ec3d67117d6a74f66eaba8be51814f73ecc05405741c8cbb0ad1d173a2ca","payload_sha256":"0","plan_version":1,"content_hash":"h","step":null,"expires_at":null,"allowed":[],"confirm":[],"args":{},"roles":[],"quorum":1}');
INSERT INTO public.events VALUES ('open', 2, '2026-01-31T08:15:00.000007+00:00', 1, 'step_released', 'S1', '{"type":"step_released","step":"S1","plan_version":1,"gaps":[]}');
INSERT INTO public.meta VALUES ('schema_version', '6');
INSERT INTO public.reservations VALUES ('be05c78fb6e34996acb969cc90f31461', '["acme", "ann"]', '2026-01-31', 'done', 1, 'S1-A1', 0, 'held', 250000000, 0, 1, 0);
INSERT INTO public.reservations VALUES ('6ef9cd1857094ef492727d953abb6b4e', '["acme", "ann"]', '2026-01-31', 'open', 1, 'S1-A1', 0, 'held', 250000000, 0, 1, 0);
INSERT INTO public.runs VALUES ('done', 'g', 'Refund order 1, “ünïcode”', 'done', 'refund', '{"principal":"ann","roles":["clerk"],"scopes":["pay"],"tenant":"acme"}', 'ended', 'completed', 'pass', '2026-01-31T08:15:00.000007+00:00', '2026-01-31T08:15:00.000007+00:00', 3, NULL, 1, NULL);
INSERT INTO public.runs VALUES ('open', 'g', 'Refund order 1, “ünïcode”', 'open', 'refund', '{"principal":"ann","roles":["clerk"],"scopes":["pay"],"tenant":"acme"}', 'waiting', NULL, NULL, '2026-01-31T08:15:00.000007+00:00', '2026-01-31T08:15:00.000007+00:00', 2, 'elsewhere.0:1:1:abc', 1, '2026-01-31T08:15:30.000007+00:00');
INSERT INTO public.usage VALUES ('done', 'tool:refund@1', '2026-01-31T08:15:00.000007+00:00', 1, '[{"seconds":0.5,"tokens_in":0,"tokens_out":0,"usd":"0","calls":1}]');
INSERT INTO public.verified_runs VALUES ('done', 'refund', 'c', 'p', '2026-01-31T08:15:00.000007+00:00');
INSERT INTO public.votes VALUES ('done-q1', 'ann', 'done', '2026-01-31T08:15:00.000007+00:00', '{"question_id":"done-q1","run_id":"done","decision":"approve","by":"ann","at":"2026-01-31T08:15:00.000007Z","answer":{"limit":10},"comment":"","content_hash":"","steps":["S1"],"expires_at":null}');
INSERT INTO public.votes VALUES ('open-q1', 'ann', 'open', '2026-01-31T08:15:00.000007+00:00', '{"question_id":"open-q1","run_id":"open","decision":"approve","by":"ann","at":"2026-01-31T08:15:00.000007Z","answer":{"limit":10},"comment":"","content_hash":"","steps":["S1"],"expires_at":null}');
ALTER TABLE ONLY public.artifact_uses
    ADD CONSTRAINT artifact_uses_pkey PRIMARY KEY (run_id, ref);
ALTER TABLE ONLY public.artifacts
    ADD CONSTRAINT artifacts_pkey PRIMARY KEY (ref);
ALTER TABLE ONLY public.decisions
    ADD CONSTRAINT decisions_pkey PRIMARY KEY (question_id);
ALTER TABLE ONLY public.effects
    ADD CONSTRAINT effects_pkey PRIMARY KEY (effect_key);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (run_id, seq);
ALTER TABLE ONLY public.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.reservations
    ADD CONSTRAINT reservations_pkey PRIMARY KEY (row_id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.usage
    ADD CONSTRAINT usage_pkey PRIMARY KEY (run_id, subject);
ALTER TABLE ONLY public.verified_runs
    ADD CONSTRAINT verified_runs_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.votes
    ADD CONSTRAINT votes_pkey PRIMARY KEY (question_id, voter);
CREATE INDEX artifact_uses_by_ref ON public.artifact_uses USING btree (ref);
CREATE INDEX decisions_by_run ON public.decisions USING btree (run_id);
CREATE INDEX effects_by_run ON public.effects USING btree (run_id);
CREATE UNIQUE INDEX one_open_run_of_a_thread ON public.runs USING btree (thread_id) WHERE ((status <> 'ended'::text) AND (thread_id <> ''::text));
CREATE INDEX reservations_by_day ON public.reservations USING btree (account, day);
CREATE INDEX reservations_by_run ON public.reservations USING btree (run_id);
CREATE INDEX runs_by_owner ON public.runs USING btree (owner) WHERE (owner IS NOT NULL);
CREATE INDEX runs_by_thread ON public.runs USING btree (thread_id);
CREATE INDEX usage_by_subject ON public.usage USING btree (subject, at);
CREATE INDEX verified_runs_by_kind ON public.verified_runs USING btree (catalog_hash, policy_hash, at);
