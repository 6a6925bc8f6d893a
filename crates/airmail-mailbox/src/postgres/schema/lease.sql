-- What becomes of leased and delayed messages.

-- Acknowledges leases; says which (by their places in the arrays) still were the reader's.
CREATE FUNCTION airmail.acknowledge_many(ids bigint[], leases bigint[]) RETURNS SETOF int
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    done int[];
    queues int[];
    receivers int[];
BEGIN
    WITH done AS (
        DELETE FROM airmail.later l USING unnest(ids, leases) WITH ORDINALITY u (id, lease, at)
        WHERE l.id = u.id AND l.lease = u.lease
        RETURNING u.at, l.queue, l.receiver, l.key)
    SELECT array_agg(d.at::int), array_agg(d.queue) FILTER (WHERE d.key IS NOT NULL),
           array_agg(d.receiver) FILTER (WHERE d.key IS NOT NULL)
    INTO done, queues, receivers FROM done d;
    -- The next of the key may go now.
    IF queues IS NOT NULL THEN
        PERFORM airmail.ring(queues, receivers);
    END IF;
    RETURN QUERY SELECT unnest(done);
END $$;

-- Lets leases last until so long from now.
CREATE FUNCTION airmail.extend_many(ids bigint[], leases bigint[], lease_ms bigint)
RETURNS SETOF int
    LANGUAGE sql AS $$
    UPDATE airmail.later l SET due_at = clock_timestamp() + lease_ms * interval '1 millisecond'
    FROM unnest(ids, leases) WITH ORDINALITY u (id, lease, at)
    WHERE l.id = u.id AND l.lease = u.lease
    RETURNING u.at::int
$$;

-- Gives leased messages back, to be handed out again after a delay.
CREATE FUNCTION airmail.release_many(ids bigint[], leases bigint[], delay_ms bigint)
RETURNS SETOF int
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    done int[];
    released bigint[];
BEGIN
    -- One that is to be dead-lettered must look like a lease that ended: `lease` stays.
    WITH done AS (
        UPDATE airmail.later l
        SET due_at = clock_timestamp() + delay_ms * interval '1 millisecond',
            lease = nextval('airmail.lease_id')
        FROM unnest(ids, leases) WITH ORDINALITY u (id, lease, at)
        WHERE l.id = u.id AND l.lease = u.lease
        RETURNING u.at, l.id)
    SELECT array_agg(d.at::int), array_agg(d.id) INTO done, released FROM done d;
    IF released IS NOT NULL AND delay_ms = 0 THEN
        PERFORM airmail.put_back(released);
    END IF;
    RETURN QUERY SELECT unnest(done);
END $$;

-- Moves messages from `later` to `ready`, or to the dead letters if they were leased too often.
CREATE FUNCTION airmail.put_back(ids bigint[]) RETURNS int
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    queues int[];
    receivers int[];
BEGIN
    WITH due AS (
        DELETE FROM airmail.later l USING unnest(ids) u (id) WHERE l.id = u.id RETURNING l.*
    ), judged AS (
        SELECT d.*, d.deliveries >= q.deliveries_max AS dead, q.dead_letter
        FROM due d JOIN airmail.queue q ON q.id = d.queue
    ), put AS (
        INSERT INTO airmail.ready
            (slot, priority, deliveries, queue, sender, receiver, place, id, expires_at, key)
        SELECT j.slot, j.priority, CASE WHEN j.dead THEN 0 ELSE j.deliveries END,
               CASE WHEN j.dead THEN j.dead_letter ELSE j.queue END, j.sender, j.receiver,
               airmail.place_of(j.id, j.priority, false), j.id,
               CASE WHEN j.dead THEN NULL ELSE j.expires_at END, j.key
        FROM judged j
        RETURNING queue, receiver)
    SELECT array_agg(p.queue), array_agg(p.receiver) INTO queues, receivers FROM put p;
    IF queues IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM airmail.ring(queues, receivers);
    RETURN cardinality(queues);
END $$;

-- Puts back what is due, at most so many, beginning behind `since` (null: at the very first), and
-- says how many, and in how many milliseconds the next one is due (null: none is known).
CREATE FUNCTION airmail.move_due(since timestamptz, count_max int)
RETURNS TABLE (moved int, next_ms bigint)
    LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[];
    from_time timestamptz := coalesce(since, '-infinity');
    at_time timestamptz := clock_timestamp();
BEGIN
    ids := ARRAY(
        SELECT l.id FROM airmail.later l WHERE l.due_at > from_time AND l.due_at <= at_time
        ORDER BY l.due_at LIMIT count_max FOR UPDATE SKIP LOCKED);
    moved := 0;
    IF cardinality(ids) > 0 THEN
        moved := airmail.put_back(ids);
    END IF;
    next_ms := (SELECT ceil(extract(epoch FROM l.due_at - clock_timestamp()) * 1000) FROM airmail.later l
                WHERE l.due_at > at_time ORDER BY l.due_at LIMIT 1);
    RETURN NEXT;
END $$;

-- Removes what has expired, to the queue's dead letters where it has such.
CREATE FUNCTION airmail.expire(count_max int) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    queues int[];
    receivers int[];
    expired int;
BEGIN
    WITH picked AS MATERIALIZED (
        SELECT r.slot, r.ctid AS tid FROM airmail.ready r WHERE r.expires_at <= clock_timestamp()
        ORDER BY r.expires_at LIMIT count_max FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM airmail.ready r USING picked p WHERE r.slot = p.slot AND r.ctid = p.tid
        RETURNING r.*
    ), put AS (
        INSERT INTO airmail.ready
            (slot, priority, deliveries, queue, sender, receiver, place, id, key)
        SELECT g.slot, g.priority, 0, q.dead_letter, g.sender, g.receiver,
               airmail.place_of(g.id, g.priority, false), g.id, g.key
        FROM gone g JOIN airmail.queue q ON q.id = g.queue WHERE q.dead_letter IS NOT NULL
        RETURNING queue, receiver)
    SELECT array_agg(p.queue), array_agg(p.receiver), (SELECT count(*) FROM gone)
    INTO queues, receivers, expired FROM put p;
    IF queues IS NOT NULL THEN
        PERFORM airmail.ring(queues, receivers);
    END IF;
    RETURN expired;
END $$;
