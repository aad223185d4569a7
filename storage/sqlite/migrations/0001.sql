-- Texts that repeat are written once here; other tables refer to them by id.
-- What kind a text is, is the column it stands in: 'model', 'user', ...
-- A property is a name of kind 'property:<its name>', an asset one of 'asset'.
CREATE TABLE names (
	id   INTEGER PRIMARY KEY,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	seen INTEGER NOT NULL, -- milliseconds; no record that uses it is younger by more than a day
	UNIQUE (kind, name)
) STRICT;

-- What filters, sorts and sums read of a record, and nothing else: a query that
-- no index serves reads all of this table.
CREATE TABLE requests (
	n                 INTEGER PRIMARY KEY, -- milliseconds of created_at << 20 | a sequence number
	org               INTEGER NOT NULL,    -- names.id, as in every column without a comment
	provider          INTEGER,
	model             INTEGER,
	status            INTEGER, -- HTTP status code
	latency           INTEGER, -- milliseconds
	ttft              INTEGER, -- milliseconds
	cost              INTEGER, -- billionths of a US dollar
	input             INTEGER, -- tokens
	output            INTEGER, -- tokens
	cache_read        INTEGER, -- tokens
	cache_write       INTEGER, -- tokens
	reasoning         INTEGER, -- tokens
	cache_savings     INTEGER, -- billionths of a US dollar
	cache_miss        INTEGER,
	cache_missed      INTEGER, -- tokens
	cache_loss        INTEGER, -- billionths of a US dollar
	turn              INTEGER, -- from 1
	parent            BLOB,    -- request_id
	root              INTEGER, -- names.id of a request_id in text
	user              INTEGER,
	session           INTEGER,
	session_name      INTEGER,
	responded_at      INTEGER, -- milliseconds since 1970
	request_model     INTEGER,
	response_model    INTEGER,
	model_override    INTEGER,
	country           INTEGER,
	path              INTEGER,
	target_url        INTEGER,
	auth_hash         INTEGER,
	prompt            INTEGER,
	prompt_version    INTEGER,
	node              INTEGER,
	job               INTEGER,
	experiment        INTEGER,
	referrer          INTEGER,
	finish            INTEGER,
	error_type        INTEGER,
	end_state         INTEGER NOT NULL, -- 0 complete, 1 client_aborted, 2 upstream_aborted, 3 failed, 4 interrupted
	stream            INTEGER NOT NULL, -- 0 or 1
	threat            INTEGER NOT NULL, -- 0 or 1
	passthrough       INTEGER NOT NULL, -- 0 or 1
	subscription      INTEGER NOT NULL, -- 0 or 1
	cache_enabled     INTEGER NOT NULL, -- 0 or 1
	cache_reference   BLOB,             -- request_id
	attempt_of        BLOB,             -- request_id
	property_names    INTEGER,          -- those of its properties, a JSON array in their order
	request_id        BLOB NOT NULL     -- the 16 bytes of the UUID
) STRICT;
CREATE UNIQUE INDEX requests_request_id ON requests (request_id, org);
-- Users come in any order: one index on all of them would be written in as many places
-- as a batch has records. In buckets of time, of n >> 43 or 2.3 hours, a batch writes to
-- the few pages of the newest bucket, and retention frees whole pages.
CREATE INDEX requests_user ON requests (n >> 43, user, org) WHERE user IS NOT NULL;
-- The org comes last, because an index on it first would tempt SQLite to sort all of an
-- organisation's requests. Sessions and roots are used soon after they are new.
CREATE INDEX requests_session ON requests (session, org) WHERE session IS NOT NULL;
CREATE INDEX requests_root ON requests (root, org) WHERE root IS NOT NULL;

