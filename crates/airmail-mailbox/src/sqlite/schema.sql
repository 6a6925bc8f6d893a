-- Version 1. Times in microseconds since 1970. SQLite has one writer and reuses the room of what
-- was deleted, so here a message is a row that changes; only its content is apart, so that it is
-- not rewritten.

CREATE TABLE account (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE queue (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    name           TEXT NOT NULL UNIQUE,
    created_at     INTEGER NOT NULL,
    deliveries_max INTEGER,
    dead_letter    INTEGER REFERENCES queue (id)
) STRICT;

-- `receiver` is 0 for a broadcast. `due_at` is null if it can be handed out; by `place`, see
-- `place_of` in messages.rs. `lease` is not null while a reader has it.
CREATE TABLE message (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    queue      INTEGER NOT NULL,
    origin     INTEGER NOT NULL,
    sender     INTEGER NOT NULL,
    receiver   INTEGER NOT NULL,
    priority   INTEGER NOT NULL,
    place      INTEGER,
    deliveries INTEGER NOT NULL,
    due_at     INTEGER,
    lease      INTEGER,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    key        TEXT
) STRICT;
CREATE INDEX ready ON message (receiver, queue, place) WHERE due_at IS NULL;
CREATE INDEX by_sender ON message (receiver, sender, id) WHERE due_at IS NULL;
CREATE INDEX later ON message (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX by_key ON message (queue, receiver, key, id) WHERE key IS NOT NULL;
CREATE INDEX mortal ON message (expires_at) WHERE expires_at IS NOT NULL AND due_at IS NULL;
CREATE INDEX of_queue ON message (queue);

CREATE TABLE content (
    id      INTEGER PRIMARY KEY,
    content BLOB NOT NULL
) STRICT;

-- The last lease that was given.
CREATE TABLE counter (lease INTEGER NOT NULL) STRICT;
INSERT INTO counter VALUES (0);
