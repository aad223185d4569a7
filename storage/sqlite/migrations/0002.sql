-- Names are found by a hash of their text. An index of the texts of four million sessions,
-- which are mostly random, had 65,000 pages, and each new or deleted name changed another one.
CREATE TABLE hashed_names (
	id   INTEGER PRIMARY KEY,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,    -- once in a kind
	hash INTEGER NOT NULL, -- name_hash of the bytes, 32 bits
	seen INTEGER NOT NULL  -- milliseconds; no record that uses it is younger by more than a day
) STRICT;
CREATE INDEX names_kind ON hashed_names (kind);
-- Weir adds the function name_hash to SQLite, of bytes: of a text it may see what is before a NUL.
INSERT INTO hashed_names (id, kind, name, hash, seen) SELECT id, kind, name, name_hash(CAST(name AS BLOB)), seen FROM names;
CREATE INDEX names_hash ON hashed_names (hash);
-- The view request_log reads the new table from here on.
PRAGMA legacy_alter_table = ON;
DROP TABLE names;
ALTER TABLE hashed_names RENAME TO names;
PRAGMA legacy_alter_table = OFF;