-- The rest of a record, which only answers show.
CREATE TABLE details (
	n                   INTEGER PRIMARY KEY, -- requests.n
	content_segment     INTEGER,             -- where the bodies are
	content_ordinal     INTEGER,
	dialect             TEXT,
	attempt             INTEGER NOT NULL,
	response_id         TEXT,
	service_tier        TEXT,
	inference_geo       TEXT,
	cache_miss_at       TEXT,
	price_version       TEXT,
	session_path        TEXT,
	trace_id            TEXT,
	span_id             TEXT,
	request_bytes       INTEGER NOT NULL,
	response_bytes      INTEGER NOT NULL,
	request_omitted     INTEGER NOT NULL, -- 0 or 1, like the next three
	response_omitted    INTEGER NOT NULL,
	request_truncated   INTEGER NOT NULL,
	response_truncated  INTEGER NOT NULL,
	cache_write_1h      INTEGER, -- tokens, like the next six
	input_audio         INTEGER,
	cache_read_audio    INTEGER,
	input_image         INTEGER,
	output_audio        INTEGER,
	output_image        INTEGER,
	billed_input        INTEGER,
	billed_output       INTEGER,
	web_searches        INTEGER, -- pieces, like the next three
	search_units        INTEGER,
	images              INTEGER,
	pages               INTEGER,
	audio_duration      INTEGER, -- milliseconds
	reported_cost       INTEGER, -- billionths of a US dollar
	list_cost           INTEGER, -- billionths of a US dollar
	rate_limits         TEXT,    -- JSON object
	updated_at          INTEGER NOT NULL, -- milliseconds since 1970
	feedback_id         INTEGER,
	feedback_rating     INTEGER, -- 0 or 1
	feedback_created_at INTEGER, -- milliseconds since 1970
	properties          TEXT,    -- JSON object
	annotated_properties TEXT,   -- JSON object: those that were set after the request
	annotated_at        INTEGER, -- milliseconds since 1970: when the newest score, feedback or property arrived
	scores              TEXT,    -- JSON object, without feedback
	assets              TEXT     -- JSON array
) STRICT;
-- Clients of the Responses API name the response that they continue, and the results
-- of a batch are those of whoever made it.
CREATE INDEX details_response ON details (response_id) WHERE dialect IN ('responses', 'batches');

-- The buckets of all requests, and maybe others.
CREATE TABLE buckets (bucket INTEGER PRIMARY KEY) STRICT;

-- Which records have a property or an asset.
CREATE TABLE labels (
	bucket INTEGER NOT NULL, -- n >> 43, as in requests_user
	label  INTEGER NOT NULL, -- names.id
	n      INTEGER NOT NULL, -- requests.n
	PRIMARY KEY (bucket, label, n)
) STRICT, WITHOUT ROWID;

