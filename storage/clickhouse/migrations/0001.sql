-- One row for each version of a record; of those with the same key the highest
-- version holds. Unknown numbers are NULL; "" and the zero UUID are none.
CREATE TABLE IF NOT EXISTS records{cluster} (
	org               LowCardinality(String),
	created_at        DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
	request_id        UUID CODEC(ZSTD(3)),
	version           UInt128 CODEC(ZSTD(1)), -- segment << 32 | ordinal of the journal
	provider          LowCardinality(String),
	model             LowCardinality(String),
	status            Nullable(Int64) CODEC(T64, ZSTD(1)), -- HTTP status code
	latency           Nullable(Int64) CODEC(T64, ZSTD(1)), -- milliseconds
	ttft              Nullable(Int64) CODEC(T64, ZSTD(1)), -- milliseconds
	cost              Nullable(Int64) CODEC(T64, ZSTD(1)), -- billionths of a US dollar
	input             Nullable(Int64) CODEC(T64, ZSTD(1)), -- tokens
	output            Nullable(Int64) CODEC(T64, ZSTD(1)), -- tokens
	cache_read        Nullable(Int64) CODEC(T64, ZSTD(1)), -- tokens
	cache_write       Nullable(Int64) CODEC(T64, ZSTD(1)), -- tokens
	reasoning         Nullable(Int64) CODEC(T64, ZSTD(1)), -- tokens
	cache_savings     Nullable(Int64) CODEC(T64, ZSTD(1)), -- billionths of a US dollar
	cache_miss        LowCardinality(String),
	cache_missed      Nullable(Int64) CODEC(T64, ZSTD(1)), -- tokens
	cache_loss        Nullable(Int64) CODEC(T64, ZSTD(1)), -- billionths of a US dollar
	turn              Nullable(Int64) CODEC(T64, ZSTD(1)), -- from 1
	parent            UUID CODEC(ZSTD(1)), -- request_id
	root              UUID CODEC(ZSTD(1)), -- request_id
	user              String CODEC(ZSTD(1)),
	session           String CODEC(ZSTD(1)),
	session_name      String CODEC(ZSTD(1)),
	responded_at      DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)), -- 1970 for none
	request_model     LowCardinality(String),
	response_model    LowCardinality(String),
	model_override    LowCardinality(String),
	country           LowCardinality(String),
	path              LowCardinality(String),
	target_url        String CODEC(ZSTD(1)),
	auth_hash         LowCardinality(String),
	prompt            LowCardinality(String),
	prompt_version    LowCardinality(String),
	node              LowCardinality(String),
	job               LowCardinality(String),
	experiment        LowCardinality(String),
	referrer          String CODEC(ZSTD(1)),
	finish            LowCardinality(String),
	error_type        LowCardinality(String),
	end_state         Enum8('complete' = 0, 'client_aborted' = 1, 'upstream_aborted' = 2, 'failed' = 3, 'interrupted' = 4),
	stream            Bool,
	threat            Bool,
	passthrough       Bool,
	subscription      Bool,
	cache_enabled     Bool,
	cache_reference   UUID CODEC(ZSTD(1)), -- request_id
	attempt_of        UUID CODEC(ZSTD(1)), -- request_id
	content_segment   Nullable(Int64) CODEC(T64, ZSTD(1)), -- where the journal had the bodies
	content_ordinal   Nullable(Int64) CODEC(Delta(8), ZSTD(1)),
	dialect           LowCardinality(String),
	attempt           Int64 CODEC(T64, ZSTD(1)),
	response_id       String CODEC(ZSTD(1)),
	service_tier      LowCardinality(String),
	inference_geo     LowCardinality(String),
	cache_miss_at     LowCardinality(String),
	price_version     LowCardinality(String),
	session_path      String CODEC(ZSTD(1)),
	trace_id          String CODEC(ZSTD(1)),
	span_id           String CODEC(ZSTD(1)),
	request_bytes     Int64 CODEC(T64, ZSTD(1)),
	response_bytes    Int64 CODEC(T64, ZSTD(1)),
	request_omitted   Bool,
	response_omitted  Bool,
	request_truncated Bool,
	response_truncated Bool,
	cache_write_1h    Nullable(Int64) CODEC(T64, ZSTD(1)), -- tokens, as what follows
	input_audio       Nullable(Int64) CODEC(T64, ZSTD(1)),
	cache_read_audio  Nullable(Int64) CODEC(T64, ZSTD(1)),
	input_image       Nullable(Int64) CODEC(T64, ZSTD(1)),
	output_audio      Nullable(Int64) CODEC(T64, ZSTD(1)),
	output_image      Nullable(Int64) CODEC(T64, ZSTD(1)),
	billed_input      Nullable(Int64) CODEC(T64, ZSTD(1)),
	billed_output     Nullable(Int64) CODEC(T64, ZSTD(1)),
	web_searches      Nullable(Int64) CODEC(T64, ZSTD(1)), -- a number, as what follows
	search_units      Nullable(Int64) CODEC(T64, ZSTD(1)),
	images            Nullable(Int64) CODEC(T64, ZSTD(1)),
	pages             Nullable(Int64) CODEC(T64, ZSTD(1)),
	audio_duration    Nullable(Int64) CODEC(T64, ZSTD(1)), -- milliseconds
	reported_cost     Nullable(Int64) CODEC(T64, ZSTD(1)), -- billionths of a US dollar
	list_cost         Nullable(Int64) CODEC(T64, ZSTD(1)), -- billionths of a US dollar
	rate_limits       String CODEC(ZSTD(1)), -- JSON object
	updated_at        DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)), -- without annotations
	properties        Map(LowCardinality(String), String) CODEC(ZSTD(1)),
	assets            Array(String) CODEC(ZSTD(1)),
	INDEX request_ids request_id TYPE bloom_filter(0.001) GRANULARITY 1,
	INDEX response_ids response_id TYPE bloom_filter(0.001) GRANULARITY 1,
	INDEX users user TYPE bloom_filter(0.01) GRANULARITY 1,
	INDEX sessions session TYPE bloom_filter(0.01) GRANULARITY 1,
	INDEX roots root TYPE bloom_filter(0.01) GRANULARITY 1,
	INDEX property_names mapKeys(properties) TYPE bloom_filter(0.01) GRANULARITY 1,
	INDEX property_values mapValues(properties) TYPE bloom_filter(0.01) GRANULARITY 1
) ENGINE = {replacing}(version)
PARTITION BY toYYYYMMDD(created_at)
ORDER BY (org, created_at, request_id)
SETTINGS {window} = 10000;

