-- The balance of all exchanges, each of which has a record or is lost.
ALTER TABLE position ADD COLUMN recorded INTEGER NOT NULL DEFAULT 0; -- exchanges that were given a record
ALTER TABLE position ADD COLUMN number INTEGER NOT NULL DEFAULT 0;   -- the highest number of one
UPDATE position SET recorded = (SELECT count(*) FROM requests);

-- Entries of the journal that were given up. A batch that is written twice tells
-- its losses once.
CREATE TABLE losses_2 (
	reason    TEXT NOT NULL,
	since     INTEGER NOT NULL, -- milliseconds since 1970: the first
	until     INTEGER NOT NULL, -- and the last
	count     INTEGER NOT NULL, -- versions of records, and late facts
	exchanges INTEGER NOT NULL, -- exchanges that have no record for it
	segment   INTEGER NOT NULL, -- position after the batch
	ordinal   INTEGER NOT NULL,
	PRIMARY KEY (segment, ordinal, reason, since, until, count, exchanges)
) STRICT, WITHOUT ROWID;
INSERT INTO losses_2 SELECT reason, since, until, count, count, 0, 0 FROM losses;
DROP TABLE losses;
ALTER TABLE losses_2 RENAME TO losses;