-- Which records have a score. Feedback is the score service-score-feedback.
CREATE TABLE scores (
	name  INTEGER NOT NULL, -- names.id
	n     INTEGER NOT NULL, -- requests.n
	value REAL NOT NULL,
	PRIMARY KEY (name, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE session_tags (
	org     TEXT NOT NULL,
	session TEXT NOT NULL,
	tag     TEXT NOT NULL,
	set_at  INTEGER NOT NULL, -- milliseconds since 1970
	PRIMARY KEY (org, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_tags_set_at ON session_tags (set_at);

-- What people keep of the dashboard under a name.
CREATE TABLE views (
	org        TEXT NOT NULL,
	name       TEXT NOT NULL,
	screen     TEXT NOT NULL,
	state      TEXT NOT NULL,
	updated_at INTEGER NOT NULL, -- milliseconds since 1970
	PRIMARY KEY (org, name)
) STRICT, WITHOUT ROWID;

-- The conversations of the Responses API.
CREATE TABLE conversations (
	org        TEXT NOT NULL,
	id         TEXT NOT NULL,
	user       TEXT NOT NULL,
	created_at INTEGER NOT NULL, -- milliseconds since 1970
	changed_at INTEGER NOT NULL, -- milliseconds since 1970
	metadata   TEXT NOT NULL,    -- JSON object
	PRIMARY KEY (org, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX conversations_changed_at ON conversations (changed_at);

CREATE TABLE conversation_items (
	n            INTEGER PRIMARY KEY AUTOINCREMENT, -- the order of the items
	org          TEXT NOT NULL,
	conversation TEXT NOT NULL,
	id           TEXT NOT NULL,
	item         TEXT NOT NULL,    -- JSON object
	added_at     INTEGER NOT NULL, -- milliseconds since 1970
	UNIQUE (org, conversation, id)
) STRICT;
CREATE INDEX conversation_items_added_at ON conversation_items (added_at);

-- How far the journals are that were written to this database.
CREATE TABLE journals (
	journal BLOB PRIMARY KEY,  -- the 16 bytes of its UUID
	segment INTEGER NOT NULL,  -- position after its last batch
	ordinal INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The requests with n behind after until last stand also in a file of columns, which
-- analytics read, or are about to. It can be made again at any time.
CREATE TABLE column_chunks (
	last  INTEGER PRIMARY KEY,
	after INTEGER NOT NULL,
	file  TEXT -- its name; NULL while it is written
) STRICT;
-- Which of these are new, gone or changed since the file was begun.
CREATE TABLE column_changes (n INTEGER PRIMARY KEY) STRICT;
CREATE TRIGGER requests_inserted AFTER INSERT ON requests
WHEN NEW.n > (SELECT after FROM column_chunks WHERE last >= NEW.n ORDER BY last LIMIT 1) BEGIN
	INSERT OR IGNORE INTO column_changes VALUES (NEW.n);
END;
CREATE TRIGGER requests_deleted AFTER DELETE ON requests
WHEN OLD.n > (SELECT after FROM column_chunks WHERE last >= OLD.n ORDER BY last LIMIT 1) BEGIN
	INSERT OR IGNORE INTO column_changes VALUES (OLD.n);
END;
CREATE TRIGGER requests_updated AFTER UPDATE ON requests BEGIN
	INSERT OR IGNORE INTO column_changes SELECT OLD.n WHERE OLD.n > (SELECT after FROM column_chunks WHERE last >= OLD.n ORDER BY last LIMIT 1);
	INSERT OR IGNORE INTO column_changes SELECT NEW.n WHERE NEW.n > (SELECT after FROM column_chunks WHERE last >= NEW.n ORDER BY last LIMIT 1);
END;

CREATE VIEW request_log AS
SELECT
	strftime('%Y-%m-%dT%H:%M:%S', (r.n >> 20) / 1000, 'unixepoch') || printf('.%03dZ', (r.n >> 20) % 1000) AS created_at,
	lower(printf('%s-%s-%s-%s-%s', substr(hex(r.request_id), 1, 8), substr(hex(r.request_id), 9, 4),
		substr(hex(r.request_id), 13, 4), substr(hex(r.request_id), 17, 4), substr(hex(r.request_id), 21))) AS request_id,
	(SELECT name FROM names WHERE id = r.org) AS org,
	(SELECT name FROM names WHERE id = r.provider) AS provider,
	(SELECT name FROM names WHERE id = r.model) AS model,
	r.status,
	CASE r.end_state WHEN 0 THEN 'complete' WHEN 1 THEN 'client_aborted' WHEN 2 THEN 'upstream_aborted' WHEN 3 THEN 'failed' ELSE 'interrupted' END AS end_state,
	r.latency AS latency_ms,
	r.ttft AS ttft_ms,
	r.input AS input_tokens,
	r.output AS output_tokens,
	r.cost / 1e9 AS cost_usd,
	(SELECT name FROM names WHERE id = r.user) AS user,
	(SELECT name FROM names WHERE id = r.session) AS session,
	(SELECT name FROM names WHERE id = r.session_name) AS session_name,
	(SELECT name FROM names WHERE id = r.path) AS path,
	(SELECT name FROM names WHERE id = r.finish) AS finish_reason,
	(SELECT name FROM names WHERE id = r.error_type) AS error_type,
	d.properties,
	d.scores,
	d.feedback_rating,
	r.n
FROM requests r JOIN details d ON d.n = r.n;
