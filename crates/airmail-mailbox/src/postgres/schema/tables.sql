-- Version 1: what is stored. Why it is like this: the crate's documentation.

CREATE SCHEMA IF NOT EXISTS airmail;

CREATE TABLE airmail.account (
    id         int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL UNIQUE CHECK (char_length(name) BETWEEN 1 AND 255),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE airmail.queue (
    id             int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text NOT NULL UNIQUE CHECK (char_length(name) BETWEEN 1 AND 255),
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- After so many leases that ended without an acknowledgement, to `dead_letter`; null: never.
    deliveries_max int CHECK (deliveries_max > 0),
    dead_letter    int REFERENCES airmail.queue (id),
    CHECK (deliveries_max IS NULL OR dead_letter IS NOT NULL)
);

-- What is never rolled back and leaves no dead rows behind is kept in sequences: they are changed
-- in place, and every session sees the new value at once.
CREATE SEQUENCE airmail.message_id;
CREATE SEQUENCE airmail.lease_id;
-- The slot that new messages go to.
CREATE SEQUENCE airmail.active_slot MINVALUE 0 START 0;
-- Raised to learn which senders are still under way: see `settle`.
CREATE SEQUENCE airmail.epoch MAXVALUE 2147483647 CYCLE;
-- Until when (seconds since 1970) some node has readers that wait.
CREATE SEQUENCE airmail.waited_until;
-- Set, not drawn: a value that was drawn is up to 32 higher after a crash.
SELECT setval('airmail.active_slot', 0), setval('airmail.waited_until', 1),
       nextval('airmail.message_id'), nextval('airmail.epoch');

-- What was sent. Inserted, never updated, never deleted: its slot is truncated. The queue is the
-- one that it was sent to.
CREATE TABLE airmail.message (
    slot       smallint NOT NULL,
    priority   smallint NOT NULL,
    queue      int NOT NULL,
    sender     int NOT NULL,
    receiver   int NOT NULL,
    id         bigint NOT NULL,
    created_at timestamptz NOT NULL,
    key        text,
    content    bytea NOT NULL
) PARTITION BY LIST (slot);
-- Contents of up to a page stay in the row; none is compressed.
ALTER TABLE airmail.message ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE INDEX ON airmail.message (id);

-- What can be handed out. A row is inserted and deleted, never updated. `receiver` is 0 for a
-- broadcast. By `place` it is handed out: the id; less than 0 if it goes before (a priority, or it
-- comes back from `later`), see `place_of`.
CREATE TABLE airmail.ready (
    slot       smallint NOT NULL,
    priority   smallint NOT NULL,
    deliveries int NOT NULL,
    queue      int NOT NULL,
    sender     int NOT NULL,
    receiver   int NOT NULL,
    place      bigint NOT NULL,
    id         bigint NOT NULL,
    expires_at timestamptz,
    key        text
) PARTITION BY LIST (slot);
CREATE INDEX ON airmail.ready (receiver, queue, place);
CREATE INDEX ON airmail.ready (receiver, sender, id);
CREATE INDEX ON airmail.ready (queue, receiver, key, id) WHERE key IS NOT NULL;
CREATE INDEX ON airmail.ready (expires_at) WHERE expires_at IS NOT NULL;

-- What cannot be handed out before `due_at`: leased (`lease` says to whom) or delayed.
CREATE TABLE airmail.later (
    slot       smallint NOT NULL,
    priority   smallint NOT NULL,
    deliveries int NOT NULL,
    queue      int NOT NULL,
    sender     int NOT NULL,
    receiver   int NOT NULL,
    id         bigint NOT NULL,
    due_at     timestamptz NOT NULL,
    lease      bigint,
    expires_at timestamptz,
    key        text
) PARTITION BY LIST (slot);
CREATE INDEX ON airmail.later (id);
CREATE INDEX ON airmail.later (due_at);
CREATE INDEX ON airmail.later (queue, receiver, key, id) WHERE key IS NOT NULL;

-- Truncation does what a vacuum would, and one that goes on would only keep a slot from it.
DO $$
BEGIN
    FOR slot IN 0..2 LOOP
        EXECUTE format(
            'CREATE TABLE airmail.message_%1$s PARTITION OF airmail.message FOR VALUES IN (%1$s)
                 WITH (toast_tuple_target = 8160, autovacuum_enabled = off,
                       toast.autovacuum_enabled = off)', slot);
        EXECUTE format(
            'CREATE TABLE airmail.ready_%1$s PARTITION OF airmail.ready FOR VALUES IN (%1$s)
                 WITH (autovacuum_enabled = off)', slot);
        EXECUTE format(
            'CREATE TABLE airmail.later_%1$s PARTITION OF airmail.later FOR VALUES IN (%1$s)
                 WITH (autovacuum_enabled = off)', slot);
    END LOOP;
END $$;

-- Where a message stands among those for the same receiver in the same queue. What came straight
-- from its sender without a priority stands at its id, so such places only grow; everything else
-- stands before: higher priorities first, within one by id.
CREATE FUNCTION airmail.place_of(id bigint, priority smallint, fresh boolean) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN fresh AND priority = 0 THEN id
            ELSE id - ((priority::bigint + 1) << 58) END;

-- Fails with a code of the table of errors, as SQLSTATE `AM` and its number.
CREATE FUNCTION airmail.fail(code text, number int, field text, value text) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', code USING ERRCODE = 'AM' || lpad(number::text, 3, '0'),
        DETAIL = coalesce(field || ': ' || value, field, '');
END $$;