-- The bodies, apart: they have a retention of their own, and merges of records do not
-- read them.
CREATE TABLE IF NOT EXISTS content{cluster} (
	org            LowCardinality(String),
	created_at     DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
	request_id     UUID,
	version        UInt128 CODEC(ZSTD(1)),
	segment        Int64 CODEC(ZSTD(1)), -- as content_segment and content_ordinal of the record
	ordinal        Int64 CODEC(ZSTD(1)),
	request_type   LowCardinality(String),
	request        String CODEC(ZSTD(1)),
	response_type  LowCardinality(String),
	response       String CODEC(ZSTD(1)),
	inputs         Map(LowCardinality(String), String) CODEC(ZSTD(1)),
	media          Bool
) ENGINE = {replacing}(version)
PARTITION BY toYYYYMMDD(created_at)
ORDER BY (org, created_at, request_id)
SETTINGS {window} = 10000, index_granularity = 1024, index_granularity_bytes = 67108864;

-- What was learned after a record ended. Rows are partitioned by when it was, which is
-- after the record was created, so that none goes before its record.
CREATE TABLE IF NOT EXISTS scores{cluster} (
	org         LowCardinality(String),
	request_id  UUID,
	name        LowCardinality(String), -- service-score-feedback is feedback
	value       Float64,                -- of feedback 0 or 1
	feedback_id Int64,
	feedback_at DateTime64(3, 'UTC'),
	learned_at  DateTime64(3, 'UTC'),
	version     UInt128
) ENGINE = {replacing}(version)
PARTITION BY toYYYYMM(learned_at)
ORDER BY (org, request_id, name)
SETTINGS {window} = 10000;

CREATE TABLE IF NOT EXISTS late_properties{cluster} (
	org        LowCardinality(String),
	request_id UUID,
	name       LowCardinality(String),
	value      String,
	learned_at DateTime64(3, 'UTC'),
	version    UInt128
) ENGINE = {replacing}(version)
PARTITION BY toYYYYMM(learned_at)
ORDER BY (org, request_id, name)
SETTINGS {window} = 10000;

CREATE TABLE IF NOT EXISTS session_tags{cluster} (
	org        LowCardinality(String),
	session    String,
	tag        String, -- "" takes the tag away
	learned_at DateTime64(3, 'UTC'),
	version    UInt128
) ENGINE = {replacing}(version)
PARTITION BY toYYYYMM(learned_at)
ORDER BY (org, session)
SETTINGS {window} = 10000;

-- Saved views stay until they are deleted.
CREATE TABLE IF NOT EXISTS views{cluster} (
	org        LowCardinality(String),
	name       String,
	screen     String, -- "" deletes the view
	state      String,
	updated_at DateTime64(3, 'UTC'),
	version    UInt128
) ENGINE = {replacing}(version)
ORDER BY (org, name)
SETTINGS {window} = 10000;

-- Conversations are what their changes make of them, in the order of version and n. Those
-- of the conversation itself stay in one partition, for it may be older than its items.
CREATE TABLE IF NOT EXISTS conversation_changes{cluster} (
	org          LowCardinality(String),
	conversation String CODEC(ZSTD(1)),
	changed_at   DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
	version      UInt128 CODEC(ZSTD(1)),
	n            UInt32 CODEC(ZSTD(1)), -- in a batch
	change       Enum8('created' = 1, 'metadata' = 2, 'added' = 3, 'removed' = 4, 'deleted' = 5),
	item         String CODEC(ZSTD(1)), -- id of what was added or removed
	value        String CODEC(ZSTD(1)), -- JSON of the item, or of the metadata
	user         String CODEC(ZSTD(1))
) ENGINE = {replacing}
PARTITION BY if(item = '', 0, toYYYYMMDD(changed_at))
ORDER BY (org, conversation, version, n, change, item)
SETTINGS {window} = 10000, index_granularity = 256;
