-- What is charged by something else than tokens.
ALTER TABLE details ADD COLUMN search_units INTEGER; -- pieces, like the next two
ALTER TABLE details ADD COLUMN images INTEGER;
ALTER TABLE details ADD COLUMN pages INTEGER;
ALTER TABLE details ADD COLUMN audio_duration INTEGER; -- milliseconds
